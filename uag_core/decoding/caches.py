"""A model with a KV cache of its own that can be rolled back, for one call.

Two kinds of cache, both holding the full length for every layer (sliding-window layers too: the
model's own mask does the sliding, and nothing evicted is ever missed after a rollback):

* static: full-length `StaticLayer`s of one length L. Every forward then has the same shapes, which
  is what makes half precision reproducible (and what compilers and CUDA graphs want).
* growing: a preallocated buffer of which attention sees only the part in use. The fastest form
  without padding; unlike concatenation it copies nothing as the text grows.

Knows nothing of tokenizers, proposers or events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, StaticLayer

from uag_core.errors import RunError
from uag_core.models.handle import LanguageModel

PREFILL_CHUNK = 512


class GrowingLayer(DynamicLayer):
    """Keys and values in a buffer that doubles when full; `keys` and `values` are views of it."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = max(1, capacity)
        self._length = 0
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append (B, H, n, D) keys and values; returns all of them, (B, H, length, D)."""
        end = self._length + key_states.shape[-2]
        if self._buffers is None or end > self._capacity:
            self._grow(key_states, value_states, end)
        assert self._buffers is not None
        keys, values = self._buffers
        keys[:, :, self._length : end] = key_states
        values[:, :, self._length : end] = value_states
        self._length = end
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]
        return self.keys, self.values

    def _grow(self, key_states: torch.Tensor, value_states: torch.Tensor, needed: int) -> None:
        while self._capacity < needed:
            self._capacity *= 2
        grown = []
        for index, states in enumerate((key_states, value_states)):
            batch, heads, _, width = states.shape
            buffer = states.new_zeros((batch, heads, self._capacity, width))
            if self._buffers is not None:
                buffer[:, :, : self._length] = self._buffers[index][:, :, : self._length]
            grown.append(buffer)
        self._buffers = (grown[0], grown[1])
        self.device = key_states.device
        self.dtype = key_states.dtype
        self.is_initialized = True

    def get_seq_length(self) -> int:
        return self._length

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last `-tokens_to_remove` positions (transformers' sign convention)."""
        if tokens_to_remove > 0:
            raise ValueError("crop takes a negative number: how many positions to remove")
        if self._buffers is not None:  # a layer that shares another one's states holds none
            self._length += tokens_to_remove
            keys, values = self._buffers
            self.keys, self.values = keys[:, :, : self._length], values[:, :, : self._length]

    def reset(self) -> None:
        self._length = 0
        self._buffers = None
        self.is_initialized = False


class CachedModel:
    """One sequence through one model. A context manager: leaving it frees the cache.

    Args:
        lm: the model; it is only called, never changed.
        capacity: positions the cache must hold: L for a static cache, a first guess otherwise.
        static: full-length static layers (fixed shapes) instead of growing ones.
        width: with a static cache, pad every forward after the prefill to this many positions.
    """

    def __init__(
        self, lm: LanguageModel, capacity: int, *, static: bool = False, width: int | None = None
    ) -> None:
        self.lm = lm
        self.static = static
        self.width = width
        self.capacity = capacity
        self.length = 0
        self.num_forwards = 0
        self._surplus = 0  # positions at the end of the cache that no longer count
        self._cache: Cache | None = self._make_cache()
        self._positions = (
            torch.arange(capacity, device=lm.input_device).clamp_(max=lm.context_length - 1)
            if static and lm.accepts_positions
            else None
        )

    def _make_cache(self) -> Cache:
        if self.lm.is_stateful:
            return DynamicCache(config=self.lm.model.config)
        if self.static:
            layers = [StaticLayer(max_cache_len=self.capacity) for _ in range(self.lm.num_layers)]
        else:
            layers = [GrowingLayer(self.capacity) for _ in range(self.lm.num_layers)]
        return Cache(layers=layers)

    def __enter__(self) -> CachedModel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the cache; the object cannot be used afterwards."""
        self._cache = None
        self._positions = None

    def prefill(
        self, ids: Sequence[int], cancelled: Callable[[], bool] = lambda: False
    ) -> torch.Tensor | None:
        """Read a prompt in pieces; (1, V) logits behind its last id, or None when cancelled.

        The pieces are the same for every run over the same prompt, so they change no comparison.
        Stateful models read the prompt in one piece: some drop their state between pieces.
        """
        step = len(ids) if self.lm.is_stateful else PREFILL_CHUNK
        logits = None
        for start in range(0, len(ids), max(1, step)):
            if cancelled():
                return None
            logits = self._call(ids[start : start + step], last_only=True)
        self.num_forwards = 1  # one prefill, in however many pieces
        return logits

    def forward(self, ids: Sequence[int], *, last_only: bool = False) -> torch.Tensor:
        """Append `ids`; logits (len(ids), V), or (1, V) with `last_only`.

        With a `width`, the forward is padded to it and the padding is rolled back at once.
        """
        if self.width is None:
            return self._call(ids, last_only=last_only)
        padding = self.width - len(ids)
        if padding < 0:
            raise RunError(f"{len(ids)} positions do not fit the fixed width {self.width}.")
        logits = self._call([*ids, *([ids[-1]] * padding)])
        self.rollback(padding)  # merged with what the caller rolls back, at the next forward
        return logits[len(ids) - 1 : len(ids)] if last_only else logits[: len(ids)]

    def rollback(self, count: int) -> None:
        """Forget the last `count` positions."""
        if count <= 0:
            return
        if count > self.length or self._cache is None:
            raise RunError(f"Cannot roll back {count} of {self.length} cached positions.")
        self._surplus += count
        self.length -= count

    def _call(self, ids: Sequence[int], *, last_only: bool = False) -> torch.Tensor:
        end = self.length + len(ids)
        if self.static and end > self.capacity:
            # Writing past a static cache raises nothing and spoils the output.
            raise RunError(f"The cache holds {self.capacity} positions, {end} are needed.")
        if self._surplus and self._cache is not None:
            self._cache.crop(-self._surplus)
            self._surplus = 0
        lm = self.lm
        kwargs: dict[str, object] = {}
        if self._positions is not None:
            # Padding past the context must not reach learned or length-dependent positions.
            kwargs["position_ids"] = self._positions[self.length : end].unsqueeze(0)
        if lm.uses_alibi:
            length = self.capacity if self.static else end
            mask = torch.zeros((1, length), dtype=torch.long, device=lm.input_device)
            mask[:, :end] = 1
            kwargs["attention_mask"] = mask
        if last_only and lm.accepts_logits_to_keep:
            kwargs["logits_to_keep"] = 1
        with torch.inference_mode():
            tokens = torch.tensor([list(ids)], dtype=torch.long, device=lm.input_device)
            output = lm.model(tokens, cache=self._cache, use_cache=True, **kwargs)
            logits = output.logits[0]
        self.length = end
        self.num_forwards += 1
        return logits[-1:] if last_only else logits


def synchronize(lm: LanguageModel) -> None:
    """Wait for the device, so that a clock read afterwards is honest."""
    if lm.input_device.type == "cuda":
        torch.cuda.synchronize(lm.input_device)
