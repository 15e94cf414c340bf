"""A document as Markdown, HTML and LaTeX.

Its parts are texts, lists of texts and tables. A text is a paragraph of Markdown, a heading
("## Methods") or a picture ("![what it shows](file.png)").
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

from haarpool._files import write_text

_NAME = 12  # columns that names keep where others are left out


class Grid(NamedTuple):
    """A table of texts.

    Attributes:
        caption: What it shows.
        header: Names of the columns; the first column has names, the others numbers.
        rows: The rows. In a row of two texts, the second one takes all columns but the first.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def as_text(self, width: int = 0) -> str:
        """Return the table for a terminal, without its caption.

        Args:
            width: Columns of the terminal. For a wider table, names and header are broken into
                lines; then the last columns are left out, and a line says which.

        Example:
            >>> print(Grid("", ["Method", "n"], [["sum", "10"], ["mean", "9"]]).as_text())
            Method   n
            sum     10
            mean     9
        """
        room = width or 10**6
        whole = [row for row in self.rows if len(row) == len(self.header)]
        name, *widths = (max(map(len, column)) for column in zip(self.header, *whole, strict=True))
        name = max([name, *(len(row[0]) for row in self.rows)])
        if name + sum(widths) + 2 * len(widths) > room:
            columns = zip(self.header, *whole, strict=True)
            widths = [max(map(len, [*title.split(), *texts])) for title, *texts in columns][1:]
        while len(widths) > 1 and _NAME + sum(widths) + 2 * len(widths) > room:
            widths.pop()
        name = min(name, max(room - sum(widths) - 2 * len(widths), _NAME))
        rows = []
        for row in [self.header, *self.rows]:
            is_whole = len(row) == len(self.header)
            limits = widths if is_whole else [max(room - name - 2, _NAME)]
            cells = [wrap(text, n) for text, n in zip(row, [name, *limits], strict=False)]
            for first, *others in zip_longest(*cells, fillvalue=""):
                pairs = zip(others, widths if is_whole else [0], strict=False)
                texts = [f"{first:{name}}", *(f"{x:>{n}}" for x, n in pairs)]
                rows.append("  ".join(texts).rstrip())
        if left_out := self.header[len(widths) + 1 :]:
            rows.append(f"(left out at {width} columns: {', '.join(left_out)})")
        return "\n".join(rows)

    def __str__(self) -> str:
        return f"{self.caption}\n{self.as_text()}"


Part = str | list[str] | Grid

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:92em;margin:2em auto;padding:0 1em}"
    "p,li,caption{max-width:64em}"
    "table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}"
    "caption{text-align:left;color:#555;padding:.3em 0}"
    "th,td{padding:.25em .6em;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left}div{overflow-x:auto}img{max-width:100%}"
)
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "–": "--", "−": "$-$", "·": r"$\cdot$", "`": "",
    "†": r"$\dagger$", "‡": r"$\ddagger$", "²": "$^2$", "ε": r"$\epsilon$", "|": "$|$",
    "[": "{[}",  # at the start of a row it would be the argument of \\
}  # fmt: skip


def write_document(parts: Sequence[Part], folder: Path, *pictures: str) -> list[Path]:
    """Write a document as Markdown, HTML and LaTeX, and return the files.

    Args:
        parts: Its parts.
        folder: The folder, with the files of its pictures.
        *pictures: Names of pictures that the HTML page contains, so that it can be sent alone.
    """
    paths = []
    for name, render in FILES.items():
        text = render(parts)
        for picture in [one for one in pictures if f'src="{one}"' in text]:
            data = b64encode((folder / picture).read_bytes()).decode()
            text = text.replace(f'src="{picture}"', f'src="data:image/png;base64,{data}"')
        write_text(folder / name, text)
        paths.append(folder / name)
    return paths


def to_markdown(parts: Sequence[Part]) -> str:
    """Return a document as Markdown."""
    return "\n\n".join(map(_markdown, parts)) + "\n"


def _markdown(part: Part) -> str:
    if isinstance(part, Grid):
        rows = [[text.replace("|", "\\|") for text in row] for row in (part.header, *part.rows)]
        rows = [row + [""] * (len(rows[0]) - len(row)) for row in rows]
        return f"*{part.caption}*\n\n{markdown_table(rows, numbers='---:')}"
    return part if isinstance(part, str) else "\n".join(f"- {text}" for text in part)


def markdown_table(rows: Sequence[Sequence[str]], numbers: str = "---") -> str:
    """Return a table as Markdown.

    Args:
        rows: The header and the other rows.
        numbers: Alignment of all columns but the first.
    """
    lines = [rows[0], ["---", *[numbers] * (len(rows[0]) - 1)], *rows[1:]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def to_html(parts: Sequence[Part]) -> str:
    """Return a document, which starts with its title, as an HTML page; its pictures are links."""
    title = escape(str(parts[0]).lstrip("# "))
    body = "\n".join(map(_html, parts))
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n{body}\n</html>\n"
    )


def _html(part: Part) -> str:
    if isinstance(part, Grid):
        columns = len(part.header)
        rows = [_html_row("th", part.header), *(_html_row("td", x, columns) for x in part.rows)]
        caption = f"<caption>{_inline(part.caption)}</caption>"
        return f"<div><table>{caption}\n" + "\n".join(rows) + "\n</table></div>"
    if isinstance(part, list):
        return f"<ul>{''.join(f'<li>{_inline(text)}</li>' for text in part)}</ul>"
    if heading := re.match("(#+) (.*)", part):
        tag = f"h{len(heading[1])}"
        return f"<{tag}>{escape(heading[2])}</{tag}>"
    if picture := re.fullmatch(r"!\[(.*)\]\((.*)\)", part):
        return f'<img src="{escape(picture[2])}" alt="{escape(picture[1])}">'
    return f"<p>{_inline(part)}</p>"


def _html_row(tag: str, texts: Sequence[str], columns: int = 0) -> str:
    cells = [f"<{tag}>{escape(text)}</{tag}>" for text in texts]
    if len(texts) < columns:
        style = "text-align:left;white-space:normal"
        cells[1] = cells[1].replace("<td>", f'<td colspan="{columns - 1}" style="{style}">', 1)
    return f"<tr>{''.join(cells)}</tr>"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))


def to_latex(parts: Sequence[Part]) -> str:
    """Return the tables of a document as LaTeX, no wider than the text.

    A document that reads them uses the packages booktabs and adjustbox.
    """
    tables = [_latex_table(part) for part in parts if isinstance(part, Grid)]
    return "\n\n".join([r"% \usepackage{booktabs, adjustbox}", *tables]) + "\n"


def _latex_table(grid: Grid) -> str:
    columns = len(grid.header)
    cells = [[*map(_latex, row)] for row in (grid.header, *grid.rows)]
    for row in [row for row in cells if len(row) < columns]:
        row[1] = rf"\multicolumn{{{columns - 1}}}{{p{{0.6\textwidth}}}}{{{row[1]}}}"
    header, *rows = (" & ".join(row) + r" \\" for row in cells)
    return "\n".join([
        r"\begin{table}",
        rf"\caption{{{_latex(grid.caption)}}}",
        r"\begin{adjustbox}{max width=\textwidth}",
        rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}",
        r"\toprule", header, r"\midrule", *rows, r"\bottomrule",
        r"\end{tabular}", r"\end{adjustbox}", r"\end{table}",
    ])  # fmt: skip


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


FILES = {"README.md": to_markdown, "report.html": to_html, "tables.tex": to_latex}
