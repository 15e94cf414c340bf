"""A finished run as one page, `report.html`, that needs no network and no script."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from haarpool._files import write_text
from haarpool.chains.chain import Chain
from haarpool.report import tables
from haarpool.report.figures import MAX_DRAWN, draw
from haarpool.report.record import Predictions, RunRecord

__all__ = ["Predictions", "RunRecord", "write_report"]

NAME = "report.html"


def write_report(folder: Path, record: RunRecord, chain: Chain | None, graph_name: str) -> Path:
    """Write `report.html` into a folder, whole or not at all, and return its path.

    Args:
        folder: of the run; it has to exist.
        record: what the run left behind.
        chain: of one example graph, with its graph; None for a network without chain.
        graph_name: what to call that graph, for instance "graph 17".
    """
    page = render(record, chain, graph_name)  # before any file is touched
    path = Path(folder) / NAME
    write_text(path, page)
    return path


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
