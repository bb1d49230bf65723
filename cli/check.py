"""`lossscope check`: is an objective, or the step of a trainer, what it claims to be?"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from lossscope.core.choices import Choice

from ._app import command
from ._errors import FAILED
from ._options import LinesOrJson, Seed, usage
from ._verdicts import as_json, failed_names, print_verdicts, summarise

if TYPE_CHECKING:
    from lossscope.objectives.checks.verdict import Verdict

SCHEMA = "lossscope.check/1"
TRAINER = "Trainer"  # panel of --help
Checked: TypeAlias = "tuple[dict[str, object], dict[str, list[Verdict]]]"  # part of the document, verdicts by spec


@dataclass(frozen=True)
class StepOptions:
    """How the step of a trainer is run."""

    trainer: Annotated[
        str | None,
        Choice(
            TRAINER,
            "Training step: FILE.py:step, a function step(queries, candidates[, negatives]), or the loss of a library.",
            names="trainers",
            metavar="SPEC",
        ),
    ] = None
    gradients: Annotated[
        Literal["mean", "sum"],
        Choice(TRAINER, "Reduction of gradients over the trainer's processes; DDP: mean."),
    ] = "mean"
    plain: Annotated[
        str | None,
        Choice(TRAINER, "The same step without cache, chunks or accumulation, to compare with.", metavar="SPEC"),
    ] = None
    device: Annotated[
        str,
        Choice(TRAINER, "cpu, cuda (a GPU for each process, nccl), or auto.", words=("auto", "cpu", "cuda")),
    ] = "auto"


@command(first=("trainer", "gradients", "processes", "format"))
def check(
    specs: Annotated[
        tuple[str, ...],
        Choice(
            None,
            "Objective specs; with --trainer none, or that of the step.",
            names="objectives",
            metavar="SPEC...",
            argument=True,
        ),
    ] = (),
    step: StepOptions = StepOptions(),
    processes: Annotated[int, Choice(None, "Processes that share a batch; 1: no sharing.", low=1, high=16)] = 2,
    seed: Seed = 0,
    format: LinesOrJson = "table",
) -> None:
    """Does my loss or my trainer compute what it should?

    **Examples**

    `lossscope check ntxent`

    `lossscope check ./my_loss.py:MyLoss --processes 4`

    `lossscope check --trainer ./train.py:step --processes 2`

    `lossscope check ntxent:tau=0.05 --trainer ./train.py:step --gradients sum`

    Each line is a promise, with its measurement on small random batches. The command runs a file that a spec names.
    With --trainer it calls the step in new processes, each with its share of a batch. The exit code is 1 when a check
    fails; notes are worth reading, and fail nothing.
    """
    if step.trainer is not None:
        if len(specs) > 1:
            raise usage(f"--trainer must be given no SPEC, or that of its step; got {len(specs)}")
        document, verdicts = _check_trainer(step, specs[0] if specs else None, processes, seed, format)
        _finish(document, verdicts, "trainer", format)
        return
    if not specs:
        raise usage("Missing argument 'SPEC...', or --trainer.")
    if step != StepOptions():
        raise usage("--gradients, --plain and --device need --trainer, which is missing")
    document, verdicts = _check_objectives(specs, processes, seed, format)
    _finish(document, verdicts, "objective", format)


def _check_objectives(specs: Sequence[str], processes: int, seed: int, format: str) -> Checked:
    from lossscope.objectives.checks.suite import check as run_checks
    from lossscope.registry import build, expand, spec_of

    verdicts: dict[str, list[Verdict]] = {}
    with contextlib.redirect_stdout(sys.stderr):  # what a loss prints is no result
        for objective in [build("objectives", each) for spec in specs for each in expand("objectives", spec)]:
            verdicts[spec_of(objective)] = []
    for spec in verdicts:
        with contextlib.redirect_stdout(sys.stderr):
            verdicts[spec] = run_checks(spec, processes, seed)
        if format == "table":
            print_verdicts(spec, verdicts[spec])
    return {"objectives": [{"objective": spec, **as_json(of_spec)} for spec, of_spec in verdicts.items()]}, verdicts


def _check_trainer(step: StepOptions, objective: str | None, processes: int, seed: int, format: str) -> Checked:
    from lossscope.conformance.suite import check_trainer
    from lossscope.registry import build, spec_of

    spec = step.trainer or ""
    with contextlib.redirect_stdout(sys.stderr):  # what a step prints is no result
        known = None if objective is None else build("objectives", objective)
        of_step = check_trainer(spec, processes, seed, step.gradients == "mean", known, step.plain, step.device)
    if format == "table":
        several = "1 process" if processes == 1 else f"{processes} processes, gradients: {step.gradients}"
        print_verdicts(f"{spec} on {several}", of_step)
    stated = {"objective": None if known is None else spec_of(known), "plain": step.plain}
    head = {"trainer": spec, "processes": processes, "gradients": step.gradients, **stated}
    return {"trainers": [{**head, **as_json(of_step, numbers=True)}]}, {spec: of_step}


def _finish(document: dict[str, object], verdicts: dict[str, list[Verdict]], noun: str, format: str) -> None:
    """Print the summary, or the document; exit with 1 where a check failed."""
    text = json.dumps({"schema": SCHEMA, **document}, indent=1) if format == "json" else summarise(verdicts, noun)
    typer.echo(text)
    if any(failed_names(found) for found in verdicts.values()):
        raise typer.Exit(FAILED)
