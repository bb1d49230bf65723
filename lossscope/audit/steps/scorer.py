"""Score pairs by their signals; a calibration turns signals into a probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lossscope.core.batches import Batch
from lossscope.core.types import Progress, Rows

from ..base import Signal
from ..estimate.accuracy import calibration_error
from ..estimate.calibration import Calibration, Doubles
from ..estimate.default_weights import default_calibration
from ..estimate.labels import Labels, read_labels
from ..estimate.signal_table import SignalTable
from ..estimate.transfer import Transfer
from ..parts.material import Material
from ..search.random_batches import pairs_of, random_batches
from ..types import Floats, PairRows, State
from .options import AuditOptions
from .result import LabelQuality, ScoredPairs

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Scorer:
    """Signals, measured on random batches, and weights, fitted to labels if the user gave any."""

    table: SignalTable
    prior: Calibration  # before labels
    calibration: Calibration
    labels: Labels | None
    batches: list[Batch]
    transfer: Transfer  # whether probabilities by weights of other data hold here
    random_pairs: PairRows  # the pairs of the batches that are no known matches
    negative: list[np.ndarray]  # (b, c) bool of each batch, True at these pairs

    @classmethod
    def of(cls, material: Material, signals: Sequence[Signal], options: AuditOptions) -> Scorer:
        """Measure signals, and fit their weights to labels if the user gave any.

        Raises InputError for labels that cannot be read.
        """
        relations = material.relations
        batches = random_batches(relations, options.batch_size, options.seed)
        random_pairs, negative = pairs_of(batches, relations)
        table = SignalTable.of(material, signals, random_pairs, options.source.progress)
        prior, labels = default_calibration(table.names, relations.sides), None
        calibration = prior
        if options.labels:
            labels = read_labels(options.labels, material, table.is_copy)
            calibration = prior.fit(_signals(table, labels), labels.answers, labels.where)
        return cls(table, prior, calibration, labels, batches, Transfer.of(material, table), random_pairs, negative)

    @property
    def state(self) -> State:
        """What is a score: a probability by labels, a probability by similar data, or only an order?"""
        if self.calibration.labels:
            return "calibrated"
        return "transferred" if self.transfer.holds else "ranked only"

    def score(self, pairs: PairRows) -> ScoredPairs:
        """Return pairs with their signals and probabilities."""
        return self._score(pairs, self.table.raw(pairs), self.table.is_copy(pairs))

    def score_random(self) -> ScoredPairs:
        """Return the pairs of the random batches, with their signals and probabilities."""
        return self._score(self.random_pairs, self.table.of_random, self.table.copy_of_random)

    def quality(self, progress: Progress | None = None) -> LabelQuality | None:
        """Return how well a fit on labels predicts the labels of other queries; None without labels.

        Five times, a fifth of the queries is left out of the fit and predicted.
        """
        from sklearn.metrics import average_precision_score, roc_auc_score

        labels = self.labels
        if labels is None:
            return None
        Z, y = _signals(self.table, labels), labels.answers
        fold = np.unique(labels.pairs.left, return_inverse=True)[1]
        fold = np.random.default_rng(0).permutation(int(fold.max()) + 1)[fold] % _FOLDS
        p = np.zeros(len(Z))
        for number in range(_FOLDS):
            if progress:
                progress("fitting labels", number, _FOLDS)
            inside, others = fold == number, fold != number
            if inside.any():
                p[inside] = self.prior.fit(Z[others], y[others], "").probability(Z[inside])
        if progress:
            progress("fitting labels", _FOLDS, _FOLDS)
        auc, average_precision = float(roc_auc_score(y, p)), float(average_precision_score(y, p))
        return LabelQuality(len(y), int(y.sum()), auc, average_precision, calibration_error(p, y))

    def _score(self, pairs: PairRows, raw: Floats, copy: Rows) -> ScoredPairs:
        Z = self.table.standardise(raw)
        score = np.where(copy > 0, np.inf, self.calibration.logit(Z))
        probability = np.where(copy > 0, 1.0, self.calibration.probability(Z))
        if self.state == "ranked only":
            probability[copy == 0] = np.nan
        return ScoredPairs(pairs, raw, Z, copy, score, probability)


def _signals(table: SignalTable, labels: Labels) -> Doubles:
    return table.standardise(table.raw(labels.pairs))
