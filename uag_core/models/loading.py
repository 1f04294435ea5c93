"""From a model's name to a `LanguageModel` in memory.

Safetensors or GGUF only, never pickle and never a repository's own code; what can be refused is
refused before weights are downloaded or read. Every error is one of `uag_core.errors` with one
clear line. Knows nothing of sharing (registry.py) and nothing of decoding.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable, Iterator
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
from uag_core.models import checks, hub, memory
from uag_core.models.handle import LanguageModel
from uag_core.models.sources import Source, resolve

# Else transformers would ask the Hub to convert a repository without safetensors.
os.environ["DISABLE_SAFETENSORS_CONVERSION"] = "1"

Progress = Callable[[str], None]
_DEVICE = re.compile(r"cuda(?::(\d{1,3}))?")


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
    """ "cpu" or "cuda:n" for "auto", "cpu", "cuda" or "cuda:n".

    Raises `InputError` for other text and for a GPU that is not there.
    """
    if device == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        return "cpu"
    match = _DEVICE.fullmatch(device) if isinstance(device, str) else None
    if match is None:
        raise InputError(f"device must be auto, cpu, cuda or cuda:n, not {device!r}.")
    number, count = int(match[1] or 0), torch.cuda.device_count()
    if not torch.cuda.is_available() or count == 0:
        raise InputError("This machine has no usable CUDA GPU.", "Use the device cpu or auto.")
    if number >= count:
        raise InputError(f"There is no GPU {number}; this machine has {count}, counted from 0.")
    return f"cuda:{number}"


def resolve_dtype(dtype: str, device: str) -> str:
    """ "float32", "bfloat16" or "float16" for a dtype that may be "auto".

    auto is bfloat16 where the device computes it natively (CPUs with AVX512-BF16 or AMX, GPUs
    from Ampere on), else float16 on a GPU and float32 on a CPU.
    """
    if dtype not in DTYPES:
        raise InputError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}.")
    if dtype != "auto":
        return dtype
    if device.startswith("cuda"):
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
    if source.kind == "gguf":
        say(progress, f"Reading {name}.")
        model, tokenizer = read_gguf(source.path, dtype=dtype, device=device, name=name)
    else:
        folder = source.path
        if source.kind == "hub":
            assert source.revision is not None
            folder = hub.fetch_small_files(source.id, source.revision, name)
            check_folder(folder, name)
            hub.fetch_weights(source.id, source.revision, folder, name, progress)
        else:
            check_folder(folder, name)
            checks.check_files((p.name for p in folder.iterdir()), name)
        say(progress, f"Loading {name}.")
        model, tokenizer = read_folder(folder, dtype=dtype, device=device, name=name)
    return LanguageModel.build(
        ref=name, id=source.id, revision=source.revision, model=model, tokenizer=tokenizer
    )


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


def read_folder(folder: Path, *, dtype: str, device: str, name: str) -> tuple[Any, Any]:
    """Model and tokenizer of a checked folder. Raises as `load`."""
    return _read(folder, {"use_safetensors": True}, {}, dtype=dtype, device=device, name=name)


def read_gguf(
    path: Path, *, dtype: str, device: str = "cpu", name: str = "The GGUF file"
) -> tuple[Any, Any]:
    """Model and tokenizer of a GGUF file, dequantised to `dtype`. Raises as `load`."""
    from transformers import AutoConfig, GgufConfig

    def config() -> dict[str, Any]:
        return AutoConfig.from_pretrained(
            path.parent, gguf_file=path.name, trust_remote_code=False, local_files_only=True
        ).to_dict()

    checks.check_causal(_attempt(config, name, device), name)
    file = {"gguf_file": path.name}
    options = {**file, "quantization_config": GgufConfig(dequantize=True)}
    return _read(path.parent, options, file, dtype=dtype, device=device, name=name)


def _read(
    folder: Path,
    model_options: dict[str, Any],
    tokenizer_options: dict[str, Any],
    *,
    dtype: str,
    device: str,
    name: str,
) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    safe = {"trust_remote_code": False, "local_files_only": True}

    def tokenizer() -> Any:
        return AutoTokenizer.from_pretrained(folder, **tokenizer_options, **safe)

    def weights() -> Any:
        options = {**model_options, **safe, "dtype": getattr(torch, dtype)}
        if device != "cpu":
            options["device_map"] = {"": device}
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


def _attempt(action: Callable[[], Any], name: str, device: str, part: str = "model") -> Any:
    """The result of `action`, its errors turned into ours.

    The new error is raised outside of the except block: the original one, its frames and the
    tensors that they refer to are gone by then.
    """
    problem: UAGError
    try:
        with quiet():
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


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the progress bars and warnings of transformers off the terminal for a while."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
