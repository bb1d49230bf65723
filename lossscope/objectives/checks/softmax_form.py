"""Which softmax is a loss, and if it is nearly one: which axis, or which order of log and mean, is wrong?

A batch is alike where every row and every column of S holds the same numbers (row i is row 0, turned by i). There no
axis can be wrong and log p is the same for all queries, so that every softmax over candidates has W_ij ∝ P_ij − δ_ij:
the logarithms of its negative weights are straight in S, with the slope 1/tau. On a mixed batch a sound one is
Σ_i u_i ∂l_i + Σ_j v_j ∂m_j with the losses l of queries and m of candidates; u says what became of l_i = −log p_i:
constant where it is averaged, p_i where p is averaged before the log, 1/p_i where exp undid the log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from lossscope.core.similarity import pair_mask
from lossscope.registry import build

from ..base import Objective
from .trial_batches import SIZE
from .verdict import Outcome, Verdict

NAME = "softmax"
NONE = "the loss is no softmax over candidates"
_POSITIVES = (0.0, 0.0075, 0.02)  # similarities of the positive in the batches that are alike
_SPREAD = 0.0075  # of the similarities of negatives: no temperature hides one
_MIXED, EQUAL = "mixed", "equal"  # names of the other two batches
_CLOSE = {torch.float64: 1e-8, torch.float32: 3e-6}  # relative, of weights that are equal
_NOISE = 1e-5  # relative, of weights from which a temperature can still be read
_SURE = 30.0  # times the noise: as far apart are weights that are not equal
_FITTED = 1e-4  # relative error of weights that were fitted to two directions
_SHAPES: Mapping[str, Callable[[Tensor], Tensor]] = {  # dL/dl as a function of the probability p of the positive
    "1": torch.ones_like,
    "p": lambda p: p,
    "1/p": lambda p: 1 / p,
    "p exp(-p)": lambda p: p * (-p).exp(),
}
_LOG = "log_softmax(S, 1) in place of softmax(S, 1)"
_WORST_LEAST = "the weight of a query is in proportion to p, so that those that are wrong have the least"
_MISTAKES: Mapping[tuple[str, str], str] = {  # by dL/dl where all rows are alike, and by that of each row
    ("1", "p"): f"−log of the mean of p, not the mean of −log p: {_WORST_LEAST}. Take the log before the mean",
    ("p", "p"): f"−mean of p, without a log: {_WORST_LEAST}. Take {_LOG}",
    ("p exp(-p)", "p"): f"exp(−mean of p): {_WORST_LEAST}. Leave exp out, and take {_LOG}",
    (
        "p exp(-p)",
        "p exp(-p)",
    ): f"the mean of exp(−p): queries that are wrong have the least weight. Take {_LOG}",
    ("1/p", "1/p"): "the mean of 1/p, exp of −log p: the weight of a query grows without a bound. Leave exp out",
    ("1/p", "1"): "exp of the mean of −log p, whose gradient grows without a bound. Leave exp out",
}


@dataclass(frozen=True)
class Answer:
    """What a loss says of one batch."""

    W: Tensor  # (B, B) dF/dS
    value: float  # F; NaN where it is not known


@dataclass(frozen=True)
class SoftmaxForm:
    """The softmax that a loss is, or would be."""

    spec: str  # the objective that it is where all rows are alike
    text: str  # a sentence on what it is, or on what is wrong
    outcome: Outcome
    tau: float


def form_batches(size: int = SIZE, seed: int = 0) -> dict[str, Tensor]:
    """Return similarities (B, B) by the name of the batch: three that are alike, a mixed one and one of equal entries.

    Args:
        size: B.
        seed: of the random numbers.
    """
    generator = torch.Generator().manual_seed(seed)
    noise = _SPREAD * torch.rand(size, size, generator=generator, dtype=torch.float64)
    turned = (torch.arange(size) - torch.arange(size)[:, None]) % size
    batches = {}
    for number, positive in enumerate(_POSITIVES):
        row = noise[number].clone()
        row[0] = positive
        batches[f"alike {number}"] = row[turned]
    mixed = noise.clone()
    mixed.diagonal().copy_(_POSITIVES[-1] * torch.rand(size, generator=generator, dtype=torch.float64))
    return {**batches, _MIXED: mixed, EQUAL: torch.full((size, size), _SPREAD / 2, dtype=torch.float64)}


def check_softmax(objective: Any, seed: int) -> Iterator[Verdict]:
    """A loss that is a softmax where no axis can be wrong must be one on every batch, with the log before the mean."""
    batches = form_batches(SIZE, seed)
    answers, dtype = {}, getattr(objective, "computed_in", torch.float64)
    for name, S in batches.items():
        weights = objective(S.clone(), pair_mask(torch.arange(SIZE)))
        value = math.nan if weights.values is None else float(weights.values.sum())
        answers[name] = Answer(weights.W.double(), value)
    yield judge_form(NAME, read_form(batches, answers, dtype))


def judge_form(name: str, form: SoftmaxForm | None) -> Verdict:
    """Return the verdict on a form.

    Args:
        name: of the check.
        form: of the loss; None: it is no softmax.
    """
    if form is None:
        return Verdict(name, "skipped", NONE)
    return Verdict(name, form.outcome, form.text, {"tau": form.tau})


def read_form(
    S: Mapping[str, Tensor], answers: Mapping[str, Answer], dtype: torch.dtype = torch.float64
) -> SoftmaxForm | None:
    """Return which softmax a loss is; None where it is none, or its weights are too imprecise to tell.

    Args:
        S: batches of `form_batches`.
        answers: of the loss, by the name of the batch.
        dtype: in which the loss is computed.
    """
    alike = [name for name in S if name not in (_MIXED, EQUAL)]
    noise = max(_noise(answers[name].W) for name in alike)
    tau = _temperature(S[alike[0]], answers[alike[0]].W)
    if tau is None or not noise <= _NOISE or dtype not in _CLOSE:
        return None
    close = max(_CLOSE[dtype], _SURE * noise)
    p = torch.cat([_probability(S[name], tau)[:1] for name in alike])
    for kind in ("dcl", "ntxent"):  # the weights of the first alone are the same for every p
        base = cast(Objective, build("objectives", f"{kind}:tau={tau!r}"))
        factors = [_factor(answers[name].W, _weights(base, S[name]), close) for name in alike]
        shape = None if None in factors else _shape(torch.tensor(factors, dtype=torch.float64), p, close)
        if shape is not None and (kind == "ntxent" or shape == "1"):
            return _Reader(S, answers, close, kind, tau, base, shape).read()
    return None


@dataclass(frozen=True)
class _Reader:
    """What the batches that are alike say, for the mixed batch to be compared with."""

    S: Mapping[str, Tensor]
    answers: Mapping[str, Answer]
    close: float  # relative difference of weights that are equal
    kind: str  # of the objective
    tau: float
    base: Objective  # that the loss is where all rows are alike, but for the shape
    shape: str  # dL/dl as a function of p, a name in _SHAPES

    @property
    def spec(self) -> str:
        """`ntxent:tau=0.1`."""
        return f"{self.kind}:tau={self.tau:.4g}"

    def read(self) -> SoftmaxForm:
        """Return what the loss is on the mixed batch."""
        S = self.S[_MIXED]
        sides = {"queries": (S, _weights(self.base, S)), "candidates": (S.T, _weights(self.base, S.T).T)}
        (_, rows), (_, columns) = sides.values()
        found = _row_weights(self.answers[_MIXED].W, rows, columns, self.close)
        if found is None:
            return self._read_axis()
        shapes = {
            side: _shape(weights, _probability(sides[side][0], self.tau), max(_FITTED, self.close))
            for side, weights in zip(sides, found, strict=True)
            if weights is not None
        }
        return self._form(*self._describe(shapes))

    def _describe(self, shapes: Mapping[str, str | None]) -> tuple[Outcome, str]:
        """Return the outcome and the sentence of a loss of rows, columns or both, by what their weights depend on."""
        mistakes = [text for shape in shapes.values() if (text := _MISTAKES.get((self.shape, shape or "")))]
        lowest = min(self.answers[name].value for name in self.S)
        if mistakes and self.shape == "p" and lowest >= 0:
            text = f"1 − mean of p: {_WORST_LEAST}, as is meant by a mean absolute error; else it would be {self.spec}"
            return "note", text
        if mistakes:
            return "fail", f"it is {mistakes[0]}; it would be {self.spec}"
        of = " and of ".join(shapes)
        weighed = "" if set(shapes.values()) == {"1"} else ", weighed by how hard each is"
        if [*shapes] == ["candidates"]:
            text = f"it is {self.spec} of candidates alone{weighed}: each chooses among the queries (dim=0). Queries "
            return "note", f"{text}choose among candidates with dim=1"
        return "pass", f"it is {self.spec} of {of}{weighed}"

    def _read_axis(self) -> SoftmaxForm:
        """Say what is wrong where rows that are not alike have other weights than any softmax of rows or columns."""
        S, size = self.S[_MIXED], len(self.S[_MIXED])
        whole = (S / self.tau).flatten().softmax(0).view_as(S) * size - torch.eye(size, dtype=torch.float64)
        if _factor(self.answers[_MIXED].W, whole, self.close) is None:
            text = (
                f"where all rows and columns of S hold the same numbers it is {self.spec}; where they do not it is no "
                "softmax of rows or columns: a number of each row, such as its maximum or its sum, is taken from the "
                "wrong axis. Compute it with keepdim=True"
            )
            return self._form("fail", text)
        guess, more = self._guess()
        if more < math.log(size) / 2:
            text = f"it is a softmax over all {size**2} similarities, less log {size}: a bound of mutual information"
            return self._form("pass", f"{text} at temperature {self.tau:.4g}")
        text = (
            f"its softmax is over all {size**2} similarities, not over the {size} of a row: equal ones cost "
            f"log {math.exp(guess + more):.4g}, where {self.spec} has log {math.exp(guess):.4g}. Take dim=1"
        )
        return self._form("fail", text)

    def _guess(self) -> tuple[float, float]:
        """Return what a query costs in the base where all similarities are equal, and how much more in the loss."""
        name = next(iter(self.S))
        scale = _factor(self.answers[name].W, _weights(self.base, self.S[name]), self.close)
        mine = self.answers[EQUAL].value / ((scale or math.nan) * len(self.S[EQUAL]))
        values = self.base(self.S[EQUAL], pair_mask(torch.arange(len(self.S[EQUAL])))).values
        guess = math.nan if values is None else float(values.mean())
        return guess, mine - guess

    def _form(self, outcome: Outcome, text: str) -> SoftmaxForm:
        return SoftmaxForm(self.spec, text, outcome, self.tau)


def _weights(objective: Objective, S: Tensor) -> Tensor:
    """Return W of the objective on pairs."""
    return objective(S.contiguous(), pair_mask(torch.arange(len(S)))).W


def _noise(W: Tensor) -> float:
    """Return how far the rows of a batch that is alike are from one another, each turned back: rounding errors."""
    size = torch.arange(len(W))
    rows = W.gather(1, (size + size[:, None]) % len(W))
    return float((rows - rows.mean(0)).norm() / W.norm().clamp(min=1e-300))


def _probability(S: Tensor, tau: float) -> Tensor:
    """(B,) softmax probabilities of the positives."""
    return (S / tau).softmax(1).diagonal()


def _temperature(S: Tensor, W: Tensor) -> float | None:
    """Return 1 / slope of the log weights of the first row's negatives in their similarities; None unless they rise."""
    s, w = S[0, 1:], W[0, 1:]
    if not bool((w > 0).all()) or not bool(w.isfinite().all()):
        return None
    s, log_w = s - s.mean(), w.log() - w.log().mean()
    slope = float((s * log_w).sum() / (s * s).sum())
    return 1 / slope if slope > 0 else None


