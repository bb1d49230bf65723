"""Over how many directions are the embeddings of each side distributed, and how far do they point the same way?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
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

_ROWS = 4096  # sampled rows of a side
LEAST = 16  # rows
NARROW = 0.95  # mean cosine of different items; models of the wall have at most 0.86


@dataclass(frozen=True)
class SideSpectrum:
    """The distribution of one side's unit vectors; singular values are computed on demand."""

    name: str  # of the side, plural
    X: Tensor  # (n, d) float64, the sampled rows
    classes: int  # labels; 0: none

    @property
    def n(self) -> int:
        """Number of sampled rows."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Dimensions."""
        return self.X.shape[1]

    @property
    def largest(self) -> int:
        """min(n − 1, d), or the number of classes − 1 where that is less."""
        return min(self.n - 1, self.d, self.classes - 1 if self.classes > 1 else self.d)

    @cached_property
    def mean_cosine(self) -> float:
        """Mean cosine of different items."""
        total = self.X.sum(0)
        return float((total @ total - self.X.square().sum()) / (self.n * (self.n - 1)))

    @cached_property
    def spread(self) -> float:
        """√d times the mean standard deviation of a coordinate: 1 for isotropic unit vectors."""
        return float(np.sqrt(self.d) * (self.X - self.X.mean(0)).std(0, unbiased=False).mean())

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """Singular values of the centred rows, falling."""
        values: npt.NDArray[np.float64] = _singular_values(self.X - self.X.mean(0)).numpy()
        return values

    @cached_property
    def rank(self) -> float:
        """Effective rank of the centred rows."""
        return _effective_rank(torch.from_numpy(self.values))

    @cached_property
    def null(self) -> float:
        """Effective rank of centred isotropic rows of the same n and d."""
        return _effective_rank(null_values(self.n, self.d))

    @property
    def used(self) -> float:
        """Share of the directions that are at least a thousandth as wide as the widest."""
        return float((self.values > 1e-3 * self.values[0]).mean()) if self.values[0] > 0 else 0.0

    @property
    def share(self) -> float:
        """Effective rank over its null, or over the largest possible rank where that is less."""
        return self.rank / min(self.null, self.largest)


@dataclass(frozen=True)
class Spectrum:
    """The spectra of both sides; a single set has one."""

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
    return SideSpectrum(name, X.double(), classes)


def _singular_values(X: Tensor) -> Tensor:
    """Return the singular values of (n, d), (min(n, d),), falling."""
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
