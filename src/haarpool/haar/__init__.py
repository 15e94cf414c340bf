"""Haar coefficients of signals on chains: the reference bases and the fast transforms."""
