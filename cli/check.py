"""`lossscope check`: is an objective what it claims to be?"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ._errors import FAILED
from ._options import Debug, Seed, complete_names
from ._output import fold, terminal_width
from .app import command

if TYPE_CHECKING:
    from lossscope.objectives.checks.verdict import Verdict

SCHEMA = "lossscope.check/1"
COLOURS = {"pass": "green", "fail": "red", "note": "cyan", "skipped": "bright_black"}
_ROOM = 40  # columns that evidence needs beside the name of its check
SUMMARISED = {"pass": "passed", "fail": "failed", "note": "noted", "skipped": "skipped"}


@command()
def check(
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC...",
            help="Objective specs.",
            show_default=False,
            autocompletion=complete_names("objectives"),
        ),
    ],
    processes: Annotated[int, typer.Option(min=1, max=16, help="Processes to share a batch; 1: none.")] = 2,
    seed: Seed = 0,
    format: Annotated[Literal["table", "json"], typer.Option(help="Lines, or one JSON document.")] = "table",
    debug: Debug = False,
) -> None:
    """Is this objective right: shapes, edge cases, gradients, ties, scale, one process against many.

    **Examples**

    `lossscope check ntxent`

    `lossscope check ./my_loss.py:MyLoss --processes 4`

    Each line is one promise and what was measured of it on small random batches. A file that a spec names is run.
    Exit code 1 when a check fails; notes are worth reading, and fail nothing.
    """
    from lossscope.objectives.checks.suite import check as run_checks
    from lossscope.registry import build, expand, spec_of

    verdicts: dict[str, list[Verdict]] = {}
    with contextlib.redirect_stdout(sys.stderr):  # what a loss prints is no result
        for objective in [build("objectives", one) for spec in specs for one in expand("objectives", spec)]:
            verdicts[spec_of(objective)] = []
    for spec in verdicts:
        with contextlib.redirect_stdout(sys.stderr):
            verdicts[spec] = run_checks(spec, processes, seed)
        if format == "table":
            _print(spec, verdicts[spec])
    typer.echo(json.dumps(_document(verdicts), indent=1) if format == "json" else fold(_summary(verdicts)))
    if any(_failed(own) for own in verdicts.values()):
        raise typer.Exit(FAILED)


def _print(spec: str, verdicts: Sequence[Verdict]) -> None:
    """One line a verdict, wrapped under its evidence."""
    typer.secho(fold(spec), bold=True)
    width = max(len(verdict.name) for verdict in verdicts)
    indent = width + 13 if terminal_width() - width - 13 >= _ROOM else 4
    for verdict in verdicts:
        lines = fold(f"  {verdict.outcome:<7}  {verdict.name:<{width}}  {verdict.evidence}", indent)
        mark = typer.style(f"{verdict.outcome:<7}", fg=COLOURS[verdict.outcome], bold=verdict.outcome == "fail")
        typer.echo("  " + mark + lines[2 + len(f"{verdict.outcome:<7}") :])


def _summary(verdicts: dict[str, list[Verdict]]) -> str:
    """`2 objectives: 24 passed, 1 failed, ...`, and which failed."""
    outcomes: Counter[str] = Counter(one.outcome for own in verdicts.values() for one in own)
    numbers = ", ".join(f"{outcomes[kind]} {word}" for kind, word in SUMMARISED.items() if outcomes[kind])
    objectives = "1 objective" if len(verdicts) == 1 else f"{len(verdicts)} objectives"
    wrong = [f"{spec} ({', '.join(names)})" for spec, own in verdicts.items() if (names := _failed(own))]
    return f"{objectives}: {numbers}" + (f". Failed: {'; '.join(wrong)}" if wrong else "")


def _failed(verdicts: Sequence[Verdict]) -> list[str]:
    """Names of the checks that failed, once each."""
    return list(dict.fromkeys(verdict.name for verdict in verdicts if verdict.outcome == "fail"))


def _document(verdicts: dict[str, list[Verdict]]) -> dict[str, object]:
    objectives = [
        {
            "objective": spec,
            "verdicts": [{"name": v.name, "outcome": v.outcome, "evidence": v.evidence} for v in own],
            "failed": sum(v.outcome == "fail" for v in own),
        }
        for spec, own in verdicts.items()
    ]
    return {"schema": SCHEMA, "objectives": objectives}
