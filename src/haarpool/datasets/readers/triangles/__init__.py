"""Triangles."""
