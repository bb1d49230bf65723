"""What is a gradient that is added up over micro-batches: the mean of theirs, their sum, or that of the whole batch?

Adding up micro-batches adds no negatives, unless their embeddings are kept: that is a note. A sum of losses that are
means is k times too long. Source: open_clip issues 761 and 957, GradCache issue 7.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..ratio import Ratio, ratios
from ..softmax import Softmax

PLACE = 80
AFTER = ("step",)
_NAME = "accumulation-scale"
_STEPS = 2


def examine(case: Case) -> Iterator[Verdict]:
    """Compare two micro-batches with the whole batch, and with the mean of its halves."""
    if not case.trainer.is_accumulated:
        yield _read_blocks(case)
        return
    call = f"{_STEPS} micro-batches"
    result = case.alone.get(call)
    halves = [case.alone.get(f"half {half}") for half in range(_STEPS)]
    if result is None or None in halves:
        error = case.alone.errors.get(call, "half a batch did not run")
        yield verdict(_NAME, "fail", f"it must run in {call}; {error}")
        return
    parts = [half.tensors for half in halves if half is not None]
    mean = {key: _mean(key, [part[key] for part in parts]) for key in parts[0]}
    whole = ratios(result.tensors, case.plain().tensors)
    apart = ratios(result.tensors, mean)
    if _all_one(whole, case):
        yield verdict(_NAME, "pass", f"{call} give the gradient of the whole batch")
    elif _all_one(apart, case):
        text = f"{call} give the mean of their gradients: a query meets the {case.trial.size // _STEPS - 1} other"
        yield verdict(_NAME, "note", f"{text} candidates of its micro-batch, accumulation adds no negatives")
    else:
        reference, of = (whole, "the whole batch") if _straight(whole) else (apart, "the mean of the micro-batches")
        worst = max(reference, key=lambda ratio: ratio.distance)
        yield verdict(_NAME, "fail", f"in {call} the gradient is {worst} that of {of}", length=worst.length)


def _read_blocks(case: Case) -> Verdict:
    """Look for micro-batches inside the step: blocks of the batch whose queries meet their own candidates alone."""
    blocks = _blocks(case.pulls.pushed | case.pulls.pulled) if case.is_readable else 1
    if blocks < 2:
        return verdict(_NAME, "skipped", "the step has no micro_batches, and its queries meet the whole batch")
    text = f"the step takes the batch in {blocks} parts, and a query meets the candidates of its own part alone"
    fit = case.part(Softmax).fit if case.has(Softmax) else None
    if fit is not None and abs((fit.rows + fit.columns) * case.trial.size - blocks) < 1e-4 * blocks:
        text = f"{text}; their gradients are added up, {blocks} times their mean: divide the loss of each by {blocks}"
        return verdict(_NAME, "fail", text, length=float(blocks))
    return verdict(_NAME, "note", f"{text}: parts add no negatives", parts=float(blocks))


def _blocks(meets: Tensor) -> int:
    """Return the number of equal blocks on the diagonal of a (B, B) relation; 1 where it has other entries."""
    size = len(meets)
    for width in (divisor for divisor in range(2, size // 2 + 1) if size % divisor == 0):
        block = torch.arange(size) // width
        same = block[:, None] == block
        if bool((meets == same).all()):
            return size // width
    return 1


def _mean(key: str, parts: list[Tensor]) -> Tensor:
    """Return a side's rows, each divided by the number of micro-batches; the mean of a parameter's gradients."""
    return torch.cat(parts) / _STEPS if key in ("queries", "candidates") else torch.stack(parts).mean(0)


def _all_one(all_ratios: list[Ratio], case: Case) -> bool:
    return max(ratio.distance for ratio in all_ratios) <= 10 * case.alone.precision


def _straight(all_ratios: list[Ratio]) -> bool:
    return min(ratio.cosine for ratio in all_ratios) > 1 - 1e-6
