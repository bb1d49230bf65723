"""Planted cases, and the healthy vectors and curves that cases plant a disease in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Size:
    """The size of a case."""

    n: int = 600  # pairs
    d: int = 64
    batch: int = 64
    seed: int = 0

    @property
    def rng(self) -> np.random.Generator:
        """Return the generator of the case."""
        return np.random.default_rng([self.seed, self.n, self.d])


SIZES = (Size(), Size(2000, 16, 32, 1), Size(1500, 256, 512, 2), Size(1200, 1024, 128, 3), Size(4500, 128, 1024, 4))


@dataclass(frozen=True)
class Case:
    """The inputs of the doctor."""

    sources: Sequence[Any] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


Plant = Callable[[Size, Path], Case]


def unit(x: Floats) -> Floats:
    """Return rows of unit length."""
    lengths: Floats = np.linalg.norm(x, axis=1, keepdims=True)
    return x / lengths


def aligned(size: Size, noise: float = 0.7, decay: float = 0.5) -> tuple[Floats, Floats]:
    """Return both sides of a model that works: a latent of falling spectrum, seen twice with noise.

    Args:
        size: of the case.
        noise: length of the noise of each side over that of the latent.
        decay: power at which the standard deviation of the latent falls over its dimensions.
    """
    rng = np.random.default_rng([size.seed, size.n, size.d, 1])  # not the generator of the disease
    scale = np.arange(1, size.d + 1.0) ** -decay
    latent = rng.normal(size=(size.n, size.d)) * scale
    length = float(np.sqrt(np.square(scale).sum()))
    sides = [unit(latent + noise * length / math.sqrt(size.d) * rng.normal(size=latent.shape)) for _ in range(2)]
    return sides[0], sides[1]


def dump(folder: Path, name: str = "dump.npz", **arrays: Any) -> str:
    """Write a dump; return its path."""
    path = folder / name
    np.savez(path, **{key: _narrow(value) for key, value in arrays.items()})
    return str(path)


def _narrow(value: Any) -> Any:
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def pairs(folder: Path, first: Floats, second: Floats, name: str = "dump.npz", **arrays: Any) -> str:
    """Write a dump of pairs, row i of both sides; return its path."""
    owner = np.arange(len(second))
    return dump(folder, name, images=first, captions=second, caption_image=owner, **arrays)


def healthy_dump(size: Size, folder: Path, **options: Any) -> Case:
    """Write a dump of a model that works."""
    return Case((pairs(folder, *aligned(size), name="healthy.npz"),), {"batch_size": size.batch, **options})


def curve(size: Size, start: float, end: float, steps: int = 400, noise: float = 0.03) -> Floats:
    """Return a loss that falls from its start to its end, with noise."""
    t = np.arange(steps) / steps
    clean = end + (start - end) * np.exp(-6 * t)
    return clean * (1 + noise * size.rng.normal(size=steps))


def log(folder: Path, name: str = "train.csv", validation: Mapping[str, Any] | None = None, **columns: Any) -> str:
    """Write a log with a row a step; return its path.

    Args:
        folder: to write in.
        name: of the file.
        validation: columns of evaluations, spread evenly over the steps.
        columns: of the steps.
    """
    frame = pd.DataFrame({"step": np.arange(1, len(columns["loss"]) + 1), **columns})
    for column, values in (validation or {}).items():
        frame[column] = np.nan
        rows = np.linspace(len(frame) // len(values), len(frame), len(values)).astype(int) - 1
        frame.loc[rows, column] = values
    path = folder / name
    frame.to_csv(path, index=False)
    return str(path)


def healthy_log(size: Size, folder: Path, **columns: Any) -> Case:
    """Write the log of a training that works."""
    start = math.log(size.batch)
    path = log(folder, "healthy.csv", loss=curve(size, start, 0.2 * start), **columns)
    return Case((), {"log": path, "batch_size": size.batch, "objective": "ntxent:tau=0.07"})
