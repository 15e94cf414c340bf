"""One file or folder per kind of source of graphs."""
