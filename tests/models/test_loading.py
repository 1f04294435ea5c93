from __future__ import annotations

import gc
import json
import os
import pickle
import sys
import weakref
from pathlib import Path

import pytest
import torch

from uag_core.errors import (
    InputError,
    ModelNotFoundError,
    OutOfMemoryError,
    RunError,
    UAGError,
    UnsafeModelError,
    UnsupportedModelError,
)
from uag_core.models import embedded, loading, sources


def test_a_local_folder_loads(make_folder) -> None:
    folder = make_folder()
    lines: list[str] = []
    model = loading.load(str(folder), dtype="float32", device="cpu", progress=lines.append)
    assert model.describe() == {
        "id": str(folder),
        "revision": None,
        "dtype": "float32",
        "device": "cpu",
    }
    assert not model.model.training
    assert not any(p.requires_grad for p in model.model.parameters())
    assert lines == [f"Loading {folder}."]
    assert model.tokenizer.is_fast


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_dtypes(make_folder, dtype: str) -> None:
    model = loading.load(str(make_folder()), dtype=dtype, device="cpu")
    assert model.dtype == dtype


def test_fresh_models_share_nothing(make_folder, monkeypatch) -> None:
    folder = str(make_folder())
    first, second = (loading.load(folder, dtype="float32", device="cpu") for _ in range(2))
    pointers = {p.data_ptr() for p in first.model.parameters()}
    assert not pointers & {p.data_ptr() for p in second.model.parameters()}
    assert first.tokenizer is not second.tokenizer
    shared = loading.load(folder, dtype="float32", device="cpu", fresh=False)
    assert loading.load(folder, dtype="float32", device="cpu", fresh=False) is shared


def test_nothing_reaches_the_terminal(make_folder, capfd) -> None:
    loading.load(str(make_folder()), device="cpu")
    assert capfd.readouterr() == ("", "")


def test_the_hub_is_never_asked_for_a_local_folder(make_folder, monkeypatch) -> None:
    import socket

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    loading.load(str(make_folder()), device="cpu")


def test_conversion_by_the_hub_is_off() -> None:
    assert os.environ["DISABLE_SAFETENSORS_CONVERSION"] == "1"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}, "encoder-decoder"),
        ({"model_type": "t5", "architectures": ...}, "encoder-decoder"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"model_type": "whisper", "architectures": ...}, "encoder-decoder"),
        ({"model_type": "bart", "architectures": ["BartModel"]}, "encoder-decoder"),
        ({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "masked"),
        ({"model_type": "bert", "architectures": ...}, "masked"),
        ({"model_type": "roberta", "architectures": ["RobertaForCausalLM"]}, "masked"),
        ({"model_type": "vit", "architectures": ["ViTForImageClassification"]}, "vision"),
        ({"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"]}, "vision"),
        ({"model_type": "gemma3", "vision_config": {}}, "vision"),
        ({"architectures": ["LlamaModel"]}, "no causal language-model head"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "no causal language-model head"),
        ({"model_type": "clip", "architectures": ["CLIPModel"]}, "no causal language-model head"),
        ({"model_type": "never-heard-of"}, "does not know"),
        ({"model_type": ...}, "does not say"),
        ({"model_type": 7}, "does not say"),
    ],
)
def test_other_kinds_of_model_are_refused_by_name(make_folder, monkeypatch, changes, words) -> None:
    from transformers import AutoModelForCausalLM

    def no_weights(*_: object, **__: object) -> None:
        raise AssertionError("weights were read")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", no_weights)
    with pytest.raises(UnsupportedModelError, match=words) as caught:
        loading.load(str(make_folder(**changes)), device="cpu")
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    "architectures",
    [..., ["LlamaForCausalLM"], ["LLaMAForCausalLM"], ["Other", "LlamaForCausalLM"]],
)
def test_causal_models_are_accepted(make_folder, architectures) -> None:
    assert loading.load(str(make_folder(architectures=architectures)), device="cpu")


def test_code_of_its_own_is_refused(make_folder, tmp_path: Path) -> None:
    folder = make_folder(auto_map={"AutoModelForCausalLM": "evil.Model"})
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(UnsafeModelError, match="auto_map"):
        loading.load(str(folder), device="cpu")
    other = make_folder("other")
    (other / "tokenizer_config.json").write_text(
        json.dumps({"auto_map": {"AutoTokenizer": ["evil.T", None]}})
    )
    with pytest.raises(UnsafeModelError):
        loading.load(str(other), device="cpu")
    assert not (tmp_path / "ran").exists()


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[object, ...]:
        return open, (self.path, "w")


def test_pickles_are_never_read(make_folder, tmp_path: Path) -> None:
    folder = make_folder()
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    with pytest.raises(UnsafeModelError, match="safetensors"):
        loading.load(str(folder), device="cpu")
    assert not (tmp_path / "ran").exists()


def test_missing_weights(make_folder) -> None:
    folder = make_folder()
    (folder / "model.safetensors").unlink()
    with pytest.raises(UnsupportedModelError, match=r"model\.safetensors"):
        loading.load(str(folder), device="cpu")


