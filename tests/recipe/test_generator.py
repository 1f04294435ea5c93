"""The fast generator says what transformers' own generation says."""

from __future__ import annotations

import pytest
import torch

from uag_core.recipe.generator import BatchedGenerator, Job, UnsupportedTargetError

LENGTHS = [3, 17, 5, 40, 9, 1, 23, 33, 12, 7]


def _prompts(vocabulary: int) -> list[list[int]]:
    rng = torch.Generator().manual_seed(3)
    return [torch.randint(2, vocabulary, (n,), generator=rng).tolist() for n in LENGTHS]


def test_greedy_equals_transformers_in_float32(target):
    stop = target.config.eos_token_id
    prompts = _prompts(target.config.vocab_size)
    generator = BatchedGenerator(target, slots=4, context=96, stop_ids=[stop])
    outputs = {o.key: o for o in generator.run(Job(i, p, 10 + i) for i, p in enumerate(prompts))}
    assert sorted(outputs) == list(range(len(prompts)))
    for i, prompt in enumerate(prompts):
        wanted = target.generate(
            torch.tensor([prompt]), max_new_tokens=10 + i, do_sample=False, pad_token_id=stop
        )[0, len(prompt) :].tolist()
        done = stop in wanted
        assert outputs[i].ids == (wanted[: wanted.index(stop)] if done else wanted)
        assert outputs[i].done == done


def test_a_stop_id_ends_a_row_and_is_left_out(target):
    prompt = _prompts(target.config.vocab_size)[0]
    free = next(iter(BatchedGenerator(target, slots=1, context=64).run([Job(0, prompt, 8)])))
    stop = free.ids[4]
    first = free.ids.index(stop)
    cut = next(
        iter(
            BatchedGenerator(target, slots=1, context=64, stop_ids=[stop]).run([Job(0, prompt, 8)])
        )
    )
    assert cut.ids == free.ids[:first]
    assert cut.done


def test_sampling_is_repeatable_and_depends_on_the_seed(target):
    prompts = _prompts(target.config.vocab_size)

    def sample(seed: int) -> list[list[int]]:
        generator = BatchedGenerator(
            target, slots=4, context=64, temperature=1.0, top_p=0.9, seed=seed
        )
        jobs = [Job(i, p, 12) for i, p in enumerate(prompts)]
        return [o.ids for o in sorted(generator.run(jobs), key=lambda o: o.key)]

    assert sample(1) == sample(1)
    assert sample(1) != sample(2)


def test_what_does_not_fit_is_refused(target):
    generator = BatchedGenerator(target, slots=2, context=32)
    with pytest.raises(ValueError, match="do not fit"):
        list(generator.run([Job(0, [3] * 30, 8)]))
    with pytest.raises(ValueError, match="do not fit"):
        list(generator.run([Job(0, [], 8)]))


def test_other_architectures_are_refused(target):
    class Other:
        class config:
            model_type = "gpt2"

    with pytest.raises(UnsupportedTargetError, match="gpt2"):
        BatchedGenerator(Other())
