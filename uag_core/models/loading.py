"""From a model's name to a `LanguageModel` in memory.

Safetensors or GGUF only, never pickle and never a repository's own code; what can be refused is
refused before weights are downloaded or read. Every error is one of `uag_core.errors` with one
clear line. Knows nothing of sharing (registry.py) and nothing of decoding.
"""

from __future__ import annotations

import importlib.util
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from uag_core.config import DTYPES
from uag_core.errors import (
    InputError,
    RunError,
    UAGError,
    UnsafeModelError,
    UnsupportedModelError,
)
from uag_core.models import checks, disk, hub, memory, placement, sizes
from uag_core.models.handle import LanguageModel
from uag_core.models.sources import Source, resolve
from uag_core.models.watching import quiet, watched

# Else transformers would ask the Hub to convert a repository without safetensors.
os.environ["DISABLE_SAFETENSORS_CONVERSION"] = "1"

Progress = Callable[[str], None]
_DEVICE = re.compile(r"cuda(?::(\d{1,3}))?")
_one_load = threading.RLock()  # what transformers is told about bars and warnings is global


def load(
    ref: str,
    *,
    dtype: str = "auto",
    device: str = "auto",
    progress: Progress | None = None,
    fresh: bool = True,
) -> LanguageModel:
    """Load the model that `ref` names; `fresh=False` may return one that is shared already.

    A fresh model belongs to the caller alone, as the engines that change their models need.
    Raises `InputError` and its kinds for what the caller can put right (exit status 2),
    `NetworkError`, `DiskSpaceError`, `OutOfMemoryError` or `RunError` otherwise.
    """
    if not fresh:
        from uag_core.models import registry

        return registry.get(ref, dtype, device, progress)
    where = resolve_device(device)
    kind = resolve_dtype(dtype, where)
    return load_resolved(
        resolve(ref, progress=progress), dtype=kind, device=where, progress=progress
    )


def resolve_device(device: str) -> str:
    """ "cpu", "cuda:n" or "gpus" for "auto", "cpu", "cuda", "cuda:n" or "gpus" (all together).

    Raises `InputError` for other text and for a GPU that is not there.
    """
    if device == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        return "cpu"
    match = _DEVICE.fullmatch(device) if isinstance(device, str) else None
    if match is None and device != memory.GPUS:
        raise InputError(f"device must be auto, cpu, cuda, cuda:n or gpus, not {device!r}.")
    count = torch.cuda.device_count()
    if not torch.cuda.is_available() or count == 0:
        raise InputError("This machine has no usable CUDA GPU.", "Use the device cpu or auto.")
    if match is None:
        return memory.GPUS if count > 1 else "cuda:0"
    number = int(match[1] or 0)
    if number >= count:
        raise InputError(f"There is no GPU {number}; this machine has {count}, counted from 0.")
    return f"cuda:{number}"


def resolve_dtype(dtype: str, device: str) -> str:
    """ "float32", "bfloat16", "float16", "8bit" or "4bit" for a dtype that may be "auto".

    auto is bfloat16 where the device computes it natively (CPUs with AVX512-BF16 or AMX, GPUs
    from Ampere on), else float16 on a GPU and float32 on a CPU.
    """
    if dtype not in DTYPES:
        raise InputError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}.")
    if dtype in sizes.QUANTISED and importlib.util.find_spec("bitsandbytes") is None:
        raise InputError(
            f"Loading in {dtype} needs the library bitsandbytes, which is not installed.",
            "Install it with: pip install bitsandbytes",
        )
    if dtype != "auto":
        return dtype
    if device != "cpu":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
        return "bfloat16" if native else "float16"
    return "bfloat16" if _cpu_has_bf16() else "float32"


def _cpu_has_bf16() -> bool:
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, lambda: False)() for name in names)


def load_resolved(
    source: Source, *, dtype: str, device: str, progress: Progress | None = None
) -> LanguageModel:
    """A model of its own from `source`, with resolved dtype and device. Raises as `load`."""
    name = source.ref
    options: dict[str, Any] = {"dtype": dtype, "device": device, "name": name, "progress": progress}
    if source.is_remote:
        assert source.revision is not None
        with disk.in_use(
            source.id, source.revision, lambda: say(progress, f"Waiting for {name} to be free.")
        ):
            if source.kind == "hub":
                hub.fetch_config(source.id, source.revision, name, source.token)
            folder = hub.fetch(
                source.id, source.revision, name, source.token, progress, source.file
            )
            model, tokenizer = _read_files(source, folder, options)
    else:
        model, tokenizer = _read_files(source, source.path, options)
    return LanguageModel.build(
        ref=name, id=source.id, revision=source.revision, model=model, tokenizer=tokenizer
    )


def _read_files(source: Source, path: Path, options: dict[str, Any]) -> tuple[Any, Any]:
    name, progress = source.ref, options["progress"]
    if source.kind in ("gguf", "hub_gguf"):
        say(progress, f"Reading {name}.")
        return read_gguf(path / source.file if source.file else path, **options)
    check_folder(path, name)
    checks.check_files((p.name for p in path.iterdir()), name)
    say(progress, f"Loading {name}.")
    return read_folder(path, **options)


def say(progress: Progress | None, line: str) -> None:
    if progress is not None:
        progress(line)


