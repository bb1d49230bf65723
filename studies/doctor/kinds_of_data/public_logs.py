"""Write logs in the formats of public trainers, with random numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .base import Floats, Item, Log

KIND = "logs of public trainers"
Evaluations = Mapping[str, Sequence[float]]


def falling(rng: np.random.Generator, start: float, end: float, steps: int, noise: float = 0.04) -> Floats:
    """Return a loss that falls as a power of the step, with noise of each batch."""
    t = 1 + np.arange(steps) / (0.02 * steps)
    clean = end + (start - end) * (t**-0.7 - 51**-0.7) / (1 - 51**-0.7)
    loss: Floats = clean * (1 + noise * rng.normal(size=steps))
    return loss


def decaying(steps: int, peak: float, warmup: float = 0.1) -> Floats:
    """Return a learning rate that rises over a tenth of the steps, and falls to 0 linearly."""
    t = (1 + np.arange(steps)) / steps
    rate: Floats = peak * np.minimum(t / warmup, (1 - t) / (1 - warmup))
    return rate


def trainer_state(loss: Floats, rate: Floats, evaluations: Evaluations | None = None, size: int = 32) -> Log:
    """Return the trainer_state.json of a Hugging Face Trainer that logs every tenth step."""
    history: list[dict[str, Any]] = []
    for row, (value, lr) in enumerate(zip(loss, rate, strict=True)):
        step, norm = 10 * (row + 1), 1.5 + 0.2 * math.sin(row) + 0 * value  # NaN where the loss is
        history.append(
            {"epoch": 3 * row / len(loss), "grad_norm": norm, "learning_rate": lr, "loss": value, "step": step}
        )
        for name, scores in (evaluations or {}).items():
            interval = len(loss) // len(scores)
            if (row + 1) % interval == 0 and row // interval < len(scores):
                history.append({"epoch": 3 * row / len(loss), name: scores[row // interval], "step": step})
    state = {"global_step": 10 * len(loss), "train_batch_size": size, "log_history": history}
    return Log("trainer_state.json", json.dumps(state))


def open_clip(
    loss: Floats, rate: Floats, scale: Floats, evaluations: Evaluations | None = None, size: int = 256
) -> Log:
    """Return the out.log of open_clip: ten lines an epoch, an evaluation after each."""
    lines, mean, epochs = [], 0.0, len(loss) // 10
    for row, value in enumerate(loss):
        epoch, part = divmod(row, 10)
        mean = value if part == 0 else mean + (value - mean) / (part + 1)
        samples, total = (1 + 100 * part) * size, 1000 * size
        lines.append(
            f"2024-03-01,10:{epoch:02d}:{part:02d} | INFO | Train Epoch: {epoch} [{samples:>8}/{total} ({part * 10}%)] "
            f"Data (t): 0.010 Batch (t): 0.300, 853.0/s, 853.0/s/gpu LR: {rate[row]:.6f} "
            f"Logit Scale: {scale[row]:.3f} Contrastive_loss: {value:#.5g} ({mean:#.5g}) "
            f"Loss: {value:#.5g} ({mean:#.5g})"
        )
        if part == 9 and evaluations:
            cells = "\t".join(
                f"{name}: {scores[epoch * len(scores) // epochs]:.4f}" for name, scores in evaluations.items()
            )
            lines.append(f"2024-03-01,10:{epoch:02d}:59 | INFO | Eval Epoch: {epoch + 1} {cells}")
    return Log("out.log", "\n".join(lines) + "\n")


def console(loss: Floats, evaluations: Evaluations | None = None) -> Log:
    """Return the lines of a meter, value and running mean, at each twentieth step."""
    lines, mean = [], float(loss[0])
    for row, value in enumerate(loss):
        epoch, part = divmod(row, 25)
        mean = value if part == 0 else mean + (value - mean) / (part + 1)
        lines.append(
            f"Epoch: [{epoch}][{20 * part:>4}/500]  Time 0.21 (0.22)  Loss {value:.4f} ({mean:.4f})  lr 0.00100"
        )
        if part == 24 and evaluations:
            interval = len(loss) // 25
            cells = "  ".join(
                f"{name} {scores[epoch * len(scores) // interval]:.2f}" for name, scores in evaluations.items()
            )
            lines.append(f" * Test: {cells}")
    return Log("train.log", "\n".join(lines) + "\n")


def items(shift: int = 0) -> Iterator[Item]:
    """Yield healthy logs of several sizes and seeds, and sick logs of each trainer.

    Args:
        shift: added to every seed.
    """
    for seed in range(1, 8):
        yield from _healthy(seed + shift)
    for seed, (name, planted, build, options) in enumerate(_sick(), 31 + shift):
        log = build(np.random.default_rng(seed))
        yield Item(KIND, name, planted, (), log, options, 0, seed)


def _healthy(seed: int) -> Iterator[Item]:
    rng = np.random.default_rng(seed)
    steps, size = int(rng.integers(60, 400)), int(2 ** rng.integers(4, 11))
    start = math.log(size)
    noise = float(rng.uniform(0.01, 0.06))
    loss = falling(rng, start, float(rng.uniform(0.1, 0.6)) * start, steps, noise)
    scores = np.sort(0.6 - 0.4 * rng.random(6) ** 2)
    evaluations = {"eval_nq_cosine_ndcg@10": list(scores), "eval_loss": list(0.9 - 0.6 * scores)}
    common: dict[str, Any] = {"losses": list(loss), "seed": seed, "batch": size}
    log = trainer_state(loss, decaying(steps, 2e-5), evaluations, size)
    yield Item(KIND, f"trainer_state.json {seed}", log=log, **common)
    steps = 10 * int(rng.integers(6, 40))
    start = math.log(size) * 1.02
    loss = falling(rng, start, float(rng.uniform(0.2, 0.7)) * start, steps, noise)
    scale = 14.3 + np.linspace(0, 1, steps) ** 0.5 * float(rng.uniform(5, 60))
    recalls = list(np.linspace(0.02, float(rng.uniform(0.3, 0.6)), steps // 10) ** 0.7)
    evaluations = {"image_to_text_R@1": recalls, "text_to_image_R@1": [0.9 * x for x in recalls]}
    common["losses"] = list(loss)
    yield Item(KIND, f"out.log {seed}", log=open_clip(loss, decaying(steps, 5e-4), scale, evaluations, size), **common)
    steps = 25 * int(rng.integers(4, 20))
    loss = falling(rng, start + 1, float(rng.uniform(0.2, 0.7)) * start, steps, noise)
    common["losses"] = list(loss)
    options = {"batch_size": size} if seed % 2 else {}
    top = {"Acc@1": list(np.linspace(5, 60, steps // 25))}
    yield Item(KIND, f"console {seed}", log=console(loss, top), options=options, **common)


Case = tuple[str, tuple[str, ...], Callable[[np.random.Generator], Log], dict[str, Any]]


def _sick() -> Iterator[Case]:
    def stuck(level: float) -> Callable[[np.random.Generator], Floats]:
        return lambda rng: level * (1 + 0.004 * rng.normal(size=200))

    scale = np.full(200, 14.286)
    rate = decaying(200, 2e-5)
    yield "trainer: stuck at log 32", ("no-learning",), lambda rng: trainer_state(stuck(math.log(32))(rng), rate), {}
    yield ("trainer: stuck at log 32 (1 + 7), B stated", ("no-learning",),
           lambda rng: trainer_state(stuck(math.log(32 * 8))(rng), rate), {"batch_size": 32})  # fmt: skip
    yield ("open_clip: stuck at log 256", ("no-learning",),
           lambda rng: open_clip(stuck(math.log(256))(rng), rate, scale), {})  # fmt: skip
    yield ("console: stuck at log (2 B − 1), B stated", ("no-learning",),
           lambda rng: console(stuck(math.log(511))(rng)), {"batch_size": 256})  # fmt: skip
    yield ("console: stuck at log (K + 1)", ("no-learning",),
           lambda rng: console(stuck(math.log(65537))(rng)), {})  # fmt: skip
    yield ("console: sum over a batch of 64", ("no-learning",),
           lambda rng: console(stuck(64 * math.log(64))(rng)), {"batch_size": 64})  # fmt: skip
    yield ("console: triplet loss at its margin", ("margin-plateau",),
           lambda rng: console(np.concatenate([falling(rng, 4, 0.3, 60), stuck(0.3005)(rng)])),
           {"objective": "triplet-sh:margin=0.3"})  # fmt: skip

    def diverged(rng: np.random.Generator) -> Floats:
        late = 6.0 * (1 + 0.05 * rng.normal(size=80))
        return np.concatenate([falling(rng, 3.5, 0.8, 200), np.linspace(0.9, 6.0, 20), late])

    yield ("trainer: leaves its level for good", ("diverged",),
           lambda rng: trainer_state(diverged(rng), decaying(300, 2e-5)), {})  # fmt: skip
    yield ("open_clip: leaves its level for good", ("diverged",),
           lambda rng: open_clip(diverged(rng), decaying(300, 5e-4), np.full(300, 20.0)), {})  # fmt: skip

    def spiked(rng: np.random.Generator) -> Floats:
        loss = falling(rng, 5.5, 1.2, 300)
        for step in (90, 150, 230):
            loss[step : step + 8] += 3 * np.exp(-np.arange(8) / 3)
        return loss

    yield ("open_clip: spikes", ("loss-spike",),
           lambda rng: open_clip(spiked(rng), decaying(300, 5e-4), np.full(300, 20.0)), {})  # fmt: skip

    def to_nan(rng: np.random.Generator) -> Floats:
        loss = falling(rng, 3.5, 0.8, 200)
        loss[120:] = math.nan
        return loss

    yield "trainer: NaN", ("non-finite",), lambda rng: trainer_state(to_nan(rng), decaying(200, 2e-5)), {}
    yield "console: NaN", ("non-finite",), lambda rng: console(to_nan(rng)), {}
    yield ("console: exactly 0", ("zero-loss",),
           lambda rng: console(np.where(rng.random(200) < 0.9, 0.0, 0.02)), {})  # fmt: skip

    def resumed(rng: np.random.Generator) -> Log:
        loss = np.concatenate([falling(rng, 3.5, 0.5, 200, 0.02), falling(rng, 3.2, 0.6, 100, 0.02)])
        return trainer_state(loss, np.concatenate([decaying(300, 2e-5)[:200], decaying(100, 2e-5, 0.01)]))

    yield "trainer: resumed without its weights", ("seam", "diverged"), resumed, {}

    def overfitted(rng: np.random.Generator) -> Log:
        rise = np.concatenate([np.linspace(0.3, 0.52, 5), np.linspace(0.50, 0.25, 15)])
        scores = {"eval_dev_cosine_ndcg@10": list(rise), "eval_loss": list(np.abs(np.arange(20) - 4) / 8 + 0.9)}
        return trainer_state(falling(rng, 3.5, 0.01, 300), decaying(300, 2e-5), scores)

    yield "trainer: validation falls", ("overfitting",), overfitted, {}

    def same(rng: np.random.Generator) -> Log:
        scores = {"eval_dev_cosine_ndcg@10": [0.41753942871093] * 10}
        return trainer_state(falling(rng, 3.5, 0.6, 200), decaying(200, 2e-5), scores)

    yield "trainer: equal evaluations", ("equal-evaluations",), same, {}

    def scale_falls(rng: np.random.Generator) -> Log:
        loss = math.log(256) * (1 - 0.01 * np.arange(200) / 200 + 0.003 * rng.normal(size=200))
        return open_clip(loss, decaying(200, 5e-4), np.geomspace(14.286, 1.5, 200))

    yield "open_clip: scale falls", ("scale-falling", "no-learning"), scale_falls, {}
