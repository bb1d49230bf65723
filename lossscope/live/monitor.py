"""The hook for a training loop of one's own: `scope.watch(S)` once a step tells what the loss did in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, cosine, normalise
from lossscope.engine.one_batch import HALF, OneBatch, mask_of
from lossscope.errors import InputError
from lossscope.io.files import write_atomically
from lossscope.objectives.base import Objective
from lossscope.registry import build

Row = dict[str, float]
Sink = Callable[[int, Row], None]
_NAN = float("nan")


@dataclass
class LossScope:
    """Statistics of every `every`-th batch, both directions, whatever trains on it.

    objective: what W is asked of; a spec, or the objective itself. probes: specs; those that need gradients of layers
    are refused. every: steps whose number is a multiple of it are looked at. keep: rows of `history`,
    the oldest go first; 0 keeps none. sink: called with the step and its row, to log it elsewhere.
    Raises InputError for values out of range, SpecError for specs that are none.

    >>> scope = LossScope("ntxent:tau=0.05", probes=("cocos",))
    >>> sorted(scope.watch(torch.eye(4)))[:3]
    ['finite', 'i2t/C_0', 'i2t/C_neg']
    """

    objective: str | Objective
    probes: Sequence[str] = ("similarity", "cocos")
    every: int = 1
    keep: int = 10_000
    sink: Sink | None = None
    history: deque[Row] = field(init=False, repr=False)
    calls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.every < 1 or self.keep < 0:
            raise InputError(f"every must be at least 1 and keep at least 0; got {self.every} and {self.keep}")
        if isinstance(self.probes, str) or not self.probes:
            raise InputError(f'probes must be specs, as ("cocos:eps=0.1",); got {self.probes!r}')
        objective = build("objectives", self.objective) if isinstance(self.objective, str) else self.objective
        self._glance = OneBatch(objective, tuple(dict.fromkeys(build("probes", spec) for spec in self.probes)))
        self.history = deque(maxlen=self.keep)

    def watch(
        self,
        S: Tensor | None = None,
        mask: Mask | None = None,
        *,
        images: Tensor | None = None,
        captions: Tensor | None = None,
        step: int | None = None,
    ) -> Row | None:
        """The row of this step, also kept in `history`; None where `every` leaves the step out.

        S: (images, captions) similarities of any float type, on any device; without a mask (b, b) of pairs, pair i on
        the diagonal. mask: of the direction i2t. images (n, d), captions (m, d): embeddings in place of S, or beside it
        for probes that look at them; their S is the cosine. step: its number, else how often watch was called before.
        Nothing is changed, no graph is kept; S or embeddings that are not finite give `finite` 0 and NaN. One transfer
        to the host. Raises InputError for shapes that do not fit, and for a mask of t2i.
        """
        number = self.calls if step is None else step
        self.calls += 1
        if number % self.every:
            return None
        S, images, captions = self._given(S, images, captions)
        finite, values = self._glance(S, mask_of(S, mask), images, captions)
        return self._noted(number, finite, values)

    def frame(self) -> pd.DataFrame:
        """`history` as a frame: step, finite (1 or 0), and a column per statistic and direction."""
        return pd.DataFrame(list(self.history), columns=["step", "finite", *self._glance.columns])

    def save(self, path: Path | str) -> Path:
        """Write `frame()`, whole or not at all. Raises InputError unless the name ends in .csv or .parquet."""
        path, frame = Path(path), self.frame()
        if path.suffix not in (".csv", ".parquet"):
            raise InputError(f"history must be saved as .csv or .parquet; got {path.name!r}")
        with write_atomically(path) as part:
            if path.suffix == ".csv":
                frame.to_csv(part, index=False, lineterminator="\n")
            else:
                frame.to_parquet(part, index=False)
        return path

    def _given(
        self, S: Tensor | None, images: Tensor | None, captions: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """S, and embeddings where they are given, of unit length. Raises InputError for too little, or what differs."""
        if images is None or captions is None:
            if images is not captions:
                raise InputError("images and captions must be given together; got one of them")
            if S is None:
                raise InputError("watch must be given S, or images and captions; got neither")
            return S, None, None
        images, captions, found = _compared(images, captions)
        if S is not None and S.shape != found.shape:
            raise InputError(f"S must be of its images and captions, {tuple(found.shape)}; got {tuple(S.shape)}")
        return found if S is None else S, images, captions

    def _noted(self, step: int, finite: bool, values: list[float]) -> Row:
        row: Row = {"finite": float(finite)}
        row |= {name: value if finite else _NAN for name, value in zip(self._glance.columns, values, strict=True)}
        self.history.append({"step": step, **row})
        if self.sink is not None:
            self.sink(step, row)
        return row


def _compared(images: Tensor, captions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of unit length, detached, in float32 at least, and their S."""
    with torch.inference_mode(False), torch.no_grad(), torch.autocast(images.device.type, enabled=False):
        wide = [x.float() if x.dtype in HALF else x for x in (images.detach(), captions.detach())]
        V, T = normalise(wide[0]), normalise(wide[1])
        return V, T, cosine(V, T)
