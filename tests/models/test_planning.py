"""What is said about a model before its weights are there."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from transformers import LlamaConfig

from tests.fixtures.hub_server import Repo
from uag_core.errors import InputError, OutOfMemoryError
from uag_core.models import families, loading, memory, placement, planning, sizes

GB = 10**9


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    """`machine(cpu=..., gpus=(...))`: free bytes of every device."""

    def set_up(cpu: int, gpus: tuple[int, ...] = ()) -> None:
        names = {f"cuda:{number}": free for number, free in enumerate(gpus)}

        def free(device: str) -> int:
            return sum(gpus) if device == memory.GPUS else {**names, "cpu": cpu}[device]

        monkeypatch.setattr(memory, "free_memory", free)
        monkeypatch.setattr(memory, "gpu_names", lambda: list(names))
        monkeypatch.setattr(loading, "resolve_dtype", _resolve_dtype)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(gpus))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(gpus))

    return set_up


def _resolve_dtype(dtype: str, device: str) -> str:
    return {"auto": "float32" if device == "cpu" else "bfloat16"}.get(dtype, dtype)


BIG = {  # the numbers of a 7B Llama
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "head_dim": 128,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}
BIG_PARAMETERS = 6_738_415_616


@pytest.fixture
def big(hub_server, make_folder):
    """o/big on the server: a 7B model of which only the headers exist."""
    repo = Repo.from_folder(make_folder("big", **BIG))
    repo.parameters = {"BF16": BIG_PARAMETERS}
    repo.sizes["model.safetensors"] = BIG_PARAMETERS * 2
    hub_server.repos["o/big"] = repo
    return repo


def test_a_small_local_model(make_folder) -> None:
    found = planning.plan(str(make_folder()), dtype="float32", device="cpu", tokens=32)
    assert found["refusal"] is None
    assert found["fits"]
    assert found["parameters"] == found["memory"]["weights"] // 4
    assert found["stored"] == {"F32": found["parameters"]}
    assert found["context_length"] == 64
    assert found["memory"]["kv_cache"] == 2 * 2 * 1 * 8 * 32 * 4  # k and v, layers, heads, width
    assert found["disk"]["download"] == 0
    json.dumps(found)


def test_the_plan_agrees_with_the_loaded_model(make_folder) -> None:
    folder = str(make_folder())
    found = planning.plan(folder, dtype="bfloat16", device="cpu")
    model = loading.load(folder, dtype="bfloat16", device="cpu")
    assert found["memory"]["weights"] == sum(p.numel() * 2 for p in model.model.parameters())


def test_too_big_is_refused_before_any_weights(machine, big, hub_server) -> None:
    machine(cpu=20 * GB)
    found = planning.plan("o/big", device="cpu", dtype="float32", tokens=1024)
    assert found["refusal"]["error"] == "OutOfMemoryError"
    assert "28.2 GB in float32" in found["refusal"]["message"]
    assert found["refusal"]["hint"] == "In bfloat16 it would fit."
    with pytest.raises(OutOfMemoryError, match="In bfloat16 it would fit"):
        planning.require(found)
    assert not hub_server.asked("model.safetensors")
    assert planning.plan("o/big", device="cpu", dtype="bfloat16", tokens=1024)["refusal"] is None


@pytest.mark.parametrize(
    ("cpu", "gpus", "dtype", "tokens", "hint"),
    [
        (14.7, (), "bfloat16", 2048, "512 tokens"),
        (40, (8,), "bfloat16", 2048, "CPU"),
        (3, (), "bfloat16", 256, "up to about 1.1 B"),
    ],
)
def test_the_nearest_thing_that_would_work(
    machine, big, monkeypatch, cpu, gpus, dtype, tokens, hint
) -> None:
    monkeypatch.setattr(planning.importlib.util, "find_spec", lambda name: None)
    machine(cpu=int(cpu * GB), gpus=tuple(int(g * GB) for g in gpus))
    device = "cuda:0" if gpus else "cpu"
    found = planning.plan("o/big", device=device, dtype=dtype, tokens=tokens)
    assert hint in found["refusal"]["hint"]


def test_where_it_goes(machine, big) -> None:
    machine(cpu=64 * GB, gpus=(8 * GB, 24 * GB))
    assert planning.plan("o/big")["device"] == "cuda:1"  # the first that holds it
    machine(cpu=64 * GB, gpus=(12 * GB, 12 * GB))
    found = planning.plan("o/big")
    assert found["device"] == "gpus"
    assert {place["device"] for place in found["placement"]} == {"cuda:0", "cuda:1"}
    machine(cpu=64 * GB, gpus=(4 * GB,))
    assert planning.plan("o/big")["device"] == "cpu"


def test_the_assistant_gets_what_the_target_leaves(machine, big) -> None:
    machine(cpu=25 * GB)
    found = planning.plan_pair("o/big", "o/big", dtype="bfloat16", device="cpu")
    assert found["target"]["refusal"] is None
    assert found["assistant"]["refusal"] is not None


def test_disk_and_hosted_limits(machine, big, monkeypatch) -> None:
    machine(cpu=64 * GB)
    monkeypatch.setenv("UAG_DISK_LIMIT_GB", "5")
    assert "cache may hold 5 GB" in planning.plan("o/big")["refusal"]["message"]
    monkeypatch.setenv("UAG_HOSTED", "1")
    monkeypatch.setenv("UAG_MAX_MODEL_GB", "2")
    assert "at most 2 GB" in planning.plan("o/big")["refusal"]["message"]


def test_headers_are_asked_where_the_hub_does_not_count(machine, hub_server, make_folder) -> None:
    machine(cpu=64 * GB)
    hub_server.repos["o/n"] = Repo.from_folder(make_folder())
    found = planning.plan("o/n", device="cpu")
    assert found["stored"] == {"F32": found["parameters"]}
    assert [r.range for r in hub_server.asked("model.safetensors")] == ["bytes=0-100000"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "t5", "architectures": ...}, "encoder-decoder"),
        ({"model_type": "bert", "architectures": ["BertModel"]}, "masked"),
        ({"model_type": "gemma3", "vision_config": {}}, "vision"),
        ({"auto_map": {"AutoModelForCausalLM": "x.Y"}}, "auto_map"),
    ],
)
def test_other_kinds_are_a_refusal_of_the_plan(hub_server, make_folder, changes, words) -> None:
    hub_server.repos["o/n"] = Repo.from_folder(make_folder(**changes))
    found = planning.plan("o/n", device="cpu")
    assert not found["fits"]
    assert words in found["refusal"]["message"]
    assert words in planning.line(found)
    assert not hub_server.asked("model.safetensors")


def test_a_gated_model_says_so(hub_server, make_folder) -> None:
    repo = hub_server.repos["o/n"] = Repo.from_folder(make_folder(), gated="manual")
    assert planning.plan("o/n")["refusal"]["error"] == "GatedModelError"
    repo.gated = False
    repo.private = True
    assert planning.plan("o/x")["refusal"]["error"] == "ModelNotFoundError"


def test_a_line_for_people(make_folder) -> None:
    line = planning.line(planning.plan(str(make_folder()), dtype="float32", device="cpu"))
    assert "parameters" in line
    assert "float32 on cpu" in line
    assert "64 tokens" in line


@pytest.mark.parametrize(
    ("config", "values"),
    [
        ({"model_type": "gpt2", "n_layer": 3, "n_head": 4, "n_embd": 32}, 3 * 2 * 32),
        (
            {"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 8}
            | {"num_key_value_heads": 2, "hidden_size": 64, "head_dim": 16},
            2 * 2 * 2 * 16,
        ),
        ({"model_type": "never-heard-of"}, 0),
    ],
)
def test_cached_values_per_token(config, values) -> None:
    assert sizes.shape_of(config).cached_values == values


def test_quantised_weights_leave_the_embeddings(monkeypatch) -> None:
    shape = sizes.Shape(vocabulary=100, hidden=10, tied=True)
    assert sizes.weight_bytes(3000, "8bit", shape) == 1000 * 2 + 2000
    monkeypatch.setattr(loading.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs the library bitsandbytes"):
        loading.resolve_dtype("4bit", "cpu")


def test_a_map_over_several_gpus() -> None:
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        tie_word_embeddings=False,
    )
    whole = sum(p.numel() * 4 for p in _empty(config).parameters())
    room = {0: int(whole * 0.9), 1: int(whole * 0.9)}
    found = placement.device_map(config, "float32", room)
    assert found is not None
    assert set(found.values()) == {0, 1}
    assert placement.device_map(config, "float32", {0: whole // 4, 1: whole // 4}) is None
    assert placement.device_map(config, "float32", room, reserve=whole) is None
    model = SimpleNamespace(hf_device_map=found)
    assert placement.describe_map(model) == "cuda:0+cuda:1"


def _empty(config):
    from accelerate import init_empty_weights
    from transformers import AutoModelForCausalLM

    with init_empty_weights():
        return AutoModelForCausalLM.from_config(config)


def test_the_map_is_what_the_load_gets(make_folder, monkeypatch, machine) -> None:
    from transformers import AutoModelForCausalLM

    machine(cpu=GB, gpus=(20_000, 40_000))
    given: dict[str, object] = {}

    def take(*_: object, **options: object) -> None:
        given.update(options)
        raise torch.OutOfMemoryError("stop here")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", take)
    monkeypatch.setattr(sizes, "activation_bytes", lambda *_: 0)
    monkeypatch.setattr(sizes, "cache_bytes", lambda *_: 0)
    with pytest.raises(OutOfMemoryError):
        loading.load(str(make_folder()), dtype="float32", device="gpus")
    assert set(given["device_map"].values()) <= {0, 1}  # type: ignore[attr-defined]


def test_smaller_siblings() -> None:
    name = "Qwen/Qwen2.5-7B-Instruct"
    assert families.smaller(name, lambda n: n < 2e9) == "Qwen/Qwen2.5-1.5B-Instruct"
    assert families.smaller(name, lambda n: n < 1e8) is None
    assert families.smaller("o/unknown", lambda n: True) is None
    assert families.size_in_name("Qwen/Qwen2.5-0.5B-Instruct") == 500_000_000
    assert families.size_in_name("o/Phi-3-medium") is None
    assert families.count_text(134_515_008) == "135 M"
