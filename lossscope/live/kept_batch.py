"""The newest batch of a running loop: which of its queries have the most gradient, and from which negatives?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from lossscope.core.sides import Sides
from lossscope.core.types import Rows
from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.weighed_queries import WeighedQueries, first_queries, rows_of_negatives
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .batch_statistics import BatchStatistics
from .observed import MOST_ENTRIES, Observed
from .recorded_step import Names, names_of
from .watched_step import BothIds

_COLUMNS = (
    "step", "direction", "list", "query", "query_id", "weight", "weight_negatives", "weight_positive",
    "positive_similarity", "as_heavy", "rank", "candidate", "candidate_id", "negative_weight", "share", "similarity",
)  # fmt: skip


@dataclass(frozen=True)
class KeptBatch:
    """A copy of the rows of S of a batch, if it has at most MOST_ENTRIES similarities."""

    step: int
    batch: Observed | None
    objective: Objective | None  # None: that of the batch
    names: Names
    finite: bool  # whether its similarities and embeddings are finite

    @classmethod
    def of(cls, step: int, batch: Observed, objective: Objective | None, ids: BothIds, finite: bool) -> KeptBatch:
        """Copy a batch, as the loop may change it later. Raises InputError unless there is an id for each item."""
        if batch.drawn_from is not None or batch.first.S.numel() > MOST_ENTRIES:
            return cls(step, None, objective, (None, None), finite)
        second = None if batch.second is None else _copy(batch.second)
        return cls(
            step, replace(batch, rows=_copy(batch.first), second=second), objective, names_of(batch, ids), finite
        )

    def heaviest(self, statistics: BatchStatistics, number: int) -> pd.DataFrame:
        """Return the rows that `LossScope.heaviest` documents.

        Args:
            statistics: of the scope.
            number: of queries of each list.
        """
        if self.batch is None:
            raise InputError(
                f"heaviest reads batches of at most {MOST_ENTRIES:,} similarities; that of step {self.step} had more. "
                "Call lossscope.diagnose or lossscope cocos --show on a dump of it"
            )
        if not self.finite:
            raise InputError(f"heaviest must be given finite similarities; those of step {self.step} are not")
        parts = [
            self._rows(direction, rows, sign, name, number)
            for direction, rows in statistics.weighed(self.batch, self.objective).items()
            for name, sign in (("most", -1.0), ("least", 1.0))
        ]
        return pd.concat(parts, ignore_index=True)

    def _rows(self, direction: str, rows: WeighedQueries, sign: float, name: str, number: int) -> pd.DataFrame:
        """Return the rows of one list.

        Args:
            direction: its name.
            rows: all queries of it.
            sign: -1 for the list with the most weight.
            name: of the list.
            number: of queries.
        """
        assert self.batch is not None
        listed = rows_of_negatives(rows.columns(first_queries(sign * rows.weight, rows.query, number)))
        queries, candidates = self._names(direction, self.batch.sides)
        ids: dict[str, Any] = {
            "query_id": _named(queries, listed["query"].to_numpy()),
            "candidate_id": _named(candidates, listed["candidate"].fillna(-1).to_numpy(np.int64)),
        }
        return listed.assign(step=self.step, direction=direction, list=name, **ids)[list(_COLUMNS)]

    def _names(self, direction: str, sides: Sides) -> Names:
        """Return the ids of queries and of candidates."""
        first, second = self.names
        if sides.is_one_set:
            return first, first
        return (second, first) if direction == sides.label("t2i") else (first, second)


def _named(ids: Sequence[str] | None, rows: Rows) -> list[str | None]:
    """Return the ids of rows; None for unknown ids and for row -1."""
    return [None if ids is None or row < 0 else ids[row] for row in rows.tolist()]


def _copy(rows: DirectionRows) -> DirectionRows:
    return replace(rows.detach(), S=rows.S.detach().clone())
