"""A document of headings, paragraphs, lists and tables, as Markdown, HTML and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title of the document."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    texts: Sequence[str]


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Attributes:
        caption: What it shows.
        header: Names of the columns; the first column has names, the others numbers.
        rows: The rows.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A picture beside the document.

    Attributes:
        name: Name of its file.
        caption: What it shows.
    """

    name: str
    caption: str


Part = Heading | Paragraph | Items | Grid | Picture
DASH = "–"  # a number that is not there

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:92em;margin:2em auto;padding:0 1em}"
    "p,li,caption{max-width:64em}"
    "table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}"
    "caption{text-align:left;color:#555;padding:.3em 0}"
    "th,td{padding:.25em .6em;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left}div{overflow-x:auto}img{max-width:100%}"
)


def to_markdown(parts: Sequence[Part]) -> str:
    """Return a document as Markdown."""
    blocks = []
    for part in parts:
        if isinstance(part, Heading):
            blocks.append("#" * part.level + " " + part.text)
        elif isinstance(part, Paragraph):
            blocks.append(part.text)
        elif isinstance(part, Items):
            blocks.append("\n".join(f"- {text}" for text in part.texts))
        elif isinstance(part, Picture):
            blocks.append(f"![{part.caption}]({part.name})")
        else:
            lines = [part.header, ["---", *["---:"] * (len(part.header) - 1)], *part.rows]
            cells = ["| " + " | ".join(t.replace("|", "\\|") for t in row) + " |" for row in lines]
            blocks.append("\n".join([f"*{part.caption}*", "", *cells]))
    return "\n\n".join(blocks) + "\n"


def to_html(parts: Sequence[Part]) -> str:
    """Return a document as an HTML page without other files."""
    title = next((part.text for part in parts if isinstance(part, Heading)), "")
    body = "\n".join(_html(part) for part in parts)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n{body}\n</html>\n"
    )


def _html(part: Part) -> str:
    if isinstance(part, Heading):
        return f"<h{part.level}>{escape(part.text)}</h{part.level}>"
    if isinstance(part, Paragraph):
        return f"<p>{_code(escape(part.text))}</p>"
    if isinstance(part, Items):
        items = "".join(f"<li>{_code(escape(text))}</li>" for text in part.texts)
        return f"<ul>{items}</ul>"
    if isinstance(part, Picture):
        return f'<img src="{escape(part.name)}" alt="{escape(part.caption)}">'
    rows = [_html_row("th", part.header), *(_html_row("td", row) for row in part.rows)]
    caption = f"<caption>{_code(escape(part.caption))}</caption>"
    return f"<div><table>{caption}\n" + "\n".join(rows) + "\n</table></div>"


def _html_row(tag: str, texts: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts) + "</tr>"


def _code(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text)


def to_latex(parts: Sequence[Part]) -> str:
    """Return the tables of a document as LaTeX, no wider than the text.

    A document that reads them uses the packages booktabs and adjustbox.
    """
    tables = []
    for part in parts:
        if isinstance(part, Grid):
            columns = "l" + "r" * (len(part.header) - 1)
            rows = [" & ".join(map(_latex, row)) + r" \\" for row in (part.header, *part.rows)]
            lines = [
                r"\begin{table}",
                rf"\caption{{{_latex(part.caption)}}}",
                r"\begin{adjustbox}{max width=\textwidth}",
                rf"\begin{{tabular}}{{{columns}}}",
                r"\toprule",
                rows[0],
                r"\midrule",
                *rows[1:],
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{adjustbox}",
                r"\end{table}",
            ]
            tables.append("\n".join(lines))
    return "\n\n".join([r"% \usepackage{booktabs, adjustbox}", *tables]) + "\n"


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "±": r"$\pm$", "–": "--", "−": "$-$", "·": r"$\cdot$", "`": "",
    "²": "$^2$", "ε": r"$\epsilon$", "|": "$|$",
}  # fmt: skip


def _latex(text: str) -> str:
    # A row that starts with a bracket would be the argument of \\.
    return "".join(_LATEX.get(letter, letter) for letter in text).replace("[", "{[}")
