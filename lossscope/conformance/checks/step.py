"""Does the step run, return a finite scalar, and compute the same when it is called again?

A loss that depends on no embedding, or whose gradient is not finite on unit vectors, cannot be checked further.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..ratio import ratios

PLACE = 0
AFTER: tuple[str, ...] = ()


def examine(case: Case) -> Iterator[Verdict]:
    """Look at the first call and its repetition, on one process."""
    name = "step"
    if "plain" in case.alone.errors:
        yield verdict(name, "fail", f"it must run on {case.trial.size} pairs; {case.alone.errors['plain']}")
        return
    plain = case.plain()
    if not plain.is_finite:
        wrong = [key for key, x in plain.tensors.items() if not bool(x.isfinite().all())]
        yield verdict(name, "fail", f"gradients must be finite; that of {', '.join(wrong)} is not")
        return
    dtype = str(case.alone.dtype).removeprefix("torch.")
    value = "its backward is its own" if plain.value != plain.value else f"the loss is {plain.value:.6g}"
    parameters = f"; parameters: {', '.join(plain.parameters)}" if plain.parameters else ""
    yield verdict(name, "pass", f"{value} on {case.trial.size} pairs in {dtype}{parameters}", loss=plain.value)
    repeat = case.alone.get("repeat")
    if repeat is None:
        yield verdict(name, "fail", f"a second step must run as the first; {case.alone.errors['repeat']}")
        return
    off = max(ratio.distance for ratio in ratios(repeat.tensors, plain.tensors))
    if off > case.alone.precision:
        text = (
            f"a second step with the same seed has another gradient, off by {off:.2g}: what it keeps or draws decides"
        )
        yield verdict(name, "note", text, off=off)
