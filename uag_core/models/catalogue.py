"""Finding models: a search over the Hub, what the local caches hold, and presets.

Every entry says how large the model is, under which licence, whether it is gated and whether it
would fit here. Out of the Hub's reach the list is that of the caches, and says so. Reads no
weights; knows no page and no command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

from uag_core import hosting
from uag_core.config import DEFAULT_ASSISTANT, DEFAULT_TARGET
from uag_core.errors import InputError, NetworkError, UAGError
from uag_core.models import checks, disk, embedded, families, headers, presets
from uag_core.models.hub import Token
from uag_core.models.hub_errors import call
from uag_core.validation import number

MAX_LIMIT = 50
DEFAULT_LIMIT = 12
MAX_QUERY = 200
_TIMEOUT_S = 8
_EXPAND = ["likes", "downloads", "gated", "safetensors", "cardData", "tags", "config"]
_BYTES_PER_PARAMETER = 2.4  # bfloat16, with room for cache and activations
Entry = dict[str, Any]
OFFLINE = "The Hub is out of reach: these are the embedded models and the ones in the local cache."


def search(query: str = "", limit: int = DEFAULT_LIMIT, *, token: Token = None) -> dict[str, Any]:
    """Models for the words in `query`, the most liked first (all when it is blank).

    Returns {"query", "source": "hub" or "cache", "notice", "models", "presets"}; a model is
    {"id", "parameters", "bytes", "likes", "downloads", "licence", "gated", "fits", "cached"},
    null where nothing says. Raises `InputError` for a query or a limit that cannot be meant, and
    what the Hub answers; that it cannot be reached is a notice, not an error.
    """
    if not isinstance(query, str) or len(query) > MAX_QUERY or not query.isprintable():
        raise InputError(f"A search is a text of at most {MAX_QUERY} characters.")
    limit = number("limit", limit, low=1, high=MAX_LIMIT, integer=True)
    words = query.strip()
    cached = _embedded(words) + _cached(words)
    notice: str | None = None
    try:
        found = _ask(words, limit, hosting.current().token_for(token))
        there = {entry["id"] for entry in cached}
        models = [{**entry, "cached": entry["id"] in there} for entry in found]
        source = "hub"
    except NetworkError:
        notice, source, models = OFFLINE, "cache", cached
    except UAGError:
        if not constants.is_offline_mode():
            raise
        notice, source, models = OFFLINE, "cache", cached
    if source == "hub":
        models = _first(cached[:2] if not words else _embedded(words), models)
    models = [entry for entry in models if presets.may_be_used(entry["id"])]
    _mark_fitting(models)
    return {
        "query": words,
        "source": source,
        "notice": notice,
        "models": models[:limit],
        "presets": [preset.to_dict() for preset in presets.usable()],
    }


def _ask(words: str, limit: int, token: Token) -> list[Entry]:
    """The Hub's own search: text generation, safetensors, by likes."""

    parameters: dict[str, Any] = {
        "pipeline_tag": "text-generation",
        "filter": "safetensors",
        "sort": "likes",
        "limit": limit,
        "expand": _EXPAND,
        **({"search": words} if words else {}),
    }

    def ask() -> list[huggingface_hub.ModelInfo]:
        # Not `list_models`: it tries for most of a minute before it says that nobody answers.
        response = huggingface_hub.get_session().get(
            f"{constants.ENDPOINT}/api/models",
            params=parameters,
            headers=build_hf_headers(token=token),
            timeout=_TIMEOUT_S,
        )
        hf_raise_for_status(response)
        return [huggingface_hub.ModelInfo(**{"siblings": None, **item}) for item in response.json()]

    if constants.is_offline_mode():
        raise NetworkError("Offline mode is on.")
    found = [_entry(model) for model in call("the list of models", ask)]
    return [entry for entry in found if entry is not None]


