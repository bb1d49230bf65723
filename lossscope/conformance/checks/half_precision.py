"""What does half precision change, beside rounding: is the gradient still finite, and does it still point there?

Embeddings are rounded to bf16 and fp16 and the step runs under autocast. It is compared with the same rounded
embeddings in full precision, so what is measured is the step's own arithmetic; a few per cent are rounding, a note.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..ratio import ratios
from ..runs import HALF

PLACE = 90
AFTER = ("step",)
LOST = 0.5  # relative error of a gradient that is no rounding any more


def examine(case: Case) -> Iterator[Verdict]:
    """Look at both types, on random embeddings and on nearly converged ones."""
    name = "half-precision"
    for half in HALF:
        exact, result, late = (case.alone.get(f"{half}{kind}") for kind in (" exact", "", " late"))
        if exact is None or result is None:
            error = case.alone.errors.get(half, case.alone.errors.get(f"{half} exact"))
            yield verdict(name, "note", f"it does not run in {half}: {error}")
            continue
        broken = [
            when
            for when, tried in (("", result), (" once positives are near 1", late))
            if tried and not tried.is_finite
        ]
        if broken:
            text = f"in {half} the gradient is not finite{broken[0]}: compute the softmax in float32, by log-sum-exp"
            yield verdict(name, "fail", text)
            continue
        off = max(ratios(result.tensors, exact.tensors), key=lambda ratio: ratio.distance)
        if off.distance > LOST:
            text = f"in {half} the gradient is {off} that of float32 on the same embeddings, off by {off.distance:.2g}"
            yield verdict(name, "fail", f"{text} of its length", off=off.distance)
        else:
            text = f"in {half} gradients are off by {_bound(off.distance)} ({off.of}): rounding"
            yield verdict(name, "note" if off.distance > 1e-6 else "pass", text, off=off.distance)


def _bound(distance: float) -> str:
    """`less than 0.5 %`: 1, 2 or 5 times a power of ten, as processors round differently."""
    if distance == 0:
        return "nothing"
    power = 10.0 ** math.floor(math.log10(100 * distance))
    bound = next(step * power for step in (1, 2, 5, 10) if 100 * distance < step * power)
    return f"less than {bound:.1g} %"
