"""Pooling layers of other papers, for comparison with HaarPooling."""
