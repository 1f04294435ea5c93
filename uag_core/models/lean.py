"""The draft step of a Llama-shaped assistant in as few operations as it takes, on a CPU.

One token through a small model is bound by the number of operations, not by arithmetic: with the
weights in 8 bits two thirds of a step of the embedded assistant are spent between them. Here the
three projections of attention are one, as are the two of the feed-forward; the norms' weights are
folded into what follows them; rotary pairs lie side by side, so that turning them is one complex
product. What comes out is what `quantize.int8_copy` says, up to rounding, and it is only drafted
with, so no output depends on it.

`LeanModel` is called as transformers calls a causal model, with a cache of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - everybody's name for it
from torch import Tensor, nn

from uag_core.models.handle import LanguageModel
from uag_core.models.quantize import in_8_bits, linear, pack

Linear = Callable[[Tensor], Tensor]

_KINDS = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
_ROPES = {"default", "linear", "llama3"}  # angles that do not depend on the length of the text
_PROBE_IDS = 24
# More rows than this are read with the original's weights: rounding is for whole tensors, and the
# first position of a text is far larger than all others, which would leave those little.
_STEP_ROWS = 8
# Relative distance between its logits and the original's; another architecture would be near 1.
_MOST_ERROR = 0.35


@dataclass(frozen=True, slots=True)
class _Layer:
    """Linear maps: query, key and value in one; output; gate and up in one; down.

    `scale` (heads, D) are the weights of the norm that some put on each query and key.
    """

    qkv: Linear
    out: Linear
    gate_up: Linear
    down: Linear
    scale: Tensor | None


def fits(lm: LanguageModel) -> bool:
    """Whether this model has the shape that a `LeanModel` computes."""
    model = lm.model
    if type(model).__name__ not in _KINDS or not type(model).__module__.startswith("transformers."):
        return False
    config, inner = model.config, model.model
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"} or getattr(config, "sliding_window", None):
        return False
    if config.hidden_act != "silu" or inner.rotary_emb.rope_type not in _ROPES:
        return False
    attention = inner.layers[0].self_attn
    head = attention.head_dim
    if inner.rotary_emb.inv_freq.shape[0] * 2 != head or attention.scaling != head**-0.5:
        return False
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    return len(layers) == 7 * len(inner.layers) + 1 and all(type(m) is nn.Linear for m in layers)


def lean_copy(lm: LanguageModel) -> LanguageModel | None:
    """`lm` with a `LeanModel` of its own; None where that would not say what the original says.

    Raises `RuntimeError` where a layer cannot be packed.
    """
    if not fits(lm):
        return None
    small = in_8_bits(lm, LeanModel(lm.model))
    ids = torch.arange(min(_PROBE_IDS, lm.embedding_rows)).unsqueeze(0)
    with torch.inference_mode():
        wanted = lm.model(ids, use_cache=False).logits.float()
        error = (small.model(ids).logits - wanted).norm() / wanted.norm()
    return small if error < _MOST_ERROR else None


class LeanModel(nn.Module):
    """Weights in 8 bits, all else float32; a batch of one on the CPU.

    Attributes:
        num_bytes: memory that it takes besides the original, whose embeddings it shares.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.config = model.config
        inner = model.model
        attention = inner.layers[0].self_attn
        self._head = int(attention.head_dim)
        self._queries = attention.q_proj.out_features // self._head
        self._keys = attention.k_proj.out_features // self._head
        self._epsilon = float(inner.norm.variance_epsilon)
        self._embeddings = inner.embed_tokens
        self._rotary = inner.rotary_emb
        self._angles = torch.empty(0, self._head // 2, dtype=torch.complex64)
        self.num_bytes = 0
        self._half = model.dtype
        self._steps = [self._layer(layer, self._pack) for layer in inner.layers]
        self._reads = [self._layer(layer, self._join) for layer in inner.layers]
        self._logits = self._pack([model.lm_head], inner.norm)

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    def get_input_embeddings(self) -> nn.Module:
        embeddings: nn.Module = self._embeddings
        return embeddings

    def _layer(self, layer: Any, make: Callable[..., Linear]) -> _Layer:
        attention, ffn = layer.self_attn, layer.mlp
        turned = (attention.q_proj, attention.k_proj)
        return _Layer(
            qkv=make([*turned, attention.v_proj], layer.input_layernorm, turned),
            out=make([attention.o_proj]),
            gate_up=make([ffn.gate_proj, ffn.up_proj], layer.post_attention_layernorm),
            down=make([ffn.down_proj]),
            scale=self._scale(attention) if hasattr(attention, "q_norm") else None,
        )

    def _scale(self, attention: Any) -> Tensor:
        order = self._order(self._head)
        query, key = (
            norm.weight.detach().float()[order] for norm in (attention.q_norm, attention.k_norm)
        )
        return torch.cat([query.expand(self._queries, -1), key.expand(self._keys, -1)])

    def _order(self, rows: int) -> Tensor:
        """Output rows of a projection such that what turns together lies side by side."""
        return torch.arange(rows).view(-1, 2, self._head // 2).mT.reshape(-1)

    def _pack(self, parts: list[Any], norm: Any = None, turned: tuple[Any, ...] = ()) -> Linear:
        """Linear layers that read the same input as one in 8 bits, the norm's weight taken in."""
        weights, biases = [], []
        for part in parts:
            weight = part.weight.detach().float()
            bias = (
                weight.new_zeros(len(weight)) if part.bias is None else part.bias.detach().float()
            )
            order = self._order(len(weight)) if part in turned else slice(None)
            weights.append(weight[order])
            biases.append(bias[order])
        weight = torch.cat(weights)
        if norm is not None:
            weight = weight * norm.weight.detach().float()
        self.num_bytes += weight.numel()
        has_bias = any(part.bias is not None for part in parts)
        packed = pack(weight, torch.cat(biases) if has_bias else None)
        return lambda states: linear(states, packed)

    def _join(self, parts: list[Any], norm: Any = None, turned: tuple[Any, ...] = ()) -> Linear:
        """The same with the original's layers, for many rows at once."""
        orders = [self._order(part.out_features) if part in turned else None for part in parts]

        def run(states: Tensor) -> Tensor:
            if norm is not None:
                states = states * norm.weight
            states = states.to(self._half)
            results = [part(states) for part in parts]
            results = [
                result if order is None else result[:, order]
                for result, order in zip(results, orders, strict=True)
            ]
            return (results[0] if len(results) == 1 else torch.cat(results, dim=-1)).float()

        return run

    def _turn(self, end: int) -> Tensor:
        """(end, D/2) unit numbers: how far each pair is turned at each position."""
        if len(self._angles) < end:
            positions = torch.arange(max(256, 2 * end)).unsqueeze(0)
            cos, sin = self._rotary(torch.zeros(1), positions)
            half = self._head // 2
            self._angles = torch.complex(cos[0, :, :half], sin[0, :, :half]).contiguous()
        return self._angles[:end]

    def forward(
        self, input_ids: Tensor, cache: Any = None, *, logits_to_keep: int = 0, **_: Any
    ) -> SimpleNamespace:
        """Logits (1, n, V) behind each of (1, n) ids, or only behind the last `logits_to_keep`."""
        states = self._embeddings(input_ids[0]).float()
        count = len(states)
        start = cache.get_seq_length() if cache is not None else 0
        turns = self._turn(start + count)[start:, None]
        mask = None
        if count > 1:
            mask = torch.ones(count, start + count, dtype=torch.bool).tril_(start)
        normed = _Norm(states, self._epsilon)
        for index, layer in enumerate(self._steps if count <= _STEP_ROWS else self._reads):
            attended = self._attend(layer, index, normed(), turns, mask, cache)
            states += layer.out(attended)
            gate, up = layer.gate_up(normed()).chunk(2, dim=-1)
            states += layer.down(F.silu(gate).mul_(up))
        last = normed()[-logits_to_keep:] if logits_to_keep else normed()
        return SimpleNamespace(logits=self._logits(last).unsqueeze(0))

    def _attend(
        self, layer: _Layer, index: int, states: Tensor, turns: Tensor, mask: Any, cache: Any
    ) -> Tensor:
        queries, keys = self._queries, self._keys
        heads = layer.qkv(states).view(len(states), queries + 2 * keys, self._head)
        turned = heads[:, : queries + keys]
        if layer.scale is not None:
            square = turned.square().mean(dim=-1, keepdim=True)
            turned *= torch.rsqrt(square + self._epsilon) * layer.scale
        torch.view_as_complex(turned.unflatten(-1, (-1, 2))).mul_(turns)
        query, key, value = heads.transpose(0, 1)[None].split((queries, keys, keys), dim=1)
        if cache is not None:
            key, value = cache.layers[index].update(key, value)
        attended = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, enable_gqa=queries != keys
        )
        return attended[0].transpose(0, 1).reshape(len(states), -1)


class _Norm:
    """(n, width) `states` over their root mean square, as they are when it is called.

    A single row goes through numpy, which takes a fraction of torch's time for it.
    """

    def __init__(self, states: Tensor, epsilon: float) -> None:
        self._states, self._epsilon = states, epsilon
        self._single = len(states) == 1
        if self._single:
            self._row: np.ndarray = states.numpy()[0]
            self._result = torch.empty_like(states)
            self._target: np.ndarray = self._result.numpy()[0]

    def __call__(self) -> Tensor:
        if self._single:
            row = self._row
            scale = (float(row.dot(row)) / len(row) + self._epsilon) ** -0.5
            np.multiply(row, np.float32(scale), out=self._target)
            return self._result
        square = self._states.square().mean(dim=-1, keepdim=True)
        return self._states * torch.rsqrt(square + self._epsilon)
