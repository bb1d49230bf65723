"""The statistics of a loss while any training loop runs: call `scope.watch(S)` once a step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.similarity import Mask
from lossscope.engine.one_batch import require_batch_probes
from lossscope.errors import InputError
from lossscope.io.files import write_atomically
from lossscope.io.trusted_code import trust
from lossscope.objectives.custom.as_objective import ObjectiveLike, as_objective
from lossscope.registry import build

from .batch_inputs import BatchInputs
from .batch_statistics import BatchStatistics
from .observed import Observed, Row
from .wrap import WatchedLoss

Sink = Callable[[int, Row], None]  # (step, row)
_NAN = float("nan")


@dataclass
class LossScope:
    """Statistics of every n-th batch, in each direction, for any training loop.

    Raises InputError for values out of range and probes that need gradients of layers, SpecError for invalid specs.

    >>> import torch
    >>> scope = LossScope("ntxent:tau=0.05", probes=("cocos",))
    >>> sorted(scope.watch(torch.eye(4)))[:3]
    ['finite', 'i2t/C_0', 'i2t/C_neg']
    >>> sorted(scope.watch(queries=torch.eye(4), documents=torch.eye(4)))[-2:]
    ['q2d/W_pos', 'q2d/skipped']
    """

    # whose weights W are analysed: a spec, an objective, or your own function or module; None: the loss itself that
    # `wrap` or the callback of a trainer watches
    objective: ObjectiveLike | None = None
    probes: Sequence[str] = ("similarity", "cocos")  # specs; all but those that need gradients of layers
    every: int = 1  # run the probes on steps whose number is a multiple of this
    keep: int = 10_000  # newest rows that `history` keeps; 0: none
    sink: Sink | None = None  # called with the step and its row, to log it elsewhere
    # names of the sides that directions are named after: ("query", "document"), or "item" of one set; None: they follow
    # from what is watched, images and captions where that is S alone
    sides: Sides | Sequence[str] | str | None = None
    history: deque[Row] = field(init=False, repr=False)  # a row for each watched step, with its number
    calls: int = field(default=0, init=False)  # number of calls of `watch`

    def __post_init__(self) -> None:
        if not (isinstance(self.every, int) and self.every >= 1 and isinstance(self.keep, int) and self.keep >= 0):
            got = f"{self.every!r} and {self.keep!r}"
            raise InputError(f"every must be at least 1 and keep at least 0; got {got}. Give whole numbers")
        if not isinstance(self.probes, list | tuple) or not self.probes:
            raise InputError(f'probes must be specs, as ("cocos:eps=0.1",); got {self.probes!r}')
        self._sides = as_sides(self.sides)
        typed = [one for one in (self.objective, *self.probes) if isinstance(one, str)]
        with trust(typed):
            self._objective = None if self.objective is None else as_objective(self.objective)
            probes = tuple(dict.fromkeys(build("probes", spec) for spec in self.probes))
        require_batch_probes(probes)
        self._statistics = BatchStatistics(probes)
        self._columns: dict[str, None] = {}  # of all rows so far
        if self._objective is not None:
            self._statistics.plan(self._objective, self._sides or IMAGE_TEXT)
        self.history = deque(maxlen=self.keep)

    def watch(
        self,
        S: Tensor | None = None,
        mask: Mask | None = None,
        *,
        images: Tensor | None = None,
        captions: Tensor | None = None,
        queries: Tensor | None = None,
        documents: Tensor | None = None,
        negatives: Tensor | None = None,
        embeddings: Tensor | None = None,
        labels: Tensor | None = None,
        offset: int | None = None,
        S_second: Tensor | None = None,
        step: int | None = None,
    ) -> Row | None:
        """Return the statistics of this step and append them to `history`; None on steps that `every` skips.

        Nothing is modified and no graph is kept; one transfer to the host. Where S or an embedding is not finite,
        `finite` is 0 and the statistics are NaN.

        Args:
            S: (images, captions) similarities of any float type on any device, or those of other sides; without a mask
                (b, b) of pairs, pair i on the diagonal.
            mask: of the direction i2t: rows of S are queries.
            images: (n, d) embeddings, in place of S, whose cosine is then used; or beside S, for probes that read them.
            captions: (m, d) embeddings, given together with `images`.
            queries: (b, d) embeddings of the first side, where that is not images; directions are q2d and d2q.
            documents: (b, d) embeddings of the second side; or (b (1 + k), d), mined negatives behind the positives.
            negatives: (b, k, d) embeddings of the mined negatives of each query, in place of those further rows.
            embeddings: (n, d) of one set of items, where each is a query and all others are its candidates.
            labels: (n,) class of each item of one set; items of one class match.
            offset: row i of S matches column offset + i: S of one process (b, B) with the candidates of all.
            S_second: (b, B) similarities of the second side's rows, which are then not S transposed.
            step: its number; None: the number of earlier calls.

        Raises:
            InputError: shapes that do not fit, arguments that do not go together, or a mask of t2i.
        """
        number = self.next_step(step)
        if number is None:
            return None
        if self._objective is None:
            raise InputError(
                "LossScope must be given an objective to watch S or embeddings, such as LossScope('ntxent:tau=0.05'); "
                "without one it watches a loss: scope.wrap(loss), or the callback of a trainer"
            )
        inputs = BatchInputs(
            S, mask, images, captions, queries, documents, negatives, embeddings, labels, S_second, offset
        )
        return self.record([inputs.observed(self._sides)], number)

    def wrap(self, loss: Callable[..., Any]) -> WatchedLoss:
        """Return the loss as a module that computes the same, bit for bit, and is watched in every training call.

        Without an objective, W is that of the loss itself: computed by autograd in the graph of the step.

        Args:
            loss: a loss of pytorch-metric-learning, open_clip or sentence-transformers, or any function or module of S
                or of two batches of embeddings.

        Raises:
            InputError: a loss of single items or of proxies, which has no similarities between items.
        """
        return WatchedLoss(loss, self, self._objective, self._sides)

    @property
    def named_sides(self) -> Sides | None:
        """The sides that are named; None where they follow from what is watched."""
        return self._sides

    def next_step(self, step: int | None = None) -> int | None:
        """Return the number of a step that is watched; None where `every` skips it.

        Args:
            step: its number; None: the number of earlier calls.
        """
        number = self.calls if step is None else step
        self.calls += 1
        return None if number % self.every else number

    def record(self, observed: Sequence[Observed], step: int) -> Row:
        """Return the statistics of what losses saw in a step, and append them to `history`."""
        row: Row = {"finite": 1.0}
        for one in observed:
            finite, statistics = self._statistics.of(one, self._objective)
            row["finite"] = min(row["finite"], float(finite))
            row |= {one.column(name): value if finite else _NAN for name, value in statistics.items()}
        self._columns |= dict.fromkeys(name for name in row if name != "finite")
        self.history.append({"step": step, **row})
        if self.sink is not None:
            self.sink(step, row)
        return row

    def frame(self) -> pd.DataFrame:
        """Return `history` as a frame: step, finite (1 or 0), and a column for each statistic and direction."""
        columns: Sequence[str] = tuple(self._columns)
        if not columns and self._objective is not None:
            columns = self._statistics.plan(self._objective, self._sides or IMAGE_TEXT).columns
        return pd.DataFrame(list(self.history), columns=["step", "finite", *columns])

    def save(self, path: Path | str) -> Path:
        """Write `frame()` atomically. Raises InputError unless the name ends in .csv or .parquet."""
        path, frame = Path(path), self.frame()
        if path.suffix not in (".csv", ".parquet"):
            raise InputError(f"history must be saved as .csv or .parquet; got {path.name!r}")
        with write_atomically(path) as part:
            if path.suffix == ".csv":
                frame.to_csv(part, index=False, lineterminator="\n")
            else:
                frame.to_parquet(part, index=False, write_page_checksum=True)
        return path


def as_sides(sides: Sides | Sequence[str] | str | None) -> Sides | None:
    """Return sides as they are, or those of ("query", "document"), "query/document", or "item" of one set."""
    if sides is None or isinstance(sides, Sides):
        return sides
    return Sides.parse(sides) if isinstance(sides, str) else Sides.parse("/".join(sides))
