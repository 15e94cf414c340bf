"""`haarpool predict`: a row per graph, in bounded memory."""

from __future__ import annotations

import csv
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from haarpool._files import atomic_write
from haarpool.datasets import stream_graphs
from haarpool.datasets.graphs import Graphs
from haarpool.training.devices import find_device
from haarpool.training.run_folder import RunFolder
from haarpool.training.trained_model import TrainedModel, load_model


def predict(arguments: Namespace) -> None:
    """`haarpool predict`."""
    folder = RunFolder.open(arguments.run_folder)
    model = load_model(folder, find_device(arguments.device))
    smiles = arguments.smiles
    if smiles is None and str(arguments.input).lower().endswith((".csv", ".tsv")):
        smiles = folder.config()["data"].get("read", {}).get("smiles")
    blocks = stream_graphs(arguments.input, arguments.root, smiles=smiles, strict=arguments.strict)
    hidden = True if arguments.quiet else None
    done = 0
    with (
        _interruptible(),
        tqdm(desc="predictions", unit=" graphs", disable=hidden, leave=False) as bar,
        _output(arguments.out) as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        for graphs in blocks:
            predicted = model.predict(graphs)
            if not done:
                writer.writerow(_header(graphs, model))
            writer.writerows(_rows(graphs, model, predicted, done))
            done += len(graphs)
            bar.update(len(graphs))
    if arguments.out:
        print(f"{done:,} predictions in {arguments.out}")


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; no file was written") from None


@contextmanager
def _output(path: str | None) -> Iterator[TextIO]:
    """The file to write, whole or not at all; else what the shell sees."""
    if path is None:
        yield sys.stdout
        return
    with atomic_write(path) as partial, open(partial, "w", newline="", encoding="utf-8") as file:
        yield file


def _header(graphs: Graphs, model: TrainedModel) -> list[str]:
    own = ["graph"] if graphs.ids is None else ["line", graphs.id_name]
    if model.task == "classification":
        return [*own, "prediction", *(f"p({name})" for name in model.classes)]
    return [*own, *model.target_names]


def _rows(
    graphs: Graphs, model: TrainedModel, predicted: NDArray[np.float64], first: int
) -> Iterator[list[Any]]:
    for g, values in enumerate(predicted):
        own: list[Any] = [first + g]
        if graphs.ids is not None and graphs.places is not None:
            own = [graphs.places[g], graphs.ids[g]]
        shown = [f"{value:.6g}" for value in values]
        if model.task == "classification":
            shown.insert(0, model.classes[int(values.argmax())])
        yield [*own, *shown]
