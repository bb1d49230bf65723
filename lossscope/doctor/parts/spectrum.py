"""Over how many directions are the embeddings of each side distributed, and how far do they point the same way?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.facts import Missing, TooLittle
from lossscope.core.sides import plural
from lossscope.core.singular_values import effective_rank, singular_values

from .items import Items
from .patient import Patient
from .vectors import draw_rows

_ROWS = 4096  # of a side that are looked at
LEAST = 16  # rows


@dataclass(frozen=True)
class SideSpectrum:
    """The distribution of one side's unit vectors."""

    name: str  # of the side, plural
    n: int  # rows that were looked at
    d: int
    mean_cosine: float  # of different items
    spread: float  # √d times the standard deviation of a coordinate, averaged: 1 of isotropic unit vectors
    values: npt.NDArray[np.float64]  # singular values of the centred rows, falling
    rank: float  # effective rank of the centred rows
    null: float  # effective rank of centred isotropic rows of the same n and d
    largest: int  # min(n − 1, d), and for labels the number of classes − 1 where that is less

    @property
    def used(self) -> float:
        """Share of the directions along which the rows spread by at least a thousandth of the widest one."""
        return float((self.values > 1e-3 * self.values[0]).mean()) if self.values[0] > 0 else 0.0

    @property
    def share(self) -> float:
        """Effective rank over its null; where there are fewer classes than directions, over their number."""
        return self.rank / min(self.null, self.largest)


@dataclass(frozen=True)
class Spectrum:
    """The spectra of both sides; one of one set."""

    sides: tuple[SideSpectrum, ...]
    needs: ClassVar[tuple[type, ...]] = (Items,)

    @classmethod
    def of(cls, _: Patient, items: Items) -> Spectrum:
        """Compute the spectra of a sample. Raises Missing where no embeddings are known."""
        split = items.split
        if split.images is None or split.captions is None:
            raise Missing("it has similarities and no embeddings", "embeddings")
        if min(len(split.images), len(split.captions)) < LEAST:
            raise TooLittle(f"a side has fewer than {LEAST} items")
        sides = split.relations.sides
        classes = split.relations.number_of_classes
        spectra = [side_spectrum(split.images, plural(sides.first), classes)]
        if split.captions is not split.images:
            spectra.append(side_spectrum(split.captions, plural(str(sides.second)), classes))
        return cls(tuple(spectra))


def side_spectrum(X: Tensor, name: str, classes: int = 0) -> SideSpectrum:
    """Return the distribution of unit vectors (n, d).

    Args:
        X: one row an item; of more than 4,096 rows a sample is taken.
        name: of the side, plural.
        classes: number of labels; 0: none.
    """
    if len(X) > _ROWS:
        X = X[torch.from_numpy(draw_rows(np.arange(len(X)), _ROWS, np.random.default_rng(0)))]
    X = X.double()
    n, d = X.shape
    total = X.sum(0)
    mean_cosine = float((total @ total - X.square().sum()) / (n * (n - 1)))
    centred = X - X.mean(0)
    values = _singular_values(centred)
    largest = min(n - 1, d, classes - 1 if classes > 1 else d)
    spread = float(np.sqrt(d) * centred.std(0, unbiased=False).mean())
    rank, null = _effective_rank(values), _effective_rank(null_values(n, d))
    return SideSpectrum(name, n, d, mean_cosine, spread, values.numpy(), rank, null, largest)


def _singular_values(X: Tensor) -> Tensor:
    """(min(n, d),) singular values of (n, d), falling."""
    products = X @ X.T if len(X) < X.shape[1] else X.T @ X
    return singular_values(products[None])[0].flip(0)


def _effective_rank(values: Tensor) -> float:
    """Return the effective rank; 0 where all singular values are 0."""
    return float(effective_rank(values[None]).nan_to_num(0.0))


@lru_cache(maxsize=16)
def null_values(n: int, d: int) -> Tensor:
    """Return the singular values of centred isotropic unit vectors (n, d), from one draw."""
    X = torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    X = torch.nn.functional.normalize(X, dim=1)
    return _singular_values(X - X.mean(0))