def _entry(model: Any) -> Entry | None:
    """One search result, or None for a model that could not be loaded anyway."""
    config = model.config if isinstance(model.config, dict) else {}
    try:
        checks.check_code(config, model.id)
        if config.get("model_type"):
            checks.check_causal(config, model.id)
    except UAGError:
        return None
    weights = model.safetensors
    parameters = int(weights.total) if weights is not None else families.size_in_name(model.id)
    licence = getattr(model.card_data, "license", None)
    if licence is None:
        marks = [t for t in model.tags or () if isinstance(t, str) and t.startswith("license:")]
        licence = marks[0].partition(":")[2] if marks else None
    return {
        "id": str(model.id),
        "parameters": parameters,
        "bytes": None if parameters is None else parameters * 2,
        "likes": model.likes,
        "downloads": model.downloads,
        "licence": str(licence[0] if isinstance(licence, list) and licence else licence)
        if licence
        else None,
        "gated": bool(model.gated),
        "fits": None,
        "cached": False,
    }


def _embedded(words: str) -> list[Entry]:
    folders = {
        DEFAULT_TARGET: embedded.target_folder(),
        DEFAULT_ASSISTANT: embedded.assistant_folder(),
    }
    return [
        _local(name, _embedded_size(name, folder), disk.is_whole(folder), "apache-2.0")
        for name, folder in folders.items()
        if _matches(name, words)
    ]


def _embedded_size(name: str, folder: Path) -> int:
    try:
        return _parameters(folder, name)
    except UAGError:  # not there yet: what it will be
        return 134_515_008 if name == DEFAULT_TARGET else 0


def _cached(words: str) -> list[Entry]:
    """Whole models in our own cache and in the shared one."""
    found: dict[str, Entry] = {}
    for base in dict.fromkeys((disk.own_root(), disk.shared_root())):
        for folder in sorted(base.glob("models--*/snapshots/*")):
            repo = folder.parent.parent.name.removeprefix("models--").replace("--", "/", 1)
            if repo in found or not _matches(repo, words) or not disk.is_whole(folder):
                continue
            try:
                config = checks.read_config(folder / "config.json", repo)
                checks.check_code(config, repo)
                checks.check_causal(config, repo)
                found[repo] = _local(repo, _parameters(folder, repo), True, None)
            except UAGError:
                continue
    return list(found.values())


def _parameters(folder: Path, name: str) -> int:
    index = folder / checks.WEIGHTS_INDEX
    files = checks.shards(index, name) if index.is_file() else (checks.WEIGHTS,)
    return sum(sum(headers.safetensors_parameters(folder / file, name).values()) for file in files)


def _local(name: str, parameters: int, cached: bool, licence: str | None) -> Entry:
    return {
        "id": name,
        "parameters": parameters,
        "bytes": parameters * 2,
        "likes": None,
        "downloads": None,
        "licence": licence,
        "gated": False,
        "fits": None,
        "cached": cached,
    }


def _matches(name: str, words: str) -> bool:
    return all(word in name.lower() for word in re.split(r"\s+", words.lower()) if word)


def _first(some: list[Entry], others: Iterable[Entry]) -> list[Entry]:
    names = {entry["id"] for entry in some}
    return [*some, *(entry for entry in others if entry["id"] not in names)]


def _mark_fitting(models: list[Entry]) -> None:
    """Whether each model would fit on the best device, roughly; `planning` says it exactly."""
    from uag_core.models import memory

    rules = hosting.current()
    room = max(memory.total_memory(name) for name in (*memory.gpu_names(), "cpu")) * 0.9
    if memory.gpu_names():
        room = max(room, memory.total_memory(memory.GPUS) * 0.9)
    for entry in models:
        if entry["parameters"] is not None:
            small = rules.max_model_bytes is None or entry["bytes"] <= rules.max_model_bytes
            entry["fits"] = small and entry["parameters"] * _BYTES_PER_PARAMETER <= room


def label(entry: Entry) -> str:
    """An entry in one line: "Qwen/Qwen2.5-0.5B-Instruct · 494 M · apache-2.0 · fits"."""
    parts = [str(entry["id"])]
    if entry["parameters"]:
        parts.append(families.count_text(entry["parameters"]))
    if entry["licence"]:
        parts.append(str(entry["licence"])[:24])
    if entry["likes"]:
        parts.append(f"♥ {_count(entry['likes'])}")
    if entry["gated"]:
        parts.append("gated")
    if entry["fits"] is not None:
        parts.append("fits here" if entry["fits"] else "too big here")
    if entry["cached"]:
        parts.append("on disk")
    return " · ".join(parts)


def _count(value: int) -> str:
    return f"{value / 1000:.1f}k" if value >= 1000 else str(value)
