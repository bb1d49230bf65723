"""An item is a dump or a log of a training, with its planted fault and an independent count of its recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Arrays = Mapping[str, npt.NDArray[Any]]

TIMES_CHANCE = 10  # recall@1 of a healthy training over that of guessing, as in wall.toml
LOSS_FALLS_TO = 0.9  # its loss at the end over that at the start, as in wall.toml


@dataclass(frozen=True)
class Log:
    """A log file of a trainer."""

    file: str  # name
    text: str


@dataclass(frozen=True)
class Item:
    """A dump or a log to examine."""

    kind: str
    name: str
    planted: tuple[str, ...] = ()  # ids that are true of it, the planted fault first; empty: healthy
    dumps: Sequence[Arrays] = ()
    log: Log | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # of lossscope.doctor
    batch: int = 0
    seed: int = 0
    losses: Sequence[float] = ()  # of its training, up to the moment of the item

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of queries and dimensions of the first dump; 0 for a log alone."""
        if not self.dumps:
            return 0, 0
        rows = next(iter(self.dumps[0].values()))
        return len(rows), rows.shape[1]

    def recall(self) -> tuple[float, float] | None:
        """Return recall@1 of the first side and that of guessing; None for a log alone."""
        return recall_and_chance(self.dumps[0]) if self.dumps else None

    def illness(self) -> str:
        """Return why an item is not healthy by the rule, or an empty text. It reads no finding."""
        found = self.recall()
        if found is not None:
            recall, chance = found
            least = min(TIMES_CHANCE * chance, (1 + chance) / 2)
            if recall < least:
                return f"recall@1 is {recall:.3f}, and {least:.3f} is the least"
        if len(self.losses):
            start, end = loss_at_ends(self.losses)
            if end > LOSS_FALLS_TO * start:
                return f"the loss falls from {start:.3g} to {end:.3g} only"
        return ""

    def absence(self) -> str:
        """Return why the planted fault is absent, by independent counts; an empty text if it is present, or must be."""
        asked = {*self.planted}
        if not self.dumps or "non-finite" in asked:
            return ""
        recall, chance = recall_and_chance(self.dumps[0])
        if (
            asked & {"complete-collapse", "dead-tower", "no-learning", "misaligned-pairs"}
            and recall > 3 * chance + 0.01
        ):
            return f"recall@1 is {recall:.3f}, and {chance:.3f} by chance"
        second = list(self.dumps[0].values())[0 if "labels" in self.dumps[0] else 1]
        if self.planted[0] in ("complete-collapse", "dead-tower"):
            rows = unit(second)
            cosine = (np.square(rows.sum(0)).sum() - len(rows)) / (len(rows) * (len(rows) - 1))
            if cosine < 0.9:
                return f"the mean cosine is {cosine:.2f}"
        if "hubness" in asked:
            S = unit(next(iter(self.dumps[0].values()))) @ unit(second).T
            wins = [np.sort(np.bincount(x.argmax(1), minlength=x.shape[1]))[::-1] for x in (S, S.T)]
            share = max(counts[: max(len(counts) // 100, 1)].sum() / counts.sum() for counts in wins)
            if share < 0.3:
                return f"1 % of the candidates are the nearest of {share:.0%} of the queries"
        return ""

    def write(self, folder: Path) -> tuple[list[str], dict[str, Any]]:
        """Write its files; return sources and options of lossscope.doctor."""
        sources = []
        for number, arrays in enumerate(self.dumps):
            sources.append(str(folder / f"dump-{number}.npz"))
            np.savez(sources[-1], **dict[str, Any](arrays))
        options = dict(self.options)
        if self.log is not None:
            options["log"] = folder / self.log.file
            options["log"].write_text(self.log.text, encoding="utf-8")
        return sources, options


def loss_at_ends(losses: Sequence[float]) -> tuple[float, float]:
    """Return the mean losses of the first and the last twentieth of the steps."""
    few = max(len(losses) // 20, 1)
    return float(np.mean(losses[:few])), float(np.mean(losses[-few:]))


def unit(x: Floats) -> Floats:
    """Return rows of unit length."""
    rows: Floats = x / np.linalg.norm(x, axis=1, keepdims=True)
    return rows


def recall_and_chance(arrays: Arrays) -> tuple[float, float]:
    """Return recall@1 of the first side by cosines (any positive counts), and that of guessing."""
    if "labels" in arrays:
        rows, labels = np.nan_to_num(arrays["embeddings"]), arrays["labels"]
        is_positive = labels[:, None] == labels[None, :]
        np.fill_diagonal(is_positive, False)
        second = rows
    else:
        rows, second = (np.nan_to_num(arrays[name]) for name in list(arrays)[:2])
        is_positive = np.zeros((len(rows), len(second)), dtype=bool)
        pairs = arrays.get("positives", np.stack([np.arange(len(rows))] * 2, 1))
        is_positive[pairs[:, 0], pairs[:, 1]] = True
    lengths = [np.linalg.norm(x, axis=1, keepdims=True).clip(1e-12) for x in (rows, second)]
    S = (rows / lengths[0]) @ (second / lengths[1]).T
    if "labels" in arrays:
        np.fill_diagonal(S, -np.inf)
    asked = is_positive.any(1)
    nearest = S[asked].argmax(1)
    recall = is_positive[asked][np.arange(len(nearest)), nearest].mean()
    return float(recall), float(is_positive[asked].mean())


def csv_log(file: str = "train.csv", **columns: Sequence[float]) -> Log:
    """Return a table with a row a step; a shorter column holds evaluations, spread evenly over the steps."""
    steps = max(map(len, columns.values()))
    lines = [",".join(["step", *columns])]
    for step in range(steps):
        cells = [str(step + 1)]
        for values in columns.values():
            interval = steps // len(values)
            cells.append(f"{values[step // interval]:.6g}" if (step + 1) % interval == 0 else "")
        lines.append(",".join(cells))
    return Log(file, "\n".join(lines) + "\n")
