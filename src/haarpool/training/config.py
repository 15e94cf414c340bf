"""All settings of a run, as a value: checked, frozen, to JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from numbers import Real
from typing import Any, Literal

from haarpool._types import Domain
from haarpool.chains.recipe import Recipe
from haarpool.errors import HaarPoolError
from haarpool.nn.architecture import Architecture

MAX_THREADS = 1024


@dataclass(frozen=True)
class RunConfig:
    """How to train; what on is the business of `read_graphs`.

    Attributes:
        arch: the architecture of the network.
        features: which node columns it reads, see `Encoding`.
        domain, dropout, width, tied: see `build_model`.
        chain: further parameters of `build_chain`: method, seed, ratio, ...
        epochs: at most.
        lr, weight_decay: of Adam.
        batch_size: graphs per step, over all processes.
        patience: epochs without a better validation result after which training stops.
        monitor: what is better on the validation part: a lower "loss" or a better "score".
        schedule: of the learning rate, "constant" or "cosine" to zero.
        class_weights: whether rare classes count as much as frequent ones.
        seed: of splits, weights, shuffles and dropout.
        repeats: how often, each with a split and weights of its own.
        split: see `make_splits`; "auto" is the published one where there is one, else random.
        precision: "float32", "bfloat16" for autocast, or "auto": bfloat16 on a GPU.
        compile: whether to compile the network (torch.compile).
        threads: of the CPU; 0 takes all for large batches and one for small ones, which many
            threads slow down.

    >>> config = RunConfig(arch="GC32-HP-FC32", epochs=20)
    >>> RunConfig.from_json(config.to_json()) == config
    True
    """

    arch: str = "GC64-HP-FC64"
    features: str = "auto"
    domain: Domain = "haar"
    dropout: float = 0.5
    width: int = 64
    tied: Literal["authors"] | tuple[int, ...] | None = None
    chain: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 100
    lr: float = 0.001
    weight_decay: float = 0.0005
    batch_size: int = 60
    patience: int = 50
    monitor: Literal["loss", "score"] = "loss"
    schedule: Literal["constant", "cosine"] = "constant"
    class_weights: bool = False
    seed: int = 0
    repeats: int = 1
    split: str = "auto"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    compile: bool = False
    threads: int = 0

    def __post_init__(self) -> None:
        """Check all of it before anything is read."""
        arch = Architecture.parse(self.arch)
        for name in ("epochs", "batch_size", "patience", "repeats"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise HaarPoolError(f"{_flag(name)} >= 1", f"{value!r}", "pass a whole number")
        if type(self.seed) is not int or not 0 <= self.seed < 2**31:
            raise HaarPoolError("a seed in 0..2**31-1", f"{self.seed!r}", "take for example 0")
        if type(self.threads) is not int or not 0 <= self.threads <= MAX_THREADS:
            expected = f"--threads in 0..{MAX_THREADS}"
            raise HaarPoolError(expected, f"{self.threads!r}", "leave it out")
        for name, least in (("lr", 1e-12), ("weight_decay", 0.0)):
            value = getattr(self, name)
            if not (isinstance(value, Real) and least <= float(value) < 1e3):
                raise HaarPoolError(
                    f"{_flag(name)} as a number {'> 0' if least else '>= 0'} and < 1000",
                    f"{value!r}",
                    "take for example 0.001",
                )
        choices = {
            "monitor": ("loss", "score"),
            "schedule": ("constant", "cosine"),
            "precision": ("auto", "float32", "bfloat16"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise HaarPoolError(
                    f"{_flag(name)} out of {', '.join(known)}",
                    f"{getattr(self, name)!r}",
                    "choose one of these",
                )
        if arch.num_levels:
            Recipe.of(arch.num_levels, **self._recipe(), top=arch.top)

    def _recipe(self) -> dict[str, Any]:
        kept = ("order", "measure", "symmetrize")
        return {key: value for key, value in self.chain.items() if key not in kept}

    def to_json(self) -> dict[str, Any]:
        """Plain values by name."""
        return asdict(self) | {"chain": dict(self.chain)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunConfig:
        """The config that `to_json` described."""
        known = {one.name for one in fields(cls)}
        if unknown := set(data) - known:
            raise HaarPoolError(
                "settings that this version knows",
                ", ".join(sorted(unknown)),
                "install a newer haarpool",
            )
        tied = data.get("tied")
        return cls(**{**data, "tied": tuple(tied) if isinstance(tied, list) else tied})


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
