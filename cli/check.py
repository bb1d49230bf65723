"""`lossscope check`: is an objective, or the step of a trainer, what it claims to be?"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ._app import command
from ._errors import FAILED
from ._options import Debug, Seed, complete_names, complete_words, usage
from ._verdicts import as_json, failed_names, print_verdicts, summarise

if TYPE_CHECKING:
    from lossscope.objectives.checks.verdict import Verdict

SCHEMA = "lossscope.check/1"
TRAINER = "Trainer"  # panel of --help


@command()
def check(
    specs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SPEC...",
            help="Objective specs. With --trainer none, or the one objective that the step is.",
            show_default=False,
            autocompletion=complete_names("objectives"),
        ),
    ] = None,
    trainer: Annotated[
        str | None,
        typer.Option(
            help="FILE.py:step, called as step(queries, candidates[, negatives]), or the loss of a library.",
            metavar="SPEC",
            rich_help_panel=TRAINER,
            autocompletion=complete_names("trainers"),
        ),
    ] = None,
    gradients: Annotated[
        Literal["mean", "sum"],
        typer.Option(help="What the trainer does with gradients of processes; DDP: mean.", rich_help_panel=TRAINER),
    ] = "mean",
    plain: Annotated[
        str | None,
        typer.Option(
            help="The same step without cache, chunks or accumulation, to compare with.",
            metavar="SPEC",
            rich_help_panel=TRAINER,
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            help="cpu, cuda (a GPU for each process, nccl), or auto.",
            rich_help_panel=TRAINER,
            autocompletion=complete_words("auto", "cpu", "cuda"),
        ),
    ] = "auto",
    processes: Annotated[int, typer.Option(min=1, max=16, help="Processes to share a batch; 1: none.")] = 2,
    seed: Seed = 0,
    format: Annotated[Literal["table", "json"], typer.Option(help="Lines, or one JSON document.")] = "table",
    debug: Debug = False,
) -> None:
    """Is this objective right, or this trainer: gradients, ties, scale, positives, one process against many.

    **Examples**

    `lossscope check ntxent`

    `lossscope check ./my_loss.py:MyLoss --processes 4`

    `lossscope check --trainer ./train.py:step --processes 2`

    `lossscope check ntxent:tau=0.05 --trainer ./train.py:step --gradients sum`

    Each line is one promise and what was measured of it on small random batches. A file that a spec names is run.
    With --trainer, the step is called in new processes, each with its share of a batch.
    Exit code 1 when a check fails; notes are worth reading, and fail nothing.
    """
    if trainer is not None:
        if specs and len(specs) > 1:
            raise usage(f"--trainer must be given no SPEC, or the one that its step is; got {len(specs)}")
        _check_trainer(trainer, specs[0] if specs else None, processes, seed, gradients, plain, device, format)
        return
    if not specs:
        raise usage("Missing argument 'SPEC...', or --trainer.")
    if plain is not None or gradients != "mean" or device != "auto":
        raise usage("--gradients, --plain and --device are of --trainer, which is missing")
    _check_objectives(specs, processes, seed, format)


def _check_objectives(specs: list[str], processes: int, seed: int, format: str) -> None:
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
            print_verdicts(spec, verdicts[spec])
    items = [{"objective": spec, **as_json(own)} for spec, own in verdicts.items()]
    _finish({"objectives": items}, verdicts, "objective", format)


def _check_trainer(
    spec: str,
    objective: str | None,
    processes: int,
    seed: int,
    gradients: str,
    plain: str | None,
    device: str,
    format: str,
) -> None:
    from lossscope.conformance.suite import check_trainer
    from lossscope.registry import build, spec_of

    with contextlib.redirect_stdout(sys.stderr):  # what a step prints is no result
        known = None if objective is None else build("objectives", objective)
        verdicts = {spec: check_trainer(spec, processes, seed, gradients == "mean", known, plain, device)}
    if format == "table":
        several = "1 process" if processes == 1 else f"{processes} processes, gradients: {gradients}"
        print_verdicts(f"{spec} on {several}", verdicts[spec])
    said = {"objective": None if known is None else spec_of(known), "plain": plain}
    head = {"trainer": spec, "processes": processes, "gradients": gradients, **said}
    _finish({"trainers": [{**head, **as_json(verdicts[spec], numbers=True)}]}, verdicts, "trainer", format)


def _finish(document: dict[str, object], verdicts: dict[str, list[Verdict]], noun: str, format: str) -> None:
    """Print the summary, or the document; exit with 1 where a check failed."""
    text = json.dumps({"schema": SCHEMA, **document}, indent=1) if format == "json" else summarise(verdicts, noun)
    typer.echo(text)
    if any(failed_names(own) for own in verdicts.values()):
        raise typer.Exit(FAILED)
