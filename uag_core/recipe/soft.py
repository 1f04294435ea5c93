"""The target's distribution in the assistant's vocabulary, position by position.

Where an assistant token begins at a target token's beginning, the probability of every likely
target token goes to the first assistant token that spells it; inside a target token, only those
that agree with what was spelled so far count. So a distribution over one vocabulary becomes one
over another through shared byte strings, whatever the two tokenizers are (the idea of token-level
distillation across vocabularies; see Timor et al., arXiv 2502.05202, for the same map used in
decoding). Knows tokenizers and numbers, no model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Any

from transformers import PreTrainedTokenizerBase

from uag_core.tokenization import TokenizerCodec

MIN_MASS = 0.3  # less of the distribution than this says too little: the chosen token is used

Weights = list[tuple[int, float]]  # assistant id, probability; sums to 1


class SoftTargets:
    """Maps what the target thought to what the assistant should think."""

    def __init__(
        self,
        target: PreTrainedTokenizerBase,
        assistant: PreTrainedTokenizerBase,
        stops: Collection[int],
    ) -> None:
        self._target, self._assistant = TokenizerCodec(target), TokenizerCodec(assistant)
        self._stops, self._end = frozenset(stops), int(assistant.eos_token_id)
        self._spelled = lru_cache(maxsize=None)(self._spell)

    def _spell(self, token: int) -> tuple[int, ...]:
        """The assistant's ids of one target token's text; empty when it is no text by itself."""
        if self._target.is_control(token):
            return ()
        try:
            text = self._target.piece(token).decode()
        except UnicodeDecodeError:
            return ()  # a part of a character
        return tuple(self._assistant.encode(text))

    def weights(self, row: Mapping[str, Any], answer: list[int]) -> list[Weights]:
        """For each assistant id of an answer, and for its end when it has one, what to learn.

        ``row`` is a record with "ids" and "top" (see `write_answers`), ``answer`` the assistant's
        ids of its text. A position about which the target's distribution says nothing gets the
        id that is there with weight 1.
        """
        goals = [*answer, self._end] if row["done"] else list(answer)
        tops = [_read(text) for text in row["top"]]
        starts = [0, *accumulate(map(len, self._target.pieces(row["ids"])))]
        places = [0, *accumulate(map(len, self._assistant.pieces(answer)))]
        index_at = {place: index for index, place in enumerate(places)}
        result: list[Weights] = []
        for index, goal in enumerate(goals):
            token = bisect_right(starts, places[index]) - 1  # the target token that is begun here
            first = index_at.get(starts[token])
            soft: Weights = []
            if first is not None and token < len(tops):
                soft = self._at(tops[token], tuple(answer[first:index]))
            result.append(soft if any(i == goal for i, _ in soft) else [(goal, 1.0)])
        return result

    def _at(self, top: list[tuple[int, float]], begun: tuple[int, ...]) -> Weights:
        """The distribution of the next assistant token after ``begun``, inside a target token."""
        mass: dict[int, float] = {}
        for token, probability in top:
            if token in self._stops:
                if not begun:
                    mass[self._end] = mass.get(self._end, 0.0) + probability
                continue
            spelled = self._spelled(token)
            if len(spelled) > len(begun) and spelled[: len(begun)] == begun:
                follows = spelled[len(begun)]
                mass[follows] = mass.get(follows, 0.0) + probability
        total = sum(mass.values())
        if total < (0.0 if begun else MIN_MASS) or not total:
            return []
        return [(i, p / total) for i, p in mass.items()]


def _read(text: str) -> list[tuple[int, float]]:
    """Reverse of what `write_answers` spells: "id:permille" pairs."""
    pairs = (pair.split(":") for pair in text.split())
    return [(int(i), int(permille) / 1000) for i, permille in pairs]
