"""One process against many: do they agree on the loss and its gradient, and if not, what is lost between them?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .multi_process import Found, Step, measured
from .spawn import RankError
from .verdict import Verdict

SAME = 1e-8  # relative


def on_ranks(objective: Any, ranks: int, seed: int) -> Iterator[Verdict]:
    """Training on `ranks` processes must be what it is on one."""
    if ranks == 1:
        yield Verdict("ranks", "skipped", "only one process was asked for: nothing to compare")
        return
    try:
        found = measured(objective, ranks, seed)
    except RankError as error:
        yield Verdict("ranks", "fail", str(error))
        return
    if objective.square:
        yield from _of_embeddings(found, ranks)
    else:
        yield _same("ranks", found.alone, found.together, f"{ranks} processes")


def _of_embeddings(found: Found, ranks: int) -> Iterator[Verdict]:
    """A loss on embeddings may gather itself, or badly, or not at all."""
    single, together = found.alone, found.together
    value, mean = single.value or 0.0, together.value or 0.0
    known = abs(mean - value) <= SAME * abs(value)
    part = _apart(together.gradient * ranks, single.gradient) <= SAME
    if _apart(together.gradient, single.gradient) <= SAME:
        shown = together if known else replace(together, value=None)
        yield _same("ranks", single, shown, f"{ranks} processes")
    elif found.repaired is not None:
        seen = f"on a rank it sees the candidates of that rank only (a loss of {mean:.6g} on average, {value:.6g} for "
        yield Verdict(
            "ranks",
            "note",
            f"{seen}the whole batch); gather before it, with lossscope.objectives.checks.spawn.gathered",
        )
        yield _same("ranks, gathered", single, found.repaired, f"{ranks} processes that gather before it")
    elif not bool(together.gradient.any()):
        yield Verdict("ranks", "fail", "its gather loses gradients: none arrives; use one that has a gradient")
    elif part and known:
        yield Verdict(
            "ranks",
            "fail",
            f"its gather loses gradients: 1/{ranks} of the gradient arrives on {ranks} processes, though the loss, "
            f"{value:.6g}, is the same; use a gather that has a gradient, as "
            "lossscope.objectives.checks.spawn.gathered",
        )
    elif part:
        sums = f"it adds up its own rows, so gradients averaged over {ranks} processes are 1/{ranks} of those of one"
        yield Verdict("ranks", "note", f"{sums}; multiply the loss by the number of processes")
    else:
        yield Verdict("ranks", "fail", f"on {ranks} processes {_compared(together, single)}")


def _same(name: str, single: Step, together: Step, who: str) -> Verdict:
    off = _apart(together.gradient, single.gradient)
    evidence = f"the gradient on {who} is that on one to within {off:.1g}"
    if single.value is not None and together.value is not None:
        value = abs(together.value - single.value) / max(abs(single.value), 1e-12)
        evidence += f", the loss, {single.value:.6g}, to within {value:.1g}"
        off = max(off, value)
    if off <= SAME:
        return Verdict(name, "pass", f"{evidence} (relative)")
    return Verdict(name, "fail", f"{evidence}, more than {SAME:g}: {_compared(together, single)}")


def _compared(found: Step, expected: Step) -> str:
    a, b = found.gradient.flatten(), expected.gradient.flatten()
    length, angle = float(a.norm() / b.norm()), float(torch.nn.functional.cosine_similarity(a, b, dim=0))
    return f"the gradient has {length:.4g} times the length of that on one, at a cosine of {angle:.6g} to it"


def _apart(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm().clamp(min=1e-12))
