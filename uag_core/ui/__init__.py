"""The page and the endpoints: everything that imports gradio lives in this package.

Knows how to show a run. Does not know how one is computed: it reads the events and the
document that `uag_core` hands out, and asks for a run through one injectable pair factory.
"""