def check_folder(folder: Path, name: str) -> None:
    """Refuse what the small files of a model folder already show. Raises as `load`."""
    config = checks.read_config(folder / "config.json", name)
    checks.check_code(config, name)
    checks.check_causal(config, name)
    tokenizer = folder / "tokenizer_config.json"
    if tokenizer.is_file():
        checks.check_code(checks.read_config(tokenizer, name), name)


def read_folder(
    folder: Path, *, dtype: str, device: str, name: str, progress: Progress | None = None
) -> tuple[Any, Any]:
    """Model and tokenizer of a checked folder. Raises as `load`."""
    options = {"use_safetensors": True}
    return _read(folder, options, {}, dtype=dtype, device=device, name=name, progress=progress)


def read_gguf(
    path: Path,
    *,
    dtype: str,
    device: str = "cpu",
    name: str = "The GGUF file",
    progress: Progress | None = None,
) -> tuple[Any, Any]:
    """Model and tokenizer of a GGUF file, dequantised to `dtype`. Raises as `load`."""
    from transformers import AutoConfig, GgufConfig

    from uag_core.models.facts import check_gguf_library

    check_gguf_library()
    if dtype in sizes.QUANTISED:
        raise InputError(f"A GGUF file cannot be loaded in {dtype}.", "Use bfloat16 or float32.")

    def config() -> dict[str, Any]:
        return AutoConfig.from_pretrained(
            path.parent, gguf_file=path.name, trust_remote_code=False, local_files_only=True
        ).to_dict()

    checks.check_causal(_attempt(config, name, device), name)
    file = {"gguf_file": path.name}
    options = {**file, "quantization_config": GgufConfig(dequantize=True)}
    return _read(
        path.parent, options, file, dtype=dtype, device=device, name=name, progress=progress
    )


def _read(
    folder: Path,
    model_options: dict[str, Any],
    tokenizer_options: dict[str, Any],
    *,
    dtype: str,
    device: str,
    name: str,
    progress: Progress | None,
) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    safe = {"trust_remote_code": False, "local_files_only": True}

    def tokenizer() -> Any:
        return AutoTokenizer.from_pretrained(folder, **tokenizer_options, **safe)

    def weights() -> Any:
        options = {**model_options, **safe, **_types(dtype, device)}
        options |= _where(folder, tokenizer_options, dtype, device, name)
        with watched(progress, f"Loading {name}"):
            model, info = AutoModelForCausalLM.from_pretrained(
                folder, output_loading_info=True, **options
            )
        missing = sorted(info.get("missing_keys") or ())
        if missing:
            raise UnsupportedModelError(f"The weights of {name} are incomplete: no {missing[0]}.")
        return model.eval().requires_grad_(False)

    tokens = _attempt(tokenizer, name, device, part="tokenizer")
    if getattr(tokens, "backend_tokenizer", None) is None:
        raise UnsupportedModelError(
            f"{name} has only a slow tokenizer.", "Choose a model with a tokenizer.json."
        )
    return _attempt(weights, name, device), tokens


def _types(dtype: str, device: str) -> dict[str, Any]:
    """The options of `from_pretrained` for a resolved dtype."""
    if dtype not in sizes.QUANTISED:
        return {"dtype": getattr(torch, dtype)}
    from transformers import BitsAndBytesConfig

    compute = getattr(torch, resolve_dtype("auto", device))
    bits = {f"load_in_{dtype}": True}
    if dtype == "4bit":
        bits["bnb_4bit_compute_dtype"] = compute
    return {"dtype": compute, "quantization_config": BitsAndBytesConfig(**bits)}


def _where(
    folder: Path, gguf: dict[str, Any], dtype: str, device: str, name: str
) -> dict[str, Any]:
    """The options of `from_pretrained` for a resolved device."""
    if device == "cpu":
        return {}
    if device != memory.GPUS:
        return {"device_map": {"": device}}
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(
        folder, trust_remote_code=False, local_files_only=True, **gguf
    )
    shape = sizes.shape_of(config.to_dict())
    reserve = sizes.cache_bytes(shape, 2048, dtype) + sizes.activation_bytes(shape, 2048, dtype)
    found = placement.device_map(config, dtype, placement.budgets(), reserve)
    if found is None:
        raise memory.out_of_memory(name, device)
    return {"device_map": found}


def _attempt(action: Callable[[], Any], name: str, device: str, part: str = "model") -> Any:
    """The result of `action`, its errors turned into ours.

    The new error is raised outside of the except block: the original one, its frames and the
    tensors that they refer to are gone by then.
    """
    problem: UAGError
    try:
        with _one_load, quiet():
            return action()
    except UAGError as error:
        problem = error.with_traceback(None)
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes transformers raise
        problem = _problem(error, name, device, part)
    memory.release_unused()
    raise problem


def _problem(error: Exception, name: str, device: str, part: str) -> UAGError:
    if memory.is_out_of_memory(error):
        return memory.out_of_memory(name, device)
    text = str(error).lower()
    if "trust_remote_code" in text or "pickle" in text or "weights_only" in text:
        return UnsafeModelError(f"{name} would need code or pickle files of its own to load.")
    if isinstance(error, ImportError):
        return UnsupportedModelError(f"The {part} of {name} needs a library that is not installed.")
    if part == "tokenizer":
        return UnsupportedModelError(f"{name} has no tokenizer that can be read as a fast one.")
    if type(error).__name__ == "SafetensorError" or isinstance(error, OSError):
        return RunError(f"The weights of {name} are damaged or cannot be read.")
    return RunError(f"{name} could not be loaded ({type(error).__name__}).")
