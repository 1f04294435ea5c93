"""A model with a KV cache of its own that can be rolled back, for one call.

What a forward needs besides the weights is prepared once: the buffer that ids are written into,
the positions, the layers (layers.py) whose length is a plain number. So a forward costs as little
as it can outside of the model itself.

Knows nothing of tokenizers, proposers or events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

import numpy as np
import torch
from transformers.cache_utils import Cache

from uag_core.decoding.layers import FixedLayer, GrowingLayer
from uag_core.decoding.positions import rereads, switch_length
from uag_core.errors import RunError
from uag_core.models.handle import LanguageModel

PREFILL_CHUNK = 512
ROLLS_BACK = "rolls back"  # what probes.py found of a model, kept with it


class Ids:
    """Ids on their way to a model: written into one buffer, never into a new tensor.

    The caller waits for a forward's logits before it writes the next ids, so nothing that the
    device still reads is overwritten.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._reserve(64)

    def _reserve(self, count: int) -> None:
        pinned = self._device.type == "cuda"
        host = torch.zeros((1, count), dtype=torch.long, pin_memory=pinned)
        self._host: np.ndarray = host.numpy()
        self._source = host
        self._target = host.to(self._device) if pinned else host
        self._views: dict[int, torch.Tensor] = {}

    def __call__(self, ids: Sequence[int]) -> torch.Tensor:
        """(1, n) tensor of `ids` on the device, good until the next call."""
        count = len(ids)
        if count > self._host.shape[1]:
            self._reserve(2 * count)
        self._host[0, :count] = ids
        view = self._views.get(count)
        if view is None:
            view = self._views[count] = self._target[:, :count]
        if self._target is not self._source:
            view.copy_(self._source[:, :count], non_blocking=True)
        return view


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
        self._written = 0  # positions that the layers count, surplus ones among them
        self._ids = Ids(lm.input_device)
        # Models with a state of their own make their own cache; it is never rolled back.
        self._makes_cache = lm.is_stateful or not lm.measured.get(ROLLS_BACK, True)
        self._switch = switch_length(lm)
        self._read: list[int] | None = [] if self._switch and rereads(lm) else None
        self._cache: Cache | None = self._make_cache()
        self._positions = (
            torch.arange(capacity, device=lm.input_device)
            .clamp_(max=lm.context_length - 1)
            .unsqueeze(0)
            if static and lm.accepts_positions
            else None
        )

    def _make_cache(self) -> Cache | None:
        if self._makes_cache:
            return None  # the first forward makes it
        layer = FixedLayer if self.static else GrowingLayer
        return Cache(layers=[layer(self.capacity) for _ in range(self.lm.num_layers)])

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
        Some models read it in one piece: they drop their state between pieces, or rotate positions
        by the length of the piece.
        """
        whole = self._makes_cache or (self._switch is not None and len(ids) > self._switch)
        step = len(ids) if whole else PREFILL_CHUNK
        logits = None
        for start in range(0, len(ids), max(1, step)):
            if cancelled():
                return None
            logits = self._call(ids[start : start + step], last_only=True)
        self.num_forwards = 1  # one prefill, in however many pieces
        return logits

    def forward(
        self, ids: Sequence[int] | torch.Tensor, *, last_only: bool = False
    ) -> torch.Tensor:
        """Append `ids`; logits (len(ids), V), or (1, V) with `last_only`.

        Ids that are on the device already are given as a (1, n) tensor. With a `width`, the
        forward is padded to it and the padding is rolled back at once.
        """
        if self.width is None or isinstance(ids, torch.Tensor):
            return self._call(ids, last_only=last_only)
        count = len(ids)
        padding = self.width - count
        if padding < 0:
            raise RunError(f"{count} positions do not fit the fixed width {self.width}.")
        logits = self._call([*ids, *([ids[-1]] * padding)] if padding else ids, padding=padding)
        self.length -= padding
        return logits[count - 1 : count] if last_only else logits[:count]

    def most_positions(self) -> int | None:
        """Most positions that the next forward may have (None: any number)."""
        if self._switch is None or self.length >= self._switch:
            return None
        return self._switch - self.length

    @property
    def rolls_back(self) -> bool:
        """Whether positions can be forgotten."""
        return not self._makes_cache

    def pretend(self, length: int) -> None:
        """Say that `length` positions are in the cache, for timing steps behind a long text.

        Does nothing where the cache is not ours, or where the text would have to be read again.
        """
        if self._cache is None or self._makes_cache or self._read is not None:
            return
        for layer in self._cache.layers:
            layer.length = length
        self.length = self._written = length

    def rollback(self, count: int) -> None:
        """Forget the last `count` positions; the layers hear of it at the next forward."""
        if count <= 0:
            return
        if count > self.length or self._cache is None:
            raise RunError(f"Cannot roll back {count} of {self.length} cached positions.")
        self.length -= count

    def _call(
        self, ids: Sequence[int] | torch.Tensor, *, last_only: bool = False, padding: int = 0
    ) -> torch.Tensor:
        if self._read is not None:
            ids = ids[0].tolist() if isinstance(ids, torch.Tensor) else ids
            self._read_again(ids[0])
        lm, cache = self.lm, self._cache
        end = self.length + (ids.shape[1] if isinstance(ids, torch.Tensor) else len(ids))
        if self.static and end > self.capacity:
            # Writing past a static cache raises nothing and spoils the output.
            raise RunError(f"The cache holds {self.capacity} positions, {end} are needed.")
        if cache is not None and self._written != self.length:
            cache.crop(self.length - self._written)
        kwargs: dict[str, object] = {}
        if last_only and lm.accepts_logits_to_keep:
            kwargs["logits_to_keep"] = 1
        with torch.inference_mode():
            if self._positions is not None:
                # Padding past the context must not reach learned or length-dependent positions.
                positions = self._positions[:, self.length : end]
                if self._switch is not None and padding:
                    positions = positions.clamp(max=end - padding - 1)
                kwargs["position_ids"] = positions
            elif self._makes_cache and lm.accepts_positions:  # some lose count by themselves
                positions = torch.arange(self.length, end, device=lm.input_device)
                kwargs["position_ids"] = positions.unsqueeze(0)
            if lm.uses_alibi:
                kwargs["attention_mask"] = self._alibi_mask(end)
            tokens = ids if isinstance(ids, torch.Tensor) else self._ids(ids)
            output = lm.model(tokens, cache=cache, use_cache=True, **kwargs)
            logits = output.logits[0]
            if self._makes_cache:
                self._cache = output.cache
            if self._read is not None:
                self._read += ids
            self.length = self._written = end
            self.num_forwards += 1
            return logits[-1:] if last_only and logits.shape[0] > 1 else logits

    def _alibi_mask(self, end: int) -> torch.Tensor:
        length = self.capacity if self.static else end
        mask = torch.zeros((1, length), dtype=torch.long, device=self.lm.input_device)
        mask[:, :end] = 1
        return mask

    def _read_again(self, next_id: int) -> None:
        """Read all of the text anew where its frequencies switch, as transformers does."""
        assert self._read is not None
        del self._read[self.length :]
        if self.length != self._switch:
            return
        read, self._read = self._read, None
        self.rollback(self.length)
        self._call([*read, next_id], last_only=True)  # one more: they switch behind `read`
        self.rollback(1)
        self.num_forwards -= 1  # no step of the decoding
        self._read = read


def synchronize(lm: LanguageModel) -> None:
    """Wait for the device, so that a clock read afterwards is honest."""
    if lm.input_device.type == "cuda":
        torch.cuda.synchronize(lm.input_device)
