"""Audit: find suspects among the negatives, weigh them, and say how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lossscope.core.relations import NONE
from lossscope.core.types import Progress, Rows
from lossscope.engine.selection import USUAL_OBJECTIVES
from lossscope.errors import InputError
from lossscope.registry import build, short_spec

from ..estimate.accuracy import Accuracy, calibration_error, precision, recall
from ..estimate.calibration import Calibration
from ..estimate.default_weights import default_calibration
from ..estimate.labels import Labels, read_labels
from ..estimate.rates import (
    BatchPairs,
    Estimate,
    NegativeWeights,
    WeightShare,
    estimates,
    mean_rate,
    negative_weights,
    per_query,
    sampled_rate,
)
from ..estimate.sheet import draw_sheet
from ..estimate.signal_table import SignalTable
from ..parts.material import Material
from ..search.candidates import candidate_pairs
from ..search.list_lengths import default_top
from ..search.random_batches import pairs_of, random_batches
from ..types import PairRows
from .inputs import Inputs, read_inputs
from .options import AuditOptions
from .result import AuditResult, LabelQuality, ScoredPairs
from .signals import build_signals

THRESHOLDS = (0.05, 0.1, 0.2, 0.5)  # for which precision and recall are stated
_CHUNK = 1 << 18  # pairs scored at a time
_MOST = 5_000_000  # suspects that are kept, the most probable
_FOLDS = 5
_ENOUGH = 0.9  # of the pairs above the threshold


def audit(sources: Sequence[Path | str], options: AuditOptions) -> AuditResult:
    """Return which negatives of a split probably match their query, and what that means for training.

    Args:
        sources: checkpoints, run folders or dumps of the same split; none: texts alone.
        options: data, objectives, labels.

    Raises:
        InputError: nothing to decide by, sources of different items, labels that cannot be read.
    """
    for spec in options.objectives:
        build("objectives", spec)  # what cannot be built is said before anything is read
    inputs = read_inputs(sources, options)
    material = inputs.material
    batches = random_batches(material.relations, options.batch_size, options.seed)
    random_pairs, negative = pairs_of(batches, material.relations)
    table = SignalTable.of(
        material, build_signals(options.signals, material.relations.sides), random_pairs, options.progress
    )
    calibration = default_calibration(table.names)
    labels = None if options.labels is None else read_labels(options.labels, material)
    quality = None
    if labels is not None:
        calibration, quality = calibrate(table, calibration, labels, labels.where, options.progress)
    sample = BatchPairs(batches, negative, table.standardised(table.of_random), table.is_copy(random_pairs))
    suspects, examined = _suspects(table, calibration, options)
    weights, reasons = _weights(inputs, sample, options)
    number = _number_of_pairs(inputs)
    rate, accuracies, shares = _estimates(sample, calibration, weights, options)
    drawn = ScoredPairs(random_pairs, table.of_random, sample.Z, sample.copy, sample.probabilities(calibration))
    return AuditResult(
        material=material,
        name=", ".join(one.name for one in inputs.sources) or f"{options.data}, {options.split}",
        calibration=calibration,
        signals=table.names,
        because={one.name(): one.because for one in (*table.signals, *table.copies)},
        copy_names=tuple(one.name() for one in table.copies),
        unknown=table.unknown,
        batch_size=options.batch_size,
        rate=rate,
        per_query=per_query(sample, calibration),
        weights=shares,
        not_weighed=reasons,
        accuracy=accuracies,
        threshold=options.threshold,
        suspects=suspects,
        sheet=_sheet(table, calibration, suspects, drawn, labels, options),
        examined=examined,
        pairs=number,
        quality=quality,
        labels=labels,
        notices=(
            *(text for one in inputs.sources for text in (*one.warnings, *one.notices)),
            *(f"--signal {name} is left out: {why}" for name, why in table.unknown.items() if options.signals),
            *([] if labels is None else labels.notices),
            *_missed(suspects, accuracies, options.threshold, examined, number),
        ),
    )


def score(table: SignalTable, calibration: Calibration, pairs: PairRows) -> ScoredPairs:
    """Return pairs with their signals and probabilities."""
    raw = table.raw(pairs)
    Z, copy = table.standardised(raw), table.is_copy(pairs)
    return ScoredPairs(pairs, raw, Z, copy, np.where(copy > 0, 1.0, calibration.probability(Z)))


def calibrate(
    table: SignalTable, calibration: Calibration, labels: Labels, origin: str, progress: Progress | None = None
) -> tuple[Calibration, LabelQuality]:
    """Return the calibration after labels, and how well it predicts pairs of queries that it has not seen."""
    Z = table.standardised(table.raw(labels.pairs))
    if progress:
        progress("fitting labels", 0, _FOLDS + 1)
    fitted = calibration.fitted(Z, labels.answers, origin)
    return fitted, _quality(calibration, Z, labels, progress)


def _quality(prior: Calibration, Z: np.ndarray, labels: Labels, progress: Progress | None) -> LabelQuality:
    """Fit without a fifth of the queries, predict that fifth."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    fold = np.unique(labels.pairs.left, return_inverse=True)[1]
    fold = np.random.default_rng(0).permutation(int(fold.max()) + 1)[fold] % _FOLDS
    p = np.zeros(len(Z))
    for one in range(_FOLDS):
        inside, rest = fold == one, fold != one
        if inside.any():
            p[inside] = prior.fitted(Z[rest], labels.answers[rest], "").probability(Z[inside])
        if progress:
            progress("fitting labels", one + 2, _FOLDS + 1)
    y = labels.answers
    return LabelQuality(
        len(y), int(y.sum()), float(roc_auc_score(y, p)), float(average_precision_score(y, p)), calibration_error(p, y)
    )


