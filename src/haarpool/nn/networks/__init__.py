"""Networks for graphs. A new one is one file, whose architecture is registered with `@network`."""
