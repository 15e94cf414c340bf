"""The tables of the paper as data for `haarpool.comparison`, and what writes its pages.

This package is not installed: `python -m paper table1`, in a clone of the repository.
"""
