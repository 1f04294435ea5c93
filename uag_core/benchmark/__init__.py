"""Measuring: one comparison, repeated runs, statistics. Knows engines, not pages."""
