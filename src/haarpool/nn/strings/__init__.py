"""From a string to a network: registry of tokens and names, architectures, `build_model`."""
