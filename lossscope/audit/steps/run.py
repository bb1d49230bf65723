"""Audit: find suspects among the negatives, weigh them, and say how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lossscope.core.types import Rows
from lossscope.engine.selection import USUAL_OBJECTIVES
from lossscope.errors import InputError
from lossscope.registry import build, short_spec

from ..estimate.accuracy import Accuracy, accuracies, calibration_error
from ..estimate.calibration import Calibration
from ..estimate.default_weights import default_calibration
from ..estimate.labels import Labels, read_labels
from ..estimate.rates import BatchPairs, WeightShare, per_query, rate, weight_share
from ..estimate.sheet import draw_sheet
from ..estimate.signal_table import SignalTable
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
    inputs = read_inputs(sources, options)
    material = inputs.material
    batches = random_batches(material.relations, options.batch_size, options.seed)
    random_pairs, negative = pairs_of(batches, material.relations)
    table = SignalTable.of(material, build_signals(options.signals), random_pairs)
    calibration = default_calibration(table.names)
    labels = None if options.labels is None else read_labels(options.labels, material)
    quality = None
    if labels is not None:
        calibration, quality = calibrate(table, calibration, labels, str(options.labels))
    raw = table.raw(random_pairs)
    sample = BatchPairs(batches, negative, table.standardised(raw), table.is_copy(random_pairs))
    suspects, examined = _suspects(table, calibration, options)
    thresholds = accuracies(sample, calibration, sorted({*THRESHOLDS, options.threshold}))
    number = _number_of_pairs(inputs)
    weights, reasons = _weight_shares(inputs, sample, calibration, options)
    return AuditResult(
        material=material,
        name=", ".join(one.name for one in inputs.sources) or f"{options.data}, {options.split}",
        calibration=calibration,
        signals=table.names,
        because={one.name(): one.because for one in (*table.signals, *table.copies)},
        copy_names=tuple(one.name() for one in table.copies),
        unknown=table.unknown,
        batch_size=options.batch_size,
        rate=rate(sample, calibration),
        per_query=per_query(sample, calibration),
        weights=weights,
        not_weighed=reasons,
        accuracy=thresholds,
        threshold=options.threshold,
        suspects=suspects,
        sheet=_sheet(suspects, random_pairs, raw, sample, calibration, options),
        examined=examined,
        pairs=number,
        quality=quality,
        notices=(
            *(text for one in inputs.sources for text in (*one.warnings, *one.notices)),
            *_missed(suspects, thresholds, options.threshold, examined, number),
        ),
    )


def score(table: SignalTable, calibration: Calibration, pairs: PairRows) -> ScoredPairs:
    """Return pairs with their signals and probabilities."""
    raw = table.raw(pairs)
    Z, copy = table.standardised(raw), table.is_copy(pairs)
    return ScoredPairs(pairs, raw, Z, copy, np.where(copy > 0, 1.0, calibration.probability(Z)))


def calibrate(
    table: SignalTable, calibration: Calibration, labels: Labels, origin: str
) -> tuple[Calibration, LabelQuality]:
    """Return the calibration after labels, and how well it predicts pairs of queries that it has not seen.

    Raises InputError where all answers are the same.
    """
    if labels.answers.all() or not labels.answers.any():
        word = "yes" if labels.answers.all() else "no"
        raise InputError(f"{origin} must have answers of both kinds; all {len(labels.answers)} are {word}")
    Z = table.standardised(table.raw(labels.pairs))
    return calibration.fitted(Z, labels.answers, origin), _quality(calibration, Z, labels)


def _quality(prior: Calibration, Z: np.ndarray, labels: Labels) -> LabelQuality:
    """Fit without a fifth of the queries, predict that fifth."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    fold = np.unique(labels.pairs.left, return_inverse=True)[1]
    fold = np.random.default_rng(0).permutation(int(fold.max()) + 1)[fold] % _FOLDS
    p = np.zeros(len(Z))
    for one in range(_FOLDS):
        inside = fold == one
        rest = ~inside
        p[inside] = prior.fitted(Z[rest], labels.answers[rest], "").probability(Z[inside]) if rest.any() else 0.5
    y = labels.answers
    return LabelQuality(
        len(y), int(y.sum()), float(roc_auc_score(y, p)), float(average_precision_score(y, p)), calibration_error(p, y)
    )


