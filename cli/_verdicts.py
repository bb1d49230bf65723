"""Verdicts of `lossscope check` as lines, a summary, and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from ._output import fold, terminal_width

if TYPE_CHECKING:
    from lossscope.objectives.checks.verdict import Verdict

COLOURS = {"pass": "green", "fail": "red", "note": "cyan", "skipped": "bright_black"}
SUMMARISED = {"pass": "passed", "fail": "failed", "note": "noted", "skipped": "skipped"}
_ROOM = 40  # columns that evidence needs beside the name of its check


def print_verdicts(title: str, verdicts: Sequence[Verdict]) -> None:
    """Print one line a verdict, wrapped under its evidence."""
    typer.secho(fold(title), bold=True)
    width = max(len(verdict.name) for verdict in verdicts)
    indent = width + 13 if terminal_width() - width - 13 >= _ROOM else 4
    for verdict in verdicts:
        lines = fold(f"  {verdict.outcome:<7}  {verdict.name:<{width}}  {verdict.evidence}", indent)
        mark = typer.style(f"{verdict.outcome:<7}", fg=COLOURS[verdict.outcome], bold=verdict.outcome == "fail")
        typer.echo("  " + mark + lines[2 + len(f"{verdict.outcome:<7}") :])


def summarise(verdicts: Mapping[str, Sequence[Verdict]], noun: str) -> str:
    """`2 objectives: 24 passed, 1 failed, ...`, and which failed.

    Args:
        verdicts: of each thing that was checked, by its spec.
        noun: what it is, such as `objective`.
    """
    outcomes: Counter[str] = Counter(verdict.outcome for found in verdicts.values() for verdict in found)
    numbers = ", ".join(f"{outcomes[kind]} {word}" for kind, word in SUMMARISED.items() if outcomes[kind])
    things = f"1 {noun}" if len(verdicts) == 1 else f"{len(verdicts)} {noun}s"
    wrong = [f"{spec} ({', '.join(names)})" for spec, found in verdicts.items() if (names := failed_names(found))]
    return fold(f"{things}: {numbers}" + (f". Failed: {'; '.join(wrong)}" if wrong else ""))


def failed_names(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the names of the checks that failed, once each."""
    return list(dict.fromkeys(verdict.name for verdict in verdicts if verdict.outcome == "fail"))


def as_json(verdicts: Sequence[Verdict], numbers: bool = False) -> dict[str, Any]:
    """Return `verdicts` and `failed` of one thing that was checked.

    Args:
        verdicts: of its checks.
        numbers: whether the numbers of the sentences stand beside them; what is not finite is null.
    """
    items: list[dict[str, Any]] = [{"name": v.name, "outcome": v.outcome, "evidence": v.evidence} for v in verdicts]
    for item, verdict in zip(items, verdicts, strict=True) if numbers else ():
        item["numbers"] = {key: x if abs(x) < float("inf") else None for key, x in verdict.numbers.items()}
    return {"verdicts": items, "failed": sum(v.outcome == "fail" for v in verdicts)}
