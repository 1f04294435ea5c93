"""The recipe that makes a small assistant, with its own tokenizer, for a target chat model.

Stages, each a command of ``python -m uag_core.recipe``: ``requests`` and ``answers`` write
training text with the target itself, ``tokenizer`` learns a vocabulary from it, ``train`` starts
from the target's layers and learns the target's greedy answers, ``evaluate`` measures the pair,
``export`` writes a plain Hugging Face folder. Nothing here is needed to *use* a pair.
"""
