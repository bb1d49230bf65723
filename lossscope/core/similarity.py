"""Embeddings -> S, ids -> Mask: what is compared with what, and which of it is relevant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal

import torch
from torch import Tensor

from lossscope.errors import InputError

from .pair import Pair

Direction = Literal["i2t", "t2i"]
SameImage = Literal["keep", "mask"]


@dataclass(frozen=True)
class Mask:
    """Which candidates of each query are relevant and which take part; one direction, rows are queries.

    match: (q, c) bool, relevant. valid: (q, c) bool, takes part at all; a match outside valid is no positive.
    info: what some objectives need beyond S, keyed by name: (q,) one number a query, (q, c) one a pair, `queries`
    (q, d) and `candidates` (c, d) the embeddings. direction: which side the queries are; the published counting
    conventions, which treat the two sides differently, look at it, and losses that are told which are the images.
    Masks are not to be changed in place: what is derived from one is computed once. Raises InputError when the
    shapes or types differ.
    """

    match: Tensor
    valid: Tensor
    info: Mapping[str, Tensor] = field(default_factory=dict)
    direction: Direction = "i2t"

    def __post_init__(self) -> None:
        if self.match.dtype != torch.bool or self.valid.dtype != torch.bool:
            raise InputError(f"match and valid must be bool; got {self.match.dtype} and {self.valid.dtype}")
        if self.match.ndim != 2 or self.match.shape != self.valid.shape:
            shapes = f"{tuple(self.match.shape)} and {tuple(self.valid.shape)}"
            raise InputError(f"match and valid must both be (queries, candidates); got {shapes}")

    @cached_property
    def positives(self) -> Tensor:
        """(q, c) bool: relevant and taking part."""
        return self.match & self.valid

    @cached_property
    def negatives(self) -> Tensor:
        """(q, c) bool: not relevant and taking part."""
        return ~self.match & self.valid

    @cached_property
    def non_negatives(self) -> Tensor:
        """(q, c) bool: everything but negatives."""
        return ~self.negatives

    @cached_property
    def negative_bias(self) -> Tensor:
        """(q, c) 0 on negatives and −inf elsewhere: added to S, it leaves the negatives to a maximum."""
        return torch.zeros(self.match.shape, device=self.match.device).masked_fill_(self.non_negatives, -torch.inf)

    @cached_property
    def number_of_negatives(self) -> Tensor:
        """(q,) negatives of each row."""
        return self.negatives.sum(1)

    @cached_property
    def usable(self) -> Tensor:
        """(q,) bool: rows with at least one positive and one negative; the others are skipped."""
        return self.positives.any(1) & self.negatives.any(1)

    @cached_property
    def skipped(self) -> Tensor:
        """(q,) bool: the others."""
        return ~self.usable

    @cached_property
    def number_usable(self) -> int:
        """How many rows are not skipped."""
        return int(self.usable.sum())

    @property
    def all_usable(self) -> bool:
        """Whether no row is skipped."""
        return self.number_usable == len(self.match)

    @cached_property
    def all_valid(self) -> bool:
        """Whether every candidate takes part in every row."""
        return bool(self.valid.all())

    @cached_property
    def first_positive(self) -> Tensor:
        """(q, 1) column of the first positive of each row; 0 in a row without one."""
        return self.positives.to(torch.uint8).argmax(1, keepdim=True)

    @cached_property
    def first_row_with_two_positives(self) -> int | None:
        """The first row with more than one positive, None if there is none."""
        rows = (self.positives.sum(1) > 1).nonzero()
        return int(rows[0]) if len(rows) else None

    def rows(self, rows: Tensor) -> Mask:
        """The mask of some queries (index or bool tensor); info indexed by query goes along."""
        n = self.match.shape[:1]
        info = {k: v[rows] if v.shape[:1] == n and k != "candidates" else v for k, v in self.info.items()}
        return replace(self, match=self.match[rows], valid=self.valid[rows], info=info)

    def columns(self, columns: Tensor) -> Mask:
        """The mask of some candidates (index or bool tensor); info that is (q, c) or of candidates goes along."""
        info = {
            k: v[columns] if k == "candidates" else v[:, columns] if v.shape == self.match.shape else v
            for k, v in self.info.items()
        }
        return replace(self, match=self.match[:, columns], valid=self.valid[:, columns], info=info)

    def to(self, device: torch.device) -> Mask:
        """The same on a device; itself where it is there already, so that what it remembers is kept."""
        if self.match.device == device:
            return self
        info = {k: v.to(device) for k, v in self.info.items()}
        return replace(self, match=self.match.to(device), valid=self.valid.to(device), info=info)

    def t(self) -> Mask:
        """The same batch seen from the other side; (q, c) info is transposed, queries and candidates change places."""
        return self._other

    @cached_property
    def _other(self) -> Mask:
        swapped = {"queries": "candidates", "candidates": "queries"}
        if self.match.shape[0] != self.match.shape[1]:
            alone = [name for name, v in self.info.items() if v.ndim == 1]
            if alone:
                raise InputError(
                    f"{alone[0]} is one number for each query of {self.direction}; the other side has none"
                )
        info = {
            swapped.get(k, k): v.T if v.shape == self.match.shape and k not in swapped else v
            for k, v in self.info.items()
        }
        other: Direction = "t2i" if self.direction == "i2t" else "i2t"
        return Mask(self.match.T.contiguous(), self.valid.T.contiguous(), info, other)


def normalise(x: Tensor) -> Tensor:
    """Rows scaled to unit length: x / |x|, (n, d); a zero row stays zero."""
    return torch.nn.functional.normalize(x, dim=-1)


def cosine(images: Tensor, captions: Tensor) -> Tensor:
    """S = V T' of unit rows, (n, d) x (m, d) -> (n, m). Raises InputError when the widths differ."""
    if images.ndim != 2 or captions.ndim != 2 or images.shape[1] != captions.shape[1]:
        shapes = f"{tuple(images.shape)} and {tuple(captions.shape)}"
        raise InputError(f"embeddings must be (n, d) and (m, d) with one d; got {shapes}")
    return images @ captions.T


