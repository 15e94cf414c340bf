"""A chain as an HTML table, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from haarpool.chains.chain import Chain


def chain_html(chain: Chain) -> str:
    """Return a table with the nodes, and if the graph is known the edges, of each level."""
    names = ["level", "nodes", "children (min–max)"]
    counts = [np.bincount(parent) for parent in chain.parents]
    children = ["–", *(f"{count.min()}–{count.max()}" for count in counts)]
    rows = [[level, size, children[level]] for level, size in enumerate(chain.sizes)]
    if chain.has_graph:
        names.append("edges")
        for level, row in enumerate(rows):
            row.append(chain.adjacency(level).nnz // 2)
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    caption = repr(chain).replace("->", "&rarr;")
    return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>"