def _factor(W: Tensor, expected: Tensor, close: float) -> float | None:
    """Return c with W = c · expected; None where there is none."""
    c = float((W * expected).sum() / (expected * expected).sum())
    off = float((W - c * expected).norm() / W.norm().clamp(min=1e-300))
    return c if c > 0 and off <= close else None


def _shape(weights: Tensor, p: Tensor, close: float) -> str | None:
    """Return which function of p the weights are in proportion to; None where it is none that is known."""
    for name, function in _SHAPES.items():
        if _factor(weights, function(p), close) is not None:
            return name
    return None


def _row_weights(W: Tensor, rows: Tensor, columns: Tensor, close: float) -> tuple[Tensor | None, Tensor | None] | None:
    """Return u and v with W_ij = u_i rows_ij + v_j columns_ij, None for a side that is not needed; None for no such."""
    u = (W * rows).sum(1) / (rows * rows).sum(1)
    if _is_close(W, u[:, None] * rows, close):
        return u, None
    v = (W * columns).sum(0) / (columns * columns).sum(0)
    if _is_close(W, columns * v, close):
        return None, v
    size = len(W)
    eye = torch.eye(size, dtype=torch.float64)
    design = torch.cat([eye[:, None, :] * rows[:, :, None], eye[None, :, :] * columns[:, :, None]], 2)
    solution = torch.linalg.lstsq(design.flatten(0, 1), W.flatten()[:, None], driver="gelsd").solution[:, 0]
    u, v = solution[:size], solution[size:]
    return (u, v) if _is_close(W, u[:, None] * rows + columns * v, close) else None


def _is_close(W: Tensor, expected: Tensor, close: float) -> bool:
    return float((W - expected).norm()) <= close * float(W.norm())
