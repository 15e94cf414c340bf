"""Layers. One with a token for architecture strings is one file, registered with `@layer`."""
