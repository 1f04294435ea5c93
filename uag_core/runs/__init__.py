"""Runs as documents: made from a comparison, checked, kept, opened again without any model.

Knows JSON, the disk and the facts of this machine. Imports neither torch nor gradio, and does not
know how a run is computed or shown.
"""
