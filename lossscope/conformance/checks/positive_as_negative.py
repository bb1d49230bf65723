"""How often is the positive in the denominator of the softmax: once, or again as a negative?

The weights of negatives give the temperature, then the number of copies (`softmax_fit`). Each further copy holds the
loss above log 2. Source: ms-swift PR 10068.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, rows, verdict
from ..softmax_fit import SoftmaxFit

PLACE = 50
AFTER = ("step", "normalised-over-wrong-axis", "positives")


def examine(case: Case) -> Iterator[Verdict]:
    """Look at the copies of the positive, with mined negatives where the step takes them."""
    name, fits = "positive-as-negative", {"": case.fit}
    if case.mined is not None:
        fits[" with mined negatives"] = case.fit_mined
    fits |= {f" in draw {number} of the step": fit for number, fit in enumerate(case.fits_of_draws, 2)}
    known = {when: fit for when, fit in fits.items() if fit is not None and fit.copies is not None}
    if not case.is_readable or not known:
        text = "the loss is no softmax over candidates, so that copies of the positive cannot be told: give its SPEC"
        yield verdict(name, "skipped", text)
        return
    for when, fit in known.items():
        assert fit.copies is not None
        more = fit.copies > 1.5
        if bool(more.any()):
            text = f"the positive of {rows(more)} is {fit.copies.max():.0f} times in the denominator{when}"
            yield verdict(name, "fail", f"{text}: it is a negative of its own query", copies=float(fit.copies.max()))
            return
    if all(_decoupled(fit) for fit in known.values()):
        yield verdict(name, "note", "the positive is not in the denominator (decoupled loss)", copies=0.0)
        return
    also = ", with mined negatives too" if {"", " with mined negatives"} <= known.keys() else "".join([*known][:1])
    yield verdict(name, "pass", f"the positive is once in the denominator{also}", copies=1.0)


def _decoupled(fit: SoftmaxFit) -> bool:
    return fit.copies is not None and bool((fit.copies < 0.5).all())
