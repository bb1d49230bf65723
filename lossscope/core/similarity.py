"""Embeddings -> S, ids -> Mask: the similarities of a batch, and which candidates are relevant to which query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.errors import InputError

from .foreign_arrays import to_tensor
from .pair import Pair
from .types import Direction, SameImage

LARGEST_SIMILARITY = 1e12  # beyond it lossscope computes no loss
LARGEST_COSINE = 1.01  # of unit vectors, with the rounding of half precision
REPEATS = "repeats"
"""Name in `Mask.info` of how often the positive of each query (q,) stands in its denominator beside the first time."""


@dataclass(frozen=True)
class Mask:
    """Which candidates of each query are relevant and which are valid; one direction, rows are queries.

    A mask must not be changed in place: what is derived from it is computed once.
    Raises InputError when the shapes or types of `match` and `valid` differ.
    """

    match: Tensor  # (q, c) bool, the candidate is relevant to the query
    valid: Tensor  # (q, c) bool, the entry of S counts at all; a match that is not valid is no positive
    # further inputs of some objectives, by name: (q,) one number a query, (q, c) one a pair, and the embeddings
    # `queries` (q, d) and `candidates` (c, d)
    info: Mapping[str, Tensor] = field(default_factory=dict)
    # whether queries are images or captions: for the published counting conventions, which treat the two differently,
    # and for losses that take images and captions as separate arguments
    direction: Direction = "i2t"

    def __post_init__(self) -> None:
        for name in ("match", "valid"):
            given = getattr(self, name)
            if not isinstance(given, Tensor):
                object.__setattr__(self, name, to_tensor(given, f"{name} of a Mask"))
        if self.match.dtype != torch.bool or self.valid.dtype != torch.bool:
            raise InputError(f"match and valid must be bool; got {self.match.dtype} and {self.valid.dtype}")
        if self.match.ndim != 2 or self.match.shape != self.valid.shape:
            shapes = f"{tuple(self.match.shape)} and {tuple(self.valid.shape)}"
            raise InputError(f"match and valid must both be (queries, candidates); got {shapes}")

    @cached_property
    def positives(self) -> Tensor:
        """(q, c) bool: relevant and valid."""
        return self.match & self.valid

    @cached_property
    def negatives(self) -> Tensor:
        """(q, c) bool: not relevant, and valid."""
        return ~self.match & self.valid

    @cached_property
    def non_negatives(self) -> Tensor:
        """(q, c) bool: every entry that is not a negative."""
        return ~self.negatives

    @cached_property
    def negative_bias(self) -> Tensor:
        """(q, c) 0 on negatives and −inf elsewhere: the row maximum of S + bias is the hardest negative."""
        return torch.zeros(self.match.shape, device=self.match.device).masked_fill_(self.non_negatives, -torch.inf)

    @cached_property
    def number_of_negatives(self) -> Tensor:
        """(q,) number of negatives of each row."""
        return self.negatives.sum(1)

    @cached_property
    def usable(self) -> Tensor:
        """(q,) bool: rows with at least one positive and one negative; the others are skipped."""
        return self.positives.any(1) & self.negatives.any(1)

    @cached_property
    def skipped(self) -> Tensor:
        """(q,) bool: rows without a positive or without a negative."""
        return ~self.usable

    @cached_property
    def number_usable(self) -> int:
        """Number of usable rows."""
        return int(self.usable.sum())

    @property
    def all_usable(self) -> bool:
        """Whether no row is skipped."""
        return self.number_usable == len(self.match)

    @cached_property
    def all_valid(self) -> bool:
        """Whether every entry is valid."""
        return bool(self.valid.all())

    @cached_property
    def first_positive(self) -> Tensor:
        """(q, 1) column of the first positive of each row; 0 in a row without one."""
        return self.positives.to(torch.uint8).argmax(1, keepdim=True)

    @cached_property
    def first_row_with_two_positives(self) -> int | None:
        """Index of the first row with more than one positive; None if there is none."""
        rows = (self.positives.sum(1) > 1).nonzero()
        return int(rows[0]) if len(rows) else None

    def rows(self, rows: Tensor) -> Mask:
        """Select queries by an index or bool tensor; info indexed by query is selected with them."""
        n = self.match.shape[:1]
        info = {k: v[rows] if v.shape[:1] == n and k != "candidates" else v for k, v in self.info.items()}
        return replace(self, match=self.match[rows], valid=self.valid[rows], info=info)

    def columns(self, columns: Tensor) -> Mask:
        """Select candidates by an index or bool tensor; (q, c) info and `candidates` are selected with them."""
        info = {
            k: v[columns] if k == "candidates" else v[:, columns] if v.shape == self.match.shape else v
            for k, v in self.info.items()
        }
        return replace(self, match=self.match[:, columns], valid=self.valid[:, columns], info=info)

    def to(self, device: torch.device) -> Mask:
        """Return a copy on `device`; the mask itself if it is there already, so that its cached properties are kept."""
        if self.match.device == device:
            return self
        info = {k: v.to(device) for k, v in self.info.items()}
        return replace(self, match=self.match.to(device), valid=self.valid.to(device), info=info)

    def t(self) -> Mask:
        """Return the mask of the other direction: (q, c) info is transposed, `queries` and `candidates` are swapped.

        Raises InputError where info has one number a query and there are more or fewer candidates than queries.
        """
        return self._transposed

    @cached_property
    def _transposed(self) -> Mask:
        swapped = {"queries": "candidates", "candidates": "queries"}
        if self.match.shape[0] != self.match.shape[1]:
            per_query = [name for name, v in self.info.items() if v.ndim == 1]
            if per_query:
                raise InputError(
                    f"{per_query[0]} is one number for each query of {self.direction}; the other side has none"
                )
        info = {
            swapped.get(k, k): v.T if v.shape == self.match.shape and k not in swapped else v
            for k, v in self.info.items()
        }
        other: Direction = "t2i" if self.direction == "i2t" else "i2t"
        return Mask(self.match.T.contiguous(), self.valid.T.contiguous(), info, other)


def normalise(x: Tensor) -> Tensor:
    """x / |x| of each row, (n, d); a zero row stays zero."""
    return torch.nn.functional.normalize(x, dim=-1)


def cosine(images: Tensor, captions: Tensor) -> Tensor:
    """S = V T' of unit rows, (n, d) x (m, d) -> (n, m). Raises InputError when the widths differ."""
    require_one_width(images, captions)
    return images @ captions.T


