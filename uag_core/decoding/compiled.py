"""Compiled forwards of fixed shapes: one model, one cache length, a few widths.

A `Form` holds a static cache of one length and a function for each width, made by `torch.compile`
(on CUDA also captured as a CUDA graph) over that very cache, so that its tensors keep their
addresses. Forms are kept with the model's handle: a second run compiles nothing. `CompiledModel`
is a `CachedModel` over a form; what it has no function for (the prefill) runs uncompiled over the
same cache. Logits of a form equal each other bit by bit whatever is drafted; from those of eager
forwards they differ by rounding. Knows models and shapes; nothing of pairs, proposers or events.
"""

from __future__ import annotations

import os
import shutil
import sys
import types
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any

import torch
from transformers.cache_utils import Cache

from uag_core.decoding.caches import CachedModel, synchronize
from uag_core.decoding.layers import CompiledLayer
from uag_core.decoding.positions import switch_length
from uag_core.decoding.probes import close_enough, spread_ids
from uag_core.errors import RunError
from uag_core.models.handle import LanguageModel
from uag_core.models.memory import is_out_of_memory
from uag_core.models.placement import describe_map

Step = Callable[[], torch.Tensor]  # reads (1, W) ids from the form's buffer; (W, V) logits

_SHORTEST = 256
MOST_LENGTHS = 3  # forms of one model that are kept, the least recently used dropped first
_FREEZE_BELOW = 2 * 2**30  # bytes of weights that may be copied into a graph, packed for a CPU
_CONTEXT = 12  # ids behind which a form is tried out
ZEROGPU_VARIABLE = "SPACES_ZERO_GPU"


class CompileError(Exception):
    """A model that cannot be compiled here; the message says why, in a few words."""


def why_not(lm: LanguageModel) -> str | None:
    """Why `lm` is not compiled here, in a few words; None where it may be tried."""
    if os.environ.get(ZEROGPU_VARIABLE, "").lower() in ("1", "true", "t"):
        return "ZeroGPU lends its GPU for too short a time to compile"
    kind = lm.input_device.type
    if kind == "cpu" and not has_compiler():
        return "there is no C++ compiler on this machine"
    if kind == "cuda" and not _has_triton():
        return "the package triton, which compiles for the GPU, is not installed"
    if kind not in ("cpu", "cuda"):
        return f"compiling for {kind} is not supported"
    if lm.is_stateful or lm.uses_alibi or switch_length(lm) is not None:
        return f"the cache or the positions of {lm.id} have no fixed form"
    if lm.quantization is not None:
        return f"the weights of {lm.id} are quantised"
    if describe_map(lm.model):
        return f"{lm.id} is spread over several devices"
    return None


def has_compiler() -> bool:
    """Whether inductor finds a C++ compiler (CXX, else g++, clang++ or cl)."""
    usual = {"win32": ("cl",), "darwin": ("clang++",)}.get(sys.platform, ("g++",))
    names = [os.environ["CXX"]] if os.environ.get("CXX") else usual
    return any(shutil.which(name) for name in names)


def _has_triton() -> bool:
    try:
        from torch.utils._triton import has_triton

        return bool(has_triton())
    except ImportError:
        return False


def cache_length(positions: int) -> int:
    """L for a run of so many positions: one of few lengths (256, 384, 512, 768, ...)."""
    length = _SHORTEST
    while length < positions:
        if length + length // 2 >= positions:
            return length + length // 2
        length *= 2
    return length


