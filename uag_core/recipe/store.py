"""Shards of training text on disk: one line of JSON a pair, gzip, written whole or not at all."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

NEAR_COPY = 0.7  # share of the words of two requests that both have, from which they are alike


def write_shard(path: Path, rows: Iterable[Mapping[str, object]]) -> int:
    """Write rows to a gzip file by way of a temporary name; returns how many there were."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    count = 0
    # mtime 0 and no name in the header: the same rows give the same bytes.
    with open(temporary, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        for row in rows:
            packed.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
            count += 1
    temporary.replace(path)
    return count


def read_rows(paths: Iterable[Path]) -> Iterator[dict[str, object]]:
    """The rows of .jsonl and .jsonl.gz files, file after file, in sorted order of the names."""
    for path in sorted(paths):
        packed = path.suffix == ".gz"
        with gzip.open(path) if packed else path.open("rb") as lines:
            for line in lines:
                if line.strip():
                    yield json.loads(line)


def _plain(text: str) -> str:
    """Letters and digits only, in lower case: what makes two requests nearly the same."""
    return "".join(c for c in text.lower() if c.isalnum())


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def drop_prompts(
    rows: Iterable[dict[str, object]], prompts: Iterable[str]
) -> list[dict[str, object]]:
    """The rows whose request is none of ``prompts`` and no near copy of one.

    A near copy differs in signs and case only, or has most words in common with the prompt
    (`NEAR_COPY` of all words of both). Repeated requests are dropped too: the first one stays.
    """
    prompts = list(prompts)
    seen = {_plain(p) for p in prompts}
    kept_away = [_words(p) for p in prompts]
    kept = []
    for row in rows:
        key, words = _plain(str(row["u"])), _words(str(row["u"]))
        if key in seen or any(_alike(words, other) for other in kept_away):
            continue
        seen.add(key)
        kept.append(row)
    return kept


def _alike(words: frozenset[str], others: frozenset[str]) -> bool:
    most, least = max(len(words), len(others)), min(len(words), len(others))
    if least < NEAR_COPY * most:  # too different in length to be worth comparing
        return False
    return len(words & others) >= NEAR_COPY * len(words | others)
