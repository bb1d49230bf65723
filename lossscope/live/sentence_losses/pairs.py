"""Read losses of single pairs with labels: CoSENT, contrastive, cosine similarity; a similarity a pair, no S."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from lossscope.errors import InputError

from ..observed import Observed
from ..recording import gradients_of
from .base import LossCall, LossReader

_HALF = 0.5  # pairs with at least this label are positives
_MOST_PAIRS = 4096  # compared with each other


_Kind = Literal["similarity", "cosine distance", "distance"]


def pair_loss(
    loss: Any, attribute: str = "similarity_fct", reads_argument: bool = False, kind: _Kind = "similarity"
) -> LossReader:
    """Return the reader of a loss of pairs: similarities s of positives and negatives, dL/ds, share of active pairs.

    s is the similarity of the loss: the cosine, 1 − d of a cosine distance, −d of any other distance d.

    Args:
        loss: to read.
        attribute: of the loss; computes similarities or distances.
        reads_argument: whether they are its argument; else its result.
        kind: what it computes.
    """
    return LossReader(loss, partial(_observed, type(loss).__name__, kind), attribute, reads_argument)


def distance_loss(loss: Any) -> LossReader:
    """Return the reader of a loss of distances, ContrastiveLoss or OnlineContrastiveLoss."""
    metric = str(loss.get_config_dict().get("distance_metric", ""))
    kind: _Kind = "cosine distance" if metric.endswith("COSINE_DISTANCE") else "distance"
    return pair_loss(loss, "distance_metric", kind=kind)


def _observed(name: str, kind: _Kind, call: LossCall) -> Observed:
    if len(call.calls) != 1:
        raise InputError(f"{name} must compute similarities once; got {len(call.calls)} times")
    similarity = call.calls[0]
    with torch.inference_mode(False):
        (W,) = gradients_of(call.value, [similarity])
        s, W = similarity.result.detach().float(), W.float()
        if kind.endswith("distance"):
            s, W = (1 - s if kind.startswith("cosine") else -s), -W
        numbers = pair_statistics(s, W, labels_of_pairs(call, s))
    return Observed(None, call.sides, numbers=numbers)


def pair_statistics(s: Tensor, W: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Return statistics () of pairs: similarities, weights dL/ds, shares of active pairs, and the order of s.

    Args:
        s: (n,).
        W: (n,), dL/ds.
        labels: (n,) 1 or 0, or any degrees in between; a positive has at least ½.
    """
    positive, weight = labels >= _HALF, W.abs()
    groups = {"pos": positive, "neg": ~positive}
    first, their_labels = s[:_MOST_PAIRS], labels[:_MOST_PAIRS]
    above = their_labels[:, None] > their_labels[None, :]
    ordered = (first[:, None] > first[None, :]) & above
    return {
        "finite": (s.isfinite() & W.isfinite()).all(),
        **{f"pairs/n_{key}": group.sum() for key, group in groups.items()},
        **{f"pairs/s_{key}": _mean(s, group) for key, group in groups.items()},
        **{f"pairs/W_{key}": (weight * group).sum() for key, group in groups.items()},
        **{f"pairs/active_{key}": _mean((weight > 0).float(), group) for key, group in groups.items()},
        "pairs/N_eff": weight.sum().square() / weight.square().sum(),
        "pairs/in_order": ordered.sum() / above.sum(),
    }


def _mean(x: Tensor, group: Tensor) -> Tensor:
    return (x * group).sum() / group.sum()


def labels_of_pairs(call: LossCall, s: Tensor) -> Tensor:
    """Return the label of each similarity; further columns of an anchor get 1 − label, as in AnglELoss.

    Raises InputError where the numbers do not fit.
    """
    others = len(call.features) - 1  # columns beside the anchors
    if others < 1:
        raise InputError(f"a loss of pairs must have two columns or more; got {others + 1}")
    given = torch.ones(len(s) // others, device=s.device) if call.labels is None else call.labels
    labels = given.detach().reshape(-1).float()
    if others > 1:
        labels = torch.cat([labels, (1 - labels).repeat(others - 1)])
    if len(labels) != len(s):
        raise InputError(f"a loss of pairs must have a label for each of {len(s)} similarities; got {len(labels)}")
    return labels
