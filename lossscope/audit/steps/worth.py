"""What does a training gain without false negatives? Floors of losses, and a trial of the mask on frozen vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lossscope.core.facts import Missing
from lossscope.errors import InputError
from lossscope.registry import build, short_spec

from ..estimate.calibration import Calibration, Doubles
from ..estimate.held_out_trial import WIDTH, Trial, TrialItems, held_out_trial
from ..estimate.loss_floor import LossFloor, loss_floor
from ..estimate.rates import BatchPairs
from ..parts.text_space import TextSpace
from ..types import Floats, PairRows
from .inputs import Inputs
from .options import AuditOptions

USUAL = "ntxent:tau=0.05"  # where a source names no objective


@dataclass(frozen=True)
class Worth:
    """What a training gains without false negatives, estimated before it."""

    floors: tuple[LossFloor, ...]  # of each objective
    trial: Trial | None
    reasons: tuple[str, ...]  # why there is no floor, or no trial


def worth_of(
    inputs: Inputs,
    sample: BatchPairs,
    calibration: Calibration,
    suspects: PairRows,
    probability: Doubles,
    options: AuditOptions,
) -> Worth:
    """Return what the mask is worth; a missing part is None, with a reason.

    Args:
        inputs: of the audit; the trial takes the vectors of its first source, or of texts.
        sample: pairs of random batches.
        calibration: gives their probabilities.
        suspects: the listed pairs.
        probability: of each suspect.
        options: of the audit; the trial takes the first objective.
    """
    specs = options.objectives or ((inputs.sources[0].objective,) if inputs.sources else ()) or (USUAL,)
    objectives = [build("objectives", spec or USUAL) for spec in specs]
    relations, progress = inputs.material.relations, options.source.progress
    floors, trial, reasons = [], None, []
    for objective in objectives:
        name = short_spec(objective)
        try:
            floors.append(loss_floor(sample, relations, calibration, options.threshold, objective, name, progress))
        except InputError as error:
            reasons.append(f"floor of {name}: {error}")
    try:
        name, first, second = trial_vectors(inputs)
        shape, rows = (relations.first, relations.second), (suspects.left, suspects.right)
        hidden = probability >= options.threshold
        items = TrialItems(
            name, first, second, relations,
            sparse.csr_matrix((hidden[hidden], tuple(side[hidden] for side in rows)), shape),
            sparse.csr_matrix((probability, rows), shape),
        )  # fmt: skip
        name = short_spec(objectives[0])
        trial = held_out_trial(items, objectives[0], name, options.batch_size, options.seed, progress)
    except InputError as error:
        reasons.append(f"trial: {error}")
    return Worth(tuple(floors), trial, tuple(reasons))


def trial_vectors(inputs: Inputs) -> tuple[str, Floats, Floats]:
    """Return the vectors of both sides, and a name for them. Raises InputError if there are none."""
    material = inputs.material
    if material.models:
        model = material.models[0]
        if model.first is None or model.second is None:
            raise InputError(f"it needs embeddings; {model.name} has similarities only")
        return model.name, model.first, model.second
    try:
        space = material.part(TextSpace)
    except Missing as error:
        raise InputError(f"it needs vectors of both sides: {error}") from None
    if space.first_words is None:
        first = material.relations.sides.first
        raise InputError(
            f"it needs vectors of both sides, and texts are of the second alone; name a SOURCE with those "
            f"of each {first}"
        )
    return "words of the texts", *_of_words([space.first_words, space.words])


def _of_words(sides: Sequence[sparse.csr_matrix]) -> tuple[Floats, Floats]:
    """Project words on at most 128 dimensions, the largest singular vectors of both sides together."""
    from sklearn.decomposition import TruncatedSVD

    joined = sparse.vstack(sides)
    if joined.shape[1] < 2:
        raise InputError(f"texts must have 2 words or more between them; they have {joined.shape[1]}")
    svd = TruncatedSVD(min(WIDTH, min(joined.shape) - 1), random_state=0).fit(joined)
    first, second = (np.asarray(svd.transform(side), np.float32) for side in sides)
    return first, second
