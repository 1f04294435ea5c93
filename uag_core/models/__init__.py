"""Where models come from: names, downloads, loading, and the models that are in memory.

Nothing is imported here, so that `uag_core.models.references` stays cheap to import.
Knows nothing of decoding, of benchmarks or of user interfaces.
"""
