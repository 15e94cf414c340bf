"""One repeat of a run: epochs of Adam, the best of them by the validation part.

The loop is a plain one; `benchmarks/training.py` compares it with a bare loop, Lightning Fabric
and Accelerate. All randomness of an epoch comes from (seed, repeat, epoch), so a run that goes on
after a break needs no state of generators and gives the same numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from haarpool._types import Ints
from haarpool.datasets.graphs import MISSING, Graphs
from haarpool.datasets.splits import Split
from haarpool.errors import HaarPoolError
from haarpool.nn import Network
from haarpool.training.config import RunConfig
from haarpool.training.devices import Team
from haarpool.training.metrics import LOWER_IS_BETTER, SCORES, scores_of
from haarpool.training.minibatches import Minibatches
from haarpool.training.trained_model import Scale, TensorDict, strip_prefix, to_predictions


class Epoch(NamedTuple):
    """One line of `metrics.jsonl`."""

    repeat: int
    epoch: int
    train_loss: float
    validation_loss: float
    validation_score: float
    lr: float
    seconds: float
    best: bool


class Progress(NamedTuple):
    """How far a repeat is: plain numbers, beside the tensors of `Fit.tensors`."""

    epoch: int = 0
    best_epoch: int = 0
    best_loss: float = math.inf
    best_score: float = -math.inf  # turned so that more is better

    def stops(self, config: RunConfig) -> bool:
        """Whether there is nothing left to do."""
        return self.epoch >= config.epochs or self.epoch - self.best_epoch >= config.patience


class Fit:
    """A network, its optimiser, and how far they are.

    Args:
        network: with fresh weights, on the device of the team.
        batches: of all graphs of the dataset, on the same device.
        graphs: the dataset, for its labels.
        split: which of them train, choose and test.
        config: all settings.
        repeat: the number of this repeat.
        team: the processes that take part.
    """

    def __init__(
        self,
        network: Network,
        batches: Minibatches,
        graphs: Graphs,
        split: Split,
        config: RunConfig,
        repeat: int,
        team: Team,
    ) -> None:
        self.network, self.batches, self.split = network, batches, split
        self.config, self.repeat, self.team = config, repeat, team
        assert graphs.targets is not None
        self.task, self.targets = network.task, graphs.targets
        self.progress = Progress()
        self.scale: Scale | None = None
        if self.task == "regression":
            self.scale = Scale.of(self.targets[split.train])
        self._scale = self.scale and self.scale.to(team.device)
        self.optimizer = torch.optim.Adam(
            network.parameters(), config.lr, weight_decay=config.weight_decay, fused=True
        )
        self._weight, self._mass = self._class_weights()
        self._model: Callable[[Any], Tensor] = network
        if team.size > 1:
            ids = [team.device.index] if team.device.type == "cuda" else None
            self._model = DistributedDataParallel(network, device_ids=ids)
        if config.compile:
            self._model = torch.compile(self._model, dynamic=True)
        self.best: TensorDict = {}
        self._half = uses_bfloat16(config, team)

    def _class_weights(self) -> tuple[Tensor | None, NDArray[np.float64]]:
        """(classes,) weights of classes, and (G,) what each graph counts in a mean."""
        if self.task == "regression":
            return None, np.isfinite(self.targets).sum(axis=1).astype(np.float64)
        mass = (self.targets != MISSING).astype(np.float64)
        if not self.config.class_weights:
            return None, mass
        counts = np.bincount(self.targets[self.split.train], minlength=self.network.out_channels)
        weights = np.where(counts > 0, counts.sum() / np.maximum(counts, 1) / (counts > 0).sum(), 0)
        weight = torch.tensor(weights, dtype=torch.float32, device=self.team.device)
        return weight, mass * weights[self.targets]

    # ------------------------------------------------------------------ an epoch

    def run_epoch(self, on_step: Callable[[], object]) -> Epoch:
        """Train once over the training part, then look at the validation part."""
        start, epoch = time.perf_counter(), self.progress.epoch + 1
        lr = self._lr(epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        with self._random(epoch):
            train_loss = self._train(np.random.default_rng(self._seeds(epoch)), on_step)
        self._check("training", train_loss, epoch)
        output = self.outputs(self.split.validation)
        loss, score = self.judge(output, self.split.validation)
        self._check("validation", loss, epoch)
        better = self._is_better(loss, score)
        if better:
            self.best = {k: v.detach().cpu().clone() for k, v in self.network.state_dict().items()}
        found = Progress(epoch, epoch, loss, self._turned(score))
        self.progress = found if better else self.progress._replace(epoch=epoch)
        seconds = time.perf_counter() - start
        return Epoch(self.repeat, epoch, train_loss, loss, score, lr, seconds, better)

    def _check(self, part: str, loss: float, epoch: int) -> None:
        if not math.isfinite(loss):
            raise HaarPoolError(
                f"a finite {part} loss",
                f"{loss} in epoch {epoch} of repeat {self.repeat + 1}",
                f"lower the learning rate, now {self.config.lr:g}, with --lr",
            )

    def _train(self, generator: np.random.Generator, on_step: Callable[[], object]) -> float:
        self.network.train()
        total = torch.zeros((), device=self.team.device)
        for chosen in self.batches.epoch(self.split.train, self.config.batch_size, generator):
            own = self.team.share(chosen)
            mass = float(self._mass[own].sum())
            # A batch smaller than the team: who has nothing takes a graph that counts nothing.
            batch = self.batches.take(own if len(own) else chosen[:1])
            with self._autocast():
                loss = self.network.loss(self._model(batch), self._target(batch["y"]), self._weight)
            total.add_(loss.detach(), alpha=mass)
            if self.team.size > 1:  # processes are averaged, graphs shall be
                whole = max(float(self._mass[chosen].sum()), 1e-12)
                loss = loss * (self.team.size * mass / whole)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            on_step()
        whole = max(float(self._mass[self.split.train].sum()), 1e-12)
        return float(self.team.sum(total)) / whole

    @torch.no_grad()
    def outputs(self, graphs: Ints) -> Tensor:
        """(n, out_channels) of the network for some graphs, over all processes."""
        self.network.eval()
        self.team.copy_buffers(self.network)
        shape = (len(graphs), self.network.out_channels)
        result = torch.zeros(shape, device=self.team.device)
        for place in self.batches.epoch(np.arange(len(graphs)), self.config.batch_size):
            own = self.team.share(place)
            if len(own):
                with self._autocast():
                    output = self.network(self.batches.take(graphs[own]))
                result[own.tolist()] = output.float()
        return self.team.sum(result).cpu()

    def judge(self, output: Tensor, graphs: Ints) -> tuple[float, float]:
        """Loss, without weights of classes, and score of outputs for some graphs."""
        target = torch.from_numpy(self.targets[graphs])
        if self.scale is not None:
            target = (target - self.scale.mean) / self.scale.std
        self.network.auxiliary = None
        loss = self.network.loss(output, target).item()
        predicted = to_predictions(output, self.task, self.scale)
        score = scores_of(self.task, predicted, self.targets[graphs])[SCORES[self.task][0]]
        return loss, score

    # ------------------------------------------------------------------ state

    def tensors(self) -> TensorDict:
        """All that an epoch leaves behind, besides `progress`."""
        state = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        state |= {f"best.{k}": v for k, v in self.best.items()}
        for i, values in self.optimizer.state_dict()["state"].items():
            state |= {f"adam.{i}.{name}": value for name, value in values.items()}
        return {k: v.detach().cpu().contiguous() for k, v in state.items()}

    def restore(self, progress: Progress, tensors: TensorDict) -> None:
        """Go on where `tensors` and `progress` were taken."""
        self.progress, self.best = progress, strip_prefix("best.", tensors)
        self.network.load_state_dict(strip_prefix("network.", tensors))
        adam: dict[int, TensorDict] = {}
        for key, value in strip_prefix("adam.", tensors).items():
            i, _, name = key.partition(".")
            adam.setdefault(int(i), {})[name] = value
        whole = self.optimizer.state_dict()
        self.optimizer.load_state_dict({"state": adam, "param_groups": whole["param_groups"]})

    def take_best(self) -> None:
        """Give the network the weights of its best epoch."""
        self.network.load_state_dict(self.best)

    # ------------------------------------------------------------------ details

    def _target(self, y: Tensor) -> Tensor:
        return y if self._scale is None else (y - self._scale.mean) / self._scale.std

    def _turned(self, score: float) -> float:
        return -score if SCORES[self.task][0] in LOWER_IS_BETTER else score

    def _is_better(self, loss: float, score: float) -> bool:
        if self.config.monitor == "loss":
            return loss < self.progress.best_loss
        now, best = self._turned(score), self.progress.best_score
        return now > best or (now == best and loss < self.progress.best_loss)

    def _lr(self, epoch: int) -> float:
        if self.config.schedule == "constant":
            return self.config.lr
        return self.config.lr * (1 + math.cos(math.pi * (epoch - 1) / self.config.epochs)) / 2

    def _seeds(self, epoch: int) -> list[int]:
        return [self.config.seed, self.repeat, epoch]

    @contextmanager
    def _random(self, epoch: int) -> Iterator[None]:
        """Dropout by (seed, repeat, epoch, process); torch's own generators are left alone."""
        seeds = np.random.SeedSequence([*self._seeds(epoch), self.team.rank])
        with seeded(int(seeds.generate_state(1)[0]), self.team.device):
            yield

    def _autocast(self) -> AbstractContextManager[Any]:
        if not self._half:
            return nullcontext()
        return torch.autocast(self.team.device.type, torch.bfloat16)


def uses_bfloat16(config: RunConfig, team: Team) -> bool:
    """Whether to compute in bfloat16 where that is safe."""
    if config.precision == "auto":
        return team.device.type == "cuda" and torch.cuda.is_bf16_supported()
    return config.precision == "bfloat16"


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Random numbers of torch from a seed; afterwards its generators are as before."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
