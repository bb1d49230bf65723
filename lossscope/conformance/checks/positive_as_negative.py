"""How often is the positive in the denominator of the softmax: once, or again as a negative?

The weights of negatives give the temperature, then the number of copies (`softmax_fit`). Each further copy holds the
loss above log 2. Source: ms-swift PR 10068.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, rows, verdict
from ..mined import Mined
from ..softmax import MinedSoftmax, Softmax
from ..softmax_fit import SoftmaxFit, fit_softmax

PLACE = 50
AFTER = ("step", "normalised-over-wrong-axis", "positives")


def examine(case: Case) -> Iterator[Verdict]:
    """Look at the copies of the positive, with mined negatives where the step takes them."""
    name, fits = "positive-as-negative", {"": case.part(Softmax).fit} if case.has(Softmax) else {}
    if case.has(MinedSoftmax):
        fits[" with mined negatives"] = case.part(MinedSoftmax).fit
    fits |= {f" in draw {number} of the step": fit for number, fit in enumerate(_fits_of_draws(case), 2)}
    known = {when: fit for when, fit in fits.items() if fit.copies is not None}
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


def _fits_of_draws(case: Case) -> list[SoftmaxFit]:
    """Return the softmaxes that the loss is under other seeds, where it draws random numbers."""
    mined = case.has(Mined)
    embeddings = case.trial.embeddings(mined)
    results = [case.plain(name) for name in case.alone.results if name.startswith("draw")]
    fits = [fit_softmax(case.read(result, mined), embeddings, case.alone.precision) for result in results]
    return [fit for fit in fits if fit is not None]


def _decoupled(fit: SoftmaxFit) -> bool:
    return fit.copies is not None and bool((fit.copies < 0.5).all())
