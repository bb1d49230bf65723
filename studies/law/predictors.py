"""What may predict at epoch 1 how well a run ends: counts, fidelity, weight on false negatives, one-step utility."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.datasets.synthetic.answers import PassageSplit
from lossscope.datasets.synthetic.truth import SceneSplit
from lossscope.engine.small_batches import rows_of_stack
from lossscope.engine.sweep import Sweep
from lossscope.objectives.base import Objective
from lossscope.registry import build
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.one_step_utility import one_step_utility
from lossscope.training.stepped_model import open_stepped_model
from lossscope.training.utility_options import UtilityOptions

PREDICTORS = ("C_neg", "N_eff", "k95", "false_weight", "utility_margin", "utility_nDCG")
_BATCHES = 5  # of the one-step utility
_COUNTS = {"C_q_all": "C_neg", "C_neg": "C_neg", "N_eff": "N_eff", "k95": "k95"}


def predict(checkpoint: Path, batch_size: int, seed: int) -> dict[str, float]:
    """Return the predictors of a checkpoint, on its training split; means of both directions.

    Args:
        checkpoint: after epoch 1.
        batch_size: pairs of a batch.
        seed: of the batches.
    """
    embedded = load(checkpoint, cache=False)
    objective: Objective = build("objectives", str(embedded.objective))
    probes = ("cocos:eps=0.01,unit=paper", "fidelity")
    sweep = Sweep((str(embedded.objective),), probes, "pairs", batch_size, seed, same_image="mask", interval=None)
    means = sweep.run(embedded).summary.groupby("statistic")["mean"].mean()
    counts = {name: float(means[statistic]) for statistic, name in _COUNTS.items() if statistic in means}
    utility = utility_of(checkpoint, str(embedded.objective), batch_size, seed)
    return {**counts, "false_weight": false_weight(checkpoint, embedded, objective, batch_size, seed), **utility}


def false_weight(
    checkpoint: Path, embedded: SplitEmbeddings, objective: Objective, batch_size: int, seed: int
) -> float:
    """Σ |W| on negatives that are true positives / Σ |W| on all negatives, over the batches of an epoch."""
    split = build("datasets", Checkpoint.load(checkpoint).data).split("train")
    assert isinstance(split, SceneSplit | PassageSplit)
    truth = torch.from_numpy(split.truth().T if isinstance(split, SceneSplit) else split.truth())  # first x second
    false = total = 0.0
    for batch in Sampling("pairs", batch_size, seed).batches(embedded.relations):
        for rows in rows_of_stack(embedded, [batch], "mask"):
            of_direction = truth if rows.shape.direction == "i2t" else truth.T
            is_true = of_direction[rows.shape.query_ids[:, None], rows.shape.candidate_ids[0][None, :]]
            weights = rows.weights(objective).abs().double() * rows.mask.negatives
            false += float((weights * is_true).sum())
            total += float(weights.sum())
    return false / total if total else float(np.nan)


def utility_of(checkpoint: Path, objective: str, batch_size: int, seed: int) -> dict[str, float]:
    """Return what one step with its loss is worth on the validation split: change of margin and of nDCG."""
    options = UtilityOptions(batches=_BATCHES, batch_size=batch_size, sampling="pairs", seed=seed)
    rows = one_step_utility(open_stepped_model(checkpoint), (objective,), options)
    means = rows[rows["direction"] == "both"].groupby("metric")["change"].mean()
    return {f"utility_{name}": float(means[name]) for name in ("margin", "nDCG")}
