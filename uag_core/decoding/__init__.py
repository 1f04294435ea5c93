"""The engine: one decoding loop, its proposers, caches, sampling and stopping.

Knows models, token ids and time. Knows nothing of where models come from, of statistics over
runs, or of pages. Import from the modules themselves.
"""
