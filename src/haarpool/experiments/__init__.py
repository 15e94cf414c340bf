"""The tables of the paper as data: settings, published numbers, a runner and a report."""
