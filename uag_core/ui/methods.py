"""The ways to draft as people read them: names, hints, and the choices of a form.

Pure texts. Knows no component and no engine.
"""

from __future__ import annotations

NAMES = {"uag": "UAG", "lookup": "Prompt lookup", "uag+lookup": "UAG + lookup"}
HINTS = {
    "uag": "the assistant drafts, the target verifies",
    "lookup": "the text so far drafts, the target verifies",
    "uag+lookup": "text or assistant drafts, whichever promises more",
}
CHOICES = [
    ("UAG", "uag"),
    ("Prompt lookup (no assistant)", "lookup"),
    ("UAG + lookup", "uag+lookup"),
]


def name(method: object) -> str:
    """What a method is called in a sentence or a heading."""
    return NAMES.get(str(method), str(method)) if method else NAMES["uag"]


def hint(method: object) -> str:
    """One line under the heading of the method's panel."""
    return HINTS.get(str(method), HINTS["uag"])
