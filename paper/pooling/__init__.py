"""The study of what pooling is for: its datasets, methods, and what writes its page."""
