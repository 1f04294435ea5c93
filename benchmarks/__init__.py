"""Measurements with the embedded pair. Not tests: they report figures, they assert none."""
