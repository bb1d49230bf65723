"""What the user says of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lossscope.core.known_pairs import LEAST
from lossscope.core.types import HIDDEN_FROM, Progress


@dataclass(frozen=True)
class AuditOptions:
    """Options of an audit; those that are given override what a source says of itself."""

    data: str | None = None  # spec
    split: str = "train"
    objectives: tuple[str, ...] = ()  # specs; none: what the source was trained with, else the usual ones
    signals: tuple[str, ...] = ()  # names, or ./file.py:NAME; none: all
    batch_size: int = 128
    labels: Path | None = None  # sheet with answers
    threshold: float = HIDDEN_FROM  # probability from which the mask leaves a pair out, in what is printed
    top: int | None = None  # of a large set, candidates of each query that are looked at; None: a fiftieth of them
    keep: float = LEAST  # probability from which a pair is a suspect, or the threshold where that is lower
    sheet: int = 100  # pairs to label
    seed: int = 0
    request: Mapping[str, Any] = field(default_factory=dict)  # further fields of `core.request.Request`
    progress: Progress | None = None
