"""Rendering and writing of `report.html`."""

from __future__ import annotations

from importlib import resources
from os import PathLike
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from matplotlib import rc_context

from haarpool._files import write_text
from haarpool.report import maps, tables
from haarpool.report.pictures import draw
from haarpool.report.record import RunRecord
from haarpool.report.svg import STYLE
from haarpool.training import results
from haarpool.training.run_folder import REPORT


def write_report(folder: str | PathLike[str]) -> Path:
    """Write `report.html` into the folder of a complete run; all of it comes from the files there.

    Args:
        folder: Folder that `haarpool train` wrote.

    Returns:
        Path of the report.
    """
    page = render_report(RunRecord.read(folder))
    path = Path(folder) / REPORT
    write_text(path, page)
    return path


def render_report(record: RunRecord) -> str:
    """Return the report as HTML."""
    package = resources.files("haarpool.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(package.joinpath("report.html").read_text("utf-8"))
    with rc_context(STYLE):
        drawn = maps.draw_maps(record)
    return template.render(
        style=package.joinpath("report.css").read_text("utf-8"),
        config=record.config,
        result=record.result,
        record=record,
        chain=record.chain,
        max_drawn=results.MAX_DRAWN,
        pictures=draw(record),
        figure=record.figure,
        maps=drawn,
        map_caption=maps.caption(record) if record.task.of_nodes else "",
        legend=maps.legend(record),
        tables=tables,
        results=results,
    )
