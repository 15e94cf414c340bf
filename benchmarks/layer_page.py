"""Write the table of tokens of docs/pyg.md from the registered layers.

python -m benchmarks.layer_page
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.common import write_tables
from haarpool.comparison.document import markdown_table
from haarpool.nn.strings.registry import registered_layers

PAGES = (Path("docs/pyg.md"),)


def make_tables() -> dict[str, str]:
    """Return the table of tokens by its mark."""
    rows = [["token", "", "layer", "options", "compiles", "exports"]]
    for one in registered_layers().values():
        defaults = {name: option.default for name, option in one.options.items()}
        defaults.pop("domain", None)  # a setting of all networks
        options = [f"`{name}={default}`" for name, default in defaults.items()]
        marks = ["yes" if mark else "" for mark in (one.compiles, one.exports)]
        kind = f"{one.kind} on the chain" if one.chain else one.kind
        rows.append(
            [f"`{one.token}`", kind, f"`{one.name}`: {one.summary}", ", ".join(options), *marks]
        )
    return {"tokens": markdown_table(rows)}


def main() -> None:
    """Write the table."""
    write_tables(make_tables(), PAGES)


if __name__ == "__main__":
    main()
