"""The table of a campaign, and its findings grouped by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import get_args

from .verdict import FINDINGS, Outcome, Verdict


def format_tally(verdicts: Sequence[Verdict]) -> str:
    """Return a row for each kind and one for all: cases, and the number with each outcome."""
    outcomes: tuple[Outcome, ...] = get_args(Outcome)
    kinds = sorted({verdict.kind for verdict in verdicts})
    width = max([len(kind) for kind in kinds] + [4])
    rows = [("kind", "cases", *outcomes)]
    for kind, judged in [*((kind, [v for v in verdicts if v.kind == kind]) for kind in kinds), ("all", verdicts)]:
        counts = Counter(verdict.outcome for verdict in judged)
        rows.append((kind, str(len(judged)), *(str(counts[outcome] or "·") for outcome in outcomes)))
    widths = [width, 6, *(max(5, len(outcome)) for outcome in outcomes)]
    return "\n".join(
        "  ".join([row[0].ljust(width), *(cell.rjust(n) for cell, n in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )


def format_findings(verdicts: Iterable[Verdict], outcomes: Iterable[Outcome] = FINDINGS) -> str:
    """Return every cause once, the most frequent first: outcome, frame, an example and the command that replays it."""
    wanted = set(outcomes)
    found = sorted((v for v in verdicts if v.outcome in wanted), key=_cause)
    groups = sorted((list(group) for _, group in groupby(found, key=_cause)), key=len, reverse=True)
    return "\n".join(_format_group(group) for group in groups)


def _cause(verdict: Verdict) -> tuple[str, str, str]:
    where = verdict.frame or f"{verdict.kind} by {verdict.damage.partition(' of ')[0]}"
    return verdict.outcome, where, verdict.detail.partition(":")[0] if verdict.outcome in FINDINGS else ""


def _format_group(group: list[Verdict]) -> str:
    first = min(group, key=lambda verdict: (verdict.kind, verdict.seed))
    kinds = ", ".join(f"{kind} {n}" for kind, n in Counter(v.kind for v in group).most_common())
    head = f"{len(group)} x {first.outcome} at {_cause(first)[1]} ({kinds})"
    detail = " ".join(ascii(first.detail)[1:-1].split())[:300]
    return f"- {head}\n  {detail}\n  {ascii(first.damage)[1:-1][:200]}\n  {first.replay}"
