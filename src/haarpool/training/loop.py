"""One network of a run: train for some epochs, keep the weights of the best one by validation.

`python -m benchmarks --only training_loop` compares this loop with a bare loop, Lightning Fabric
and Accelerate. All random numbers of an epoch come from (seed, repeat, member, epoch), so a resumed
run gives the same numbers without saving the state of any generator.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from haarpool._types import Floats, Ints
from haarpool.datasets.splits import NodeSplit
from haarpool.errors import HaarPoolError
from haarpool.haar.chain_tensors import TensorDict
from haarpool.haar.operators import can_be_captured
from haarpool.nn import Network
from haarpool.tasks import MISSING
from haarpool.training.config import RunConfig
from haarpool.training.devices import seed_sequence, seeded
from haarpool.training.padded_step import PaddedStep
from haarpool.training.run import Epoch, Run, check_labels, make_network
from haarpool.training.trained_model import strip_prefix
from haarpool.training.tree_order import at_nodes, output_rows

WARM_UP = 0.2  # share of the epochs in which the learning rate of "one-cycle" rises


class Progress(NamedTuple):
    """The progress of a network, as plain numbers.

    Attributes:
        epoch: Number of epochs so far.
        best_epoch: Number of the best epoch, or of the last one with monitor="last".
        best_loss: Its validation loss.
        best_score: Its validation score, with the sign that makes higher better.
    """

    epoch: int = 0
    best_epoch: int = 0
    best_loss: float = math.inf
    best_score: float = -math.inf

    def is_complete(self, config: RunConfig) -> bool:
        """Return whether the network has reached its last epoch."""
        return self.epoch >= config.epochs or self.epoch - self.best_epoch >= config.patience


class _TrainedNetwork(torch.nn.Module):
    """A network whose `forward` also returns the auxiliary loss, for DistributedDataParallel."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: TensorDict) -> tuple[Tensor, Tensor | None]:
        return self.network.output_and_auxiliary(batch)


