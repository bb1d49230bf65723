"""What a check found: passed, failed, worth a note or not applicable, with one sentence of measured evidence."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["pass", "fail", "note", "skipped"]
_FOREIGN = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Verdict:
    """name: of the check. evidence: one readable sentence, with the numbers that it rests on."""

    name: str
    outcome: Outcome
    evidence: str


def judged(name: str, problems: Sequence[str], evidence: str) -> Verdict:
    """Failed for the problems there are; passed with the evidence where there are none."""
    return Verdict(name, "fail", "; ".join(problems)) if problems else Verdict(name, "pass", evidence)


def raised(error: BaseException) -> str:
    """`raised ValueError: what it says (file.py, line 3)`; the place is the last one outside installed packages."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not any(part in f.filename for part in _FOREIGN)]
    place = f" ({frames[-1].filename.rpartition('/')[2]}, line {frames[-1].lineno})" if frames else ""
    lines = str(error).strip().splitlines()
    return f"raised {type(error).__name__}: {lines[0][:300] if lines else 'no message'}{place}"
