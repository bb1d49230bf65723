"""Draw pairs of two sides, and train two small encoders, with faults that such a training can have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .base import Arrays, Item, csv_log
from .world import Trained, encoder, latents, look, softmax_loss, train, unit


@dataclass(frozen=True)
class Setup:
    """The options of pairs and of the training of their encoders; the lower half are faults."""

    name: str
    n: int = 600  # pairs of the evaluation; the training has as many others, at least 2,000
    d: int = 64
    batch: int = 64
    seed: int = 0
    noise: float = 0.3
    rank: int = 24  # of the latents
    groups: int = 0
    steps: int = 240
    lr: float = 2e-3
    tau: float = 0.1
    shared: bool = False  # whether one encoder sees both sides
    distractors: int = 0  # documents without a query, beside those of the evaluation
    two_loaders: bool = False  # whether the sides of a training batch are shuffled independently
    hardest: bool = False  # whether the loss is a triplet loss of the hardest negative, without a warm-up
    order: str = "right"  # of the second side in the dump: right, shifted, groups, share
    share: float = 0.15  # of wrong pairs, in the data of training and in the dump
    bottleneck: int = 0  # rank of the encoders' last layer
    constant: bool = False  # whether the second encoder reads the same record for all items
    blank: float = 0.0  # share of the inputs of the second side that are zeros
    plain: bool = False  # SGD
    planted: tuple[str, ...] = ()


@dataclass
class Pairs:
    """Inputs of both sides, and their encoders."""

    setup: Setup

    def __post_init__(self) -> None:
        s = self.setup
        torch.manual_seed(s.seed)
        self.rng = np.random.default_rng([s.seed, s.n, s.d])
        self.trained_pairs = max(s.n, 2000)
        z, group = latents(self.trained_pairs + s.n + s.distractors, s.rank, self.rng, s.groups)
        sides = 0 if s.shared else 1
        self.X, self.Y = look(z, s.noise, 0, s.seed, 1), look(z, s.noise, sides, s.seed, 2)
        if s.constant:
            self.Y = self.Y[:1] + 0 * self.Y
        if s.blank:
            self.Y[torch.from_numpy(self.rng.random(len(z)) < s.blank)] = 0.0
        self.group = group
        self.f = encoder(s.d, s.bottleneck)
        self.g = self.f if s.shared else encoder(s.d, s.bottleneck)
        order = "share" if s.order == "share" else "right"  # wrong pairs are in the data, other orders in the file
        self.partner = self._partners(np.arange(self.trained_pairs), order)
        self.evaluated = np.arange(self.trained_pairs, self.trained_pairs + s.n)
        self.candidates = self._partners(self.evaluated, s.order)

    def _partners(self, rows: np.ndarray, order: str) -> np.ndarray:
        """Return the row of the second side that the dump has beside each row of the first."""
        if order == "shifted":
            return np.roll(rows, -1)
        found = rows.copy()
        if order == "groups":
            for group in np.unique(self.group[rows]):
                of_group = np.flatnonzero(self.group[rows] == group)
                found[of_group] = rows[self.rng.permutation(of_group)]
        if order == "share":
            wrong = np.flatnonzero(self.rng.random(len(rows)) < self.setup.share)
            found[wrong] = rows[np.roll(wrong, 1)]
        return found

    @property
    def parameters(self) -> list[Tensor]:
        """Return the parameters of both encoders, each once."""
        both = [*self.f.parameters(), *([] if self.g is self.f else self.g.parameters())]
        return list(both)

    def draw(self) -> np.ndarray:
        """Return rows of a batch."""
        return self.rng.choice(self.trained_pairs, self.setup.batch, replace=False)

    def encode(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return embeddings of both sides of a batch."""
        others = self.partner[self.rng.permutation(rows) if self.setup.two_loaders else rows]
        return unit(self.f(self.X[rows])), unit(self.g(self.Y[others]))

    def dump(self) -> dict[str, np.ndarray]:
        """Return the dump of an evaluation: queries, and documents with distractors after the partners."""
        s = self.setup
        first = unit(self.f(self.X[self.evaluated])).numpy()
        others = np.arange(self.trained_pairs + s.n, self.trained_pairs + s.n + s.distractors)
        second = unit(self.g(self.Y[np.concatenate([self.candidates, others])])).numpy()
        arrays = {"queries": first, "documents": second}
        if s.distractors:
            arrays["positives"] = np.stack([np.arange(s.n)] * 2, 1)
        return arrays

    def train(self, loss: Callable[[int], Tensor], take: Callable[[], Arrays] | None = None) -> Trained:
        """Train, and take a dump at half of the steps and at the end."""
        s = self.setup
        loss = self.hardest if s.hardest else loss
        return train(self.parameters, loss, s.steps, s.lr, take or self.dump, (s.steps // 2, s.steps), s.plain)

    def hardest(self, _: int) -> Tensor:
        """Return the triplet loss of the hardest negative of a batch, margin 0.2."""
        x, y = self.encode(self.draw())
        S = x @ y.T
        negative = S.masked_fill(torch.eye(len(S), dtype=torch.bool), -torch.inf)
        return (0.2 + negative.amax(1) - S.diagonal()).relu().mean()

    def softmax(self, _: int) -> Tensor:
        """Return the usual loss of both directions of a batch."""
        x, y = self.encode(self.draw())
        return softmax_loss(x @ y.T, self.setup.tau)


def items_of(
    kind: str,
    setup: Setup,
    trained: Trained,
    options: dict[str, Any],
    parts: Sequence[str] = ("middle", "end", "log"),
    log_options: dict[str, Any] | None = None,
    **columns: Sequence[float],
) -> Iterator[Item]:
    """Yield the dumps of a training and its log.

    Args:
        kind: of the items.
        setup: of the training.
        trained: its result.
        options: of the doctor.
        parts: middle and end are dumps.
        log_options: of the doctor, for the log; None: the same.
        columns: of the log beside the loss.
    """
    half, end = sorted(trained.taken)
    common: dict[str, Any] = {"kind": kind, "planted": setup.planted, "batch": setup.batch, "seed": setup.seed}
    for part, step in (("middle", half), ("end", end)):
        if part in parts:
            losses = trained.losses[:step]
            yield Item(
                name=f"{setup.name}/{part}", dumps=(trained.taken[step],), options=options, losses=losses, **common
            )
    if "log" in parts:
        log = csv_log("train.csv", loss=trained.losses, **columns)
        asked = options if log_options is None else log_options
        yield Item(name=f"{setup.name}/log", log=log, options=asked, losses=trained.losses, **common)
