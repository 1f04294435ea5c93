"""Stage ``train``: learn the target's answers, resumably.

A document is one pair: begin, request, answer, and the end token when the answer ended by itself.
The loss counts the answer's tokens only, since that is all an assistant drafts; where a pair
carries the target's distribution (`soft`), that is what is learnt (distillation). Batches hold
documents of similar length and about ``batch_tokens`` tokens with padding. The order of batches
depends on the seed and the epoch alone, so a run that resumes sees what it would have seen.
"""

from __future__ import annotations

import json
import math
import random
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - everybody's name for it
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from .soft import SoftTargets, Weights
from .tokenizer import ASSISTANT, USER

HELD_OUT = 64  # one pair in this many is for validation


@dataclass(frozen=True)
class TrainConfig:
    """What a training run is made of; equal values and data give an equal model."""

    epochs: float = 3.0
    batch_tokens: int = 4096
    max_length: int = 512
    lr: float = 1e-3
    min_lr: float = 0.05  # of lr
    warmup: int = 50
    weight_decay: float = 0.05
    beta_2: float = 0.95
    seed: int = 0
    minutes: float | None = None  # end by then: the schedule follows whichever runs out first


@dataclass(frozen=True)
class Document:
    """Token ids, where the answer starts, and what to learn at each position from there on."""

    ids: list[int]
    start: int
    soft: list[Weights] | None = None


def held_out(request: str) -> bool:
    """Whether a pair is for validation: by its request, so new data never moves old pairs."""
    return zlib.crc32(request.encode()) % HELD_OUT == 0


def weighted(rows: list[dict[str, Any]], times: int) -> list[dict[str, Any]]:
    """The rows as often as an epoch has them.

    That is ``times`` for those of a kind other than "chat", times the row's own "times" if any.
    """
    kinds = [row for row in rows if row.get("kind", "chat") != "chat"]
    return [row for row in rows + kinds * (times - 1) for _ in range(row.get("times", 1))]


def encode(
    rows: list[dict[str, Any]],
    tokenizer: PreTrainedTokenizerBase,
    max_length: int,
    softener: SoftTargets | None = None,
) -> list[Document]:
    """Documents of at most ``max_length`` tokens; requests that leave no room are left out.

    With ``softener``, rows that carry the target's distribution bring it along.
    """
    user, assistant = tokenizer.convert_tokens_to_ids([USER, ASSISTANT])
    requests = tokenizer([r["u"] for r in rows], add_special_tokens=False)["input_ids"]
    answers = tokenizer([r["a"] for r in rows], add_special_tokens=False)["input_ids"]
    documents = []
    for row, request, answer in zip(rows, requests, answers, strict=True):
        head = [tokenizer.bos_token_id, user, *request, assistant]
        tail = [*answer, tokenizer.eos_token_id] if row["done"] else answer
        if len(head) + 8 <= max_length:
            room = max_length - len(head)
            soft = softener.weights(row, answer)[:room] if softener and "top" in row else None
            documents.append(Document(head + tail[:room], len(head), soft))
    return documents


def batches(documents: list[Document], config: TrainConfig, epoch: int) -> list[list[int]]:
    """Indices of documents, batch by batch, in the order of this epoch."""
    rng = random.Random(f"{config.seed}-{epoch}")
    order = list(range(len(documents)))
    rng.shuffle(order)
    result: list[list[int]] = []
    for base in range(0, len(order), 2048):
        pool = sorted(order[base : base + 2048], key=lambda i: len(documents[i].ids))
        current: list[int] = []
        for index in pool:
            if current and (len(current) + 1) * len(documents[index].ids) > config.batch_tokens:
                result.append(current)
                current = []
            current.append(index)
        if current:
            result.append(current)
    rng.shuffle(result)
    return result


