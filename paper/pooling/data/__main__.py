"""`python -m paper.pooling.data FOLDER [NAME ...]`: make the datasets of the study in a folder."""

from __future__ import annotations

import sys
from time import perf_counter

from paper.pooling.data import DATASETS, load


def main(folder: str, *names: str) -> None:
    """Make those of the named datasets, by default of all, that are not in the folder."""
    for name in names or DATASETS:
        start = perf_counter()
        graphs, splits = load(name, folder)
        sizes = ", ".join("/".join(str(len(part)) for part in split) for split in splits)
        seconds = perf_counter() - start
        print(f"{name}: {len(graphs)} {graphs.unit}s, splits {sizes}, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
