"""`SequentialNetwork`, the network of an architecture string."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import ModuleList
from torch.nn.functional import dropout
from torch_geometric.transforms import BaseTransform

from haarpool._validate import real_number
from haarpool.errors import HaarPoolError
from haarpool.nn.inputs import tensors_of
from haarpool.nn.layers.linear import LinearLayer
from haarpool.nn.layers.state import LayerState
from haarpool.nn.networks.network import Network, check_num_weights, num_weights
from haarpool.nn.networks.stages import ChainPooling, Convolution, Pooling
from haarpool.nn.strings.architecture import Architecture

Ties = Literal["authors"] | Sequence[int] | None

# Convolutions with the same number share weights in the authors' code.
AUTHORS: dict[str, tuple[int, ...]] = {
    "GC60-HP-FC60-FC180-FC60": (0,),
    "2GC256-HP-FC256-FC1024-FC2048": (0, 1),
    "3GC256-HP-2FC256-FC128": (0, 1, 1),
    "2GC128-HP-2GC128-HP-2GC128-HP-GC128-2FC128-FC64": (0, 1, 1, 1, 2, 2, 3),
}


class SequentialNetwork(Network):
    """Convolutions, poolings and readouts, then linear layers; `build_model` makes it.

    Args:
        arch: The architecture; all its layers have a width.
        in_channels: Number of columns of `data.x`.
        out_channels: Number of classes, or of values to predict.
        tied: Which convolutions share weights, see `build_model`.
        dropout: Dropout probability in [0, 1), see `build_model`.
        options: Options of the layers by name.
        **settings: Arguments of `Network`: task, domain, standardize.

    Shapes:
        - **input:** a `ChainData`, a batch of them, or a dict of their tensors
        - **output:** (B, out_channels), scores of classes or values, for B graphs
    """

    arch: Architecture

    def __init__(
        self,
        arch: Architecture,
        in_channels: int,
        out_channels: int,
        *,
        tied: Ties = None,
        dropout: float = 0.5,
        options: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(arch, in_channels, out_channels, **settings)
        self.dropout = real_number("dropout", dropout, 0, 1, remedy="pass {dropout}", dropout=0.5)
        # Other poolings choose their clusters by values, and other convolutions scatter.
        self.has_static_shapes = all(block.layer.static for block in arch.blocks)
        # The order in which layers are made decides the weights of a seed.
        stages, channels = self._make_stages(tied, {**(options or {}), "domain": self.domain})
        widths = [block.width or 0 for block in arch.layers() if block.layer.kind == "linear"]
        adapter = LinearLayer(channels, widths[0]) if widths and channels != widths[0] else None
        all_widths = [*(widths or [channels]), self.out_channels]
        linear = ModuleList(LinearLayer(*pair) for pair in pairwise(all_widths))
        # The order of modules is that of the parameters in checkpoints and optimizers.
        self.stages, self.linear, self.adapter = stages, linear, adapter

    def _make_stages(self, tied: Ties, options: dict[str, Any]) -> tuple[ModuleList, int]:
        """Make all stages; return them and the number of columns that the linear layers read."""
        stages, convolutions = ModuleList(), dict[int, Convolution]()
        joined: list[Convolution] = []  # the convolutions directly before the next layer
        channels, row_channels, level, total = self.in_channels, 0, 0, 0
        numbers = iter(_weight_numbers(self.arch, tied))
        for block in self.arch.layers():
            layer = block.layer
            taken = {
                name: option.check(name, options[name])
                for name, option in layer.options.items()
                if name in options
            }
            if layer.kind == "convolution":
                signature = (layer.token, channels, block.width or 0)
                number = next(numbers)
                if number not in convolutions:
                    convolutions[number] = Convolution(layer, *signature[1:], **taken)
                    total += num_weights(convolutions[number])
                    check_num_weights(self.arch, total)  # there may be thousands more
                convolution = convolutions[number]
                if convolution.signature != signature:
                    raise HaarPoolError(
                        f"with convolutions of the same kind and widths, {convolution.signature}",
                        f"{signature}",
                        "tie only convolutions with equal input and output widths",
                        parameter="tied",
                    )
                stages.append(convolution)
                joined.append(convolution)
                channels = signature[-1]
            elif layer.kind == "join":
                del stages[-len(joined) :]
                stages.append(layer.load()(joined, **taken))
                channels = sum(one.signature[-1] for one in joined)
            elif layer.kind == "readout":
                readout = layer.load()(channels, **taken)
                stages.append(readout)
                row_channels += readout.out_channels
            elif layer.kind == "pooling":
                pool = layer.load()(level if layer.chain else channels, **taken)
                stages.append((ChainPooling if layer.chain else Pooling)(pool, layer.token))
                level += layer.chain
                columns = getattr(pool, "out_channels", channels)
                channels = columns(channels) if callable(columns) else columns
                options = layer.options_of_next(options)
            joined = joined if layer.kind == "convolution" else []
        return stages, row_channels or channels

    def _add_chain(self, **parameters: Any) -> BaseTransform:
        for pool in self._chain_layers("transform"):
            transform: BaseTransform = pool.transform(**parameters)
            return transform
        return super()._add_chain(**parameters)

    def _chain_layers(self, method: str) -> list[Any]:
        """Return the poolings on the chain that need more than a chain."""
        pools = (stage.pool for stage in self.stages if isinstance(stage, ChainPooling))
        return [pool for pool in pools if hasattr(pool, method)]

    def check(self, data: Any) -> None:
        """Raise an error unless the data has all tensors that this network reads."""
        super().check(data)
        for pool in self._chain_layers("missing_key"):
            if key := pool.missing_key(data):
                raise HaarPoolError(f"data with {key}", "data without it", self._remedy())

    def forward(self, data: Any, *, padded: bool = False) -> Tensor:
        """Compute scores or values, (B, out_channels).

        Args:
            data: A `ChainData`, a batch of them, or a dict of their tensors.
            padded: The last graph only fills up the batch, see `Minibatches.take_padded`; it has no
                row in the result.
        """
        return self.output_and_auxiliary(data, padded=padded)[0]

    def output_and_auxiliary(
        self, data: Any, *, padded: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the output and the sum of the losses of poolings, see `Network`."""
        data = tensors_of(data)
        self.check(data)
        state = LayerState.of_input(self.standardize(data["x"]), data, padded=padded)
        rows = []
        for stage in self.stages:
            result = stage(state, data)
            if isinstance(result, Tensor):  # of a readout
                rows.append(result)
            else:
                state = result
        x = torch.cat(rows, -1) if rows else state.x
        return self._forward_linear(x[:-1] if padded else x), state.auxiliary

    def _forward_linear(self, x: Tensor) -> Tensor:
        if self.adapter is not None:
            x = self.adapter(x).relu()
        *hidden, last = self.linear
        if hidden:
            x = hidden[0](x).relu()
        x = dropout(x, self.dropout, self.training)
        for layer in hidden[1:]:
            x = layer(x).relu()
        result: Tensor = last(x)
        return result


def _weight_numbers(arch: Architecture, tied: Ties) -> list[int]:
    """Return a number for each convolution; those with equal numbers share weights."""
    count = sum(block.layer.kind == "convolution" for block in arch.layers())
    if tied is None:
        return list(range(count))
    if tied == "authors":
        if str(arch) not in AUTHORS:
            raise HaarPoolError(
                f"of the authors: {', '.join(AUTHORS)}",
                str(arch),
                "pass a number for each convolution, for example {tied}",
                parameter="arch",
                tied=(0, 1, 1),
            )
        tied = AUTHORS[str(arch)]
    numbers: list[Any] = list(tied) if isinstance(tied, Iterable) else [tied]
    if len(numbers) != count or not all(isinstance(number, int) for number in numbers):
        raise HaarPoolError(
            f"as {count} whole numbers, one per convolution of {str(arch)!r}",
            f"{numbers}",
            "pass the same number for convolutions that share weights",
            parameter="tied",
        )
    return numbers
