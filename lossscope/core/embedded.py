"""A split as a frozen model sees it: embeddings or similarities, and who belongs to whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError

from .pair import Pair
from .types import Rows

_BLOCK = 65536  # rows that are checked at a time


@dataclass(frozen=True)
class SplitEmbeddings:
    """One split as a frozen model sees it.

    images: (N, d), captions: (M, d) rows whose products are S, or None where only similarity (N, M) is known, or a
    scorer, which is called with rows of images and of captions and gives S, or a Pair where the directions differ.
    caption_image: (M,) row of the image each caption describes. objective: spec it was trained with, or None.
    name: what to call it in tables. fingerprint: hex, of the numbers' origin. notices: what the user should know.
    inputs: numbers of the images and of the captions that are equal where the inputs (pixels, words) were equal.
    live: of the rows of a batch, in both directions dL/dS -> gradient norm of each layer; None where no model is left.
    recipe: how it was trained, by the names of the recipe's choices; empty where the source does not say.
    """

    name: str
    images: Tensor | None
    captions: Tensor | None
    similarity: Tensor | None
    caption_image: Rows
    image_ids: list[str]
    caption_ids: list[str]
    fingerprint: str
    objective: str | None = None
    seed: int | None = None
    split: str | None = None
    notices: tuple[str, ...] = ()
    pair_scorer: Callable[[Rows, Rows], Tensor | Pair[Tensor]] | None = None
    inputs: Callable[[], Pair[Rows | None]] | None = None
    layer_gradients: Callable[[Rows, Rows], Pair[Callable[[Tensor], Mapping[str, Tensor]]]] | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """In a line: what it is called, how much it holds, what it was trained with."""
        told = f", trained with {self.objective}" if self.objective else ""
        return f"<{self.name}: {len(self.image_ids)} images, {len(self.caption_image)} captions{told}>"

    def __post_init__(self) -> None:
        if len(self.caption_image) < 2 or len(self.image_ids) < 2:
            got = f"{len(self.image_ids)} images and {len(self.caption_image)} captions"
            raise InputError(f"{self.name} must have at least 2 images and 2 captions; got {got}")
        low, high = int(self.caption_image.min()), int(self.caption_image.max())
        if low < 0 or high >= len(self.image_ids):
            raise InputError(
                f"caption_image of {self.name} must be rows 0..{len(self.image_ids) - 1}; got {low}..{high}"
            )

    def both(self, image_rows: Rows, caption_rows: Rows) -> Pair[Tensor]:
        """S of some images (b,) and captions (m,) with queries as rows: i2t (b, m) and t2i (m, b).

        NaN where a re-ranking model has not scored a pair: such a candidate takes no part.
        """
        if self.pair_scorer is not None:
            found = self.pair_scorer(image_rows, caption_rows)
            return found if isinstance(found, Pair) else Pair(found, found.T)
        if self.images is None or self.captions is None:
            assert self.similarity is not None
            S = self.similarity[torch.from_numpy(image_rows)[:, None], torch.from_numpy(caption_rows)[None, :]]
        else:
            S = self.images[torch.from_numpy(image_rows)] @ self.captions[torch.from_numpy(caption_rows)].T
        return Pair(S, S.T)

    def block(self, image_rows: Rows, caption_rows: Rows) -> Tensor:
        """S (b, m) of some images and captions, one for both directions. Raises InputError when they differ."""
        i2t, t2i = self.both(image_rows, caption_rows)
        if t2i.data_ptr() != i2t.data_ptr():
            raise InputError(f"similarities of {self.name} must be one matrix for this; its two directions differ")
        return i2t

    @cached_property
    def keys(self) -> Pair[Rows | None]:
        """Numbers of the images (N,) and of the captions (M,), equal for equal inputs; None where nobody knows."""
        return self.inputs() if self.inputs is not None else Pair(None, None)

    def to(self, device: torch.device) -> SplitEmbeddings:
        """The same with its tensors on a device."""
        own: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        moved: dict[str, Any] = {k: v.to(device) if isinstance(v, Tensor) else v for k, v in own.items()}
        return SplitEmbeddings(**moved)


def unit_rows(x: Tensor, what: str, tolerance: float = 1e-4) -> tuple[Tensor, str | None]:
    """Rows of unit length, and a notice when they had to be made so; rows within `tolerance` are left as they are.

    Raises InputError naming the first row with NaN or infinity, and for rows of zeros.
    """
    x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    blocks = torch.split(x, _BLOCK)  # a mapped file is never in memory as a whole
    bad = torch.cat([~torch.isfinite(block).all(1) for block in blocks])
    if bool(bad.any()):
        raise InputError(f"{what} must be finite; row {int(bad.nonzero()[0])} is not ({int(bad.sum())} such rows)")
    zero = torch.cat([~block.any(1) for block in blocks])
    if bool(zero.any()):
        raise InputError(f"{what} must not be zero; row {int(zero.nonzero()[0])} is")
    off = torch.cat([(block.norm(dim=1) - 1).abs() > tolerance for block in blocks])
    if not bool(off.any()):
        return x, None
    scaled = x.clone()
    for block, wrong in zip(torch.split(scaled, _BLOCK), torch.split(off, _BLOCK), strict=True):
        block[wrong] = _scaled(block[wrong])
    told = f"{int(off.sum())} of {len(x)} rows of {what} were not of unit length and have been normalised"
    return scaled, told


def _scaled(rows: Tensor) -> Tensor:
    """x / |x| of rows that are not zero; their largest entry goes first, so that no square over- or underflows."""
    rows = rows / rows.abs().amax(1, keepdim=True)
    found: Tensor = rows / rows.norm(dim=1, keepdim=True)
    return found
