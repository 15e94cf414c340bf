"""`haarpool predict`: predict with a trained model, in bounded memory."""

from __future__ import annotations

import csv
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from haarpool._numbers import six_digits
from haarpool._text import count, safe_cells
from haarpool.cli.loading import load_modules
from haarpool.cli.parser import add_data, new_command
from haarpool.cli.terminal import progress_option
from haarpool.datasets.readers.registry import sources
from haarpool.errors import HaarPoolError, HaarPoolWarning

if TYPE_CHECKING:
    from haarpool._types import Floats
    from haarpool.datasets.graphs import Graphs
    from haarpool.training.run_folder import RunFolder
    from haarpool.training.trained_model import TrainedModel


def add_command(commands: Any) -> None:
    """Declare the arguments."""
    command = new_command(
        commands,
        "predict",
        "predict with a trained model",
        "predict runs/MUTAG-1 new.csv --out predictions.csv",
    )
    loads = ("haarpool.datasets.reading", "haarpool.training.run_folder")
    # A table: where stdout is no terminal, it is written as it is.
    command.set_defaults(run=run, loads=loads, writes_data=True)
    command.add_argument("run_folder", metavar="RUN", help="folder that `haarpool train` wrote")
    command.add_argument(
        "input", metavar="INPUT", nargs="?", help=f"{sources()} (default: the dataset of the run)"
    )
    add_data(command, labels=False)
    output = command.add_argument_group("output")
    output.add_argument("--out", metavar="FILE", help="CSV file to write (default: stdout)")
    output.add_argument("--device", default="auto", help="cpu, cuda, ... (default: auto)")
    output.add_argument("--quiet", action="store_true", help="hide progress")


def run(arguments: Namespace) -> None:
    """Write one row per graph, or per node."""
    from haarpool._progress import show_progress
    from haarpool.datasets import stream_graphs
    from haarpool.training.run_folder import RunFolder

    folder = RunFolder.open(arguments.run_folder)
    folder.check_complete()
    source, root, smiles = _input(arguments, folder)  # errors before torch is imported
    load_modules(("torch", "haarpool.training.trained_model"), arguments)
    from haarpool.training.devices import find_device
    from haarpool.training.trained_model import load_model

    model = load_model(folder, find_device(arguments.device))
    blocks = stream_graphs(source, root, smiles=smiles, strict=arguments.strict)
    done = rows = 0
    unit = "graph"
    try:
        with (
            _one_warning_of_unknown_labels(),
            _output(arguments.out) as file,
        ):
            first = next(blocks)
            unit = first.unit
            writer = csv.writer(file, lineterminator="\n")
            with show_progress(progress_option(arguments), "predictions", f"{unit}s") as update:
                for graphs in chain([first], blocks):
                    members = model.predict_members(graphs)
                    if not done:
                        writer.writerow(safe_cells(_header(graphs, model)))
                    writer.writerows(map(safe_cells, _rows(graphs, model, members, done)))
                    done += len(graphs)
                    rows += members.shape[1]
                    update(len(graphs))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; no file was written") from None
    if arguments.out:
        of_units = f" for {count(done, unit)}" if rows > done else ""
        print(f"{count(rows, 'prediction')}{of_units} in {arguments.out}")


def _input(arguments: Namespace, folder: RunFolder) -> tuple[str, str | None, str | None]:
    """Return the source, root and column of SMILES to read, by default those of the run."""
    from haarpool.datasets import find_source
    from haarpool.training.run_folder import CONFIG

    try:
        trained_on = folder.config()["data"]["read"]
    except (KeyError, TypeError, AttributeError) as error:
        raise folder.damaged(CONFIG, error) from error
    source, root, smiles = arguments.input, arguments.root, arguments.smiles
    if source is None:
        if "source" not in trained_on:
            raise HaarPoolError("an INPUT to predict", "none", "name a dataset or a file")
        source, root = trained_on["source"], root or trained_on.get("root")
    reader = find_source(source, root, download=False).reader
    if smiles is None and "smiles" in reader.options:
        smiles = trained_on.get("smiles")
    return source, root, smiles


@contextmanager
def _one_warning_of_unknown_labels() -> Iterator[None]:
    """Show the first warning about labels of nodes, and of edges: every block may repeat it."""
    from haarpool.datasets.encoding import UnknownLabelWarning

    show, shown = warnings.showwarning, set[str]()

    def show_first(message: Warning | str, *arguments: Any, **options: Any) -> None:
        if isinstance(message, UnknownLabelWarning):
            if message.what in shown:
                return
            shown.add(message.what)
            message = HaarPoolWarning(message.text)
        show(message, *arguments, **options)

    with warnings.catch_warnings():
        warnings.showwarning = show_first
        yield


@contextmanager
def _output(path: str | None) -> Iterator[TextIO]:
    """Open the file to write, which appears when it is complete; without a path use stdout."""
    if path is None:
        yield sys.stdout
        return
    from haarpool._files import atomic_write

    with atomic_write(path) as partial, open(partial, "w", newline="", encoding="utf-8") as file:
        yield file


def _header(graphs: Graphs, model: TrainedModel) -> list[str]:
    ids = ["graph" if graphs.lines is None else "line"]
    ids += [] if graphs.ids is None else [graphs.id_name]
    ids += ["node"] * model.task.of_nodes
    columns = model.task.prediction_columns(model.names)
    if len(model.networks) > 1:
        columns += model.task.uncertainty_columns(model.names)
    return [*ids, *columns]


def _rows(graphs: Graphs, model: TrainedModel, members: Floats, first: int) -> Iterator[list[Any]]:
    """Yield a row per graph, or per node."""
    import numpy as np

    from haarpool.training.trained_model import average

    predicted = average(members)
    uncertainty = np.zeros((len(predicted), 0))
    if len(members) > 1:
        uncertainty = model.task.uncertainty(members, model.names)
    numbers = first + np.arange(len(graphs)) if graphs.numbers is None else graphs.numbers
    sizes = graphs.sizes if model.task.of_nodes else np.ones(len(graphs), np.int64)
    row = 0
    for g, size in enumerate(sizes.tolist()):
        ids: list[Any] = [numbers[g] if graphs.lines is None else graphs.lines[g]]
        ids += [] if graphs.ids is None else [graphs.ids[g]]
        for node in range(size):
            node_ids = [node] if model.task.of_nodes else []
            cells = model.task.prediction_cells(predicted[row], model.names)
            yield [*ids, *node_ids, *cells, *six_digits(uncertainty[row])]
            row += 1
