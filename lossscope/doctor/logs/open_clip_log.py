"""Read out.log of open_clip: `Train Epoch: 0 [ 1024/9000 (11%)] ... LR: 0.0005 Logit Scale: 14.286 Loss: 4.8 (4.8)`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lossscope.errors import InputError
from lossscope.io.reading import show_path
from lossscope.io.text_files import read_utf8

from .assemble import assemble_log
from .base import TrainingLog
from .log_table import table_of_records

_TRAIN = re.compile(r"Train Epoch: (\d+) \[\s*(\d+)\s*/\s*(\d+)[^\]]*\](.*)")
_EVALUATION = re.compile(r"Eval Epoch: (\d+) (?!\[)(.*)")
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)"
_TRAINED = re.compile(rf"((?:Logit )?[A-Za-z]\w*)\s*:\s*({_NUMBER})\b", re.IGNORECASE)
_EVALUATED = re.compile(rf"([A-Za-z][\w@.\-]*)\s*:\s*({_NUMBER})(?=\s|$)", re.IGNORECASE)


def is_open_clip_log(text: str) -> bool:
    """Return whether a text has a training line of open_clip."""
    return bool(_TRAIN.search(text))


def read_open_clip_log(path: Path, columns: Mapping[str, str] | None = None) -> TrainingLog:
    """Read the lines of training and evaluations; the batch size is the number of samples after one step.

    Args:
        path: the file.
        columns: the user's choice of columns.

    Raises:
        InputError: no line of training, or none with a loss.
    """
    name = show_path(path)
    records = [record for line in read_utf8(path).splitlines() if (record := _record(line)) is not None]
    seen = [samples for record in records if (samples := record.get("samples"))]
    if not seen:
        raise InputError(f"{name} must have lines `Train Epoch: ...`, as open_clip writes them; it has none")
    size, per_epoch = min(seen), next(record["per epoch"] for record in records if "per epoch" in record)
    for record in records:
        epochs, samples = record.pop("epochs"), record.pop("samples", 0.0)
        record.pop("per epoch", None)
        record["step"] = epochs * max(per_epoch // size, 1) + samples / size
    is_size = all(samples % size == 0 for samples in seen)
    notice = f"a step is {size:g} samples, those of the first line"
    return assemble_log(
        table_of_records(records, name), columns, batch_size=int(size) if is_size else None, notices=[notice]
    )


def _record(line: str) -> dict[str, float] | None:
    """Return the numbers of a line by their names; None for any other line."""
    if match := _TRAIN.search(line):
        progress = {"epochs": float(match[1]), "samples": float(match[2]), "per epoch": float(match[3])}
        return {**{name: float(value) for name, value in _TRAINED.findall(match[4])}, **progress}
    if match := _EVALUATION.search(line):
        numbers = {f"val/{name}": float(value) for name, value in _EVALUATED.findall(match[2])}
        return {**numbers, "epochs": float(match[1])}
    return None
