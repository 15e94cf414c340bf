"""Chains of graphs: adjacency matrices, clustering, coarsening, datasets. No torch."""
