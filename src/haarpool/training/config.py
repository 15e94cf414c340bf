"""All settings of a run as one value: the one home of their names, defaults, checks and help texts.

The shell command and the estimators take their parameters from the fields of `RunConfig`. Nothing
heavy is imported at the top: the shell reads the fields for its help text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from haarpool._validate import MAX_SEED, Option, real_number, setting
from haarpool.errors import HaarPoolError

if TYPE_CHECKING:
    from haarpool._types import Domain
    from haarpool.chains.recipe import Recipe
    from haarpool.nn import AnyArchitecture

MAX_THREADS = 1024


@dataclass(frozen=True)
class RunConfig:
    """Settings of a run. The dataset is chosen in `read_graphs`.

    Attributes:
        arch: Architecture of the network, see `Architecture`, `HaarNet` and `HaarUNet`; "auto" is
            "haarunet" for tasks of nodes, else "haarnet".
        features: Node features that the network reads, see `Encoding`.
        domain: Domain of the pooled features, see `HaarPooling`; `None` is that of the network,
            "haar" for an architecture of layers and "vertex" for `haarnet` and `haarsum`.
        dropout: Dropout probability in [0, 1), see `build_model`.
        width: Width of layers that name none.
        tied: Which convolutions share weights, see `build_model`.
        pooling: Options of the poolings and readouts of `arch`, see `build_model`.
        chain: Parameters of `build_chain` and options of the method: {"method": "kmeans", "n_init":
            3}. The architecture sets `num_levels` and `top`.
        epochs: Maximum number of epochs.
        lr: Learning rate.
        weight_decay: Weight decay.
        batch_size: Graphs or signals per training step, over all processes; 0 chooses a power of 2
            by their number: about 40 steps per epoch, 16 to 128 graphs each. HaarNet leaves out a
            last minibatch of less than a quarter of it; the next epoch has other ones.
        patience: Training stops after this many epochs without a better validation result; no
            effect with monitor="last".
        monitor: Validation result that chooses the epoch: a lower "loss" or a better "score";
            "last" keeps the last epoch.
        schedule: Learning rate schedule: "constant", "cosine" to zero, or "one-cycle", which rises
            for the first fifth of the epochs before.
        optimizer: "adam", whose weight decay is part of the loss, or "adamw".
        label_smoothing: Share of the target that is spread over all classes, in [0, 1).
        class_weights: Give rare classes the same total weight as frequent ones.
        seed: Seed of splits, weights, shuffling and dropout.
        repeats: Number of trainings, each with its own split and weights; with folds, of each fold.
        ensemble: Number of members of a repeat: networks trained on the same split, with other
            weights, shuffling and dropout, whose predictions are averaged.
        split: Split rule, see `make_splits`; "auto" is the published split, else stratified for
            one class per graph, else random.
        precision: "float32", "bfloat16" (autocast), or "auto": the faster one. That is float32:
            autocast takes longer than it saves on networks of this size.
        compile: Compile the network with `torch.compile`.
        threads: CPU threads; 0 uses all of them for large batches and one for small batches, which
            several threads slow down.

    Example:
        >>> config = RunConfig(arch="GC32-HP-FC32", epochs=20)
        >>> RunConfig.from_json(config.to_json()) == config
        True
    """

    arch: str = setting(
        "GC64-HP-FC64", "network: an architecture of layers, or a name as haarnet", metavar="STRING"
    )
    features: str = setting(
        "auto",
        "node features, joined by +: auto (all that there are), labels, attributes, atoms, x, "
        "degree, log_degree, walks, constant",
        metavar="NAME",
    )
    domain: Domain | None = setting(
        None,
        "domain of pooled features (default: haar for an architecture of layers)",
        choices=("haar", "vertex"),
    )
    dropout: float = setting(0.5, "dropout probability", metavar="P")
    width: int = setting(64, "width of layers that name none", metavar="N", limits=(1, None))
    tied: Literal["authors"] | tuple[int, ...] | None = setting(
        None, "convolutions that share weights", metavar="N,N|authors"
    )
    pooling: Mapping[str, Any] | None = setting(
        None,
        "options of layers, such as ratio=0.8,num_clusters=8",
        metavar="NAME=VALUE[,...]",
    )
    chain: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = setting(100, "maximum number of epochs", metavar="N", limits=(1, None))
    lr: float = setting(0.001, "learning rate", metavar="RATE", limits=(0, 1000))
    weight_decay: float = setting(0.0005, "weight decay", metavar="RATE")
    batch_size: int = setting(
        60, "graphs or signals per training step, 0 for automatic", metavar="N", limits=(0, None)
    )
    patience: int = setting(
        50,
        "stop after N epochs without improvement; not if monitor is last",
        metavar="N",
        limits=(1, None),
    )
    monitor: Literal["loss", "score", "last"] = setting(
        "loss",
        "validation result that chooses the epoch, or the last epoch",
        choices=("loss", "score", "last"),
    )
    schedule: Literal["constant", "cosine", "one-cycle"] = setting(
        "constant", "learning rate schedule", choices=("constant", "cosine", "one-cycle")
    )
    optimizer: Literal["adam", "adamw"] = setting("adam", "optimizer", choices=("adam", "adamw"))
    label_smoothing: float = setting(
        0.0, "share of the target that all classes get", metavar="P", limits=(0, 1)
    )
    class_weights: bool = setting(False, "give rare classes the same weight as frequent ones")
    seed: int = setting(0, "random seed", metavar="N", limits=(0, MAX_SEED))
    repeats: int = setting(
        1,
        "trainings, each with its own weights; with folds, N of each fold",
        metavar="N",
        limits=(1, None),
    )
    ensemble: int = setting(
        1, "networks per repeat whose predictions are averaged", metavar="N", limits=(1, None)
    )
    split: str = setting(
        "auto",
        "stratified, random, nodes, scaffold, kfold:K (K trainings per repeat), given, or a JSON "
        "file",
        metavar="RULE",
    )
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto", "auto is the faster one, float32", choices=("auto", "float32", "bfloat16")
    )
    compile: bool = setting(False, "compile the network with torch.compile")
    threads: int = setting(0, "CPU threads, 0 for automatic", metavar="N", limits=(0, MAX_THREADS))

    def __post_init__(self) -> None:
        """Check all settings before any data is read."""
        checked = {
            "dropout": real_number(
                "dropout", self.dropout, 0, 1, remedy="pass {dropout}", dropout=0.5
            ),
            "weight_decay": real_number("weight_decay", self.weight_decay, 0, 1000),
        }
        for one in fields(self):
            if one.name not in checked:
                limits = one.metadata.get("limits", one.metadata.get("choices", ()))
                option = Option(one.default, limits)
                checked[one.name] = option.check(one.name, getattr(self, one.name))
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        self._check_network()
        self._check_chain()

    def _check_chain(self) -> None:
        if not isinstance(self.chain, Mapping):
            raise HaarPoolError(
                "as a mapping of parameters",
                f"{self.chain!r}",
                "pass for example {chain}",
                parameter="chain",
                chain={"method": "matching"},
            )
        self.recipe()

    def _check_network(self) -> None:
        from haarpool.nn.strings.architecture import choose_domain

        with _named("arch"):
            arch = _parse(self.arch).with_width(self.width)
        with _named("pooling"):
            arch.check_options({} if self.pooling is None else self.pooling, "pooling")
        numbers = isinstance(self.tied, tuple | list) and all(isinstance(n, int) for n in self.tied)
        if not numbers and self.tied not in (None, "authors"):
            raise HaarPoolError(
                '"authors", or a number for each convolution',
                f"{self.tied!r}",
                "pass for example {tied}",
                parameter="tied",
                tied=(0, 1, 1),
            )
        object.__setattr__(self, "domain", choose_domain(arch, self.domain))

    def recipe(self) -> Recipe | None:
        """Return all parameters of the chains; `None` for an architecture without levels."""
        from haarpool.chains.recipe import Recipe, with_options

        arch = _parse(self.arch)
        if not arch.num_levels:
            return None
        if fixed := {"num_levels", "top"} & set(self.chain):
            raise HaarPoolError(
                "without num_levels and top, which the architecture sets",
                ", ".join(sorted(fixed)),
                "leave them out, or change {arch}",
                parameter="chain",
                arch=...,
            )
        try:
            parameters = {**arch.chain_parameters, **arch.chain_defaults}
            return Recipe(**parameters | with_options(self.chain))
        except HaarPoolError as error:
            raise error.inside("chain") from None

    def to_json(self) -> dict[str, Any]:
        """Return all settings as plain values."""
        return asdict(self) | {"chain": dict(self.chain)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunConfig:
        """Make the config that `to_json` described."""
        if unknown := set(data) - {one.name for one in fields(cls)}:
            raise HaarPoolError(
                "settings that this version knows",
                ", ".join(sorted(unknown)),
                "install a newer version of haarpool",
            )
        tied = data.get("tied")
        return cls(**{**data, "tied": tuple(tied) if isinstance(tied, list) else tied})


@contextmanager
def _named(parameter: str) -> Iterator[None]:
    """Name the parameter in errors that name none."""
    try:
        yield
    except HaarPoolError as error:
        if error.parameter:
            raise
        expected, *others = error.args
        words = {"parameter": parameter, **error.values}
        raise type(error)(f"with {expected}", *others, **words) from error


def _parse(arch: str) -> AnyArchitecture:
    from haarpool.nn.strings.architecture import parse_architecture

    return parse_architecture("haarnet" if arch == "auto" else arch)