def _suspects(table: SignalTable, calibration: Calibration, options: AuditOptions) -> tuple[ScoredPairs, int]:
    """Return the pairs whose probability is at least `keep`, the most probable first, and how many were looked at."""
    pairs = candidate_pairs(table.material, options.top or default_top(table.material.relations))
    kept: list[ScoredPairs] = []
    for start in range(0, len(pairs), _CHUNK):
        one = score(table, calibration, pairs.part(start, start + _CHUNK))
        kept.append(one.take(np.nonzero(one.probability >= options.keep)[0]))
        if options.progress:
            options.progress("scoring pairs", min(start + _CHUNK, len(pairs)), len(pairs))
    whole = _concatenate(kept) if kept else score(table, calibration, PairRows(*np.zeros((2, 0), np.int64)))
    order = np.lexsort((whole.pairs.right, whole.pairs.left, -whole.probability))[:_MOST]
    return whole.take(order), len(pairs)


def _sheet(
    suspects: ScoredPairs, random_pairs: PairRows, raw: np.ndarray, sample: BatchPairs, calibration: Calibration,
    options: AuditOptions,
) -> ScoredPairs:  # fmt: skip
    """Return pairs to label: a fifth of them suspects, the others from random batches."""
    copy = sample.copy > 0
    everyone = ScoredPairs(random_pairs, raw, sample.Z, sample.copy, sample.probabilities(calibration))
    open_pairs = everyone.take(np.nonzero(~copy)[0])  # what a copy proves needs no label
    doubtful = suspects.take(np.nonzero(suspects.copy == 0)[0])
    few = min(options.sheet // 5, len(doubtful.probability))
    first = doubtful.take(draw_sheet(calibration.logit(doubtful.Z), doubtful.Z[:, :0], few, options.seed))
    logit = calibration.logit(open_pairs.Z)
    rest = open_pairs.take(draw_sheet(logit, open_pairs.Z, options.sheet - few, options.seed))
    both = _concatenate([first, rest])
    keys = both.pairs.left * table_width(both) + both.pairs.right
    unique = np.unique(keys, return_index=True)[1]
    return both.take(np.random.default_rng(options.seed).permutation(unique))


def table_width(scored: ScoredPairs) -> int:
    """Return a number above every row of the second side."""
    return int(scored.pairs.right.max(initial=0)) + 1


def _concatenate(parts: Sequence[ScoredPairs]) -> ScoredPairs:
    return ScoredPairs(
        PairRows(np.concatenate([one.pairs.left for one in parts]), np.concatenate([one.pairs.right for one in parts])),
        *(np.concatenate([getattr(one, name) for one in parts]) for name in ("raw", "Z", "copy", "probability")),
    )


def _weight_shares(
    inputs: Inputs, sample: BatchPairs, calibration: Calibration, options: AuditOptions
) -> tuple[tuple[WeightShare, ...], tuple[str, ...]]:
    """Return the share of weight on false negatives under every source and objective, and why some have none."""
    shares, reasons = [], []
    for source, epoch in zip(inputs.sources, inputs.epochs, strict=True):
        specs = options.objectives or ((source.objective,) if source.objective else USUAL_OBJECTIVES)
        for spec in specs:
            objective = build("objectives", spec)
            try:
                shares.append(
                    weight_share(
                        sample, calibration, source, objective, short_spec(objective), options.threshold, epoch
                    )
                )
            except InputError as error:
                reasons.append(f"{spec} under {source.name}: {error}")
    if options.objectives and not inputs.sources:
        reasons.append("weights need a SOURCE, whose similarities an objective weighs")
    return tuple(shares), tuple(reasons)


def _missed(
    suspects: ScoredPairs, thresholds: Sequence[Accuracy], threshold: float, examined: int, number: int
) -> tuple[str, ...]:
    """Say how many of the pairs above the threshold were looked at, where that is less than nine in ten."""
    expected = next(one.hidden for one in thresholds if one.threshold == threshold) * number
    held = int((suspects.probability >= threshold).sum())
    if examined == number or held >= _ENOUGH * expected:
        return ()
    return (
        f"the mask has {held:,} pairs with a probability of {threshold:g} or more, of about {expected:,.0f} that random "
        "batches let expect: the lists end before. A larger --top finds more",
    )


def _number_of_pairs(inputs: Inputs) -> int:
    relations = inputs.material.relations
    if relations.labels is None:
        return relations.first * relations.second - len(relations.positives)
    sizes: Rows = np.unique(relations.labels, return_counts=True)[1]
    return int(relations.first**2 - (sizes**2).sum())
