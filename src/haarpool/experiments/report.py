"""The report: made from the lines on disk alone, so that it can be made again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from haarpool._files import write_text
from haarpool.errors import HaarPoolError
from haarpool.experiments.document import Part, to_html, to_latex, to_markdown
from haarpool.experiments.lines import Line, ResultLines, current_lines
from haarpool.experiments.speed import read_benchmarks, speed_parts
from haarpool.experiments.table import QUICK_REPEATS, REPEATS, TABLES, Table, find_table
from haarpool.experiments.table_report import TableReport

FILES = {"README.md": to_markdown, "report.html": to_html, "tables.tex": to_latex}
MADE_BY = "Made by `haarpool reproduce"
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
    for name in TABLES:
        lines = ResultLines(folder, name).read()
        table = _quick_table(find_table(name), lines) if quick else find_table(name)
        if lines and table.cells:
            parts += TableReport(table, lines, QUICK_REPEATS if quick else REPEATS).parts(folder)
    if benchmarks := read_benchmarks(folder, quick=quick):
        parts += speed_parts(benchmarks)
    if len(parts) == start:
        raise HaarPoolError(
            f"lines of results in {folder}", "none", "run a table first: haarpool reproduce table1"
        )
    paths = []
    for name, render in FILES.items():
        write_text(folder / name, render(parts))
        paths.append(folder / name)
    return paths


def check_folder(folder: Path) -> None:
    """Raise an error if a folder is a file, or has files that are not those of results."""
    if folder.is_file():
        raise HaarPoolError("a folder for results", f"the file {folder}", "choose a folder")
    path = folder / "README.md"
    if path.exists() and MADE_BY not in path.read_text("utf-8", errors="replace"):
        raise HaarPoolError(
            "a folder for results", f"{path}, which is not a report", "choose another folder"
        )
    for quick in (False, True):
        read_benchmarks(folder, quick=quick)


def _quick_table(table: Table, lines: Sequence[Line]) -> Table:
    """Return the cells of the small version of a table that were run."""
    small = table.shortened()
    run = {key[:3] for key in current_lines(small, lines)}
    return small.with_cells([cell for cell in small.cells if cell.key in run])
