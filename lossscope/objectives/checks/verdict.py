"""The result of a check: passed, failed, worth a note or not applicable, with one sentence of measured evidence."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["pass", "fail", "note", "skipped"]
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Verdict:
    """The result of one check."""

    name: str  # of the check
    outcome: Outcome
    evidence: str  # one readable sentence, with the measured numbers
    numbers: Mapping[str, float] = field(default_factory=dict)  # those of the sentence by name, where they are given


def judge(name: str, problems: Sequence[str], evidence: str) -> Verdict:
    """Return a failed verdict with the problems, or a passed one with the evidence if there are none."""
    return Verdict(name, "fail", "; ".join(problems)) if problems else Verdict(name, "pass", evidence)


def describe_error(error: BaseException) -> str:
    """Return `raised ValueError: message (file.py, line 3)`; the place is the last one outside installed packages."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not any(part in frame.filename for part in _INSTALLED)
    ]
    where = f" ({frames[-1].filename.rpartition('/')[2]}, line {frames[-1].lineno})" if frames else ""
    lines = str(error).strip().splitlines()
    return f"raised {type(error).__name__}: {lines[0][:300] if lines else 'no message'}{where}"
