"""Describe a source before any verdict: recall, ranks, loss, gradient, effective ranks, with chance and the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ..logs.base import TrainingLog
from .alignment import Alignment, DirectionAlignment
from .batches import Batches
from .curve import Curve
from .patient import Patient
from .spectrum import Spectrum
from .start import Start
from .texts import Texts


@dataclass(frozen=True)
class Quantity:
    """A number of the state with its words, beside chance and the best that the same vectors can reach."""

    value: float
    name: str  # `recall@1`
    figure: str  # `64.6%`
    which: str = ""  # direction or side, as `i2t`
    beside: str = ""  # `among 1,000 (chance 0.10%)`
    chance: float | None = None
    possible: float | None = None  # None: not known

    @property
    def text(self) -> str:
        """Return it as a part of a sentence."""
        return " ".join(filter(None, (self.name, self.which, self.figure, self.beside)))


State = dict[str, Quantity]


def state_of(patient: Patient) -> State:
    """Return what is known of a source before a verdict, statistic -> number, the most asked for first."""
    quantities: list[Quantity] = []
    if patient.has(Alignment):
        start = patient.part(Start).recalls if patient.has(Start) else {}
        quantities += _recalls(patient.part(Alignment), start)
    if patient.has(Batches):
        quantities += _batches(patient.part(Batches))
    if patient.has(Curve):
        quantities += _curve(patient.part(Curve))
    elif patient.has(TrainingLog):
        quantities += _short_log(patient.part(TrainingLog))
    if patient.has(Spectrum):
        quantities += _ranks(patient.part(Spectrum))
    if patient.has(Texts):
        report = patient.part(Texts).report
        beside = f"({report.queries:,} distinct queries, {report.documents:,} distinct positives)"
        quantities.append(Quantity(report.rows, "rows", f"{report.rows:,}", beside=beside))
    return {" ".join(filter(None, (quantity.name, quantity.which))): quantity for quantity in quantities}


def state_line(state: Mapping[str, Quantity]) -> str:
    """Return the state in one line, both directions and both sides together."""
    parts = []
    for (name, beside), group in groupby(state.values(), lambda quantity: (quantity.name, quantity.beside)):
        figures = ", ".join(" ".join(filter(None, (quantity.which, quantity.figure))) for quantity in group)
        parts.append(" ".join(filter(None, (name, figures, beside))))
    return "; ".join(parts)


def _recalls(alignment: Alignment, start: Mapping[str, float]) -> Iterator[Quantity]:
    for direction in alignment.directions:
        yield _recall(direction, alignment.pairs, start.get(direction.label))
    for direction in alignment.directions:
        rank = float(np.median(1 + direction.share_above * direction.negatives))
        middle = float(np.median(1 + 0.5 * direction.negatives))
        yield Quantity(rank, "median rank", f"{rank:,.0f}", direction.label, chance=middle, possible=1.0)


def _recall(direction: DirectionAlignment, pairs: int, start: float | None) -> Quantity:
    before = "" if start is None else f"; {start:.1%} before this training"
    implied = f"; its AUC {direction.auc:.3f} would give {direction.implied_recall:.0%}"
    far = implied if direction.is_far_below_auc else ""
    return Quantity(
        direction.recall,
        "recall@1",
        f"{direction.recall:.1%}",
        direction.label,
        f"among {pairs:,} (chance {direction.chance:.2%}{far}{before})",
        direction.chance,
        max(direction.implied_recall, direction.recall, start or 0.0),
    )


def _batches(batches: Batches) -> Iterator[Quantity]:
    if np.isfinite(batches.loss):
        beside = f"in batches of {batches.batch_size:,} (guessing {batches.guess:.3g})"
        yield Quantity(batches.loss, "loss", f"{batches.loss:.3g}", beside=beside, chance=batches.guess)
    share = 1 - float(batches.queries.without.mean())
    yield Quantity(share, "queries with a gradient", f"{share:.0%}")


def _curve(curve: Curve) -> Iterator[Quantity]:
    guess = curve.level_of_guessing
    known = "level of guessing unknown" if guess is None else f"guessing {guess.value:.3g}, {guess.name}"
    figure = f"{_loss(curve.start)} at the start, {_loss(curve.level)} at the end"
    yield Quantity(
        curve.level, "logged loss", figure, beside=f"({known})", chance=None if guess is None else guess.value
    )
    recall = curve.evaluations("val_recall")
    if len(recall):
        name = curve.log.columns.get("val_recall", "validation recall")
        figure = f"{recall[0]:.4g} at the start, {recall[-1]:.4g} at the end, {recall.max():.4g} at best"
        yield Quantity(float(recall[-1]), name, figure, possible=float(recall.max()))


def _short_log(log: TrainingLog) -> Iterator[Quantity]:
    losses = log.steps["loss"].dropna().to_numpy(dtype=np.float64) if "loss" in log.steps else np.zeros(0)
    if len(losses):
        figure = f"{_loss(losses[0])} at the start, {_loss(losses[-1])} at the end"
        yield Quantity(float(losses[-1]), "logged loss", figure, beside=f"({len(losses)} logged steps)")


def _loss(value: float) -> str:
    """Return a loss with four digits, without an exponent up to a million: `19,000`, not `1.9e+04`."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e6 else f"{value:.4g}"


def _ranks(spectrum: Spectrum) -> Iterator[Quantity]:
    for side in spectrum.sides:
        largest = min(side.null, side.largest)
        yield Quantity(
            side.rank, "effective rank", f"{side.rank:.1f}", side.name, f"of {side.d} dimensions", possible=largest
        )
