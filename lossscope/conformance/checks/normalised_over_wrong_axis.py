"""Are embeddings normalised each, or all numbers of one dimension together?

A loss that normalises each row does not see its length: Σ_k x_ik dL/dx_ik = 0 for every row i. One that normalises over
the batch has this sum at 0 for every dimension k instead. Source: tensorflow/similarity issue 233.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict

PLACE = 10
AFTER = ("step",)


def examine(case: Case) -> Iterator[Verdict]:
    """Look at both sums, of queries and of candidates."""
    name, trial, plain = "normalised-over-wrong-axis", case.trial.embeddings(), case.plain()
    of = {"queries": (trial.queries, plain.queries), "candidates": (trial.candidates, plain.candidates)}
    seen = {side: _kind(x, g, case.alone.precision) for side, (x, g) in of.items() if bool(g.any())}
    wrong = [side for side, kind in seen.items() if kind in ("column", "matrix")]
    if wrong:
        what = "each dimension over the batch" if seen[wrong[0]] == "column" else "the whole matrix at once"
        yield verdict(name, "fail", f"{' and '.join(wrong)} are normalised, {what}; it must be each row (dim=1)")
    elif all(kind == "row" for kind in seen.values()):
        yield verdict(name, "pass", "each row is normalised by the step")
    elif not case.is_readable:
        yield verdict(name, "skipped", "the step has layers of its own before its products: lengths are theirs")
    else:
        plainly = " and ".join(side for side, kind in seen.items() if kind == "none")
        yield verdict(name, "note", f"{plainly} are taken as they are: their length matters, so normalise them before")


def _kind(x: Tensor, gradient: Tensor, precision: float) -> str:
    """Return what is normalised: each row, each column, the matrix, or none."""
    products = x * gradient
    zero = 10 * precision * float(torch.linalg.norm(gradient))
    if bool((products.sum(1).abs() <= zero).all()):
        return "row"
    if bool((products.sum(0).abs() <= zero).all()):
        return "column"
    return "matrix" if float(products.sum().abs()) <= zero else "none"
