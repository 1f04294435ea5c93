"""What a configuration says of a model whose weights are not there: sizes, caches, context.

The model is built without memory (on torch's meta device) to count its parameters and to ask its
class what it keeps between steps; nothing is computed. Knows one model, not pairs.
"""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from typing import Any

import torch

from uag_core.errors import UnsupportedModelError
from uag_core.models.handle import LanguageModel
from uag_core.models.watching import quiet

_LAYERS = {
    "full_attention": "full",
    "sliding_attention": "sliding window",
    "chunked_attention": "chunks",
    "linear_attention": "recurrent",
    "conv": "recurrent (convolution)",
    "hybrid": "attention and recurrent",
    "hybrid_sliding": "sliding window and recurrent",
    "indexed_attention": "indexed",
}
_CROPPABLE = {"full_attention", "sliding_attention", "chunked_attention", "sparse", "dense"}


@dataclass(frozen=True, slots=True)
class Outline:
    """Of one model. `context` and `window` in tokens; None where nothing says.

    `rolls_back`: whether its cache can take positions back, as far as a configuration tells; a
    loaded model is tried. `cache` names the kinds of layers with how many there are of each.
    """

    model_type: str
    parameters: int | None
    context: int | None
    window: int | None
    cache: dict[str, int]
    rolls_back: bool
    experts: bool
    embedding_rows: int | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def outline(config: Any, name: str) -> Outline:
    """Read off a configuration of transformers.

    Raises `UnsupportedModelError` for a model that takes no KV cache.
    """
    text = config.get_text_config(decoder=True)
    model = _skeleton(config)
    if model is not None and "cache" not in inspect.signature(model.forward).parameters:
        raise UnsupportedModelError(
            f"{name} ({type(model).__name__}) does not take a KV cache.",
            "Choose a model that does.",
        )
    kinds = list(getattr(text, "layer_types", None) or ())
    window = getattr(text, "sliding_window", None)
    if not kinds:
        kind = "sliding_attention" if window else "full_attention"
        kinds = [kind] * int(getattr(text, "num_hidden_layers", 0) or 0)
    stateful = LanguageModel.is_stateful_config(model, text)
    cache: dict[str, int] = {}
    for kind in kinds:
        label = "recurrent" if stateful and len(set(kinds)) == 1 else _LAYERS.get(kind, str(kind))
        cache[label] = cache.get(label, 0) + 1
    context = LanguageModel.context_of(text)
    slides = any(kind in ("sliding_attention", "hybrid_sliding") for kind in kinds)
    return Outline(
        model_type=str(config.model_type),
        parameters=None if model is None else _count(model),
        context=context,
        window=int(window) if isinstance(window, int) and slides else None,
        cache=cache,
        rolls_back=not stateful and set(kinds) <= _CROPPABLE,
        experts=any(
            (getattr(text, key, 0) or 0) > 1
            for key in ("num_experts", "num_local_experts", "n_routed_experts")
        ),
        embedding_rows=int(text.vocab_size) if getattr(text, "vocab_size", None) else None,
    )


def _skeleton(config: Any) -> Any:
    """The model without memory for its weights; None where it cannot be built like that."""
    from transformers import AutoModelForCausalLM

    try:
        with quiet(), torch.device("meta"):
            # Without a dtype the process's default one would change for a while, under other runs.
            return AutoModelForCausalLM.from_config(
                config, dtype=torch.float32, trust_remote_code=False
            )
    except Exception:  # noqa: BLE001 - some models compute with their weights when they are built
        return None


def _count(model: Any) -> int:
    return sum({id(p): p.numel() for p in model.parameters()}.values())
