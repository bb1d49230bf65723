"""What an audit says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lossscope.core.types import Rows

from ..estimate.accuracy import Accuracy
from ..estimate.calibration import Calibration, Doubles
from ..estimate.labels import Labels
from ..estimate.rates import Estimate, WeightShare
from ..parts.material import Material
from ..types import Floats, PairRows
from .worth import Worth


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Pairs with all that decides them."""

    pairs: PairRows
    raw: Floats  # (n, k) signals as they are
    Z: Doubles  # (n, k) in standard deviations of random pairs
    copy: Rows  # (n,) 1 where a copy proves that the pair matches
    probability: Doubles  # (n,)

    def take(self, places: Rows) -> ScoredPairs:
        """Return some of the pairs."""
        pairs = PairRows(self.pairs.left[places], self.pairs.right[places])
        return ScoredPairs(pairs, self.raw[places], self.Z[places], self.copy[places], self.probability[places])

    @staticmethod
    def joined(parts: Sequence[ScoredPairs]) -> ScoredPairs:
        """Return one or more of them as one, one after the other."""
        pairs = [one.pairs for one in parts]
        return ScoredPairs(
            PairRows(np.concatenate([one.left for one in pairs]), np.concatenate([one.right for one in pairs])),
            np.concatenate([one.raw for one in parts]),
            np.concatenate([one.Z for one in parts]),
            np.concatenate([one.copy for one in parts]),
            np.concatenate([one.probability for one in parts]),
        )


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
    calibration: Calibration
    signals: tuple[str, ...]
    because: Mapping[str, str]  # signal -> what a high value says
    copy_names: tuple[str, ...]
    unknown: Mapping[str, str]  # signal -> why it cannot be had
    batch_size: int
    rate: Estimate  # share of the negatives of a batch that match
    per_query: float  # share of queries with one in their batch
    weights: tuple[WeightShare, ...]
    not_weighed: tuple[str, ...]  # reasons
    accuracy: tuple[Accuracy, ...]  # of several thresholds
    threshold: float
    suspects: ScoredPairs  # the most probable first
    least: float  # probability from which they are listed
    sheet: ScoredPairs  # in random order
    examined: int  # pairs that could have become suspects
    pairs: int  # all that are not known to match
    quality: LabelQuality | None
    labels: Labels | None  # that were given
    notices: tuple[str, ...]
    worth: Worth | None = None  # of the mask, where it was asked for

    @property
    def is_calibrated(self) -> bool:
        """Whether labels of these very data were given."""
        return self.calibration.labels > 0

    @property
    def is_of_other_things(self) -> bool:
        """Whether the weights are of photos and captions, and the data are not: its numbers are marked."""
        return not (self.is_calibrated or self.material.relations.sides.is_image_text)

    def places(self) -> Rows:
        """Return the place of each suspect among those of its query, from 1."""
        left = self.suspects.pairs.left
        order = np.lexsort((np.arange(len(left)), left))
        starts = np.r_[0, np.nonzero(np.diff(left[order]))[0] + 1] if len(left) else np.zeros(0, np.int64)
        sizes = np.diff(np.r_[starts, len(left)])
        places = np.empty(len(left), np.int64)
        places[order] = np.arange(len(left)) - np.repeat(starts, sizes) + 1
        return places
