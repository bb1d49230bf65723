"""Find suspects among the negatives, weigh them, and estimate how many negatives match."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lossscope.core.item_ids import look_alikes, require_unique
from lossscope.core.types import HIDDEN_FROM, Rows
from lossscope.engine.selection import USUAL_OBJECTIVES
from lossscope.errors import InputError
from lossscope.registry import build, short_spec

from ..estimate.accuracy import Accuracy, precision, recall
from ..estimate.calibration import Calibration
from ..estimate.counted import count_labels
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
from ..search.candidates import candidate_pairs
from ..search.list_lengths import default_top
from ..types import PairRows
from .inputs import Inputs, read_inputs
from .label_sheet import pairs_to_label
from .options import AuditOptions
from .result import AuditResult, ScoredPairs
from .scorer import Scorer
from .signals import build_signals
from .worth import Worth, worth_of

THRESHOLDS = (0.05, 0.1, 0.2, 0.5)  # of the table of precision and recall
_CHUNK = 1 << 18  # pairs scored at a time
_MOST = 5_000_000  # suspects kept, the most probable
_RANKED = 10_000  # pairs kept if data are ranked only
_ENOUGH = 0.9  # of the pairs above the threshold


def audit(sources: Sequence[Path | str], options: AuditOptions) -> AuditResult:
    """Return the negatives of a split that probably match their query, and what they do to a training.

    Args:
        sources: checkpoints, run folders or dumps of the same split; none: texts alone.
        options: data, objectives, labels.

    Raises:
        InputError: no texts or embeddings, sources of different items, labels that cannot be read.
    """
    for spec in options.objectives:
        build("objectives", spec)  # fail on a wrong spec before reading anything
    inputs = read_inputs(sources, options)
    for what, ids in inputs.named_ids:
        require_unique(what, ids, _name(inputs, options), "so that a sheet can name pairs")
    signals = build_signals(options.signals, inputs.material.relations.sides)
    return examine(inputs, Scorer.of(inputs.material, signals, options), options)


def _name(inputs: Inputs, options: AuditOptions) -> str:
    """Return the names of the sources, or of the data, and which rows of the data were audited."""
    names, split = ", ".join(source.name for source in inputs.sources), inputs.material.split
    if split is None:
        return names
    used = split.used or ("" if names else split.name)
    return ", ".join(filter(None, (names or str(options.source.data), used)))


def examine(inputs: Inputs, scorer: Scorer, options: AuditOptions) -> AuditResult:
    """Return the result of an audit from its inputs and a fitted scorer."""
    if options.worth and scorer.state == "ranked only":
        raise InputError(
            "--worth needs probabilities; a ranked-only audit has none. Audit without --worth, label "
            "sheet.html, then give --labels labels.csv --worth"
        )
    suspects, least, examined = _suspects(scorer, options)
    drawn = scorer.score_random()
    rate: Estimate | None = None
    of_queries: float | None = None
    reasons: tuple[str, ...] = ()
    accuracies: tuple[Accuracy, ...] = ()
    shares: tuple[WeightShare, ...] = ()
    worth: Worth | None = None
    if scorer.state != "ranked only":
        sample = BatchPairs(scorer.batches, scorer.negative, drawn.Z, drawn.copy)
        weights, reasons = _weights(inputs, sample, options)
        rate, accuracies, shares = _estimates(sample, scorer.calibration, weights, options)
        of_queries = per_query(sample, scorer.calibration)
        if options.worth:
            worth = worth_of(inputs, sample, scorer.calibration, suspects.pairs, suspects.probability, options)
    table, labels, number = scorer.table, scorer.labels, _number_of_pairs(inputs)
    counted, uncounted = (None, ()) if labels is None else count_labels(labels)
    return AuditResult(
        material=inputs.material,
        name=_name(inputs, options),
        state=scorer.state,
        transfer=scorer.transfer,
        calibration=scorer.calibration,
        signals=table.names,
        because={signal.name(): signal.because for signal in (*table.signals, *table.copies)},
        copy_names=tuple(signal.name() for signal in table.copies),
        unknown=table.unknown,
        batch_size=options.batch_size,
        rate=rate,
        per_query=of_queries,
        weights=shares,
        not_weighed=reasons,
        accuracy=accuracies,
        threshold=options.threshold,
        suspects=suspects,
        least=least,
        pool=pairs_to_label(scorer, suspects, drawn, options.sheet, options.seed),
        examined=examined,
        pairs=number,
        quality=scorer.quality(options.source.progress),
        labels=labels,
        counted=counted,
        precision=options.precision,
        notices=(
            *(text for source in inputs.sources for text in (*source.warnings, *source.notices)),
            *inputs.notices,
            *(text for what, ids in inputs.named_ids for text in look_alikes(what, ids, _name(inputs, options))),
            *(f"--signal {name} is left out: {why}" for name, why in table.unknown.items() if options.signals),
            *([] if labels is None else labels.notices),
            *uncounted,
            *(_unused_options(options) if scorer.state == "ranked only" else ()),
            *(
                []
                if least is None
                else _missing_suspects(suspects, least, accuracies, options.threshold, examined, number)
            ),
        ),
        worth=worth,
    )


def _suspects(scorer: Scorer, options: AuditOptions) -> tuple[ScoredPairs, float | None, int]:
    """Return the most probable pairs, the smallest probability of the list, and the number of scored pairs.

    The list begins at `keep`, or at the threshold if it is lower, and has at most the 5 million most probable pairs. If
    data are ranked only, it has the first 10,000 pairs.
    """
    material = scorer.table.material
    pairs = candidate_pairs(material, options.top or default_top(material.relations))
    if scorer.state == "ranked only":
        return _first_ranked(scorer, pairs, options), None, len(pairs)
    least = min(options.keep, options.threshold)
    kept: list[ScoredPairs] = []
    for start in range(0, max(len(pairs), 1), _CHUNK):
        scored = scorer.score(pairs.part(start, start + _CHUNK))
        kept.append(scored.take(np.nonzero(scored.probability >= least)[0]))
        if options.source.progress:
            options.source.progress("scoring pairs", min(start + _CHUNK, len(pairs)), len(pairs))
    whole = ScoredPairs.join(kept)
    order = in_order(whole)
    if len(order) > _MOST:
        least = math.ceil(1e6 * whole.probability[order[_MOST - 1]]) / 1e6  # short enough to type
    return whole.take(order[:_MOST]), least, len(pairs)


def _first_ranked(scorer: Scorer, pairs: PairRows, options: AuditOptions) -> ScoredPairs:
    """Return the pairs with the highest scores."""
    kept = scorer.score(pairs.part(0, 0))
    for start in range(0, len(pairs), _CHUNK):
        kept = ScoredPairs.join([kept, scorer.score(pairs.part(start, start + _CHUNK))])
        kept = kept.take(in_order(kept)[:_RANKED])
        if options.source.progress:
            options.source.progress("scoring pairs", min(start + _CHUNK, len(pairs)), len(pairs))
    return kept


def in_order(scored: ScoredPairs) -> Rows:
    """Return the order of pairs, the highest score first, copies in front; equal scores by row."""
    order: Rows = np.lexsort((scored.pairs.right, scored.pairs.left, -scored.score))
    return order


def _weights(
    inputs: Inputs, sample: BatchPairs, options: AuditOptions
) -> tuple[list[NegativeWeights], tuple[str, ...]]:
    """Return the weights of negatives under each source and objective, and the reasons why weights are missing."""
    weights, reasons = [], []
    for source, epoch in zip(inputs.sources, inputs.epochs, strict=True):
        specs = options.objectives or ((source.objective,) if source.objective else USUAL_OBJECTIVES)
        for spec in specs:
            objective = build("objectives", spec)
            try:
                negative = negative_weights(
                    sample, source, objective, short_spec(objective), epoch, options.source.progress
                )
            except InputError as error:
                reasons.append(f"{spec} under {source.name}: {error}")
                continue
            weights.append(negative)
    if options.objectives and not inputs.sources:
        reasons.append("weights need a SOURCE, whose similarities an objective weighs")
    return weights, tuple(reasons)


def _estimates(
    sample: BatchPairs, calibration: Calibration, weights: Sequence[NegativeWeights], options: AuditOptions
) -> tuple[Estimate, tuple[Accuracy, ...], tuple[WeightShare, ...]]:
    """Return the rate, the accuracy of each threshold, and the shares of weight, with intervals."""
    p = sample.probabilities(calibration)
    thresholds = sorted({*THRESHOLDS, options.threshold})
    left_out = [p >= threshold for threshold in thresholds]
    quantities = [
        sampled_rate(),
        *map(precision, left_out),
        *map(recall, left_out),
        *(negative.share for negative in weights),
    ]
    rate, *others = estimates(sample, calibration, quantities, options.source.progress)
    n = len(thresholds)
    accuracies = tuple(
        Accuracy(threshold, float(above.mean()), precise, other)
        for threshold, above, precise, other in zip(thresholds, left_out, others[:n], others[n : 2 * n], strict=True)
    )
    above = p >= options.threshold
    shares = tuple(
        WeightShare(
            negative.source,
            negative.objective,
            share,
            float(negative.flat[above].sum() / negative.flat.sum()),
            negative.epoch,
        )
        for negative, share in zip(weights, others[2 * n :], strict=True)
    )
    return Estimate(mean_rate(p), rate.low, rate.high), accuracies, shares


def _unused_options(options: AuditOptions) -> tuple[str, ...]:
    """Name the given options that need probabilities, for data without them."""
    given = {"--objective": bool(options.objectives), "--threshold": options.threshold != HIDDEN_FROM}
    return tuple(
        f"{name} is not used: it needs probabilities, which these data have after --labels alone"
        for name, is_given in given.items()
        if is_given
    )


def _missing_suspects(
    suspects: ScoredPairs, least: float, thresholds: Sequence[Accuracy], threshold: float, examined: int, number: int
) -> tuple[str, ...]:
    """Say how many pairs above the threshold the list lacks, if they are more than one in ten."""
    if least > threshold:
        return (
            f"the mask has the {len(suspects.probability):,} most probable pairs, all those of {least:g} or more; of "
            f"those between {threshold:g} and {least:g} it lacks some, and refuses a threshold that low",
        )
    expected = next(accuracy.hidden for accuracy in thresholds if accuracy.threshold == threshold) * number
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
