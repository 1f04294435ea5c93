"""How the target decodes: `GenerationSettings`, small, frozen, plain values.

Knows nothing of torch or transformers at import time; the conversions to and from
`GenerationConfig` import transformers when they are called.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from uag_core.errors import InputError
from uag_core.validation import assign, number

if TYPE_CHECKING:
    from transformers import GenerationConfig

DEFAULT_MAX_NEW_TOKENS = 128
_LEAST_TEMPERATURE = 1e-4  # below, half of all logits overflow and nothing is left to sample
_HF_TOP_K = 50  # what transformers' generate takes when it samples and nothing is said


@dataclass(frozen=True, slots=True)
class GenerationSettings:
    """How the target decodes. `None` or 0 for `temperature` means greedy.

    `top_k` 0, `top_p` 1, `min_p` 0, `repetition_penalty` 1 and `no_repeat_ngram_size` 0 (or
    `None`) each mean "off". Raises `InputError` on values no decoder could use.
    """

    max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    no_repeat_ngram_size: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    eos_token_ids: tuple[int, ...] | None = None  # None: the target's own

    def __post_init__(self) -> None:
        inf = math.inf
        assign(
            self,
            "max_new_tokens",
            number("max_new_tokens", self.max_new_tokens, low=0, high=inf, integer=True),
        )
        checks: tuple[tuple[str, float, float, bool], ...] = (
            ("temperature", 0.0, inf, False),
            ("top_k", 0, inf, True),
            ("top_p", 0.0, 1.0, False),
            ("min_p", 0.0, 1.0, False),
            ("no_repeat_ngram_size", 0, inf, True),
            ("seed", 0, 2**63 - 1, True),
        )
        for name, low, high, integer in checks:
            value = getattr(self, name)
            if value is not None:
                assign(self, name, number(name, value, low=low, high=high, integer=integer))
        if self.temperature and self.temperature < _LEAST_TEMPERATURE:
            raise InputError(
                f"temperature must be 0 (greedy) or at least {_LEAST_TEMPERATURE:g}, "
                f"not {self.temperature!r}."
            )
        if self.top_p == 0.0:
            raise InputError("top_p must be above 0, not 0.")
        if self.repetition_penalty is not None:
            value = number("repetition_penalty", self.repetition_penalty, low=0.01, high=100.0)
            assign(self, "repetition_penalty", value)
        if self.stop is not None and not isinstance(self.stop, (str, tuple, list)):
            raise InputError("stop must be strings.")
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        if not all(isinstance(item, str) for item in stop):
            raise InputError("stop must be strings.")
        assign(self, "stop", tuple(item for item in stop if item))
        if self.eos_token_ids is not None:
            if not all(isinstance(i, int) for i in self.eos_token_ids):
                raise InputError("eos_token_ids must be whole numbers.")
            assign(self, "eos_token_ids", tuple(self.eos_token_ids))

    @property
    def do_sample(self) -> bool:
        return bool(self.temperature)

    @property
    def uses_processors(self) -> bool:
        """Whether logits pass through any processor before a token is chosen."""
        return bool(
            self.do_sample
            or (self.repetition_penalty not in (None, 1.0))
            or self.no_repeat_ngram_size
        )

    def with_seed(self, seed: int | None) -> GenerationSettings:
        return replace(self, seed=seed)

    def to_dict(self) -> dict[str, Any]:
        data = asdict(self)
        data["stop"] = list(self.stop)
        if self.eos_token_ids is not None:
            data["eos_token_ids"] = list(self.eos_token_ids)
        return data

    @classmethod
    def from_generation_config(
        cls, config: GenerationConfig, *, seed: int | None = None
    ) -> GenerationSettings:
        """The part of a transformers `GenerationConfig` that this engine follows.

        Raises `InputError` for what it cannot do: beams, several return sequences, no cache.
        """
        if (getattr(config, "num_beams", None) or 1) > 1:
            raise InputError("num_beams must be 1: assisted generation follows a single sequence.")
        if (getattr(config, "num_return_sequences", None) or 1) > 1:
            raise InputError("num_return_sequences must be 1; call once per sequence instead.")
        if getattr(config, "use_cache", None) is False:
            raise InputError("use_cache=False cannot be used: verification needs the KV cache.")
        for name in _UNSUPPORTED:
            if getattr(config, name, None):
                raise InputError(f"{name} is not supported; leave it out of the configuration.")
        eos = getattr(config, "eos_token_id", None)
        eos_ids = None if eos is None else ((eos,) if isinstance(eos, int) else tuple(eos))
        temperature = None
        if getattr(config, "do_sample", None):
            value = getattr(config, "temperature", None)
            temperature = 1.0 if value is None else value
        stop = getattr(config, "stop_strings", None) or ()
        limit = getattr(config, "max_new_tokens", None)
        return cls(
            max_new_tokens=DEFAULT_MAX_NEW_TOKENS if limit is None else limit,
            temperature=temperature,
            top_k=(
                (_HF_TOP_K if getattr(config, "top_k", None) is None else config.top_k)
                if temperature
                else None
            ),
            top_p=getattr(config, "top_p", None) if temperature else None,
            min_p=getattr(config, "min_p", None) if temperature else None,
            repetition_penalty=getattr(config, "repetition_penalty", None),
            no_repeat_ngram_size=getattr(config, "no_repeat_ngram_size", None),
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            seed=seed,
            eos_token_ids=eos_ids,
        )

    def to_generation_config(self) -> GenerationConfig:
        """A `GenerationConfig` that makes `transformers.generate` decode the same way."""
        from transformers import GenerationConfig

        return GenerationConfig(**self.generation_kwargs())

    def generation_kwargs(self) -> dict[str, Any]:
        """The same settings as keyword arguments of `GenerationConfig`."""
        values: dict[str, Any] = {
            "max_new_tokens": self.max_new_tokens,
            "do_sample": self.do_sample,
            "repetition_penalty": self.repetition_penalty,
            "no_repeat_ngram_size": self.no_repeat_ngram_size,
            "stop_strings": list(self.stop) or None,
        }
        if self.do_sample:
            values.update(
                temperature=self.temperature,
                top_k=self.top_k or 0,
                top_p=1.0 if self.top_p is None else self.top_p,
                min_p=self.min_p,
            )
        if self.eos_token_ids is not None:
            values["eos_token_id"] = list(self.eos_token_ids)
        return {key: value for key, value in values.items() if value is not None}


# Fields of GenerationConfig that would change the result and that this engine does not follow.
# fmt: off
_UNSUPPORTED = (
    "min_new_tokens", "min_length", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens",
    "sequence_bias", "forced_bos_token_id", "forced_eos_token_id", "encoder_repetition_penalty",
    "penalty_alpha", "exponential_decay_length_penalty", "watermarking_config", "guidance_scale",
    "typical_p", "epsilon_cutoff",
)
# fmt: on
