"""The result of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lossscope.core.types import Rows

from ..estimate.accuracy import Accuracy
from ..estimate.calibration import Calibration, Doubles
from ..estimate.design import Counted
from ..estimate.labels import Labels
from ..estimate.pair_file import DesignRow
from ..estimate.rates import Estimate, WeightShare
from ..estimate.transfer import Transfer
from ..parts.material import Material
from ..types import Floats, PairRows, State
from .worth import Worth


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Pairs with their signals and scores."""

    pairs: PairRows
    raw: Floats  # (n, k) signals, not standardised
    Z: Doubles  # (n, k) in standard deviations of random pairs
    copy: Rows  # (n,) 1 where a copy proves that the pair matches
    score: Doubles  # (n,) log-odds by the weights, the key of the order; inf of a copy
    probability: Doubles  # (n,) of a match; if data are ranked only, NaN except for copies

    def take(self, rows: Rows) -> ScoredPairs:
        """Return the pairs at these rows."""
        pairs = PairRows(self.pairs.left[rows], self.pairs.right[rows])
        of_pairs = self.score[rows], self.probability[rows]
        return ScoredPairs(pairs, self.raw[rows], self.Z[rows], self.copy[rows], *of_pairs)

    def score_column(self, state: State) -> dict[str, Doubles]:
        """Return the probability; if data are ranked only, the score, with NaN for copies."""
        if state == "ranked only":
            return {"score": np.where(self.copy > 0, np.nan, self.score)}
        return {"probability": self.probability}

    @staticmethod
    def join(parts: Sequence[ScoredPairs]) -> ScoredPairs:
        """Join parts, in their order."""
        pairs = [part.pairs for part in parts]
        return ScoredPairs(
            PairRows(np.concatenate([part.left for part in pairs]), np.concatenate([part.right for part in pairs])),
            np.concatenate([part.raw for part in parts]),
            np.concatenate([part.Z for part in parts]),
            np.concatenate([part.copy for part in parts]),
            np.concatenate([part.score for part in parts]),
            np.concatenate([part.probability for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class Pool:
    """Pairs to label: first the pairs of the sheet, then more for the page."""

    scored: ScoredPairs
    size: int  # pairs of the sheet
    design: tuple[DesignRow | None, ...]  # of each pair; None: it serves the fit alone
    shares: tuple[float, ...]  # of all negatives, in each stratum

    @property
    def sheet(self) -> ScoredPairs:
        """The pairs of the sheet."""
        return self.scored.take(np.arange(self.size))


@dataclass(frozen=True, eq=False)
class LabelQuality:
    """How well do probabilities predict labels that are left out of the fit?"""

    n: int
    positive: int
    auc: float
    average_precision: float
    calibration_error: float


@dataclass(frozen=True, eq=False)
class AuditResult:
    """The result of an audit of a split."""

    material: Material
    name: str  # of sources or data
    state: State
    transfer: Transfer  # whether weights of other data say how probable a match is, and why
    calibration: Calibration
    signals: tuple[str, ...]
    because: Mapping[str, str]  # signal -> meaning of a high value
    copy_names: tuple[str, ...]
    unknown: Mapping[str, str]  # signal -> why the data do not allow it
    batch_size: int
    rate: Estimate | None  # share of matches among the negatives of a batch; None if data are ranked only
    per_query: float | None  # share of queries with a false negative in their batch; None likewise
    weights: tuple[WeightShare, ...]
    not_weighed: tuple[str, ...]  # reasons
    accuracy: tuple[Accuracy, ...]  # of several thresholds
    threshold: float
    suspects: ScoredPairs  # the most probable first
    least: float | None  # smallest probability of the list; None if data are ranked only
    pool: Pool  # pairs to label
    examined: int  # pairs that could have become suspects
    pairs: int  # all pairs that are no known matches
    quality: LabelQuality | None
    labels: Labels | None
    counted: Counted | None  # the rate by labels, without a model
    precision: float  # factor that the counted interval may span
    notices: tuple[str, ...]
    worth: Worth | None = None  # of the mask, with --worth

    @property
    def has_probabilities(self) -> bool:
        """Whether scores are probabilities; else they only order pairs, and the number of matches is unknown."""
        return self.state != "ranked only"

    @property
    def sheet(self) -> ScoredPairs:
        """The pairs of the sheet, in random order."""
        return self.pool.sheet

    @property
    def rates_disagree(self) -> bool:
        """Whether the intervals of the model's rate and of the counted rate are disjoint."""
        if self.counted is None or self.rate is None:
            return False
        model, counted = self.rate, self.counted.rate
        assert counted.low is not None and counted.high is not None  # a counted rate has an interval
        low = model.value if model.low is None else model.low
        high = model.value if model.high is None else model.high
        return counted.high < low or high < counted.low

    def places(self) -> Rows:
        """Return the place of each suspect among those of its query, from 1."""
        left = self.suspects.pairs.left
        order = np.lexsort((np.arange(len(left)), left))
        starts = np.r_[0, np.nonzero(np.diff(left[order]))[0] + 1] if len(left) else np.zeros(0, np.int64)
        sizes = np.diff(np.r_[starts, len(left)])
        positions = np.empty(len(left), np.int64)
        positions[order] = np.arange(len(left)) - np.repeat(starts, sizes) + 1
        return positions
