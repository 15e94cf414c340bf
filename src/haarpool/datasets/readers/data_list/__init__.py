"""Lists of PyTorch Geometric `Data`."""
