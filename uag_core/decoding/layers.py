"""Layers of a KV cache that are rolled back by setting one plain number.

All hold the full length for every layer of a model, sliding-window layers too: the model's own
mask does the sliding, and nothing evicted is ever missed after a rollback.

* `FixedLayer`: buffers of one length L that are always seen whole. Every forward then has the same
  shapes, which is what makes half precision reproducible.
* `GrowingLayer`: a preallocated buffer of which attention sees only the part in use. The fastest
  form without padding; unlike concatenation it copies nothing as the text grows.

Their lengths are Python integers: nothing waits for a device, and a rollback touches no tensor.

* `CompiledLayer`: as `FixedLayer`, for compiled forwards, which would take a plain number for a
  constant.

Knows nothing of models, tokenizers or events.
"""

from __future__ import annotations

import torch
from transformers.cache_utils import DynamicLayer, StaticLayer


class FixedLayer(StaticLayer):
    """Keys and values (B, H, L, D) of a fixed length; unused slots are zero and masked.

    transformers' own static layer keeps its length in a tensor, which costs a kernel per layer
    for every forward and every rollback.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(max_cache_len=capacity)
        self.length = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.device, self.dtype = key_states.device, key_states.dtype
        self.batch_size, self.num_heads = key_states.shape[:2]
        # A NaN in an unused slot would spoil the sum over the masked ones: zeros.
        self.keys = key_states.new_zeros(self._shape(key_states))
        self.values = value_states.new_zeros(self._shape(value_states))
        self.is_initialized = True

    def _shape(self, states: torch.Tensor) -> tuple[int, int, int, int]:
        batch, heads, _, width = states.shape
        return batch, heads, self.max_cache_len, width

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write (B, H, n, D) keys and values behind the used ones; returns the whole buffers."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, self.length = self.length, self.length + key_states.shape[-2]
        self.keys[:, :, start : self.length] = key_states
        self.values[:, :, start : self.length] = value_states
        return self.keys, self.values

    def get_seq_length(self) -> int:
        return self.length

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last `-tokens_to_remove` positions (transformers' sign convention)."""
        self.length += tokens_to_remove

    def reset(self) -> None:
        self.length = 0
        self.is_initialized = False


class GrowingLayer(DynamicLayer):
    """Keys and values in a buffer that doubles when full; `keys` and `values` are views of it."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = max(1, capacity)
        self.length = 0
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append (B, H, n, D) keys and values; returns all of them, (B, H, length, D)."""
        end = self.length + key_states.shape[-2]
        if self._buffers is None or end > self._capacity:
            self._grow(key_states, value_states, end)
        assert self._buffers is not None
        keys, values = self._buffers
        keys[:, :, self.length : end] = key_states
        values[:, :, self.length : end] = value_states
        self.length = end
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
                buffer[:, :, : self.length] = self._buffers[index][:, :, : self.length]
            grown.append(buffer)
        self._buffers = (grown[0], grown[1])
        self.device = key_states.device
        self.dtype = key_states.dtype
        self.is_initialized = True

    def get_seq_length(self) -> int:
        return self.length

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last `-tokens_to_remove` positions (transformers' sign convention)."""
        if tokens_to_remove > 0:
            raise ValueError("crop takes a negative number: how many positions to remove")
        if self._buffers is not None:  # a layer that shares another one's states holds none
            self.length += tokens_to_remove

    def reset(self) -> None:
        self.length = 0
        self._buffers = None
        self.is_initialized = False


class CompiledLayer(StaticLayer):
    """Keys and values (B, H, L, D) whose length is a tensor that all layers of a cache share.

    A plain number would be compiled into the function; one tensor for each layer would cost a
    kernel for each layer. Whoever calls the model sets it before every forward.
    """

    def __init__(self, capacity: int, start: torch.Tensor) -> None:
        super().__init__(max_cache_len=capacity)
        self.cumulative_length = start

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        # Without transformers' marks: a frozen graph takes marked tensors for constants.
        self.device, self.dtype = key_states.device, key_states.dtype
        self.batch_size, self.num_heads = key_states.shape[:2]
        self.keys, self.values = (
            states.new_zeros((*states.shape[:2], self.max_cache_len, states.shape[3]))
            for states in (key_states, value_states)
        )
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write (B, H, n, D) keys and values from `start` on; returns the whole buffers."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        count = key_states.shape[-2]
        where = torch.arange(count, device=key_states.device) + self.cumulative_length
        self.keys.index_copy_(2, where, key_states)
        self.values.index_copy_(2, where, value_states)
        return self.keys, self.values

    def get_seq_length(self) -> torch.Tensor:
        return self.cumulative_length

    def crop(self, tokens_to_remove: int) -> None:
        """Nothing: the length is set before every forward."""

    def clear(self) -> None:
        """Zero the buffers in place: a NaN in an unused slot would spoil the output."""
        if self.is_initialized:
            self.keys.zero_()
            self.values.zero_()

    @property
    def num_bytes(self) -> int:
        return self.keys.nbytes + self.values.nbytes if self.is_initialized else 0
