"""The TU collection and its layout."""
