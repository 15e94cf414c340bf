"""From a graph to its chain: adjacency, clustering, coarsening, whole datasets. No torch."""
