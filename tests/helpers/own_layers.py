"""Layers that tests add to the package."""

# A pooling as a new file: its first words are its meaning, `share` is its option.
TOY = '''
    import torch
    from torch_geometric.utils import subgraph

    from haarpool.nn.layers.pooling_output import PoolingOutput
    from haarpool.nn.strings.registry import layer


    @layer("TOY", kind="pooling", limits={"share": (0, 1)})
    class ToyPool(torch.nn.Module):
        """Keep a share of the nodes of each graph."""

        def __init__(self, in_channels: int, share: float = 0.5) -> None:
            super().__init__()
            self.share, self.lin = share, torch.nn.Linear(in_channels, in_channels)

        def forward(self, x, edge_index, edge_weight, batch):
            sizes = batch.bincount()
            place = torch.arange(len(x)) - (sizes.cumsum(0) - sizes)[batch]
            kept = place < (self.share * sizes).ceil()[batch]
            nodes = len(x)
            edges, weight = subgraph(kept, edge_index, edge_weight, True, nodes)
            losses = x.square().mean()[None]
            return PoolingOutput(self.lin(x[kept]), edges, weight, batch[kept], losses)
'''
