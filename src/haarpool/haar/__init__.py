"""From a chain to Haar coefficients: the reference bases and the fast transforms."""