class Form:
    """The compiled forwards of one model over one static cache. Used by one sequence at a time."""

    def __init__(self, lm: LanguageModel, length: int) -> None:
        self.lm = lm
        self.length = length
        self.start = torch.zeros((), dtype=torch.long, device=lm.input_device)
        layers = [CompiledLayer(length, self.start) for _ in range(lm.num_layers)]
        self.cache = Cache(layers=layers)
        self.ids: dict[int, torch.Tensor] = {}  # by width, (1, W): what a step reads
        self.steps: dict[int, Step] = {}
        self.frozen_bytes = 0
        self.compile_s = 0.0  # all that was ever spent on this form
        self.busy = False

    @property
    def num_bytes(self) -> int:
        layers = sum(layer.num_bytes for layer in self.cache.layers)
        return self.frozen_bytes + int(layers)

    def width_for(self, count: int) -> int | None:
        """The narrowest compiled width that takes `count` positions."""
        return min((width for width in self.steps if width >= count), default=None)

    def clear(self) -> None:
        with torch.inference_mode():
            for layer in self.cache.layers:
                layer.clear()

    def eager(self, width: int) -> Step:
        """The forward of `width` positions, as it is compiled."""
        model, cache, start = self.lm.model, self.cache, self.start
        last, positioned = self.lm.context_length - 1, self.lm.accepts_positions
        ids = self.ids[width]

        def step() -> torch.Tensor:
            kwargs = {}
            if positioned:  # padding past the context must not reach learned positions
                positions = torch.arange(width, device=ids.device) + start
                kwargs["position_ids"] = positions.clamp(max=last).unsqueeze(0)
            logits: torch.Tensor = model(ids, cache=cache, use_cache=True, **kwargs).logits[0]
            return logits

        # torch.compile keeps what it made, and counts how often, by code object: one for each.
        code = step.__code__.replace(co_name=f"step_{width}_of_{self.length}")
        return types.FunctionType(code, step.__globals__, step.__name__, None, step.__closure__)

    def compile(self, width: int) -> None:
        """Make the function of `width` positions and try it. Raises `CompileError`."""
        if width in self.steps:
            return
        started = perf_counter()
        ids = spread_ids(self.lm, _CONTEXT + width)
        # A tensor of its own: another one's strides or kind would have all compiled again.
        self.ids[width] = torch.tensor([ids[_CONTEXT:]], device=self.lm.input_device)
        try:
            with CompiledModel(self.lm, self) as model, torch.inference_mode():
                model.prefill(ids[:_CONTEXT])
                self.start.fill_(_CONTEXT)
                step = self._compiled(width)
                right = self._is_right(width, step)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            line = (str(error).strip().splitlines() or [""])[0][:160]
            raise CompileError(f"{type(error).__name__}: {line}") from None
        if not right:
            raise CompileError("its compiled logits are not its own")
        synchronize(self.lm)
        self.steps[width] = step
        self.compile_s += perf_counter() - started

    def _is_right(self, width: int, step: Step) -> bool:
        """Whether a step reads its ids, its position and the cache, as the eager one does."""
        eager, ids = self.eager(width), self.ids[width]
        for shift in range(2):
            self.start.fill_(_CONTEXT + shift)
            ids.copy_(torch.tensor([spread_ids(self.lm, width, 3 + shift)]))
            expected = eager().clone()
            if not close_enough(self.lm, step(), expected):
                return False
        return True

    def _compiled(self, width: int) -> Step:
        step: Step = torch.compile(self.eager(width), dynamic=False, fullgraph=True)
        with self._freezing():
            step()
        step()
        return self._captured(step) if self.lm.input_device.type == "cuda" else step

    def _freezing(self) -> AbstractContextManager[Any]:
        """Let a CPU graph pack its own copy of the weights, where that is small: faster."""
        weights = sum(parameter.nbytes for parameter in self.lm.model.parameters())
        if self.lm.input_device.type != "cpu" or weights > _FREEZE_BELOW:
            return nullcontext()
        from torch._inductor import config

        self.frozen_bytes += weights
        patch: AbstractContextManager[Any] = config.patch(freezing=True)
        return patch

    def _captured(self, step: Step) -> Step:
        """The step as a CUDA graph: one launch. Its logits are good until the next call.

        Captured here, since the graphs of `torch.compile` are bound to the thread that made them.
        """
        device = self.lm.input_device
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(2):
                step()
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.device(device), torch.cuda.graph(graph):
                logits = step()
        except RuntimeError:  # something in it waits for the device: compiled all the same
            return step

        def replay() -> torch.Tensor:
            graph.replay()
            return logits

        return replay


class CompiledModel(CachedModel):
    """One sequence through the forwards of a form. Closing it gives the form back.

    With a `width` every forward after the prefill is padded to it, as in `CachedModel`; without,
    a forward is padded to the next compiled width, and wider ones run uncompiled.
    """

    def __init__(self, lm: LanguageModel, form: Form, *, width: int | None = None) -> None:
        if form.busy:
            raise RunError("The compiled model is in use.")
        form.busy = True
        self._form: Form | None = form
        form.clear()
        super().__init__(lm, form.length, static=True, width=width)

    def _make_cache(self) -> Cache | None:
        assert self._form is not None
        return self._form.cache

    def close(self) -> None:
        super().close()
        if self._form is not None:
            self._form.busy = False
            self._form = None

    def _call(
        self, ids: Sequence[int] | torch.Tensor, *, last_only: bool = False, padding: int = 0
    ) -> torch.Tensor:
        form = self._form
        assert form is not None
        given = isinstance(ids, torch.Tensor)
        count = ids.shape[1] if isinstance(ids, torch.Tensor) else len(ids)
        width = count if given and count in form.steps else form.width_for(count)
        fits = width is not None and self.length + width <= self.capacity
        with torch.inference_mode():
            form.start.fill_(self.length)
            if width is None or not fits or (given and width != count):
                return super()._call(ids, last_only=last_only, padding=padding)
            if not isinstance(ids, torch.Tensor):
                ids = self._ids([*ids, *([ids[-1]] * (width - count))] if width > count else ids)
            form.ids[width].copy_(ids, non_blocking=True)
            logits = form.steps[width]()
            self.length += count
            self._written = self.length
            self.num_forwards += 1
            return logits[count - 1 : count] if last_only else logits[:count]


def form(lm: LanguageModel, length: int, widths: Sequence[int]) -> Form:
    """The form of `lm` with these widths, from before or compiled now.

    Raises `CompileError`, at once where it was tried before.
    """
    forms: dict[int, Form] = lm.measured.setdefault("compiled forms", {})
    failed: dict[tuple[int, int], str] = lm.measured.setdefault("compile failures", {})
    found = forms.pop(length, None) or Form(lm, length)
    try:
        for width in widths:
            if (length, width) in failed:
                raise CompileError(failed[length, width])
            try:
                found.compile(width)
            except CompileError as error:
                failed[length, width] = str(error)
                raise
    finally:
        if found.steps:
            forms[length] = found  # the most recently used is the last one
    for old in [key for key, one in forms.items() if not one.busy][:-MOST_LENGTHS]:
        del forms[old]
    lm.compiled_bytes = sum(one.num_bytes for one in forms.values())
    return found


def opener(lm: LanguageModel, length: int, width: int) -> Callable[[], CachedModel]:
    """What opens `lm` at this shape; its form is made here and now unless it is there already."""
    made = form(lm, length, (width,))
    return lambda: CompiledModel(lm, made, width=width)


def spent(lm: LanguageModel, length: int) -> float:
    """Seconds that compiling the form of this length has taken so far; 0 where there is none."""
    known = lm.measured.get("compiled forms", {}).get(length)
    return known.compile_s if known is not None else 0.0


def is_made(lm: LanguageModel, length: int, width: int) -> bool:
    """Whether `form` would have nothing to compile for this width."""
    known = lm.measured.get("compiled forms", {}).get(length)
    return known is not None and width in known.steps
