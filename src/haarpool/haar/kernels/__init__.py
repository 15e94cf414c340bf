"""The loops of `haarpool.haar.transform`; `portable` runs on every device."""
