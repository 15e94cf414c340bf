"""The loops behind `haarpool.haar.transform`, and nothing else: `portable` runs on every device."""
