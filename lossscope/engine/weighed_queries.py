"""How much gradient does each query of some rows of S have, and which of its negatives carry it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.intervals import Floats
from lossscope.core.types import Convention, Rows, WeightUnit
from lossscope.probes.views.view import View

if TYPE_CHECKING:
    import pandas as pd

Columns = dict[str, npt.NDArray[Any]]  # name -> an entry of each query, or K of each
NEGATIVES = 5  # K, the heaviest negatives of a query that are kept


@dataclass(frozen=True, eq=False)
class WeighedQueries:
    """The n queries that have a positive and a negative, with the weights that the objective's paper counts.

    w = Σ of the counted weights of a negative over the query's positives / the number that counts are divided by; sums
    are in float64. weight = Σ w + the counted weight of the positive.
    """

    batch: Rows  # (n,) number of the batch
    batch_row: Rows  # (n,) row in the S of the batch, which may have a query twice
    query: Rows  # (n,) row in the split
    negatives: Floats  # (n,) Σ w
    positive: Floats  # (n,) counted weight of the positive
    positive_similarity: Floats  # (n,) of the best positive
    _w: Tensor  # (n, c) float64
    _S: Tensor  # (n, c)
    _candidates: Tensor  # (n, c) rows in the split

    @classmethod
    def of(cls, view: View, batch: Rows, batch_row: Rows, convention: Convention, unit: WeightUnit) -> WeighedQueries:
        """Weigh the queries of a view.

        Args:
            view: whole rows of S under an objective.
            batch: (k·q,) number of the batch of each query.
            batch_row: (k·q,) row of each query in the S of its batch.
            convention: how weights are counted.
            unit: of weights.
        """
        rows, counted = view.rows, view.counted_weights(convention, unit)
        usable = (~counted.skipped).nonzero()[:, 0]
        w = (counted.weights[usable].double().sum(1) / counted.divisor[usable].double()[:, None]).cpu()
        places = usable.cpu()
        return cls(
            batch[places.numpy()],
            batch_row[places.numpy()],
            rows.shape.query_ids[places].numpy(),
            w.sum(1).numpy(),
            counted.positive[usable].double().cpu().numpy(),
            rows.extremes.positive[usable].double().cpu().numpy(),
            w,
            rows.S[usable].cpu(),
            rows.shape.candidate_ids[places // rows.shape.queries],
        )

    def __len__(self) -> int:
        return len(self.query)

    @property
    def weight(self) -> Floats:
        """(n,) weight of the negatives and of the positive."""
        return self.negatives + self.positive

    def columns(self, places: Rows, number: int = NEGATIVES) -> Columns:
        """Return what is known of some queries, (r,), and their heaviest negatives, (r, K); ties: the lower row first.

        Args:
            places: (r,) of queries among the n.
            number: K.
        """
        index = torch.from_numpy(places)
        candidates, by_row = self._candidates[index].sort(dim=1, stable=True)
        w, heaviest = self._w[index].gather(1, by_row).sort(dim=1, descending=True, stable=True)
        w, heaviest, lighter = w[:, :number], heaviest[:, :number], w[:, number:]
        equal = (lighter == w[:, -1:]) & (lighter > 0)
        return {
            "batch": self.batch[places],
            "batch_row": self.batch_row[places],
            "query": self.query[places],
            "weight": self.weight[places],
            "weight_negatives": self.negatives[places],
            "weight_positive": self.positive[places],
            "positive_similarity": self.positive_similarity[places],
            "as_heavy": equal.sum(1).numpy(),  # further negatives, of the weight of the last one that is listed
            "candidate": candidates.gather(1, heaviest).numpy(),
            "negative_weight": w.numpy(),
            "similarity": self._S[index].gather(1, by_row).gather(1, heaviest).double().numpy(),
        }


def take(columns: Columns, places: Rows) -> Columns:
    """Return some queries."""
    return {name: values[places] for name, values in columns.items()}


def concatenate(first: Columns, second: Columns) -> Columns:
    """Return the queries of both, with as many negatives as those that have more; those that are lacking weigh 0."""
    return {name: np.concatenate(_same_width(first[name], second[name])) for name in first}


def _same_width(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    if first.ndim == 1:
        return [first, second]
    width = max(first.shape[1], second.shape[1])
    return [np.pad(values, ((0, 0), (0, width - values.shape[1]))) for values in (first, second)]


def first_queries(weight: Floats, query: Rows, number: int) -> Rows:
    """Return the places of the `number` queries of least weight, each once; of ties the lower row first.

    Args:
        weight: (n,).
        query: (n,) rows; one that is there several times stands where its weight is least.
        number: of queries.
    """
    order = np.lexsort((query, weight))  # stable
    _, first = np.unique(query[order], return_index=True)
    return order[np.sort(first)[:number]]


def rows_of_negatives(columns: Columns) -> pd.DataFrame:
    """Return a row for each query and negative with weight, `rank` 1 the heaviest; one of rank 0 where none has any."""
    import pandas as pd  # not before, as a loop that is watched needs no frames

    w = columns["negative_weight"]
    has_weight = w > 0
    kept = has_weight.copy()
    kept[:, 0] |= ~has_weight.any(1)
    place, slot = kept.nonzero()
    weighs = has_weight[place, slot]
    of_query = {name: values[place] for name, values in columns.items() if values.ndim == 1}
    with np.errstate(invalid="ignore", divide="ignore"):
        of_negative = {
            "candidate": pd.Series(columns["candidate"][place, slot], dtype="Int64"),
            "negative_weight": pd.Series(w[place, slot]),
            "share": pd.Series(w[place, slot] / columns["weight_negatives"][place]),
            "similarity": pd.Series(columns["similarity"][place, slot]),
        }
    of_negative = {name: values.where(weighs) for name, values in of_negative.items()}
    return pd.DataFrame({**of_query, "rank": np.where(weighs, slot + 1, 0), **of_negative})
