"""A finished run as one page, `report.html`, that needs no network and no script."""

from __future__ import annotations

from importlib import resources
from os import PathLike
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from haarpool._files import write_text
from haarpool.chains.chain import Chain
from haarpool.report import tables
from haarpool.report.figures import MAX_DRAWN, draw
from haarpool.report.record import Predictions, RunRecord
from haarpool.training.run_folder import EXAMPLE_CHAIN, REPORT, RunFolder

__all__ = ["Predictions", "RunRecord", "write_report"]


def write_report(path: str | PathLike[str]) -> Path:
    """Write `report.html` from the files of a run folder.

    Args:
        path: The folder of a complete run.

    Returns:
        The path of the report.
    """
    folder = RunFolder.open(path)
    record = RunRecord.read(folder)
    chain = Chain.load(folder.path / EXAMPLE_CHAIN) if folder.has(EXAMPLE_CHAIN) else None
    page = render(record, chain, f"graph {record.result.get('example_graph')}")
    write_text(folder.path / REPORT, page)
    return folder.path / REPORT


def render(record: RunRecord, chain: Chain | None, graph_name: str) -> str:
    """The page as text; the arguments are those of `write_report`."""
    package = resources.files("haarpool.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(package.joinpath("report.html").read_text("utf-8"))
    return template.render(
        style=package.joinpath("report.css").read_text("utf-8"),
        config=record.config,
        result=record.result,
        record=record,
        chain=chain,
        graph_name=graph_name,
        max_drawn=MAX_DRAWN,
        figures=draw(record, chain),
        confusion=None if record.is_regression else tables.Confusion.of(record),
        tables=tables,
    )