def _suspects(table: SignalTable, calibration: Calibration, options: AuditOptions) -> tuple[ScoredPairs, int]:
    """Return the pairs of at least `keep`, or the threshold, the most probable first, and how many were looked at."""
    pairs = candidate_pairs(table.material, options.top or default_top(table.material.relations))
    least = min(options.keep, options.threshold)
    kept: list[ScoredPairs] = []
    for start in range(0, len(pairs), _CHUNK):
        one = score(table, calibration, pairs.part(start, start + _CHUNK))
        kept.append(one.take(np.nonzero(one.probability >= least)[0]))
        if options.progress:
            options.progress("scoring pairs", min(start + _CHUNK, len(pairs)), len(pairs))
    whole = _concatenate(kept) if kept else score(table, calibration, PairRows(*np.zeros((2, 0), np.int64)))
    order = np.lexsort((whole.pairs.right, whole.pairs.left, -whole.probability))[:_MOST]
    return whole.take(order), len(pairs)


def _sheet(
    table: SignalTable, calibration: Calibration, suspects: ScoredPairs, drawn: ScoredPairs, labels: Labels | None,
    options: AuditOptions,
) -> ScoredPairs:  # fmt: skip
    """Return pairs to label: a fifth of them suspects, the others of random batches; none that is answered already.

    A batch has mined negatives, which are similar to a positive but chosen to be none, and lacks candidates without a
    label: there a suspect matches more often than a pair of a batch with the same signals, and would raise the rate.
    """
    relations = table.material.relations

    def keys(pairs: PairRows) -> Rows:
        low, high = np.minimum(pairs.left, pairs.right), np.maximum(pairs.left, pairs.right)
        return low * relations.second + high if relations.one_set else pairs.left * relations.second + pairs.right

    def open_pairs(scored: ScoredPairs, closed: Rows) -> ScoredPairs:
        """Each pair once, without those that copies prove and those that are closed."""
        own = keys(scored.pairs)
        first = np.sort(np.unique(own, return_index=True)[1])
        return scored.take(first[(scored.copy[first] == 0) & ~np.isin(own[first], closed)])

    closed = np.zeros(0, np.int64) if labels is None else keys(labels.pairs)
    doubtful = open_pairs(suspects.take(np.nonzero(_can_be_in_batch(table.material, suspects.pairs))[0]), closed)
    few = min(options.sheet // 5, len(doubtful.pairs))
    first = doubtful.take(draw_sheet(calibration.logit(doubtful.Z), doubtful.Z[:, :0], few, options.seed))
    others = open_pairs(drawn, np.r_[closed, keys(first.pairs)])
    rest = others.take(draw_sheet(calibration.logit(others.Z), others.Z, options.sheet - few, options.seed))
    both = _concatenate([first, rest])
    return both.take(np.random.default_rng(options.seed).permutation(len(both.pairs)))


def _can_be_in_batch(material: Material, pairs: PairRows) -> npt.NDArray[np.bool_]:
    """Return (n,) whether both items have a positive; none where batches have mined negatives, too."""
    if material.relations.negatives is not None:
        return np.zeros(len(pairs), bool)
    queries, candidates = material.positives_of_queries[:, 0], material.positives_of_candidates[:, 0]
    return np.asarray((queries[pairs.left] != NONE) & (candidates[pairs.right] != NONE))


def _concatenate(parts: Sequence[ScoredPairs]) -> ScoredPairs:
    return ScoredPairs(
        PairRows(np.concatenate([one.pairs.left for one in parts]), np.concatenate([one.pairs.right for one in parts])),
        *(np.concatenate([getattr(one, name) for one in parts]) for name in ("raw", "Z", "copy", "probability")),
    )


def _weights(
    inputs: Inputs, sample: BatchPairs, options: AuditOptions
) -> tuple[list[NegativeWeights], tuple[str, ...]]:
    """Return the weights of negatives under every source and objective, and why some have none."""
    weights, reasons = [], []
    for source, epoch in zip(inputs.sources, inputs.epochs, strict=True):
        specs = options.objectives or ((source.objective,) if source.objective else USUAL_OBJECTIVES)
        for spec in specs:
            objective = build("objectives", spec)
            try:
                one = negative_weights(sample, source, objective, short_spec(objective), epoch, options.progress)
            except InputError as error:
                reasons.append(f"{spec} under {source.name}: {error}")
                continue
            weights.append(one)
    if options.objectives and not inputs.sources:
        reasons.append("weights need a SOURCE, whose similarities an objective weighs")
    return weights, tuple(reasons)


def _estimates(
    sample: BatchPairs, calibration: Calibration, weights: Sequence[NegativeWeights], options: AuditOptions
) -> tuple[Estimate, tuple[Accuracy, ...], tuple[WeightShare, ...]]:
    """Return the rate, what thresholds leave out, and the shares of weight, with intervals."""
    p = sample.probabilities(calibration)
    thresholds = sorted({*THRESHOLDS, options.threshold})
    left_out = [p >= threshold for threshold in thresholds]
    quantities = [sampled_rate(), *map(precision, left_out), *map(recall, left_out), *(one.share for one in weights)]
    rate, *others = estimates(sample, calibration, quantities, options.progress)
    n = len(thresholds)
    accuracies = tuple(
        Accuracy(threshold, float(above.mean()), one, other)
        for threshold, above, one, other in zip(thresholds, left_out, others[:n], others[n : 2 * n], strict=True)
    )
    above = p >= options.threshold
    shares = tuple(
        WeightShare(one.source, one.objective, share, float(one.flat[above].sum() / one.flat.sum()), one.epoch)
        for one, share in zip(weights, others[2 * n :], strict=True)
    )
    return Estimate(mean_rate(p), rate.low, rate.high), accuracies, shares


def _missed(
    suspects: ScoredPairs, thresholds: Sequence[Accuracy], threshold: float, examined: int, number: int
) -> tuple[str, ...]:
    """Say how many of the pairs above the threshold were looked at, where that is less than nine in ten."""
    expected = next(one.hidden for one in thresholds if one.threshold == threshold) * number
    held = int((suspects.probability >= threshold).sum())
    if examined == number or held >= _ENOUGH * expected:
        return ()
    return (
        f"the mask has {held:,} pairs with a probability of {threshold:g} or more, of about {expected:,.0f} that "
        "random batches let expect: the lists end before. A larger --top finds more",
    )


def _number_of_pairs(inputs: Inputs) -> int:
    relations = inputs.material.relations
    if relations.labels is None:
        return relations.first * relations.second - len(relations.positives)
    sizes: Rows = np.unique(relations.labels, return_counts=True)[1]
    return int(relations.first**2 - (sizes**2).sum())