def largest_beyond_cosines(S: Tensor) -> float | None:
    """Return the largest |s| where S has entries that are no cosines, as logits are; None where it may be cosines."""
    if not S.numel():
        return None
    low, high = S.detach().aminmax()
    largest = float(torch.maximum(-low, high))
    return largest if largest > LARGEST_COSINE else None


def require_one_width(images: Tensor, captions: Tensor) -> None:
    """Raise InputError unless embeddings of both sides are matrices of one width."""
    if images.ndim != 2 or captions.ndim != 2 or images.shape[1] != captions.shape[1]:
        shapes = f"{tuple(images.shape)} and {tuple(captions.shape)}"
        raise InputError(f"embeddings must be (n, d) and (m, d) with one d; got {shapes}")


def euclidean(S: Tensor) -> Tensor:
    """√(2 − 2s), the distance of unit vectors; 0 with gradient 0 where s >= 1, as no direction is defined there."""
    square = 2 - 2 * S
    positive = square > 0
    return square.where(positive, 1.0).sqrt().where(positive, 0.0)


def pair_mask(image_rows: Tensor | Sequence[int], same_image: SameImage = "keep") -> Mask:
    """Return the i2t mask of B pairs, (B, B): caption i matches image i.

    Args:
        image_rows: (B,) row of the image of each pair in its split.
        same_image: what another caption of the same image is: `keep`, a negative, as in every published loader (E7);
            `mask`, not valid.

    Raises:
        InputError: for another `same_image`, and rows that are no numbers.
    """
    image_rows = image_rows if isinstance(image_rows, Tensor) else _row_numbers(image_rows)
    if same_image == "keep":
        return _diagonal_mask(len(image_rows), image_rows.device)
    if same_image == "mask":
        match = torch.eye(len(image_rows), dtype=torch.bool, device=image_rows.device)
        return Mask(match, match | (image_rows[:, None] != image_rows[None, :]))
    raise InputError(f"same_image must be keep or mask; got {same_image!r}")


def _row_numbers(rows: Any) -> Tensor:
    """Return a list or an array of numbers as a tensor."""
    try:
        numbers = to_tensor(rows, "image_rows")
    except InputError:
        numbers = torch.empty(0, 0)
    if numbers.ndim != 1:
        got = repr(rows) if isinstance(rows, int | float | str) else type(rows).__name__
        raise InputError(
            f"image_rows must be the row of the image of each pair, (B,); got {got}. For B different images write "
            "lossscope.pair_mask(torch.arange(B))"
        )
    return numbers


@lru_cache(maxsize=8)
def _diagonal_mask(pairs: int, device: torch.device) -> Mask:
    """Return the mask of B pairs; it is the same in every batch of an epoch, so its cached properties are kept."""
    with torch.inference_mode(False):
        match = torch.eye(pairs, dtype=torch.bool, device=device)
        mask = Mask(match, torch.ones_like(match))
        for either in (mask, mask.t()):
            _ = (
                either.negative_bias,
                either.number_usable,
                either.all_valid,
                either.first_positive,
                either.first_row_with_two_positives,
            )
        return mask


def group_mask(image_rows: Tensor, caption_images: Tensor) -> Mask:
    """Return the i2t mask of images against all their captions, (n, m): every caption of an image matches it.

    Args:
        image_rows: (n,) row of each image in its split.
        caption_images: (m,) row of the image of each caption.
    """
    match = image_rows[:, None] == caption_images[None, :]
    return Mask(match, torch.ones_like(match))


def drop_unscored(S: Tensor, mask: Mask) -> tuple[Tensor, Mask]:
    """Replace NaN in S by 0 and make those entries of the mask invalid; without NaN both are returned as they are."""
    unscored = S.isnan()
    if not bool(unscored.any()):
        return S, mask
    return S.masked_fill(unscored, 0.0), replace(mask, valid=mask.valid & ~unscored)


def both_masks(mask: Mask | Pair[Mask]) -> Pair[Mask]:
    """Return the masks of both directions; a single mask is that of i2t, and t2i is its transpose."""
    return mask if isinstance(mask, Pair) else Pair(mask, mask.t())
