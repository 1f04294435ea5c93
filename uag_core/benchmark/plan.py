"""What a benchmark measures: prompts, methods, draft lengths, repeats, and in which order.

Plain values only. Knows the names of the contract; runs nothing and knows no model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from uag_core.benchmark.suites import BenchPrompt
from uag_core.config import METHODS, REFERENCES, AssistantConfig, GenerationSettings
from uag_core.errors import InputError

BASELINE = "baseline"
UNPADDED = "baseline_unpadded"
ALL_METHODS = (BASELINE, *METHODS, *REFERENCES)
DEFAULT_METHODS = (BASELINE, "uag", "lookup", "uag+lookup")
MAX_REPEATS = 100
_DRAFTING = ("uag", "uag+lookup")


@dataclass(frozen=True, slots=True)
class Variant:
    """One engine as it is measured; `num_assistant_tokens` is a point of the sweep, None else.

    `config` None: plain decoding or a reference engine.
    """

    method: str
    num_assistant_tokens: int | None = None
    config: AssistantConfig | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A benchmark as somebody asked for it. Raises `InputError` on what cannot be measured.

    `sweep` holds numbers of draft tokens for the methods with an assistant; 0 stands for plain
    decoding, None for the engine's own choice. `compile` compiles every engine of ours, and leaves
    plain decoding without padding eager. Plain decoding is always measured, since every
    speedup divides by it.
    """

    prompts: tuple[BenchPrompt, ...]
    methods: tuple[str, ...] = DEFAULT_METHODS
    settings: GenerationSettings = field(default_factory=GenerationSettings)
    sweep: tuple[int | None, ...] = (None,)
    repeats: int = 1
    exact: bool = True
    raw: bool = False
    system: str | None = None
    compile: bool = False

    def __post_init__(self) -> None:
        if not self.prompts:
            raise InputError("There is no prompt to measure with.")
        unknown = [name for name in self.methods if name not in ALL_METHODS]
        if unknown:
            raise InputError(f"Unknown method {unknown[0]!r}.", f"Known: {', '.join(ALL_METHODS)}.")
        if not 1 <= self.repeats <= MAX_REPEATS:
            raise InputError(f"repeats must be between 1 and {MAX_REPEATS}, not {self.repeats}.")
        if self.settings.do_sample and self.settings.seed is None:
            # Not drawn: a benchmark that is taken up again must go on with the same seed.
            object.__setattr__(self, "settings", self.settings.with_seed(0))
        ordered = dict.fromkeys((BASELINE, *self.methods))
        object.__setattr__(self, "methods", tuple(ordered))
        object.__setattr__(self, "sweep", tuple(dict.fromkeys(self.sweep)) or (None,))
        for count in self.sweep:
            if count:
                AssistantConfig(num_assistant_tokens=count)  # says what is wrong with it

    @property
    def uses_assistant(self) -> bool:
        """Whether any method needs an assistant to be loaded."""
        return any(name in (*_DRAFTING, "transformers_uag") for name in self.methods)

    @property
    def is_sweep(self) -> bool:
        return self.sweep != (None,)

    def variants(self) -> list[Variant]:
        """The engines to measure, plain decoding first; without the paddings it needs."""
        found = [Variant(BASELINE)]
        for method in self.methods[1:]:
            if method in REFERENCES:
                # Its own defaults, or the draft lengths that ours are held to.
                counts = self.sweep if method == "transformers_uag" else (None,)
                found += [Variant(method, count) for count in counts if count != 0]
            elif method in _DRAFTING:
                found += [
                    Variant(method, count, self._config(method, count))
                    for count in self.sweep
                    if count != 0
                ]
            else:
                found.append(Variant(method, None, self._config(method, None)))
        return list(dict.fromkeys(found))

    def _config(self, method: str, count: int | None) -> AssistantConfig:
        return AssistantConfig(method=method, num_assistant_tokens=count, compile=self.compile)

    def to_dict(self) -> dict[str, Any]:
        """The settings that two runs must share for their rows to belong together."""
        return {
            **self.settings.to_dict(),
            "methods": list(self.methods),
            "num_assistant_tokens": list(self.sweep),
            "repeats": self.repeats,
            "exact": self.exact,
            **({"compile": True} if self.compile else {}),
            "raw": self.raw,
            "system": self.system,
            "num_prompts": len(self.prompts),
            "prompts_sha256": self._digest(),
        }

    def _digest(self) -> str:
        data = json.dumps([(item.id, item.category, item.prompt) for item in self.prompts])
        return hashlib.sha256(data.encode()).hexdigest()[:16]


def rotated(names: Sequence[Any], turn: int) -> Iterator[Any]:
    """`names` in an order of its own for each turn, so that no engine is always first or last."""
    count = len(names)
    if not count:
        return
    order = [names[(turn + index) % count] for index in range(count)]
    yield from order if (turn // count) % 2 == 0 else reversed(order)
