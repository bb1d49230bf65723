"""Logs of other trainers, as the doctor reads them: a table, JSON lines, trainer_state.json, out.log of open_clip."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from tests.fuzz.commands import run_command

FILES = {"train.csv": "csv", "train.jsonl": "jsonl", "trainer_state.json": "json", "out.log": "text"}
CHECKSUMMED = ()
_STEPS = 60
_OUTPUTS: dict[tuple[str, bytes | None], list[str]] = {}


def make(folder: Path) -> None:
    """Write the same training four times."""
    losses = 4 * np.exp(-np.arange(_STEPS) / 30) + 0.1 * np.random.default_rng(0).random(_STEPS)
    rows = [
        {"step": step, "loss": round(float(loss), 4), "grad_norm": 1.5, "logit_scale": 14.3 + step}
        | ({"val_loss": 3.0, "val_recall": 0.1 + step / 100} if step % 20 == 0 else {})
        for step, loss in enumerate(losses, 1)
    ]
    names = ("step", "loss", "grad_norm", "logit_scale", "val_loss", "val_recall")
    table = [",".join(names), *(",".join(str(row.get(name, "")) for name in names) for row in rows)]
    (folder / "train.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    state = {"global_step": _STEPS, "log_history": rows, "train_batch_size": 64}
    (folder / "trainer_state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
    lines = [
        f"2024-01-02,03:04:05 | INFO | Train Epoch: 0 [{64 * row['step']:>6}/3840 (9%)] LR: 0.0001 Logit Scale: "
        f"{row['logit_scale']:.3f} Contrastive_loss: {row['loss']} Loss: {row['loss']} ({row['loss']})"
        for row in rows
    ]
    (folder / "out.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(folder: Path) -> object:
    """Examine each log; bytes that were examined twice, as those of the valid files, keep their result."""
    return [_examine(name, (folder / name).read_bytes() if (folder / name).is_file() else None) for name in FILES]


def _examine(name: str, data: bytes | None) -> str:
    outputs = _OUTPUTS.setdefault((name, data), [])
    if len(outputs) < 2:
        outputs.append(run_command("doctor", "--log", name, "--batch-size", "64", "--format", "json"))
    return outputs[-1]
