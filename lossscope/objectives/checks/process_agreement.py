"""Do several processes give the loss and the gradient of one process, and if not, what is lost between them?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .multi_process import Comparison, TrainingStep, compare_processes
from .spawn import ProcessError
from .verdict import Verdict

SAME = 1e-8  # relative


def check_processes(objective: Any, processes: int, seed: int) -> Iterator[Verdict]:
    """Training on several processes must be what it is on one."""
    if processes == 1:
        yield Verdict("processes", "skipped", "only one process was requested: nothing to compare")
        return
    try:
        comparison = compare_processes(objective, processes, seed)
    except ProcessError as error:
        yield Verdict("processes", "fail", str(error))
        return
    if objective.traits.square:
        yield from _judge_embeddings(comparison, processes)
    else:
        yield _judge_step("processes", comparison.single, comparison.together, f"{processes} processes")


def _judge_embeddings(comparison: Comparison, processes: int) -> Iterator[Verdict]:
    """Judge a loss on embeddings, which may gather by itself, wrongly, or not at all."""
    single, together = comparison.single, comparison.together
    value, mean = single.value or 0.0, together.value or 0.0
    same_value = abs(mean - value) <= SAME * abs(value)
    same_part = _relative_difference(together.gradient * processes, single.gradient) <= SAME
    if _relative_difference(together.gradient, single.gradient) <= SAME:
        shown = together if same_value else replace(together, value=None)
        yield _judge_step("processes", single, shown, f"{processes} processes")
    elif comparison.gathered is not None:
        yield Verdict(
            "processes",
            "note",
            f"on each process it depends on the candidates of that process only (a loss of {mean:.6g} on average, "
            f"{value:.6g} for the whole batch); gather before it, with "
            "lossscope.objectives.checks.spawn.gather_with_gradients",
        )
        name, who = "processes, gathered", f"{processes} processes that gather before it"
        yield _judge_step(name, single, comparison.gathered, who)
    elif not bool(together.gradient.any()):
        yield Verdict("processes", "fail", "its gather loses gradients: none arrives; use one that has a gradient")
    elif same_part and same_value:
        yield Verdict(
            "processes",
            "fail",
            f"its gather loses gradients: 1/{processes} of the gradient arrives on {processes} processes, though the "
            f"loss, {value:.6g}, is the same; use a gather that has a gradient, as "
            "lossscope.objectives.checks.spawn.gather_with_gradients",
        )
    elif same_part:
        text = "it adds up its own rows, so gradients averaged over"
        yield Verdict(
            "processes",
            "note",
            f"{text} {processes} processes are 1/{processes} of those of one; multiply the loss by the number of "
            "processes",
        )
    else:
        yield Verdict("processes", "fail", f"on {processes} processes {_compare(together, single)}")


def _judge_step(name: str, single: TrainingStep, together: TrainingStep, who: str) -> Verdict:
    off = _relative_difference(together.gradient, single.gradient)
    evidence = f"the gradient on {who} is that on one to within {off:.1g}"
    if single.value is not None and together.value is not None:
        of_value = abs(together.value - single.value) / max(abs(single.value), 1e-12)
        evidence += f", the loss, {single.value:.6g}, to within {of_value:.1g}"
        off = max(off, of_value)
    if off <= SAME:
        return Verdict(name, "pass", f"{evidence} (relative)")
    return Verdict(name, "fail", f"{evidence}, more than {SAME:g}: {_compare(together, single)}")


def _compare(step: TrainingStep, expected: TrainingStep) -> str:
    a, b = step.gradient.flatten(), expected.gradient.flatten()
    length, angle = float(a.norm() / b.norm()), float(torch.nn.functional.cosine_similarity(a, b, dim=0))
    return f"the gradient has {length:.4g} times the length of that on one, at a cosine of {angle:.6g} to it"


def _relative_difference(x: Tensor, expected: Tensor) -> float:
    return float((x - expected).norm() / expected.norm().clamp(min=1e-12))
