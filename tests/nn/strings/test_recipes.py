"""The recipes of CONTRIBUTING: a layer and a network in one new file, from the shell."""

import re
from pathlib import Path

import pytest
import torch

from haarpool.nn import build_model, parse_architecture
from haarpool.nn.strings.registry import find_layer
from helpers.commands import run_main
from helpers.networks import FEATURES, batch_for

CONTRIBUTING = Path(__file__).parents[3] / "CONTRIBUTING.md"


def train_and_predict(*arguments):
    run_main("train", "rings", *arguments, "--epochs", 1, "--out", "run", "--quiet")
    run_main("predict", "run", "rings", "--out", "predicted.csv")
    assert len(Path("predicted.csv").read_text().splitlines()) > 200


def recipe(title):
    section = CONTRIBUTING.read_text().partition(f"### {title}")[2].partition("### ")[0]
    return re.search(r"```python\n(.*?)```", section, re.S)[1]


@pytest.mark.usefixtures("workplace")
def test_a_layer(new_layer):
    new_layer(recipe("A layer"))
    assert find_layer("PEAK").loaded is None  # it is read from the source
    assert find_layer("PEAK").options == {"share": (0.9, (0, 1))}
    assert "options: share=0.9" in run_main("methods", "--layers").out
    train_and_predict("--arch", "GIN32-PEAK-GIN32-SUM-FC32", "--pooling", "share=0.8")
    model = build_model("GIN8-PEAK-SUM", FEATURES, 2, share=0.99)
    batch = batch_for(model)
    model(batch)[:, 0].sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    err = run_main("train", "rings", "--arch", "PEAK-SUM", "--pooling", "share=1", code=2).err
    assert "expected share of --pooling in (0, 1), got 1; pass for example --pooling share" in err


TOY_NETWORK = '''
    """Sums: a network on the sums of the node features."""

    from __future__ import annotations

    from dataclasses import dataclass, replace
    from typing import Any, ClassVar, Self

    import torch
    from torch import Tensor
    from torch_geometric.nn import global_add_pool

    from haarpool._types import Domain
    from haarpool.errors import HaarPoolError
    from haarpool.nn.inputs import num_graphs, tensors_of
    from haarpool.nn.networks.network import Network
    from haarpool.nn.strings.architecture import AnyArchitecture
    from haarpool.nn.strings.registry import network


    @network("sums")
    @dataclass(frozen=True)
    class SumsArchitecture(AnyArchitecture):
        """The width of a `SumsNet`; its string is `sums`, or `sums:width=32`."""

        width: int | None = None
        name: ClassVar[str]
        default_domain: ClassVar[Domain] = "vertex"

        @classmethod
        def parse(cls, text: str) -> Self:
            _, colon, width = text.partition(":width=")
            if colon and not width.isdecimal() or not colon and text != "sums":
                raise HaarPoolError("sums:width=NUMBER", text, "write for example sums:width=32")
            return cls(int(width) if colon else None)

        @property
        def num_levels(self) -> int:
            return 0

        @property
        def max_width(self) -> int:
            return self.width or 0

        def with_width(self, width: int) -> Self:
            return replace(self, width=self.width or width)

        def parts(self) -> list[tuple[str, str]]:
            return [("sum", "of the node features"), ("2 FC", "linear layers")]

        def build(
            self, in_channels: int, out_channels: int, *, tied: Any = None, options: Any = None,
            dropout: float = 0.0, **settings: Any,
        ) -> SumsNet:
            return SumsNet(self, in_channels, out_channels, **settings)

        def __str__(self) -> str:
            return self.name + (f":width={self.width}" if self.width else "")


    class SumsNet(Network):
        """Two linear layers on the sums of the node features."""

        def __init__(
            self, arch: SumsArchitecture, in_channels: int, out_channels: int, **settings: Any
        ) -> None:
            super().__init__(arch, in_channels, out_channels, **settings)
            width = arch.width or 64
            self.first = torch.nn.Linear(in_channels, width)
            self.last = torch.nn.Linear(width, out_channels)

        def forward(self, data: Any, *, padded: bool = False) -> Tensor:
            data = tensors_of(data)
            self.check(data)
            x = self.standardize(data["x"])
            rows = global_add_pool(self.first(x).relu(), data["batch"], num_graphs(data))
            return self.last(rows[:-1] if padded else rows)
'''


@pytest.mark.usefixtures("workplace")
def test_a_network(new_network):
    new_network(TOY_NETWORK)
    assert str(parse_architecture("sums:width=32")) == "sums:width=32"
    train_and_predict("--arch", "sums:width=8")
    model = build_model("sums", FEATURES, 2, width=16)
    assert model.first.out_features == 16
    assert model(batch_for(model)).shape == (6, 2)
    err = run_main("train", "rings", "--arch", "sums:depth=2", code=2).err
    assert "expected --arch with sums:width=NUMBER, got sums:depth=2" in err
    assert torch.isfinite(model(batch_for(model))).all()
