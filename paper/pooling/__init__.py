"""The study of what pooling is for, and where it harms."""