def collate(documents: list[Document], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids (B, T) and labels (B, T), where label t is the id at t + 1, or -100 where none counts."""
    width = max(len(d.ids) for d in documents)
    ids = torch.zeros(len(documents), width, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for row, document in enumerate(documents):
        size = len(document.ids)
        ids[row, :size] = torch.tensor(document.ids)
        labels[row, document.start - 1 : size - 1] = ids[row, document.start : size]
    return ids.to(device), labels.to(device)


def goals(documents: list[Document], device: torch.device) -> tuple[Tensor, Tensor]:
    """What to learn at the positions that count: ids (N, K) and their weights (N, K).

    In the order of `answer_logits`; a document without a distribution has its own ids, weight 1.
    """
    wanted: list[Weights] = []
    for document in documents:
        hard = [[(i, 1.0)] for i in document.ids[document.start :]]
        wanted.extend(document.soft if document.soft is not None else hard)
    width = max(map(len, wanted))
    padded = [pairs + [(0, 0.0)] * (width - len(pairs)) for pairs in wanted]
    ids = torch.tensor([[i for i, _ in pairs] for pairs in padded])
    weights = torch.tensor([[w for _, w in pairs] for pairs in padded])
    return ids.to(device), weights.to(device)


def soft_loss(logits: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
    """Mean cross-entropy of logits (N, vocabulary) against weights (N, K) on ids (N, K)."""
    chosen = logits.float().log_softmax(-1).gather(-1, ids)
    return -(weights * chosen).sum(-1).mean()


def answer_logits(model: Any, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Logits (N, vocabulary) and labels (N,) of the positions that count.

    Documents are padded on the right, so causal attention needs no mask.
    """
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
    counted = labels != -100
    return model.lm_head(hidden[counted]), labels[counted]


@torch.no_grad()
def validate(model: Any, documents: list[Document], config: TrainConfig) -> tuple[float, float]:
    """Mean loss and the share of held-out answer tokens that the greedy choice hits."""
    device = model.device
    model.eval()
    loss = hits = total = 0.0
    for batch in batches(documents, config, 0):
        ids, labels = collate([documents[i] for i in batch], device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits, wanted = answer_logits(model, ids, labels)
        loss += F.cross_entropy(logits.float(), wanted, reduction="sum").item()
        hits += (logits.argmax(-1) == wanted).sum().item()
        total += wanted.numel()
    model.train()
    return loss / max(total, 1), hits / max(total, 1)


def learning_rate(step: int, progress: float, config: TrainConfig) -> float:
    """Linear warm-up by steps, then a cosine down to ``min_lr`` of the peak as progress nears 1."""
    warm = min(1.0, (step + 1) / config.warmup)
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return config.lr * warm * (config.min_lr + (1 - config.min_lr) * cosine)


def train(
    model: Any,
    training: list[Document],
    validation: list[Document],
    config: TrainConfig,
    folder: Path,
    *,
    save_every: int = 200,
    stop_after: int | None = None,
    report: bool = True,
) -> dict[str, float]:
    """Train ``model`` in place and return its last validation figures.

    State is kept in ``folder/checkpoint.pt`` and taken up from there when it is found;
    ``stop_after`` ends early, after that many steps in all, as an interruption would.
    """
    folder.mkdir(parents=True, exist_ok=True)
    device = model.device
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    optimiser = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": config.weight_decay},
         {"params": vectors, "weight_decay": 0.0}],
        lr=config.lr, betas=(0.9, config.beta_2), fused=True,
    )  # fmt: skip
    per_epoch = len(batches(training, config, 0))
    total = max(1, round(per_epoch * config.epochs))
    checkpoint = folder / "checkpoint.pt"
    step = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=device, weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        step = state["step"]

    def save() -> None:
        temporary = checkpoint.with_suffix(".tmp")
        state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step}
        torch.save(state, temporary)
        temporary.replace(checkpoint)

    model.train()
    started, seen, running = time.monotonic(), 0, 0.0
    plan: list[list[int]] = []
    planned = -1
    figures: dict[str, float] = {}
    while step < total and (stop_after is None or step < stop_after):
        # Batches differ a little in number from epoch to epoch: count by position in the epoch.
        epoch, place = divmod(step, per_epoch)
        if epoch != planned:
            plan, planned = batches(training, config, epoch), epoch
        chosen = [training[i] for i in plan[place % len(plan)]]
        ids, labels = collate(chosen, device)
        progress = step / total
        if config.minutes:
            progress = max(progress, (time.monotonic() - started) / 60 / config.minutes)
        rate = learning_rate(step, progress, config)
        for group in optimiser.param_groups:
            group["lr"] = rate
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits, _ = answer_logits(model, ids, labels)
            loss = soft_loss(logits, *goals(chosen, device))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        step += 1
        seen += ids.numel()
        running = loss.item() if running == 0 else 0.98 * running + 0.02 * loss.item()
        if report and step % 50 == 0:
            speed = seen / (time.monotonic() - started)
            print(f"step {step}/{total} loss {running:.3f} {speed:.0f} tok/s", flush=True)
        last = step == total or progress >= 1
        if step % save_every == 0 or last:
            save()
            value, hits = validate(model, validation, config)
            figures = {"step": step, "loss": value, "agreement": hits}
            with open(folder / "log.jsonl", "a", encoding="utf-8") as log:
                log.write(json.dumps(figures | {"train_loss": running, **asdict(config)}) + "\n")
            if report:
                print(f"  validation loss {value:.3f} agreement {hits:.4f}", flush=True)
        if last:
            break
    if not figures:
        save()
        value, hits = validate(model, validation, config)
        figures = {"step": step, "loss": value, "agreement": hits}
    return figures
