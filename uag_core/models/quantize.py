"""A copy of a model whose linear layers are 8-bit integers, for drafting on a CPU.

Drafting one token at a time is bound by reading the weights, and 8-bit weights are half as much to
read as bfloat16. What an assistant drafts is only proposed, so rounding it cannot change the
output; a target is never quantised here. Weights are symmetric and per output row, activations are
quantised as they come (dynamic quantisation); all else is float32, so nothing is converted on the
way. Knows one model at a time; does not measure whether the copy is faster.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch
from torch import nn

from uag_core.models.handle import LanguageModel

# Of the parameters: with fewer in linear layers the copy would be nearly as large as the original.
_LEAST_SHARE = 0.5
_ENGINES = ("x86", "fbgemm", "onednn", "qnnpack")
# Without 8-bit dot products sums of two 16-bit products may overflow: one bit less.
_REDUCE_RANGE = not torch.cpu._is_vnni_supported()


def pack(weight: torch.Tensor, bias: torch.Tensor | None) -> Any:
    """A float32 weight (out, in) in int8, laid out for `linear`; its bias stays as it is."""
    scales = weight.abs().amax(dim=1).clamp_min(1e-8).div_(127).double()
    zeros = torch.zeros(weight.shape[0], dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated in favour of a package; no other kernels
        packed = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        return torch.ops.quantized.linear_prepack(packed, bias)


def linear(states: torch.Tensor, packed: Any) -> torch.Tensor:
    """x W^T + b with x quantised on the fly; float32 in and out."""
    result: torch.Tensor = torch.ops.quantized.linear_dynamic(states, packed, _REDUCE_RANGE)
    return result


class Int8Linear(nn.Module):
    """A linear layer with its weight in int8."""

    def __init__(self, original: nn.Linear) -> None:
        super().__init__()
        weight = original.weight.detach().float()
        bias = None if original.bias is None else original.bias.detach().float()
        self._packed = pack(weight, bias)
        self.num_bytes = weight.numel()
        self.in_features, self.out_features = original.in_features, original.out_features

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return linear(states, self._packed)


def why_not(lm: LanguageModel) -> str | None:
    """Why there is no 8-bit form of this model here, or None where there is one."""
    if lm.input_device.type != "cpu":
        return f"{lm.id} is on a GPU, and 8-bit drafting is for CPUs"
    if torch.backends.quantized.engine not in _ENGINES:
        return "this build of torch has no 8-bit kernels for this processor"
    in_layers = sum(m.weight.numel() for m in lm.model.modules() if type(m) is nn.Linear)
    total = sum(p.numel() for p in lm.model.parameters())
    if in_layers < _LEAST_SHARE * total:
        return f"{lm.id} keeps most of its weights outside of linear layers"
    return None


def int8_copy(lm: LanguageModel) -> LanguageModel:
    """`lm` with a model of its own in int8 and float32; tokenizer and facts are shared.

    Raises `RuntimeError` where a layer cannot be packed.
    """

    def pack(module: nn.Module) -> None:
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                setattr(module, name, Int8Linear(child))
            else:
                pack(child)

    # The copy shares every weight until it is converted, so that no second full copy ever exists.
    shared: dict[int, Any] = {id(t): t for t in (*lm.model.parameters(), *lm.model.buffers())}
    model = copy.deepcopy(lm.model, shared)
    pack(model)
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None and parameter.dtype != torch.float32:
                value = nn.Parameter(parameter.detach().float(), requires_grad=False)
                module._parameters[name] = value
        for name, buffer in list(module._buffers.items()):
            if buffer is not None and buffer.is_floating_point():
                module._buffers[name] = buffer.float()
    model.config.dtype = torch.float32
    return in_8_bits(lm, model)


def in_8_bits(lm: LanguageModel, model: Any) -> LanguageModel:
    """The handle of `lm` for `model`, its form in int8; tokenizer and facts are shared."""
    small = copy.copy(lm)
    small.model = model
    small.quantization = "int8"
    # What was found out about the model's kind holds for the copy; what was timed does not.
    small.measured = {key: value for key, value in lm.measured.items() if isinstance(value, bool)}
    return small


def extra_bytes(original: LanguageModel, small: LanguageModel) -> int:
    """Bytes that the 8-bit form takes besides what it shares with the original."""
    shared = {t.data_ptr() for t in (*original.model.parameters(), *original.model.buffers())}
    seen: dict[int, int] = {}
    for tensor in (*small.model.parameters(), *small.model.buffers()):
        if tensor.data_ptr() not in shared:
            seen[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
    # 8-bit weights are no parameters: whatever holds some says how many bytes they take.
    packed = sum(getattr(module, "num_bytes", 0) for module in small.model.modules())
    return sum(seen.values()) + packed
