"""`check_trainer(spec)`: does a trainer's step compute what it should, on one process and on many?"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any

import torch

from lossscope.core.facts import Missing
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.checks.spawn import ProcessError
from lossscope.objectives.checks.verdict import Verdict, describe_error
from lossscope.registry import build

from . import checks
from .case import Case
from .runs import Runs, run_together
from .runs_alone import run_alone
from .together import Together
from .trainers.base import Trainer
from .trial import Trial

_OBJECTIVE = "objective"  # the check that needs one


def check_trainer(
    spec: str,
    processes: int = 2,
    seed: int = 0,
    mean: bool = True,
    objective: Objective | None = None,
    plain: str | None = None,
    device: str = "auto",
) -> list[Verdict]:
    """Run all checks of a trainer's step. A script must call this under `if __name__ == "__main__"`.

    Args:
        spec: of the trainer: `./file.py:step`, or that of a library, as in `open_clip:local_loss=true`.
        processes: that train on one batch together; 1 skips what compares them.
        seed: of the embeddings.
        mean: whether the trainer averages gradients over processes, as DistributedDataParallel does; else it adds up.
        objective: that the step is believed to be; None: it is not compared with one.
        plain: spec of the same step without cache, chunks or accumulation; None: it is not compared with one.
        device: `cpu`, `cuda` (process r on GPU r, by nccl), or `auto`: `cuda` where there is a GPU for each process.

    Raises:
        InputError: a number of processes below 1, or more of them than GPUs; a library that is not installed.
        SpecError: when the spec cannot be built, or the library refuses an option.
    """
    if processes < 1:
        raise InputError(f"processes must be at least 1; got {processes}")
    trainer: Trainer = build("trainers", spec)
    trainer.require()
    if plain is not None:
        build("trainers", plain).require()
    device = _device(device, processes)
    case = _case(trainer, Trial(spec, processes, seed, mean, trainer.needs_negatives, plain, device))
    verdicts: list[Verdict] = []
    for module in _modules():
        verdicts += _examine(module, case, objective, verdicts)
        if verdicts[0].outcome == "fail":  # the step does not run
            break
    return verdicts


def _case(trainer: Trainer, trial: Trial) -> Case:
    """Make all calls of a trainer."""
    try:
        alone = run_alone(trial)
    except ProcessError as error:
        return Case(trial, trainer, Runs(errors={"plain": str(error)}))
    trial = replace(trial, layout=alone.layout, cone=alone.cone)
    case = Case(trial, trainer, alone)
    if trial.processes == 1 or "plain" not in alone.results:
        return case
    try:
        moves = alone.lost is not None and not case.is_readable  # else the weights tell
        case.given[Together] = Together(case, run_together(trial, alone, moves))
    except ProcessError as error:
        case.missing[Together] = str(error)
    return case


def _device(device: str, processes: int) -> str:
    """Return `cuda` or `cpu`. Raises InputError where there are fewer GPUs than processes."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"device must be auto, cpu or cuda; got {device!r}")
    gpus = torch.cuda.device_count()
    if device == "cuda" and gpus < processes:
        raise InputError(f"{processes} processes need as many GPUs; there are {gpus}. Use fewer processes, or the CPU")
    return "cuda" if device == "cuda" or (device == "auto" and gpus >= processes) else "cpu"


@cache
def _modules() -> tuple[Any, ...]:
    """Return the files of checks by their place."""
    found = [
        importlib.import_module(f"{checks.__name__}.{module.name}") for module in pkgutil.iter_modules(checks.__path__)
    ]
    return tuple(sorted(found, key=lambda module: int(module.PLACE)))


def _name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2].replace("_", "-")


def _examine(module: Any, case: Case, objective: Objective | None, before: list[Verdict]) -> Iterator[Verdict]:
    """Yield the verdicts of one check: skipped while one that it depends on fails."""
    name = _name(module)
    failed = {verdict.name for verdict in before if verdict.outcome == "fail"}
    missing = [check for check in module.AFTER if check in failed]
    if missing:
        yield Verdict(name, "skipped", f"not measured while {' and '.join(missing)} fails")
        return
    try:
        yield from module.examine(case, objective) if name == _OBJECTIVE else module.examine(case)
    except Missing as error:
        yield Verdict(name, "skipped", error.reason)
    except InputError as error:
        yield Verdict(name, "fail", describe_error(error))