def test_damaged_weights(make_folder) -> None:
    folder = make_folder()
    (folder / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0damaged")
    with pytest.raises(RunError, match="damaged"):
        loading.load(str(folder), device="cpu")


def test_incomplete_weights(make_folder) -> None:
    folder = make_folder(num_hidden_layers=3)
    with pytest.raises(UnsupportedModelError, match="incomplete"):
        loading.load(str(folder), device="cpu")


def test_damaged_configurations(make_folder) -> None:
    folder = make_folder()
    for text in ("{", "[]", ""):
        (folder / "config.json").write_text(text)
        with pytest.raises(UnsupportedModelError, match=r"config\.json"):
            loading.load(str(folder), device="cpu")


def test_a_model_without_a_fast_tokenizer(make_folder) -> None:
    folder = make_folder()
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(UnsupportedModelError, match="tokenizer"):
        loading.load(str(folder), device="cpu")


def test_a_shard_list_cannot_leave_its_folder(make_folder) -> None:
    from uag_core.models import checks

    folder = make_folder()
    index = folder / checks.WEIGHTS_INDEX
    index.write_text(json.dumps({"weight_map": {"a": "../../x.safetensors"}}))
    with pytest.raises(InputError, match="outside"):
        checks.shards(index, "x")
    index.write_text(json.dumps({"weight_map": {"a": "b.safetensors", "c": "b.safetensors"}}))
    assert checks.shards(index, "x") == ("b.safetensors",)
    for content in ({}, {"weight_map": {}}, {"weight_map": {"a": "x.bin"}}, {"weight_map": []}):
        index.write_text(json.dumps(content))
        with pytest.raises(UnsupportedModelError):
            checks.shards(index, "x")


def test_running_out_of_memory_keeps_nothing(make_folder, monkeypatch) -> None:
    from transformers import AutoModelForCausalLM

    tensors: list[weakref.ref[torch.Tensor]] = []

    def fail(*_: object, **__: object) -> None:
        big = torch.zeros(1000)
        tensors.append(weakref.ref(big))
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3 GiB")

    folder = str(make_folder())
    with monkeypatch.context() as patch:
        patch.setattr(AutoModelForCausalLM, "from_pretrained", fail)
        with pytest.raises(OutOfMemoryError, match="did not fit") as caught:
            loading.load(folder, device="cpu")
        assert caught.value.__context__ is None
        gc.collect()
        assert tensors[0]() is None
    assert loading.load(folder, device="cpu")


def test_unexpected_errors_become_one_line(make_folder, monkeypatch) -> None:
    from transformers import AutoModelForCausalLM

    def fail(*_: object, **__: object) -> None:
        raise KeyError("hf_secret\nmore")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", fail)
    with pytest.raises(UAGError) as caught:
        loading.load(str(make_folder()), device="cpu")
    assert "hf_secret" not in str(caught.value)


def test_a_gguf_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(UAGError) as caught:
        loading.load(str(path), device="cpu")
    assert "\n" not in str(caught.value)


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert loading.resolve_device("cpu") == "cpu"
    for text in ("gpu", "cuda:", "cuda:x", "CUDA", "mps", "", "cuda:-1", None):
        with pytest.raises(InputError, match="device"):
            loading.resolve_device(text)  # type: ignore[arg-type]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert loading.resolve_device("auto") == "cpu"
    with pytest.raises(InputError, match="no usable CUDA"):
        loading.resolve_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert loading.resolve_device("auto") == loading.resolve_device("cuda") == "cuda:0"
    assert loading.resolve_device("cuda:1") == "cuda:1"
    with pytest.raises(InputError, match="no GPU 2"):
        loading.resolve_device("cuda:2")


def test_automatic_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    for native, on_cpu, on_gpu in ((True, "bfloat16", "bfloat16"), (False, "float32", "float16")):
        monkeypatch.setattr(loading, "_cpu_has_bf16", lambda n=native: n)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda n=native, **_: n)
        assert loading.resolve_dtype("auto", "cpu") == on_cpu
        assert loading.resolve_dtype("auto", "cuda:0") == on_gpu
    assert loading.resolve_dtype("float16", "cpu") == "float16"
    with pytest.raises(InputError, match="dtype"):
        loading.resolve_dtype("int8", "cpu")


def test_a_changed_folder_is_another_model(make_folder) -> None:
    folder = make_folder()
    before = sources.resolve(str(folder)).fingerprint
    assert sources.resolve(str(folder)).fingerprint == before
    os.utime(folder / "config.json", (1, 1))
    assert sources.resolve(str(folder)).fingerprint != before


def test_a_checkout_without_the_assistant(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(embedded, "assistant_folder", lambda: tmp_path)
    with pytest.raises(ModelNotFoundError, match="assistant"):
        loading.load("embedded/assistant")


def test_loading_imports_no_user_interface() -> None:
    import subprocess

    code = (
        "import sys, uag_core.models.registry;"
        "sys.exit(any(m in sys.modules for m in ('gradio', 'plotly')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
