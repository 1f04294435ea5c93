"""What can be known of a model from its configuration and its file names alone.

Everything here runs before any weights are downloaded or read. Knows dictionaries and names, not
tensors; does not touch the network.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from uag_core.errors import InputError, UnsafeModelError, UnsupportedModelError

WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")
_CAUSAL_ENDINGS = ("forcausallm", "lmheadmodel", "modelwithlmhead")
_VISION_ENDINGS = (
    "ForConditionalGeneration",
    "ForImageTextToText",
    "ForVision2Seq",
    "ForImageClassification",
    "ForMultimodalLM",
)
_CHOOSE = "Choose a causal (decoder-only) language model."


def read_config(path: Path, name: str) -> dict[str, Any]:
    """The JSON object in `path`. Raises `UnsupportedModelError` where there is none."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = None
    if not isinstance(config, dict):
        raise UnsupportedModelError(f"The {path.name} of {name} cannot be read as JSON.")
    return config


def check_code(config: dict[str, Any], name: str) -> None:
    """Raise `UnsafeModelError` when a configuration asks for code of its own to be run.

    Some repositories still carry a copy of code that transformers has long had itself (Phi-3):
    where every class that `auto_map` names is one of transformers' own for this kind of model,
    that one is used. The repository's code is neither downloaded nor run in any case.
    """
    wanted = config.get("auto_map")
    if wanted and not _is_native(wanted, config):
        raise UnsafeModelError(
            f"{name} asks to run code of its own (auto_map), which is never done here.",
            "Choose a model that transformers supports by itself.",
        )


def _is_native(auto_map: object, config: dict[str, Any]) -> bool:
    from transformers.models.auto import modeling_auto as auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    kind = config.get("model_type")
    if not isinstance(auto_map, dict) or not isinstance(kind, str):
        return False
    own = {str(CONFIG_MAPPING_NAMES.get(kind))}
    own.update(_names(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind)))
    own.update(_names(auto.MODEL_MAPPING_NAMES.get(kind)))
    if not all(isinstance(value, str) for value in auto_map.values()):
        return False
    named = {key: str(value).rpartition(".")[2] for key, value in auto_map.items()}
    needed = {
        value for key, value in named.items() if key in ("AutoConfig", "AutoModelForCausalLM")
    }
    return bool(needed) and set(named.values()) <= own


def check_causal(config: dict[str, Any], name: str) -> None:
    """Raise `UnsupportedModelError`, naming the reason, for anything but a causal LM.

    Source of the names: the auto-class tables of transformers.
    """
    from transformers.models.auto import modeling_auto as auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise UnsupportedModelError(f"{name} does not say in its config.json what model it is.")
    if kind not in CONFIG_MAPPING_NAMES:
        raise UnsupportedModelError(
            f"{name} is of the kind {kind!r}, which the installed transformers does not know."
        )
    classes = _names(config.get("architectures"))
    causal = _names(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind))
    has_causal_class = any(c in causal or c.lower().endswith(_CAUSAL_ENDINGS) for c in classes)
    two_sided = (
        kind in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
        or kind in auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES
    )
    if config.get("is_encoder_decoder") or (two_sided and not has_causal_class):
        raise UnsupportedModelError(f"{name} is an encoder-decoder model ({kind}).", _CHOOSE)
    if "vision_config" in config or any(c.endswith(_VISION_ENDINGS) for c in classes):
        raise UnsupportedModelError(
            f"{name} is a vision or multimodal model ({kind}).", "Choose a text-only model."
        )
    if any(c.endswith("ForMaskedLM") for c in classes) or (
        kind in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
        and not (has_causal_class and config.get("is_decoder"))
    ):
        raise UnsupportedModelError(f"{name} is a masked language model ({kind}).", _CHOOSE)
    if not causal or (classes and not has_causal_class):
        what = classes[0] if classes else kind
        raise UnsupportedModelError(
            f"{name} has no causal language-model head (it is a {what}).", _CHOOSE
        )


def _names(value: object) -> tuple[str, ...]:
    items: Iterable[object] = (value,) if isinstance(value, str) else value or ()  # type: ignore[assignment]
    return tuple(item for item in items if isinstance(item, str))


def check_files(names: Iterable[str], name: str) -> None:
    """Raise `UnsafeModelError` or `UnsupportedModelError` where safetensors are missing."""
    files = set(names)
    if WEIGHTS in files or WEIGHTS_INDEX in files:
        return
    gguf = some_gguf(files)
    by_file = f"Name one of its files, as {name.partition('@')[0]}:file.gguf; it has {gguf}."
    if any(file.endswith(PICKLES) for file in files):
        raise UnsafeModelError(
            f"{name} has its weights only in a format that can run code when it is read (pickle).",
            by_file if gguf else "Choose a repository with safetensors.",
        )
    if gguf:
        raise UnsupportedModelError(f"{name} holds GGUF files only.", by_file)
    raise UnsupportedModelError(f"{name} has no model.safetensors.")


def some_gguf(names: Iterable[str]) -> str:
    """The GGUF files among `names`, the first three spelled out; "" where there are none."""
    files = sorted(file for file in names if file.lower().endswith(".gguf"))
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(files[:3]) + more


def shards(index: Path, name: str) -> tuple[str, ...]:
    """The weight files that a safetensors index lists, without any that leave the folder."""
    table = read_config(index, name).get("weight_map")
    files = sorted(set(table.values())) if isinstance(table, dict) else []
    if not files or not all(isinstance(f, str) and f.endswith(".safetensors") for f in files):
        raise UnsupportedModelError(f"The list of weight files of {name} is damaged.")
    if any("/" in f or "\\" in f for f in files):
        raise InputError(f"The list of weight files of {name} points outside of its folder.")
    return tuple(files)
