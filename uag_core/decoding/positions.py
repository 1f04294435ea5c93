"""Rotary positions that change when a text grows past a length (longrope: Phi-3-128k).

Such a model rotates every position of a forward by one set of frequencies, the short one or the
long one, and which of them is decided by the forward's last position. So no forward may reach
across the switch, or its first rows would not be those of plain decoding. Dynamic NTK scaling
begins at `max_position_embeddings`, where runs end anyway. Knows configurations, no tensors.
"""

from __future__ import annotations

from typing import Any

from uag_core.models.handle import LanguageModel

# These read the whole text again when they switch (their `prepare_inputs_for_generation`).
_REREADING = ("phi3", "phimoe", "phi4_multimodal")


def switch_length(lm: LanguageModel) -> int | None:
    """The number of positions up to which a forward uses the short frequencies, if they change."""
    return switch_length_of(lm.model.config, lm.context_length)


def switch_length_of(config: Any, context: int | None) -> int | None:
    """The same, of a configuration of transformers and the context length that it states."""
    lengths = [
        int(parameters["original_max_position_embeddings"])
        for parameters in _rope_parameters(config.get_text_config(decoder=True))
        if parameters.get("rope_type") == "longrope"
        and parameters.get("original_max_position_embeddings")
    ]
    return min((n for n in lengths if context is None or n < context), default=None)


def rereads(lm: LanguageModel) -> bool:
    """Whether transformers reads the whole text again where the frequencies switch."""
    return lm.model.config.get_text_config(decoder=True).model_type in _REREADING


def _rope_parameters(config: Any) -> list[dict[str, Any]]:
    """The rope parameters of a configuration: of all layers, or one dictionary per layer type."""
    parameters = getattr(config, "rope_parameters", None)
    if not isinstance(parameters, dict):
        return []
    nested = [value for value in parameters.values() if isinstance(value, dict)]
    return [parameters] if "rope_type" in parameters else nested
