"""The report: made from the lines on disk alone, so that it can be made again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from haarpool.comparison.document import Part, write_document
from haarpool.comparison.learners import Line
from haarpool.comparison.lines import ResultLines, current_lines, refuse_other_files
from haarpool.comparison.table import REPEATS
from haarpool.errors import HaarPoolError
from paper.speed import read_benchmarks, speed_parts
from paper.table_report import PaperReport
from paper.tables import QUICK_REPEATS, TABLES, PaperTable, all_tables

MADE_BY = "Made by `python -m paper"
EARLIER = "Made by `haarpool reproduce"  # in the report of an earlier version
INTRODUCTION = (
    f"{MADE_BY}` from the lines in this folder: each is one training on one split, with its "
    "settings, versions, hashes of split and chains, and in newer lines a hash of the source code. "
    "`haarpool train` with the settings of a line trains the same networks on the same device and "
    "processor and with the same versions; `seed` is the number of the repeat. For a mixture and "
    "for nested selection it is the seed of all networks, and no single command trains them; they "
    "have no single `epoch`, and a mixture, which trains on the validation part, has no "
    "`validation`: null. No choice in a trial reads the test part.",
    "± is the standard deviation between splits. The 95 % interval is mean ± t · s · sqrt(1/n + "
    "n_test/n_train) with the quantile t of Student's distribution with n − 1 degrees of freedom, "
    "after Nadeau and Bengio (2003): the training parts of random splits overlap, so the usual "
    "interval is too narrow. (n_train is the training part alone, also for mixtures and for what "
    "nested selection chose in Table 1, which train on both parts: their intervals are about 3 % "
    "too wide.) Differences are paired: the same "
    "formula on the differences over the splits that both methods have.",
    "Results of the same split (published folds of QM7) are averaged first, so n is the number of "
    "different splits. On Triangles all trials have the same split: there ± is the standard "
    "deviation between weights, n the number of trials, and the interval that of Student, without "
    "the term n_test/n_train.",
    "Published numbers are those of the paper; most are quoted there from other papers with other "
    "splits. `*`: taken by the paper from that of EigenPool. – under Published: no public record.",
)


def write_report(folder: Path, *, quick: bool = False) -> list[Path]:
    """Write the report of all tables that have lines.

    Args:
        folder: Folder of results.
        quick: Whether the lines are those of the small versions.

    Returns:
        Its files: Markdown, HTML and LaTeX.
    """
    parts: list[Part] = ["# Results", *INTRODUCTION]
    if quick:
        parts.append("Quick versions, with few epochs: only to see that they run.")
    start = len(parts)
    check_folder(folder)
    for table in all_tables():
        lines = ResultLines(folder, table.name).read()
        table = _quick_table(table, lines) if quick else table
        if lines and table.cells:
            repeats = QUICK_REPEATS if quick else REPEATS
            parts += PaperReport(table, lines, repeats, folder).parts()
    if benchmarks := read_benchmarks(folder, quick=quick):
        parts += speed_parts(benchmarks)
    if len(parts) == start:
        raise HaarPoolError(
            f"lines of results in {folder}", "none", "run a table first: python -m paper table1"
        )
    return write_document(parts, folder)


def check_folder(folder: Path) -> None:
    """Raise an error if a folder is a file, or has files that are not those of results."""
    refuse_other_files(folder, (*TABLES, "bench-*.json"), (MADE_BY, EARLIER), "results")
    for quick in (False, True):
        read_benchmarks(folder, quick=quick)


def _quick_table(table: PaperTable, lines: Sequence[Line]) -> PaperTable:
    """Return the cells of the small version of a table that were run."""
    small = table.shortened()
    run = {key[:3] for key in current_lines(small, lines)}
    return small.with_cells([cell for cell in small.cells if cell.key in run])
