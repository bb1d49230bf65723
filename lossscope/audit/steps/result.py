"""What an audit says."""

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
    """Pairs with all that decides them."""

    pairs: PairRows
    raw: Floats  # (n, k) signals as they are
    Z: Doubles  # (n, k) in standard deviations of random pairs
    copy: Rows  # (n,) 1 where a copy proves that the pair matches
    score: Doubles  # (n,) log-odds by the weights, by which pairs are ordered; inf of a copy
    probability: Doubles  # (n,) that they match; NaN where data are ranked only, but for copies

    def take(self, places: Rows) -> ScoredPairs:
        """Return some of the pairs."""
        pairs = PairRows(self.pairs.left[places], self.pairs.right[places])
        of_pairs = self.score[places], self.probability[places]
        return ScoredPairs(pairs, self.raw[places], self.Z[places], self.copy[places], *of_pairs)

    def score_column(self, state: State) -> dict[str, Doubles]:
        """Return the probability; where data are ranked only the score, which is none, and NaN of a copy."""
        if state == "ranked only":
            return {"score": np.where(self.copy > 0, np.nan, self.score)}
        return {"probability": self.probability}

    @staticmethod
    def joined(parts: Sequence[ScoredPairs]) -> ScoredPairs:
        """Return one or more of them as one, one after the other."""
        pairs = [one.pairs for one in parts]
        return ScoredPairs(
            PairRows(np.concatenate([one.left for one in pairs]), np.concatenate([one.right for one in pairs])),
            np.concatenate([one.raw for one in parts]),
            np.concatenate([one.Z for one in parts]),
            np.concatenate([one.copy for one in parts]),
            np.concatenate([one.score for one in parts]),
            np.concatenate([one.probability for one in parts]),
        )


@dataclass(frozen=True, eq=False)
class Pool:
    """Pairs to label: first those of the sheet, then more that the page may ask about."""

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
    """How labels and probabilities agree, the labelled pair left out of the fit."""

    n: int
    positive: int
    auc: float
    average_precision: float
    calibration_error: float


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit says of a split."""

    material: Material
    name: str  # of what was audited
    state: State
    transfer: Transfer  # whether weights of other data say how probable a match is, and why
    calibration: Calibration
    signals: tuple[str, ...]
    because: Mapping[str, str]  # signal -> what a high value says
    copy_names: tuple[str, ...]
    unknown: Mapping[str, str]  # signal -> why it cannot be had
    batch_size: int
    rate: Estimate | None  # share of the negatives of a batch that match; None where data are ranked only
    per_query: float | None  # share of queries with one in their batch; None likewise
    weights: tuple[WeightShare, ...]
    not_weighed: tuple[str, ...]  # reasons
    accuracy: tuple[Accuracy, ...]  # of several thresholds
    threshold: float
    suspects: ScoredPairs  # the most probable first
    least: float | None  # probability from which they are listed; None where data are ranked only
    pool: Pool  # pairs to label
    examined: int  # pairs that could have become suspects
    pairs: int  # all that are not known to match
    quality: LabelQuality | None
    labels: Labels | None  # that were given
    counted: Counted | None  # the rate that they say without a model
    precision: float  # factor that the counted interval may span
    notices: tuple[str, ...]
    worth: Worth | None = None  # of the mask, where it was asked for

    @property
    def has_probabilities(self) -> bool:
        """Whether scores are probabilities; else pairs are in order, and nothing says how many match."""
        return self.state != "ranked only"

    @property
    def sheet(self) -> ScoredPairs:
        """The pairs of the sheet, in random order."""
        return self.pool.sheet

    @property
    def rates_disagree(self) -> bool:
        """Whether the intervals of the model's rate and of the counted one have nothing in common."""
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
        places = np.empty(len(left), np.int64)
        places[order] = np.arange(len(left)) - np.repeat(starts, sizes) + 1
        return places
