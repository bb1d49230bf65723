"""The resumed training begins at a much higher loss than the first run had at its end.

The poster trains an embedder to a loss of 0.91 with a learning rate that falls to 0, and resumes it from the last
checkpoint. The loss of the resumed run is far above 0.91 and falls slowly.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import nn

from .base import Thread, clip_loss, parameters, tower, views

THREAD = Thread(
    reference="huggingface/sentence-transformers#3756",
    mistake="The trainer loads the checkpoint into a model that the loss does not use, and begins a new schedule.",
    mended="The trainer loads the weights, the optimizer and the schedule of the checkpoint.",
    command="lossscope doctor --log printed.log",
    first="seam",
)
_STEPS, _EVERY, _RATE = 800, 4, 2e-4


def train(folder: Path, mended: bool) -> None:
    """Write printed.log: what transformers 5 prints of both runs, numbers as texts."""
    first, second = views(4000, noise=0.3)
    lines: list[str] = []
    towers, optimizer, step = _begin()
    while step < _STEPS:
        if step == _STEPS // 2 and not mended:
            towers, optimizer, _ = _begin()
        done = step / _STEPS if mended else step % (_STEPS // 2) / (_STEPS // 2)
        optimizer.param_groups[0]["lr"] = rate = _RATE * (1 - done)
        batch = torch.randint(len(first), (128,))
        loss = clip_loss(towers[0](first[batch]), towers[1](second[batch]), 10.0)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters(*towers), math.inf)
        optimizer.step()
        step += 1
        if step % _EVERY == 0:
            numbers = {"loss": loss.item(), "grad_norm": norm.item(), "learning_rate": rate, "epoch": step / 1500}
            lines.append(str({name: f"{number:.4g}" for name, number in numbers.items()}))
    (folder / "printed.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _begin() -> tuple[tuple[nn.Sequential, nn.Sequential], torch.optim.Optimizer, int]:
    towers = tower(48), tower(40)
    return towers, torch.optim.AdamW(parameters(*towers), lr=_RATE), 0
