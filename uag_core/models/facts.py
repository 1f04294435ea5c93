"""What is known of a model before its weights are there: from names, headers and configurations.

For a Hub model a few kilobytes are fetched; for a local one the headers are read. Refuses what is
no causal language model, what is unsafe, and what the caller may not have. Knows no devices.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uag_core.errors import RunError, UAGError, UnsupportedModelError
from uag_core.models import checks, disk, headers, hub, sizes
from uag_core.models.sources import Source

_GGUF_BEGINNING = 1 << 18
_MAX_HEADERS = 64  # weight files whose headers are asked for one by one
_WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I8": 1, "U8": 1, "F8_E4M3": 1, "F8_E5M2": 1}
_TWO_SIDED = ("t5", "t5encoder", "umt5", "bart", "whisper")
_MASKED = ("bert", "nomic-bert", "jina-bert-v2", "roberta")
# Bits per weight of common GGUF file types (general.file_type), for a size without a table.
_GGUF_BITS = {0: 32.0, 1: 16.0, 2: 4.5, 3: 5.0, 7: 8.5, 8: 5.5, 9: 6.0, 10: 2.6, 11: 3.4, 12: 3.9}
_GGUF_BITS |= {13: 4.3, 14: 4.6, 15: 4.9, 16: 5.5, 17: 5.7, 18: 6.6, 32: 16.0}


@dataclass(frozen=True, slots=True)
class Facts:
    """A model as its headers show it. Sizes in bytes; None where nothing says."""

    source: Source
    model_type: str
    architecture: str | None
    shape: sizes.Shape
    parameters: int | None
    stored: dict[str, int] = field(default_factory=dict)  # values by dtype, as stored
    weight_file_bytes: int = 0
    download_bytes: int = 0
    gated: str | None = None
    licence: str | None = None
    config: dict[str, Any] | None = field(default=None, repr=False)


def gather(source: Source) -> Facts:
    """Everything that can be known without the weights.

    Raises `UnsupportedModelError`, `UnsafeModelError`, `GatedModelError`, `ModelNotFoundError`
    and what the Hub's errors become.
    """
    if source.kind == "gguf":
        header = headers.gguf_header(source.path, source.ref)
        return _gguf(source, header, source.path.stat().st_size, 0)
    if source.kind == "hub_gguf":
        return _hub_gguf(source)
    if source.kind == "hub":
        return _hub(source)
    return _folder(source)


def _folder(source: Source) -> Facts:
    from uag_core.models.loading import check_folder

    folder, name = source.path, source.ref
    check_folder(folder, name)
    checks.check_files((path.name for path in folder.iterdir()), name)
    config = checks.read_config(folder / "config.json", name)
    stored, size = _local_weights(folder, name)
    return _from_config(source, config, stored, weight_file_bytes=size)


def _local_weights(folder: Path, name: str) -> tuple[dict[str, int], int]:
    index = folder / checks.WEIGHTS_INDEX
    files = checks.shards(index, name) if index.is_file() else (checks.WEIGHTS,)
    stored: dict[str, int] = {}
    size = 0
    for file in files:
        path = folder / file
        if not path.is_file():
            raise UnsupportedModelError(f"{name} lacks the weight file {file}.")
        size += path.stat().st_size
        for dtype, count in headers.safetensors_parameters(path, name).items():
            stored[dtype] = stored.get(dtype, 0) + count
    return stored, size


def _from_config(
    source: Source, config: dict[str, Any], stored: dict[str, int], **more: Any
) -> Facts:
    classes = config.get("architectures")
    first = classes[0] if isinstance(classes, list) and classes else None
    return Facts(
        source=source,
        model_type=str(config.get("model_type")),
        architecture=first if isinstance(first, str) else None,
        shape=sizes.shape_of(config),
        parameters=sum(stored.values()) or more.pop("parameters", None),
        stored=stored,
        config=config,
        **{key: value for key, value in more.items() if key != "parameters"},
    )


def _hub(source: Source) -> Facts:
    repo, sha, name, token = source.id, source.fingerprint, source.ref, source.token
    config = hub.fetch_config(repo, sha, name, token)
    folder = disk.snapshot(repo, sha)
    if disk.is_whole(folder):
        stored, size = _local_weights(folder, name)
        return _from_config(source, config, stored, weight_file_bytes=size)
    info = hub.info(repo, sha, name, token)
    missing = hub.missing_files(repo, sha, name, token)
    index = folder / checks.WEIGHTS_INDEX
    names = checks.shards(index, name) if index.is_file() else (checks.WEIGHTS,)
    size = sum(info.files[key].size or 0 for key in names)
    stored = dict(info.parameters or {})
    if not stored and len(names) <= _MAX_HEADERS:
        try:
            stored = hub.header_parameters(repo, sha, names, name, token)
        except UAGError as error:
            if not isinstance(error, RunError):
                stored = {}
    width = 2 if str(config.get("dtype", config.get("torch_dtype"))) != "float32" else 4
    return _from_config(
        source,
        config,
        stored,
        parameters=size // width or None,
        weight_file_bytes=size,
        download_bytes=sum(file.size or 0 for file in missing),
        gated=info.gated,
        licence=info.licence,
    )


def _hub_gguf(source: Source) -> Facts:
    repo, sha, name, token = source.id, source.fingerprint[:40], source.ref, source.token
    assert source.file is not None
    check_gguf_library()
    folder = disk.snapshot(repo, sha, source.file)
    path = folder / source.file
    if path.is_file():
        return _gguf(source, headers.gguf_header(path, name), path.stat().st_size, 0)
    missing = hub.missing_files(repo, sha, name, token, source.file)
    info = hub.info(repo, sha, name, token)
    data = hub.beginning(repo, sha, source.file, name, token, _GGUF_BEGINNING)
    size = missing[0].size or 0
    return _gguf(
        source,
        headers.gguf_beginning(data, name),
        size,
        size,
        info.gguf_parameters,
        gated=info.gated,
        licence=info.licence,
    )


def _gguf(
    source: Source,
    header: headers.GGUFHeader,
    size: int,
    download: int,
    parameters: int | None = None,
    **more: Any,
) -> Facts:
    check_gguf_library()
    kind = str(header.values.get("general.architecture") or "")
    check_gguf_architecture(kind, source.ref)
    parameters = header.parameters or parameters
    if not parameters and size:
        bits = _GGUF_BITS.get(header.values.get("general.file_type"), 4.5)  # type: ignore[arg-type]
        parameters = int(size * 8 / bits)
    return Facts(
        source=source,
        model_type=kind,
        architecture=None,
        shape=sizes.gguf_shape(header.values),
        parameters=parameters or None,
        stored={"GGUF": parameters} if parameters else {},
        weight_file_bytes=size,
        download_bytes=download,
        **more,
    )


def check_gguf_library() -> None:
    """Raise `UnsupportedModelError` where the package that reads GGUF files is missing."""
    if importlib.util.find_spec("gguf") is None:
        raise UnsupportedModelError(
            "Reading GGUF files needs the package gguf, which is not installed.",
            "Install it with: pip install 'gguf>=0.19,<1'",
        )


def check_gguf_architecture(kind: str, name: str) -> None:
    """Raise `UnsupportedModelError` for a GGUF architecture that cannot be decoded here."""
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    if kind in _TWO_SIDED:
        raise UnsupportedModelError(
            f"{name} is an encoder-decoder model ({kind}).",
            "Choose a causal (decoder-only) language model.",
        )
    if kind in _MASKED:
        raise UnsupportedModelError(
            f"{name} is a masked language model ({kind}).",
            "Choose a causal (decoder-only) language model.",
        )
    if not kind or kind.replace("-", "_") not in {
        known.replace("-", "_") for known in GGUF_SUPPORTED_ARCHITECTURES
    }:
        raise UnsupportedModelError(
            f"{name} is a GGUF file of the kind {kind or 'unknown'!r}, which transformers cannot "
            "read.",
            "Use the model's repository with safetensors instead.",
        )
