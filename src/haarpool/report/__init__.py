"""The report of a run: one page, `report.html`, without scripts or links to other files."""

from haarpool.report.page import render_report, write_report
from haarpool.report.record import RunRecord

__all__ = ["RunRecord", "render_report", "write_report"]
