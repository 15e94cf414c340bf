"""The loops behind `haarpool.transform`, and nothing else: `portable` runs on every device."""
