"""All calls of a step on one process: again, in another order, in parts, in half precision, with mined negatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from lossscope.errors import InputError
from lossscope.objectives.checks.softmax_form import form_batches
from lossscope.objectives.checks.spawn import join_file_group, run_processes
from lossscope.objectives.checks.verdict import describe_error
from lossscope.registry import build

from .precision import EXACT, precision_of
from .pulls import read_pulls
from .row_derivatives import LostRows, lost_rows
from .runs import CHUNKS, HALF, PATIENCE, Runs
from .step_gradient import LAYOUTS, StepCall, step_gradient
from .trainers.base import Trainer
from .trial import Trial
from .trial_embeddings import HARD, NEAR, TrialEmbeddings

CONE = 0.7  # similarity of embeddings for losses to which others are too far away
DRAWS = 8  # calls of a step that draws random numbers
Calls = Mapping[str, tuple[TrialEmbeddings, StepCall]]


def run_alone(trial: Trial) -> Runs:
    """Make the calls of one process, in a new one. Raises ProcessError when it dies or does not finish."""
    runs: Runs = run_processes(_alone, 1, trial)
    return runs


def _alone(rank: int, processes: int, file: Path, trial: Trial) -> Runs:
    trainer: Trainer = build("trainers", trial.trainer)
    with join_file_group(file, 0, 1, PATIENCE, trial.backend, trial.place(0)):
        runs = _first(trainer, trial)
        if "plain" not in runs.results:
            return runs
        trial = replace(trial, layout=runs.layout, cone=runs.cone)
        call = trial.call(0, runs.dtype)
        _make(runs, trainer, _usual_calls(trainer, trial, call))
        _make(runs, trainer, _split_calls(trainer, trial, call))
        _make(runs, trainer, _form_calls(trial, call))
        _make(runs, trainer, _half_calls(trial, call))
        _make_reference(runs, trial, call)
        _make_draws(runs, trainer, trial, call)
        precision = precision_of(runs.results, runs.dtype)
        return replace(runs, precision=precision, lost=_lost_rows(runs, trainer, trial, call, precision))


def _lost_rows(runs: Runs, trainer: Trainer, trial: Trial, call: StepCall, precision: float) -> LostRows | None:
    try:
        return lost_rows(trainer, trial.embeddings(), call, runs.results["plain"], precision)
    except Exception:  # a step may refuse what is not of unit length; it ran on what is
        return None


def _usual_calls(trainer: Trainer, trial: Trial, call: StepCall) -> Calls:
    """Return the calls again, in another order, with a copy, with mined negatives, and of every process's share."""
    embeddings = trial.embeddings()
    calls = {
        "repeat": (embeddings, call),
        "reversed": (embeddings.backwards(), call),
        "copy": (embeddings.with_copy(), call),
    }
    if trainer.takes_negatives:
        calls["mined"] = (trial.embeddings(mined=True), call)
        calls["hard"] = (trial.embeddings(mined=True, hard=HARD), call)
        calls["hardest"] = (trial.embeddings(mined=True, hard=NEAR), call)
    for rank in range(trial.processes) if trial.processes > 1 else ():
        calls[f"share {rank}"] = (embeddings.share(rank, trial.processes), call)
    return calls


def _split_calls(trainer: Trainer, trial: Trial, call: StepCall) -> Calls:
    """Return the calls in chunks and in micro-batches, and what they may be equal to."""
    calls, embeddings = {}, trial.embeddings()
    for rows in CHUNKS if trainer.is_chunked else ():
        calls[f"chunks of {rows}"] = (embeddings, replace(call, chunk_size=rows))
    if trainer.is_accumulated:
        calls["2 micro-batches"] = (embeddings, replace(call, micro_batches=2))
        for half in range(2):
            calls[f"half {half}"] = (embeddings.share(half, 2), call)
    return calls


def _form_calls(trial: Trial, call: StepCall) -> Calls:
    """Return the calls on similarities that tell which softmax the step is, where it takes no mined negatives."""
    if trial.always_mined or trial.cone:
        return {}
    return {name: (trial.embeddings_of(S), call) for name, S in form_batches(trial.size, trial.seed).items()}


def _half_calls(trial: Trial, call: StepCall) -> Calls:
    """Return the calls in half precision, on usual embeddings and on nearly converged ones."""
    calls, embeddings = {}, trial.embeddings()
    for name, dtype in HALF.items():
        half = replace(call, dtype=dtype, autocast=dtype)
        calls[f"{name} exact"] = (embeddings.rounded(dtype), call)
        calls[name] = (embeddings, half)
        calls[f"{name} late"] = (trial.embeddings(late=True), half)
    return calls


def _first(trainer: Trainer, trial: Trial) -> Runs:
    """Make the first call in float64; where the step cannot, in float32. Mined negatives in the shape that it takes."""
    errors = []
    for layout in LAYOUTS if trainer.takes_negatives else LAYOUTS[:1]:
        changed = replace(trial, layout=layout)
        for dtype in (torch.float64, torch.float32):
            try:
                result = step_gradient(trainer, changed.embeddings(), changed.call(0, dtype))
                if trainer.takes_negatives:
                    step_gradient(trainer, changed.embeddings(mined=True), changed.call(0, dtype))
            except Exception as error:
                errors.append(_describe(error))
            else:
                runs = Runs({"plain": result}, dtype=dtype, layout=layout)
                return runs if _pushes(runs, changed) else _in_a_cone(trainer, changed, runs)
    return Runs(errors={"plain": errors[0]})


def _in_a_cone(trainer: Trainer, trial: Trial, runs: Runs) -> Runs:
    """Call a step to which no candidate is near enough with embeddings that are nearer to one another."""
    nearer = replace(trial, cone=CONE)
    try:
        result = step_gradient(trainer, nearer.embeddings(), nearer.call(0, runs.dtype))
    except Exception:  # it ran on others, and is checked on those
        return runs
    closer = replace(runs, results={"plain": result}, cone=CONE)
    return closer if _pushes(closer, nearer) else runs


def _pushes(runs: Runs, trial: Trial) -> bool:
    """Whether any query is driven away from a candidate."""
    pulls = read_pulls(runs.results["plain"].queries, trial.embeddings(), EXACT[runs.dtype])
    return bool(pulls.pushed.any())


def _make(runs: Runs, trainer: Trainer, calls: Calls) -> None:
    """Make calls on one process; what one raises is kept."""
    for name, (embeddings, call) in calls.items():
        try:
            runs.results[name] = step_gradient(trainer, embeddings, call)
        except Exception as error:
            runs.errors[name] = _describe(error)


def _make_reference(runs: Runs, trial: Trial, call: StepCall) -> None:
    """Make the call of the step without cache or chunks, where one was named."""
    if trial.plain is not None:
        _make(runs, build("trainers", trial.plain), {"reference": (trial.embeddings(), call)})


def _make_draws(runs: Runs, trainer: Trainer, trial: Trial, call: StepCall) -> None:
    """Repeat a call of a step that draws random numbers: a mistake of one draw need not be in the next."""
    name = "mined" if "mined" in runs.results else "plain"
    first = runs.results[name].queries
    for draw in range(1, DRAWS):
        again = replace(call, seed=call.seed + draw)
        _make(runs, trainer, {f"draw {draw}": (trial.embeddings(mined=name == "mined"), again)})
        result = runs.get("draw 1")
        if result is None or torch.equal(result.queries, first):
            return


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, InputError) else describe_error(error)
