"""Settings of a generation and of its assistant: small, frozen, plain values.

Knows nothing of torch or transformers at import time; the two conversions to and from
`GenerationConfig` import transformers when they are called.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from uag_core.errors import InputError
from uag_core.generation_settings import DEFAULT_MAX_NEW_TOKENS, GenerationSettings
from uag_core.validation import assign, number

if TYPE_CHECKING:
    from transformers import GenerationConfig

__all__ = ["DEFAULT_MAX_NEW_TOKENS", "AssistantConfig", "GenerationSettings"]  # and the constants

METHODS = ("uag", "lookup", "uag+lookup")
DTYPES = ("auto", "float32", "bfloat16", "float16", "8bit", "4bit")
REFERENCES = ("transformers", "transformers_uag", "transformers_lookup")
ASSISTANT_DTYPES = ("auto", "same", "int8")
SCHEDULES = ("auto", "constant", "heuristic", "heuristic_transient")
DEFAULT_TARGET = "embedded/target"
DEFAULT_ASSISTANT = "embedded/assistant"
MAX_CANDIDATES = 64
# Fields whose names transformers' GenerationConfig already has at its top level.
_STANDARD_FIELDS = (
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "assistant_confidence_threshold",
    "assistant_lookbehind",
    "target_lookbehind",
    "prompt_lookup_num_tokens",
    "max_matching_ngram_size",
)


@dataclass(frozen=True, slots=True)
class AssistantConfig:
    """How the assistant drafts.

    `num_assistant_tokens` None lets the engine choose; a number keeps the meaning it has in
    `GenerationConfig`: that many draft tokens a round, as the schedule says. `schedule` "auto"
    drafts while it pays. `assistant_confidence_threshold` (0 to 1) ends a draft early.
    `method` is "uag" (the assistant), "lookup" (prompt lookup, no assistant) or "uag+lookup".
    `prompt_lookup_num_tokens` None lets a lookup propose as many candidates as pay; a number keeps
    transformers' meaning. A match has `min_matching_ngram_size` to `max_matching_ngram_size`
    tokens (None: as long as it is).
    `width` fixes W, the positions of a padded target forward (candidates + 1).
    `fallback` lets the engine decode plainly while drafting does not pay.
    `assistant_dtype` "int8" drafts with 8-bit weights on a CPU, "same" with the weights as loaded,
    "auto" with whichever is measured to be faster. It cannot change the output.
    `compile` asks for compiled forwards of target and assistant (`torch.compile`, CUDA graphs). It
    implies fixed shapes in every dtype, and is off with a notice where nothing can be compiled.
    """

    assistant: str | None = None  # the assistant's name, so that a saved configuration is whole
    method: str = "uag"
    num_assistant_tokens: int | None = None
    num_assistant_tokens_schedule: str = "auto"
    assistant_confidence_threshold: float | None = None
    target_lookbehind: int = 10
    assistant_lookbehind: int = 10
    prompt_lookup_num_tokens: int | None = None
    max_matching_ngram_size: int | None = None
    min_matching_ngram_size: int = 1
    width: int | None = None
    fallback: bool = True
    assistant_dtype: str = "auto"
    compile: bool = False

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"method must be one of {', '.join(METHODS)}, not {self.method!r}.")
        if self.num_assistant_tokens_schedule not in SCHEDULES:
            raise InputError(
                f"num_assistant_tokens_schedule must be one of {', '.join(SCHEDULES)}, "
                f"not {self.num_assistant_tokens_schedule!r}."
            )
        if self.assistant_dtype not in ASSISTANT_DTYPES:
            raise InputError(
                f"assistant_dtype must be one of {', '.join(ASSISTANT_DTYPES)}, "
                f"not {self.assistant_dtype!r}."
            )
        if not isinstance(self.compile, bool):
            raise InputError(f"compile must be true or false, not {self.compile!r}.")
        if self.num_assistant_tokens is not None:
            value = number(
                "num_assistant_tokens",
                self.num_assistant_tokens,
                low=1,
                high=MAX_CANDIDATES,
                integer=True,
            )
            assign(self, "num_assistant_tokens", value)
        if self.assistant_confidence_threshold is not None:
            value = number(
                "assistant_confidence_threshold",
                self.assistant_confidence_threshold,
                low=0.0,
                high=1.0,
            )
            assign(self, "assistant_confidence_threshold", value)
        for name in ("target_lookbehind", "assistant_lookbehind"):
            value = number(name, getattr(self, name), low=0, high=4096, integer=True)
            assign(self, name, value)
        lookups = ("prompt_lookup_num_tokens", "max_matching_ngram_size", "min_matching_ngram_size")
        for name in lookups:
            value = getattr(self, name)
            if value is not None:
                assign(self, name, number(name, value, low=1, high=MAX_CANDIDATES, integer=True))
        if self.min_matching_ngram_size > (self.max_matching_ngram_size or MAX_CANDIDATES):
            raise InputError("min_matching_ngram_size must not exceed max_matching_ngram_size.")
        if self.width is not None:
            value = number("width", self.width, low=2, high=MAX_CANDIDATES + 1, integer=True)
            assign(self, "width", value)

    @property
    def uses_assistant(self) -> bool:
        return self.method != "lookup"

    @property
    def uses_lookup(self) -> bool:
        return self.method != "uag"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AssistantConfig:
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise InputError(f"Unknown assistant setting: {', '.join(unknown)}.")
        return cls(**data)

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> AssistantConfig:
        try:
            data = json.loads(text)
        except ValueError as error:
            raise InputError("The assistant configuration is not valid JSON.") from error
        if not isinstance(data, dict):
            raise InputError("The assistant configuration must be a JSON object.")
        return cls.from_dict(data)

    def to_generation_config(self, base: GenerationConfig | None = None) -> GenerationConfig:
        """A copy of `base` that carries this configuration through `save_pretrained`.

        Fields that `GenerationConfig` knows go to its top level; the rest, with the assistant's
        name, into its `assistant_config` dictionary.
        """
        from transformers import GenerationConfig

        config = GenerationConfig.from_dict(base.to_dict()) if base else GenerationConfig()
        rest = {}
        for name, value in self.to_dict().items():
            if name in _STANDARD_FIELDS and (value is not None and value != "auto"):
                setattr(config, name, value)
            elif name not in _STANDARD_FIELDS:
                rest[name] = value
        rest["auto"] = [name for name in _STANDARD_FIELDS if getattr(self, name) in (None, "auto")]
        config.assistant_config = rest
        return config

    @classmethod
    def from_generation_config(cls, config: GenerationConfig) -> AssistantConfig | None:
        """What `to_generation_config` stored, else the standard fields that are set, else None."""
        rest = getattr(config, "assistant_config", None)
        if not isinstance(rest, dict):
            # A configuration of transformers itself: its fields keep their meaning.
            plain = {name: getattr(config, name, None) for name in _STANDARD_FIELDS}
            plain = {name: value for name, value in plain.items() if value is not None}
            if "prompt_lookup_num_tokens" in plain:  # it switches prompt lookup on there as well
                plain["method"] = "lookup"
            return cls.from_dict(plain) if plain else None
        data = {key: value for key, value in rest.items() if key != "auto"}
        automatic = set(rest.get("auto", ()))
        for name in _STANDARD_FIELDS:
            value = getattr(config, name, None)
            if name not in automatic and value is not None:
                data[name] = value
        return cls.from_dict(data)
