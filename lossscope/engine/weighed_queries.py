"""How much gradient does each query have, and which of its negatives carry it?"""

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

Columns = dict[str, npt.NDArray[Any]]  # name -> (r,) a value per query, or (r, K) values
NEGATIVES = 5  # K, number of heaviest negatives of a query


@dataclass(frozen=True, eq=False)
class WeighedQueries:
    """The n queries that have a positive and a negative, with the weights that the objective's paper counts.

    w = Σ of the counted weights of a negative over the query's positives / the divisor of counts; sums are in float64.
    weight = Σ w + the counted weight of the positive.
    """

    batch: Rows  # (n,) number of the batch
    batch_row: Rows  # (n,) row in the S of the batch; a batch may have a query twice
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
            convention: how to count weights.
            unit: of weights.
        """
        rows, counted = view.rows, view.counted_weights(convention, unit)
        usable = (~counted.skipped).nonzero()[:, 0]
        w = (counted.weights[usable].double().sum(1) / counted.divisor[usable].double()[:, None]).cpu()
        index = usable.cpu()
        return cls(
            batch[index.numpy()],
            batch_row[index.numpy()],
            rows.shape.query_ids[index].numpy(),
            w.sum(1).numpy(),
            counted.positive[usable].double().cpu().numpy(),
            rows.extremes.positive[usable].double().cpu().numpy(),
            w,
            rows.S[usable].cpu(),
            rows.shape.candidate_ids[index // rows.shape.queries],
        )

    def __len__(self) -> int:
        return len(self.query)

    @property
    def weight(self) -> Floats:
        """(n,) weight of the negatives and of the positive."""
        return self.negatives + self.positive

    def columns(self, query_index: Rows, number: int = NEGATIVES) -> Columns:
        """Return columns of queries, (r,), and of their heaviest negatives, (r, K).

        Of negatives with equal weights the most similar comes first, then the lower row.

        Args:
            query_index: (r,) indices among the n queries.
            number: K.
        """
        index = torch.from_numpy(query_index)
        w, S, candidates = self._w[index], self._S[index], self._candidates[index]
        order = candidates.argsort(dim=1, stable=True)
        for keys in (S, w):
            order = order.gather(1, keys.gather(1, order).argsort(dim=1, descending=True, stable=True))
        w, heaviest = w.gather(1, order), order[:, :number]
        w, lighter = w[:, :number], w[:, number:]
        equal = (lighter == w[:, -1:]) & (lighter > 0)
        return {
            "batch": self.batch[query_index],
            "batch_row": self.batch_row[query_index],
            "query": self.query[query_index],
            "weight": self.weight[query_index],
            "weight_negatives": self.negatives[query_index],
            "weight_positive": self.positive[query_index],
            "positive_similarity": self.positive_similarity[query_index],
            "as_heavy": equal.sum(1).numpy(),  # further negatives with the weight of the last listed negative
            "candidate": candidates.gather(1, heaviest).numpy(),
            "negative_weight": w.numpy(),
            "similarity": S.gather(1, heaviest).double().numpy(),
        }


def take(columns: Columns, index: Rows) -> Columns:
    """Return the columns of the queries in `index`."""
    return {name: values[index] for name, values in columns.items()}


def concatenate(first: Columns, second: Columns) -> Columns:
    """Return the queries of both; the shorter lists of negatives are padded with weight 0."""
    return {name: np.concatenate(_same_width(first[name], second[name])) for name in first}


def _same_width(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    if first.ndim == 1:
        return [first, second]
    width = max(first.shape[1], second.shape[1])
    return [np.pad(values, ((0, 0), (0, width - values.shape[1]))) for values in (first, second)]


def first_queries(weight: Floats, query: Rows, number: int) -> Rows:
    """Return the indices of the `number` queries of least weight, each once; of ties the lower row comes first.

    Args:
        weight: (n,).
        query: (n,) rows; a repeated query stands where its weight is least.
        number: of queries.
    """
    order = np.lexsort((query, weight))  # stable
    _, first = np.unique(query[order], return_index=True)
    return order[np.sort(first)[:number]]


def rows_of_negatives(columns: Columns) -> pd.DataFrame:
    """Return a row for each query and negative with weight, `rank` 1 the heaviest; a row of rank 0 if none has any."""
    import pandas as pd  # only here: `watch` needs no frames

    w = columns["negative_weight"]
    has_weight = w > 0
    kept = has_weight.copy()
    kept[:, 0] |= ~has_weight.any(1)
    row, slot = kept.nonzero()
    weighs = has_weight[row, slot]
    of_query = {name: values[row] for name, values in columns.items() if values.ndim == 1}
    with np.errstate(invalid="ignore", divide="ignore"):
        of_negative = {
            "candidate": pd.Series(columns["candidate"][row, slot], dtype="Int64"),
            "negative_weight": pd.Series(w[row, slot]),
            "share": pd.Series(w[row, slot] / columns["weight_negatives"][row]),
            "similarity": pd.Series(columns["similarity"][row, slot]),
        }
    of_negative = {name: values.where(weighs) for name, values in of_negative.items()}
    return pd.DataFrame({**of_query, "rank": np.where(weighs, slot + 1, 0), **of_negative})
