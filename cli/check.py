"""`lossscope check`: is an objective what it claims to be."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from .app import FAILED, Debug, Format, Seed, chosen, command

if TYPE_CHECKING:
    from lossscope.objectives.checks.verdict import Verdict

SCHEMA = "lossscope.check/1"
COLOURS = {"pass": "green", "fail": "red", "note": "cyan", "skipped": "bright_black"}
COUNTED = {"pass": "passed", "fail": "failed", "note": "noted", "skipped": "skipped"}


def _known(incomplete: str) -> list[str]:
    """Shell completion of names, from the file names alone."""
    from lossscope.registry import names

    return [name for name in names("objectives") if name.startswith(incomplete)]


@command()
def check(
    specs: Annotated[
        list[str],
        typer.Argument(metavar="SPEC...", help="Objective specs.", show_default=False, autocompletion=_known),
    ],
    ranks: Annotated[int, typer.Option(min=1, max=16, help="Processes to spread a batch over; 1: none.")] = 2,
    seed: Seed = 0,
    format: Format = "table",
    debug: Debug = False,
) -> None:
    """Is this objective right: shapes, corners, gradients, ties, scale, one process against many.

    **Examples**

    `lossscope check ntxent`

    `lossscope check ./my_loss.py:MyLoss --ranks 4`

    Each line is one promise and what was measured of it on small random batches. A file that a spec names is run.
    Exit code 1 when a check fails; notes are worth reading, and fail nothing.
    """
    from lossscope.objectives.checks.suite import check as verdicts_of
    from lossscope.registry import build, expand, spec_of

    chosen(format, ("table", "json"), "--format")
    found: dict[str, list[Verdict]] = {}
    with contextlib.redirect_stdout(sys.stderr):  # what a loss prints is no result
        for objective in [build("objectives", one) for spec in specs for one in expand("objectives", spec)]:
            found[spec_of(objective)] = []
    for spec in found:
        with contextlib.redirect_stdout(sys.stderr):
            found[spec] = verdicts_of(spec, ranks, seed)
        if format == "table":
            _show(spec, found[spec])
    if format == "json":
        typer.echo(json.dumps(_document(found), indent=1))
    else:
        typer.echo(_summary(found))
    if any(_failed(verdicts) for verdicts in found.values()):
        raise typer.Exit(FAILED)


def _show(spec: str, verdicts: Sequence[Verdict]) -> None:
    """One line a verdict, wrapped under its evidence on a terminal."""
    typer.secho(spec, bold=True)
    width = max(len(verdict.name) for verdict in verdicts)
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    for verdict in verdicts:
        mark = typer.style(f"{verdict.outcome:<7}", fg=COLOURS[verdict.outcome], bold=verdict.outcome == "fail")
        lines = textwrap.wrap(verdict.evidence, max(columns - width - 13, 40))
        typer.echo(f"  {mark}  {verdict.name:<{width}}  " + ("\n" + " " * (width + 13)).join(lines))


def _summary(found: dict[str, list[Verdict]]) -> str:
    """`2 objectives: 24 passed, 1 failed, ...`, and which failed."""
    outcomes: Counter[str] = Counter(verdict.outcome for verdicts in found.values() for verdict in verdicts)
    counted = ", ".join(f"{outcomes[kind]} {told}" for kind, told in COUNTED.items() if outcomes[kind])
    objectives = "1 objective" if len(found) == 1 else f"{len(found)} objectives"
    wrong = [f"{spec} ({', '.join(names)})" for spec, verdicts in found.items() if (names := _failed(verdicts))]
    return f"{objectives}: {counted}" + (f". Failed: {'; '.join(wrong)}" if wrong else "")


def _failed(verdicts: Sequence[Verdict]) -> list[str]:
    """Names of the checks that failed, once each."""
    return list(dict.fromkeys(verdict.name for verdict in verdicts if verdict.outcome == "fail"))


def _document(found: dict[str, list[Verdict]]) -> dict[str, object]:
    objectives = [
        {
            "objective": spec,
            "verdicts": [{"name": v.name, "outcome": v.outcome, "evidence": v.evidence} for v in verdicts],
            "failed": sum(v.outcome == "fail" for v in verdicts),
        }
        for spec, verdicts in found.items()
    ]
    return {"schema": SCHEMA, "objectives": objectives}
