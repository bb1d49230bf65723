"""A training's log under the names of the field, whatever its trainer calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import pandas as pd

STEP_COLUMNS = (
    "loss",
    "lr",
    "grad_norm",
    "logit_scale",
    "logit_bias",
    "positive",
    "hardest_negative",
    "train_recall",
    "counted_negatives",
)
"""Columns of a training step: positive and hardest_negative are mean similarities, train_recall a recall of batches,
counted_negatives the mean number of negatives of a query whose weight is counted, C_neg."""
EVALUATION_COLUMNS = ("val_loss", "val_recall", "val_recall_first", "val_recall_second", "val_train_recall")
"""Columns of an evaluation: val_recall of either or both directions, _first and _second of one direction each (image to
text, query to document; and back), val_train_recall of the training split, evaluated in the same way."""


@dataclass(frozen=True)
class TrainingLog:
    """The log of a trainer, in the order of its steps."""

    absent: ClassVar[str] = "it has no log; --log names one"
    need: ClassVar[str] = "a training log (--log)"
    name: str  # of the file, for messages
    steps: pd.DataFrame  # step, and the known STEP_COLUMNS; float64, NaN where a row lacks a number; may be empty
    evaluations: pd.DataFrame  # step, and the known EVALUATION_COLUMNS
    columns: Mapping[str, str] = field(default_factory=dict)  # name of the field -> name in the file
    objective: str | None = None  # spec of the training, where the log names it
    batch_size: int | None = None  # pairs of a step, where the log has it
    notices: tuple[str, ...] = ()  # what was assumed
    pairs_are_candidates: bool = True  # False: a query may have more candidates than a step has pairs;
    # a trainer's file counts neither the mined negatives of a row nor the pairs of other devices
    scores: pd.DataFrame = field(
        default_factory=pd.DataFrame
    )  # step, and all evaluated numbers under their names in the file

    is_of_batches: bool = False  # whether the loss is computed from the batches alone, without a queue

    @property
    def candidates(self) -> int | None:
        """Candidates of a query, where the log tells."""
        return self.batch_size if self.pairs_are_candidates else None

    @property
    def has_loss(self) -> bool:
        """Whether a step has a loss, even NaN; files of evaluators have none."""
        return len(self.steps) > 0