class Trainer:
    """Trains one network: a member of a repeat.

    Args:
        run: The run, with its data and settings.
        repeat: Number of the repeat.
        member: Number of the member of the repeat.
        network: A network with new weights; by default that of the repeat and member.
        padded: Train on padded minibatches, which a GPU replays much faster (`PaddedStep`). By
            default on a GPU, if the network can and nothing else is asked for.
    """

    def __init__(
        self,
        run: Run,
        repeat: int,
        member: int = 0,
        *,
        network: Network | None = None,
        padded: bool | None = None,
    ) -> None:
        if network is None:
            network = make_network(run.config, run.graphs, run.encoding, repeat, member)
        config, group = run.config, run.group
        self.network = network.to(group.device)
        self.batches, self.split = run.batches, run.splits[repeat]
        self.config, self.repeat, self.member, self.group = config, repeat, member, group
        self.task, self.targets = check_labels(run.graphs)
        self.names, self.graphs = run.graphs.names, run.graphs
        self.progress = Progress()
        rows = self._rows(self.split.train)
        train = self.targets[rows]
        # Of the nodes of a graph, those of the other parts have no label while it trains.
        self._hidden: Tensor | None = None
        if isinstance(self.split, NodeSplit):
            self._hidden = torch.ones(len(self.targets), dtype=torch.bool, device=group.device)
            self._hidden[torch.from_numpy(rows).to(group.device)] = False
        self.scale = None if self.task.scale is None else self.task.scale.of(train)
        self._scale = None if self.scale is None else self.scale.to(group.device)
        self._bfloat16 = config.precision == "bfloat16"
        on_gpu = group.device.type == "cuda"
        if padded is None:
            padded = on_gpu and group.size == 1 and not (config.compile or self._bfloat16)
            padded = padded and can_be_captured(group.device.type)  # needs Triton
        self._padded = padded and network.has_static_shapes
        self._padded_steps: dict[int, PaddedStep] = {}  # by the number of graphs
        captured = self._padded and on_gpu
        # A captured step reads the learning rate from the device.
        lr = torch.tensor(config.lr, device=group.device) if captured else config.lr
        optimizer = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
        self.optimizer = optimizer(
            network.parameters(),
            lr,
            weight_decay=config.weight_decay,
            fused=True,
            capturable=captured,
        )
        # Without gradients there is memory for more graphs, and larger steps are faster.
        self._chunk_size = 8 * config.batch_size
        network.fit_inputs(self._training_part())
        network.fit_baseline(
            (part, self._target(self._labels(part))) for part in self._training_part()
        )
        weights = None
        if config.class_weights:
            weights = self.task.class_weights(train, network.out_channels)
        self._weight = None if weights is None else self._on_device(weights)
        mass = self.task.mass(self.targets, weights)
        if self._hidden is not None:
            mass[np.setdiff1d(np.arange(len(mass)), rows)] = 0
        self._mass = np.add.reduceat(mass, run.graphs.start[:-1]) if self.task.of_nodes else mass
        self._device_mass = self._on_device(self._mass)
        self._total_loss = torch.zeros((), device=group.device)
        self._model: Callable[..., Any] = _TrainedNetwork(network)
        if group.size > 1:
            ids = [group.device.index] if group.device.type == "cuda" else None
            self._model = DistributedDataParallel(self._model, device_ids=ids)
        if config.compile:
            self._model = torch.compile(self._model, dynamic=True)
        self.best: TensorDict = {}  # weights of the best epoch, if it may not be the last one

    def _training_part(self) -> Iterator[TensorDict]:
        graphs = self.split.graphs(self.split.train)
        return map(self.batches.take, self.batches.chunks(graphs, self._chunk_size))

    def _rows(self, part: Ints) -> Ints:
        """Return the rows of the targets of a part."""
        return self.split.rows(part, self.graphs)

    def _labels(self, batch: TensorDict) -> Tensor:
        """Return the labels of a minibatch of the training part."""
        y = batch["y"]
        if self._hidden is None:
            return y
        missing = math.nan if y.is_floating_point() else MISSING
        # A padded minibatch has more nodes, which have no label either.
        hidden = torch.nn.functional.pad(self._hidden, (0, len(y) - len(self._hidden)), value=True)
        hidden = at_nodes(hidden, batch)
        return y.masked_fill(hidden.view(-1, *[1] * (y.ndim - 1)), missing)

    def _on_device(self, weights: Floats) -> Tensor:
        return torch.tensor(weights, dtype=torch.float32, device=self.group.device)

    def run_epoch(self, on_step: Callable[[], object]) -> Epoch:
        """Train on the training part once, then evaluate the validation part."""
        start, epoch = time.perf_counter(), self.progress.epoch + 1
        lr = self._lr(epoch)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr)
            else:
                group["lr"] = lr
        with seeded(self._dropout_seed(epoch), self.group.device):
            train_loss = self._train(np.random.default_rng(self._seeds(epoch)), on_step)
        self._check_finite("training", train_loss, epoch)
        output = self.outputs(self.split.validation)
        loss, score = self.evaluate(output, self.split.validation)
        self._check_finite("validation", loss, epoch)
        better = self._is_better(loss, score)
        if better and self.config.monitor != "last":
            state = self.network.state_dict()
            self.best = {k: v.detach().to("cpu", copy=True) for k, v in state.items()}
        best = Progress(epoch, epoch, loss, self.task.higher_is_better(score))
        self.progress = best if better else self.progress._replace(epoch=epoch)
        seconds = time.perf_counter() - start
        shown = None if math.isnan(score) else score
        return Epoch(self.repeat, epoch, train_loss, loss, shown, lr, seconds, better, self.member)

    def _check_finite(self, part: str, loss: float, epoch: int) -> None:
        if not math.isfinite(loss):
            raise HaarPoolError(
                f"a finite {part} loss",
                f"{loss} in epoch {epoch} of repeat {self.repeat + 1}",
                "lower the learning rate, now {lr}, or check the features",
                lr=self.config.lr,
            )

    @property
    def steps_per_epoch(self) -> int:
        """Number of training steps of an epoch."""
        return sum(1 for _ in self._minibatches(None))

    def _minibatches(self, generator: np.random.Generator | None) -> Iterator[Ints]:
        size = self.config.batch_size
        min_size = 1
        if self.network.normalizes_graphs:
            # A norm over few graphs has steep gradients, which Adam remembers for many steps. Each
            # process normalises its own part.
            min_size = min(size, max(math.ceil(size / 4), 2 * self.group.size))
        return self.batches.epoch(self.split.graphs(self.split.train), size, generator, min_size)

    def _train(self, generator: np.random.Generator, on_step: Callable[[], object]) -> float:
        self.network.train()
        self._total_loss.zero_()
        mass = 0.0
        for chosen in self._minibatches(generator):
            mass += float(self._mass[chosen].sum())
            step = self._padded_step(len(chosen)) if self._padded else None
            if step is not None and step.fits(chosen):
                step(chosen)
            else:
                self._plain_step(chosen)
            on_step()
        return float(self.group.sum(self._total_loss)) / max(mass, 1e-12)

    def _plain_step(self, chosen: Ints) -> None:
        local = self.group.local_part(chosen)
        mass = float(self._mass[local].sum())
        # In a batch smaller than the group, a process without graphs takes one of weight zero.
        batch = self.batches.take(local if len(local) else chosen[:1])
        with self._autocast():
            output, auxiliary = self._model(batch)
            loss = self._loss(output, auxiliary, self._labels(batch))
        self._total_loss.add_(loss.detach(), alpha=mass)
        if self.group.size > 1:  # gradients are averaged over processes, not over graphs
            batch_mass = max(float(self._mass[chosen].sum()), 1e-12)
            loss = loss * (self.group.size * mass / batch_mass)
        self._descend(loss)

    def _padded_step(self, size: int) -> PaddedStep:
        def step(batch: TensorDict, numbers: Tensor) -> None:
            output, auxiliary = self.network.output_and_auxiliary(batch, padded=True)
            # The nodes of the graph that fills up the minibatch have no label.
            y = self._labels(batch) if self.task.of_nodes else batch["y"][:-1]
            loss = self._loss(output, auxiliary, y)
            self._total_loss.add_(loss.detach() * self._device_mass[numbers].sum())
            self._descend(loss)

        if size not in self._padded_steps:
            self._padded_steps[size] = PaddedStep(self.batches, size, step, self.group.captures)
        return self._padded_steps[size]

    def _loss(self, output: Tensor, auxiliary: Tensor | None, y: Tensor) -> Tensor:
        target, smoothing = self._target(y), self.config.label_smoothing
        loss = self.network.loss(output.flatten(0, -2), target, self._weight, smoothing)
        return loss if auxiliary is None else loss + auxiliary

    def _descend(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    @torch.no_grad()
    def outputs(self, part: Ints) -> Tensor:
        """Compute (n, out_channels) outputs for the n rows of a part, over all processes."""
        self.network.eval()
        self.group.broadcast_buffers(self.network)
        graphs = self.split.graphs(part)
        rows = self.graphs.rows(graphs)
        result = torch.zeros(len(rows), self.network.out_channels, device=self.group.device)
        local = self.group.local_part(np.arange(len(graphs)))
        outputs = []
        for chosen in self.batches.chunks(graphs[local], self._chunk_size):
            with self._autocast():
                outputs.append(output_rows(self.network, self.batches.take(chosen)))
        if outputs:
            positions = np.flatnonzero(np.isin(rows, self.graphs.rows(graphs[local])))
            result[torch.from_numpy(positions).to(result.device)] = torch.cat(outputs)
        output = self.group.sum(result).cpu()
        if self._hidden is None:
            return output
        return output[torch.from_numpy(self._rows(part))]

    def evaluate(self, output: Tensor, part: Ints) -> tuple[float, float]:
        """Compute the loss, without class weights, and the score of outputs for a part.

        The score is NaN where it is not defined.
        """
        labels = self.targets[self._rows(part)]
        target = torch.from_numpy(labels)
        if self.scale is not None:
            target = self.scale.standardize(target)
        loss = self.task.loss(output, target).item()
        return loss, self.task.main_score(self.predictions(output), labels, self.names)

    def predictions(self, output: Tensor) -> Floats:
        """Return (n, C) or (n, T) predictions from outputs."""
        return self.task.predictions(output, self.scale, self.names)

    def tensors(self) -> TensorDict:
        """Return network, best weights and optimiser state: with `progress` a checkpoint."""
        state = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        state |= {f"best.{k}": v for k, v in self.best.items()}
        for i, values in self.optimizer.state_dict()["state"].items():
            state |= {f"adam.{i}.{name}": value for name, value in values.items()}
        return {k: v.detach().cpu().contiguous() for k, v in state.items()}

    def restore(self, progress: Progress, tensors: TensorDict) -> None:
        """Continue from the `progress` and `tensors` of a checkpoint."""
        self.progress, self.best = progress, strip_prefix("best.", tensors)
        self.network.load_state_dict(strip_prefix("network.", tensors))
        adam: dict[int, TensorDict] = {}
        for key, value in strip_prefix("adam.", tensors).items():
            i, _, name = key.partition(".")
            adam.setdefault(int(i), {})[name] = value
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": adam, "param_groups": groups})

    def load_best(self) -> None:
        """Give the network the weights of its best epoch."""
        if self.config.monitor != "last":
            self.network.load_state_dict(self.best)

    def _target(self, y: Tensor) -> Tensor:
        return y if self._scale is None else self._scale.standardize(y)

    def _is_better(self, loss: float, score: float) -> bool:
        if self.config.monitor == "last":
            return True
        if self.config.monitor == "loss":
            return loss < self.progress.best_loss
        # A score that is not defined is -inf: then all epochs are equal, and the loss decides.
        now, best = self.task.higher_is_better(score), self.progress.best_score
        return now > best or (now == best and loss < self.progress.best_loss)

    def _lr(self, epoch: int) -> float:
        done = (epoch - 1) / self.config.epochs
        if self.config.schedule == "constant":
            return self.config.lr
        if self.config.schedule == "one-cycle":
            if done < WARM_UP:
                return self.config.lr * (epoch / (WARM_UP * self.config.epochs + 1))
            done = (done - WARM_UP) / (1 - WARM_UP)
        return self.config.lr * (1 + math.cos(math.pi * done)) / 2

    def _seeds(self, *numbers: int) -> np.random.SeedSequence:
        return seed_sequence(self.config.seed, self.repeat, *numbers, member=self.member)

    def _dropout_seed(self, epoch: int) -> int:
        """Return a seed by (seed, repeat, member, epoch, process)."""
        return int(self._seeds(epoch, self.group.rank).generate_state(1)[0])

    def _autocast(self) -> AbstractContextManager[Any]:
        if not self._bfloat16:
            return nullcontext()
        return torch.autocast(self.group.device.type, torch.bfloat16)