def euclidean(S: Tensor) -> Tensor:
    """Distances √(2 − 2s) of unit vectors; 0 with slope 0 where s = 1 (or above it by rounding): no direction there."""
    square = 2 - 2 * S
    apart = square > 0
    return square.where(apart, 1.0).sqrt().where(apart, 0.0)


def pair_mask(image_rows: Tensor, same_image: SameImage = "keep") -> Mask:
    """The i2t mask of B image-caption pairs, from the image row of each: (B,) -> (B, B), the diagonal matches.

    Another caption of the same image is a negative (`keep`, as every published loader has it: E7) or takes no
    part (`mask`).
    """
    if same_image == "keep":
        return _diagonal(len(image_rows), image_rows.device)
    if same_image == "mask":
        match = torch.eye(len(image_rows), dtype=torch.bool, device=image_rows.device)
        return Mask(match, match | (image_rows[:, None] != image_rows[None, :]))
    raise InputError(f"same_image must be keep or mask; got {same_image!r}")


@lru_cache(maxsize=8)
def _diagonal(pairs: int, device: torch.device) -> Mask:
    """The mask of as many pairs; the same in every batch of an epoch, so what is derived from it is kept."""
    with torch.inference_mode(False):
        match = torch.eye(pairs, dtype=torch.bool, device=device)
        mask = Mask(match, torch.ones_like(match))
        for side in (mask, mask.t()):
            _ = (
                side.negative_bias,
                side.number_usable,
                side.all_valid,
                side.first_positive,
                side.first_row_with_two_positives,
            )
        return mask


def group_mask(image_rows: Tensor, caption_images: Tensor) -> Mask:
    """The i2t mask of images against all their captions: (n,), (m,) image rows -> (n, m), every caption matches."""
    match = image_rows[:, None] == caption_images[None, :]
    return Mask(match, torch.ones_like(match))


def drop_unscored(S: Tensor, mask: Mask) -> tuple[Tensor, Mask]:
    """S without NaN, and the mask without the pairs that were NaN; both as they are where there is none."""
    unscored = S.isnan()
    if not bool(unscored.any()):
        return S, mask
    return S.masked_fill(unscored, 0.0), replace(mask, valid=mask.valid & ~unscored)


def both_masks(mask: Mask | Pair[Mask]) -> Pair[Mask]:
    """The masks of both directions, t2i being the transposed i2t one when only that is given."""
    return mask if isinstance(mask, Pair) else Pair(mask, mask.t())
