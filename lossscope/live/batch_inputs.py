"""The arguments of `watch` -> rows of S and their mask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lossscope.core.sides import IMAGE_TEXT, QUERY_DOCUMENT, Sides
from lossscope.core.similarity import Mask
from lossscope.engine.batch_masks import i2t_mask, offset_mask
from lossscope.engine.direction_rows import DirectionRows
from lossscope.errors import InputError

from .observed import Observed
from .sampled_inputs import SampledInputs, rows_of_one_set, rows_of_two_sides
from .vectors import as_tensor, cosines_of

ITEM = Sides("item", None)


@dataclass(frozen=True)
class BatchInputs:
    """What `watch` was given, see there."""

    S: Any = None
    mask: Mask | None = None
    images: Any = None
    captions: Any = None
    queries: Any = None
    documents: Any = None
    negatives: Any = None
    embeddings: Any = None
    labels: Any = None
    S_second: Any = None
    offset: int | None = None
    is_share: bool = False  # whether rows are those of one process of several, with the candidates of all

    def observed(self, sides: Sides | None) -> Observed:
        """Return the rows of S of each direction.

        Args:
            sides: of the LossScope; None: they follow from the arguments.

        Raises:
            InputError: arguments that do not go together, or shapes that do not fit.
        """
        one_set = self.embeddings is not None or self.labels is not None
        if self.is_share:
            self._require_share(one_set or (sides is not None and sides.is_one_set))
        if one_set or (sides is not None and sides.is_one_set):
            return self._of_one_set(sides or ITEM)
        named = self._is_named()
        return self._of_two_sides(sides or (QUERY_DOCUMENT if named else IMAGE_TEXT), named)

    def sampled(self, sides: Sides | None) -> SampledInputs:
        """Return rows of S of each direction that are computed for single queries; arguments as those of `observed`."""
        one_set = self.embeddings is not None or self.labels is not None or (sides is not None and sides.is_one_set)
        S, S_second = as_tensor(self.S, "S"), as_tensor(self.S_second, "S_second")
        if self.is_share:
            self._require_share(one_set)
            if self.offset is None:
                raise InputError("with across_processes, a sample of queries needs offset in place of a mask")
        if one_set:
            self._require_one_set(sides or ITEM)
            E, labels = as_tensor(self.embeddings, "embeddings"), as_tensor(self.labels, "labels")
            return rows_of_one_set(sides or ITEM, S, E, labels, self.mask)
        named = self._is_named()
        sides = sides or (QUERY_DOCUMENT if named else IMAGE_TEXT)
        first, second, names = self._both_sides(sides, named)
        has_mined = self._has_mined(first, second, named)
        return rows_of_two_sides(
            sides, (S, first, second), names, self.mask, self.offset, S_second, has_mined, self.is_share
        )  # fmt: skip

    def _is_named(self) -> bool:
        """Return whether sides are called queries and documents. Raises InputError where both names are given."""
        named = self.queries is not None or self.documents is not None
        if named and (self.images is not None or self.captions is not None):
            raise InputError("watch must be given images and captions, or queries and documents; got both")
        return named

    def _has_mined(self, first: Tensor | None, second: Tensor | None, named: bool) -> bool:
        """Return whether mined negatives stand behind the positives. Raises InputError unless each query has as many.

        Args:
            first: embeddings of the first side.
            second: of the second.
            named: whether they are called queries and documents.
        """
        if self.offset is not None or self.mask is not None or first is None or second is None:
            return False
        is_longer = len(first) < len(second) and (named or self.negatives is not None)
        if is_longer and len(second) % max(len(first), 1):
            raise InputError(
                f"documents must be b (1 + k) rows, the positives of the b queries first; got {len(second)} of "
                f"{len(first)} queries. Give the mask of others"
            )
        return is_longer

    def _require_one_set(self, sides: Sides) -> None:
        """Raise InputError for arguments of two sides."""
        if not sides.is_one_set:
            raise InputError(
                f"embeddings and labels are of one set of items, and sides are {sides.text}. Write "
                "LossScope(..., sides='item'), or leave sides out"
            )
        others = (self.images, self.captions, self.queries, self.documents, self.negatives, self.S_second, self.offset)
        if any(x is not None for x in others):
            raise InputError("one set of items is watched as S, or embeddings, with labels or a mask; got two sides")

    def _of_one_set(self, sides: Sides) -> Observed:
        self._require_one_set(sides)
        E = as_tensor(self.embeddings, "embeddings")
        given = None if E is None else (E.detach(), E.detach())
        E, cosines = (None, None) if E is None else cosines_of(E, E)[1:]
        S = self._similarities(cosines, "embeddings")
        return Observed(DirectionRows(S, self._mask_of_one_set(S), E, E), sides, ("i2t",), embeddings=given)

    def _mask_of_one_set(self, S: Tensor) -> Mask:
        """Items of one label match; an item is no candidate of itself."""
        labels = as_tensor(self.labels, "labels")
        if (labels is None) == (self.mask is None):
            raise InputError("one set of items needs labels, or a mask; got " + ("none" if labels is None else "both"))
        if S.ndim != 2 or len(S) != S.shape[1] or len(S) < 2:
            raise InputError(f"S of one set must be (n, n), n at least 2; got {tuple(S.shape)}")
        other = ~torch.eye(len(S), dtype=torch.bool, device=S.device)
        if labels is None:
            mask = i2t_mask(S, self.mask)
            return replace(mask, valid=mask.valid & other)
        if labels.shape != (len(S),):
            raise InputError(f"labels must be one an item, ({len(S)},); got {tuple(labels.shape)}")
        labels = labels.to(S.device)
        return Mask((labels[:, None] == labels[None, :]) & other, other)

    def _of_two_sides(self, sides: Sides, named: bool) -> Observed:
        first, second, names = self._both_sides(sides, named)
        V, T, cosines = (None, None, None) if first is None or second is None else cosines_of(first, second)
        S = self._similarities(cosines, names)
        if self.is_share and S.ndim == 2 and not S.shape[1]:
            raise InputError("S must have the candidates of all processes as columns; got none")
        offset = 0 if self._has_mined(V, T, named) else self.offset
        rows = DirectionRows(S, i2t_mask(S, self.mask, offset, sides), V, T)
        observed = Observed(
            rows, sides, embeddings=None if V is None else _detached(first, second), offset=self.offset,
            pairs_at=(offset or 0) if self.mask is None else None,
        )  # fmt: skip
        if self.S_second is not None:
            return replace(observed, second=self._second_rows(offset, sides))
        if self.is_share:
            return replace(observed, directions=("i2t",))
        if offset is None or len(S) == S.shape[1]:
            return observed
        if self.offset is not None:  # of one process of several, whose columns have only its own rows
            return replace(observed, directions=("i2t",))
        mined = 0 if self.negatives is None else S.shape[1] // len(S) - 1
        return replace(observed, second=_positives_first(rows), mined=mined)

    def _require_share(self, is_one_set: bool) -> None:
        """Raise InputError for a layout in which it is not known which rows of the batch are those of this process."""
        if is_one_set:
            raise InputError(
                "one set of items is no batch of rows that processes share, as an item is query and candidate. Watch "
                "it whole, without across_processes"
            )
        if self.offset is None and self.mask is None:
            raise InputError(
                "with across_processes, watch must be given offset, the column of the positive of the first row of "
                "this process, or the mask of its rows: S is (b, B), its rows against the candidates of all processes"
            )
        if self.negatives is not None:
            raise InputError(
                "with across_processes, mined negatives stand among the candidates of all processes: give documents=, "
                "without negatives="
            )

    def _both_sides(self, sides: Sides, named: bool) -> tuple[Tensor | None, Tensor | None, str]:
        """Return the embeddings of both sides, mined negatives behind the second's, and what they are called."""
        a, b = ("queries", "documents") if named else ("images", "captions")
        first, second = as_tensor(getattr(self, a), a), as_tensor(getattr(self, b), b)
        if first is None or second is None:
            if first is not second:
                raise InputError(f"{a} and {b} must be given together; got one of them")
            if self.S is None:
                raise InputError(
                    "watch must be given S, or images and captions; got neither. Of other sides: queries and documents"
                )
        if not named and first is not None and not sides.is_image_text:
            raise InputError(f"sides are {sides.text}; write watch(queries=..., documents=...) for their embeddings")
        if self.negatives is not None:
            second = _append_negatives(second, as_tensor(self.negatives, "negatives"))
        return first, second, f"{a} and {b}"

    def _similarities(self, cosines: Tensor | None, names: str) -> Tensor:
        """Return S. Raises InputError if neither S nor embeddings are given, or S has another shape than they."""
        S = as_tensor(self.S, "S")
        if S is None and cosines is None:
            raise InputError(f"watch must be given S, or {names}; got neither")
        if S is not None and cosines is not None and S.shape != cosines.shape:
            raise InputError(f"S must be of its {names}, {tuple(cosines.shape)}; got {tuple(S.shape)}")
        chosen = cosines if S is None else S
        assert chosen is not None
        return chosen

    def _second_rows(self, offset: int | None, sides: Sides) -> DirectionRows:
        S = as_tensor(self.S_second, "S_second")
        assert S is not None
        if self.mask is not None:
            raise InputError("S_second has its positives at offset, as S has; a mask cannot be given beside it")
        return DirectionRows(S, replace(i2t_mask(S, None, offset, sides), direction="t2i"))


def _detached(first: Tensor | None, second: Tensor | None) -> tuple[Tensor, Tensor]:
    assert first is not None
    assert second is not None
    return first.detach(), second.detach()


def _append_negatives(second: Tensor | None, negatives: Tensor | None) -> Tensor:
    """(b, d) and (b, k, d) -> (b (1 + k), d), the positives first. Raises InputError for other shapes."""
    shapes = [None if x is None else tuple(x.shape) for x in (second, negatives)]
    if second is None or negatives is None or negatives.ndim != 3 or second.shape != negatives[:, 0].shape:
        raise InputError(f"negatives must be (b, k, d) of documents (b, d); got {shapes[1]} and {shapes[0]}")
    return torch.cat([second, negatives.flatten(0, 1).to(second.dtype)])


def _positives_first(rows: DirectionRows) -> DirectionRows:
    """Return the rows of the positives, which are the first columns, against all queries."""
    b = len(rows.S)
    documents = None if rows.candidates is None else rows.candidates[:b]
    mask = offset_mask(b, b, 0, rows.S.device, "t2i")
    return DirectionRows(rows.S[:, :b].T.contiguous(), mask, documents, rows.queries)
