"""What the first bytes of a weight file say: names, shapes and types, none of the weights.

Safetensors: an eight-byte length and a JSON object. GGUF: counts, key-value pairs, tensor table.
Everything is checked against hostile lengths. Knows bytes, not models.
Sources: the format descriptions of safetensors and of ggml (gguf.md).
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from uag_core.errors import RunError

_MAX_HEADER = 100_000_000
_GGUF_MAGIC = b"GGUF"
_GGUF_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?"} | {
    10: "Q",
    11: "q",
    12: "d",
}
_GGUF_STRING, _GGUF_ARRAY = 8, 9
_MAX_STRING = 50_000_000
_HEAD_NAME, _HEAD_VALUES = "output.weight", 32
# One entry of a tensor table: name, one dimension, type 0 (float32), offset 0.
_HEAD = struct.pack("<Q13sIQIQ", len(_HEAD_NAME), _HEAD_NAME.encode(), 1, _HEAD_VALUES, 0, 0)
_BROKEN = (OSError, ValueError, OverflowError, struct.error, MemoryError)


def safetensors_parameters(path: Path, name: str) -> dict[str, int]:
    """How many values of each dtype ("BF16", "F32", ...) a safetensors file holds.

    Raises `RunError` for a file whose header cannot be right.
    """
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if not 2 <= length <= _MAX_HEADER:
                raise ValueError
            table = json.loads(file.read(length))
        counts: dict[str, int] = {}
        for key, entry in table.items():
            if key != "__metadata__":
                dtype = str(entry["dtype"])
                counts[dtype] = counts.get(dtype, 0) + math.prod(map(int, entry["shape"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        counts = {}
    if not counts:
        raise RunError(f"The weights of {name} are damaged or cannot be read.")
    return counts


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """Scalars of a GGUF header by key ("general.architecture", "llama.block_count", ...).

    `parameters` is None where the tensor table was not reached; arrays are None in `values`.
    """

    values: dict[str, Any]
    parameters: int | None


def gguf_header(path: Path, name: str) -> GGUFHeader:
    """The header of a local GGUF file. Raises `RunError` for one that cannot be right."""
    values: dict[str, Any] = {}
    try:
        with path.open("rb") as file:
            return GGUFHeader(values, _gguf(file, values))
    except _BROKEN:
        pass
    raise RunError(f"The GGUF file {name} is damaged or cannot be read.")


def gguf_beginning(data: bytes, name: str) -> GGUFHeader:
    """As much of a GGUF header as the first bytes of a file hold. Raises as `gguf_header`."""
    values: dict[str, Any] = {}
    parameters = None
    with contextlib.suppress(*_BROKEN):
        parameters = _gguf(io.BytesIO(data), values)
    if not values:
        raise RunError(f"The GGUF file {name} is damaged or cannot be read.")
    return GGUFHeader(values, parameters)


def gguf_without_weights(data: bytes) -> bytes | None:
    """A small GGUF file with the metadata of the one that `data` is the beginning of.

    Of the tensors only a head is kept, as a few zeros: that it is there says that it is not tied.
    None where `data` ends before the tensor table does, or cannot be right.
    """
    values: dict[str, Any] = {}
    file = io.BytesIO(data)
    try:
        tensors = _pairs(file, values)
        end = file.tell()
        names, _ = _table(file, tensors)
    except _BROKEN:
        return None
    if file.tell() > len(data):
        return None
    head = _HEAD if _HEAD_NAME in names else b""
    small = data[:8] + struct.pack("<Q", 1 if head else 0) + data[16:end] + head
    alignment = values.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= 1 << 16:
        return None
    return small + bytes(-len(small) % alignment + 4 * _HEAD_VALUES)


def _gguf(file: BinaryIO, values: dict[str, Any]) -> int:
    """Fill `values` as far as the header goes; the number of parameters."""
    return _table(file, _pairs(file, values))[1]


def _pairs(file: BinaryIO, values: dict[str, Any]) -> int:
    """Fill `values` from the key-value pairs; the number of tensors that follow."""
    if file.read(4) != _GGUF_MAGIC:
        raise ValueError
    version, tensors, pairs = struct.unpack("<IQQ", file.read(20))
    if version not in (2, 3) or tensors > 1_000_000 or pairs > 1_000_000:
        raise ValueError
    for _ in range(pairs):
        key = _string(file)
        (kind,) = struct.unpack("<I", file.read(4))
        values[key] = _value(file, kind)
    return int(tensors)


def _table(file: BinaryIO, tensors: int) -> tuple[set[str], int]:
    """Names of the tensors, and how many values they hold."""
    names, parameters = set(), 0
    for _ in range(tensors):
        names.add(_string(file))
        (dimensions,) = struct.unpack("<I", file.read(4))
        if dimensions > 8:
            raise ValueError
        shape = struct.unpack(f"<{dimensions}Q", file.read(8 * dimensions))
        struct.unpack("<IQ", file.read(12))  # type and offset
        parameters += math.prod(shape)
    return names, parameters


def _string(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > _MAX_STRING:
        raise ValueError
    data = file.read(length)
    if len(data) != length:
        raise ValueError
    return data.decode("utf-8", "replace")


def _value(file: BinaryIO, kind: int, depth: int = 0) -> Any:
    if kind in _GGUF_SCALARS:
        form = "<" + _GGUF_SCALARS[kind]
        return struct.unpack(form, file.read(struct.calcsize(form)))[0]
    if kind == _GGUF_STRING:
        return _string(file)
    if kind != _GGUF_ARRAY or depth > 2:
        raise ValueError
    inner, count = struct.unpack("<IQ", file.read(12))
    if count > 100_000_000:
        raise ValueError
    if inner in _GGUF_SCALARS:
        file.seek(struct.calcsize("<" + _GGUF_SCALARS[inner]) * count, 1)
    else:
        for _ in range(count):
            _value(file, inner, depth + 1)
    return None
