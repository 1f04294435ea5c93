"""How much memory a model takes, computed from its configuration: no weights are needed.

Estimates are of the engine's own kind: a key-value cache of the full length in every layer (also
sliding-window ones), prefill in pieces of at most 512 positions. Knows configurations and bytes,
nothing of devices or downloads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PREFILL_CHUNK = 512  # as in decoding.caches
WIDTH = 16  # positions whose logits exist at once
QUANTISED = ("8bit", "4bit")
_BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "8bit": 1.0, "4bit": 0.5625}
# 4bit: half a byte and, for every 64 values, a scale of 32 bits.


@dataclass(frozen=True, slots=True)
class Shape:
    """The numbers of a configuration that decide about memory; 0 where it does not say."""

    layers: int = 0
    hidden: int = 0
    intermediate: int = 0
    vocabulary: int = 0
    cached_values: int = 0  # key and value numbers per token, all layers together
    context_length: int | None = None
    tied: bool = False


def shape_of(config: Mapping[str, Any]) -> Shape:
    """The shape in a checked `config.json`. Never raises: what cannot be read is 0."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    try:
        whole = CONFIG_MAPPING[str(config.get("model_type"))].from_dict(dict(config))
        text = whole.get_text_config(decoder=True)
    except Exception:  # noqa: BLE001 - a configuration of a stranger
        return Shape()

    def number(*names: str) -> int:
        for name in names:
            value = getattr(text, name, None)
            if isinstance(value, (list, tuple)) and value:
                value = max((v for v in value if isinstance(v, int)), default=None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        return 0

    layers = number("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    hidden = number("hidden_size", "n_embd", "d_model")
    heads = number("num_attention_heads", "n_head", "n_heads")
    key_heads = number("num_key_value_heads", "num_kv_heads", "n_head_kv") or heads
    if getattr(text, "multi_query", False) and not number("num_key_value_heads"):
        key_heads = 1
    width = number("head_dim", "attention_head_size") or (hidden // heads if heads else 0)
    per_layer = 2 * key_heads * width
    latent = number("qk_nope_head_dim") + number("qk_rope_head_dim")
    if latent and number("v_head_dim"):  # multi-head latent attention, cached expanded
        per_layer = heads * (latent + number("v_head_dim"))
    return Shape(
        layers=layers,
        hidden=hidden,
        intermediate=number("intermediate_size", "n_inner", "ffn_dim") or 4 * hidden,
        vocabulary=number("vocab_size"),
        cached_values=per_layer * _attention_layers(text, layers),
        context_length=number(
            "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"
        )
        or None,
        tied=bool(getattr(text, "tie_word_embeddings", False)),
    )


def _attention_layers(text: Any, layers: int) -> int:
    """Layers that keep keys and values; recurrent and linear ones keep a state of fixed size."""
    kinds = getattr(text, "layer_types", None) or getattr(text, "layers_block_type", None)
    if isinstance(kinds, (list, tuple)) and kinds:
        words = ("mamba", "linear", "recurrent", "conv", "rwkv")
        return sum(not any(word in str(kind) for word in words) for kind in kinds)
    return layers


def gguf_shape(values: Mapping[str, Any]) -> Shape:
    """The shape in the key-value pairs of a GGUF header."""
    kind = values.get("general.architecture")

    def number(name: str) -> int:
        value = values.get(f"{kind}.{name}")
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    layers, hidden = number("block_count"), number("embedding_length")
    heads = number("attention.head_count")
    key_heads = number("attention.head_count_kv") or heads
    width = number("attention.key_length") or (hidden // heads if heads else 0)
    return Shape(
        layers=layers,
        hidden=hidden,
        intermediate=number("feed_forward_length") or 4 * hidden,
        vocabulary=number("vocab_size"),
        cached_values=2 * key_heads * width * layers,
        context_length=number("context_length") or None,
    )


def weight_bytes(parameters: int, dtype: str, shape: Shape) -> int:
    """Bytes of the weights in `dtype`. Quantised loading leaves embeddings and head at 16 bits."""
    if dtype not in QUANTISED:
        return int(parameters * _BYTES[dtype])
    outside = min(parameters, shape.vocabulary * shape.hidden * (1 if shape.tied else 2))
    return int(outside * 2 + (parameters - outside) * _BYTES[dtype])


def cache_bytes(shape: Shape, tokens: int, dtype: str) -> int:
    """Bytes of keys and values for `tokens` positions; half precision below float32."""
    return shape.cached_values * tokens * (4 if dtype == "float32" else 2)


def activation_bytes(shape: Shape, tokens: int, dtype: str) -> int:
    """A generous estimate of what one forward needs beside weights and cache.

    Residual stream, attention inputs and the two halves of the feed-forward block for one piece
    of the prompt, and float32 logits for the positions that are verified at once (twice).
    """
    piece = min(tokens, PREFILL_CHUNK)
    width = 4 if dtype == "float32" else 2
    block = piece * (8 * shape.hidden + 3 * shape.intermediate) * width
    return block + 2 * WIDTH * shape.vocabulary * 4
