"""Turn the arguments of `watch` into rows of S and their mask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, TypedDict

import numpy as np
import torch
from torch import Tensor

from lossscope.core.foreign_arrays import to_tensor
from lossscope.core.sides import IMAGE_TEXT, ITEM, QUERY_DOCUMENT, Sides
from lossscope.core.similarity import Mask, largest_beyond_cosines, normalise, require_one_width
from lossscope.core.types import DIRECTIONS
from lossscope.engine.batch_masks import i2t_mask, require_matrix, require_places
from lossscope.engine.direction_rows import HALF_TYPES
from lossscope.engine.one_batch import plain_mode
from lossscope.engine.sampled.draw import draw_queries
from lossscope.errors import InputError

from .observed import Observed
from .rows import Rows, columns_of, of_labels, pairs_at, rows_of, without_itself


@dataclass(frozen=True)
class BatchRows:
    """Rows of each direction of a batch; S of embeddings is whole only if all rows are taken."""

    rows: Sequence[Rows]  # of each direction
    batch: Observed  # what is known of the batch beside its rows
    is_transposed: bool = False  # whether the rows of the second direction are the columns of the first
    is_share: bool = False  # whether they are the rows of one of several processes, with the candidates of all

    def observed(self) -> Observed:
        """Return the batch with all rows."""
        first, *others = self.rows
        second = None if self.is_transposed or not others else others[0].take()
        return replace(self.batch, rows=first.take(), second=second)

    def draw(self, direction: int, queries: int, step: int) -> Tensor:
        """Return the rows (n,) of the queries that are drawn, in increasing order, on the device of S.

        All processes draw the same sample of the whole batch; a process takes its own rows of it.

        Args:
            direction: 0 or 1.
            queries: to draw, at most.
            step: seed of the sample.

        Raises:
            InputError: several processes, and no offset of the rows of this process.
        """
        if self.is_share and self.batch.offset is None:
            raise InputError("with across_processes, a sample of queries needs offset in place of a mask")
        rows, start = self.rows[direction], self.batch.offset or 0
        of = rows.columns if self.is_share else rows.number  # each query of the batch has its own column
        drawn = torch.from_numpy(draw_queries(of, 0, min(queries, of), step, DIRECTIONS[direction]))
        if self.is_share:
            drawn = drawn[(drawn >= start) & (drawn < start + rows.number)] - start
        return drawn.to(rows.device)


class WatchedBatch(TypedDict, total=False):
    """The arguments of `watch` for a batch, by the kind of its items."""

    # (n, d) embeddings, in place of S, whose cosine is then used; or beside S, for probes that read them
    images: Tensor
    captions: Tensor  # (m, d) embeddings, given together with `images`
    queries: Tensor  # (b, d) embeddings of the first side, where that is not images; directions are q2d and d2q
    documents: Tensor  # (b, d) embeddings of the second side; or (b (1 + k), d), mined negatives behind the positives
    negatives: Tensor  # (b, k, d) embeddings of the mined negatives of each query, in place of those further rows
    # (n, d) of one set of items, where each is a query and all others are its candidates; (b, views, d) of b items in
    # several views, which match one another
    embeddings: Tensor
    features: Tensor  # (b, views, d), as SupCon's loss takes them: the same as embeddings of that shape
    labels: Tensor  # (n,) class of each item of one set, or (b,) of views; items of one class match
    # row i of S matches column offset + i: S of one process (b, B) with the candidates of all; with `across_processes`
    # b may differ between processes, and be 0
    offset: int
    S_second: Tensor  # (b, B) similarities of the second side's rows, which are then not S transposed


@dataclass(frozen=True)
class BatchInputs:
    """The arguments of `watch`, see `WatchedBatch`."""

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
    is_share: bool = False  # whether the rows belong to one of several processes, with the candidates of all

    @classmethod
    def of(cls, S: Any, mask: Mask | None, batch: WatchedBatch, is_share: bool) -> BatchInputs:
        """Return the arguments of `watch`. Raises TypeError for an unknown argument, as Python does."""
        known = WatchedBatch.__annotations__
        for name in batch:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise TypeError(f"watch() got an unexpected keyword argument {name!r}{hint}")
        given: dict[str, Any] = dict(batch)
        if "features" in given:
            given = _name_features(given)
        return cls(S, mask, **given, is_share=is_share)

    def beyond_cosines(self) -> float | None:
        """Return the largest |s| of the valid entries if S is not all cosines, else None."""
        S = _as_tensor(self.S, "S")
        if S is None or not S.is_floating_point():
            return None
        if self.mask is not None and self.mask.valid.shape == S.shape:
            S = S[self.mask.valid.to(S.device)]
        largest = largest_beyond_cosines(S)
        return largest if largest is not None and math.isfinite(largest) else None

    def rows(self, sides: Sides | None) -> BatchRows:
        """Return the rows of S of each direction.

        Args:
            sides: of the LossScope; None: they follow from the arguments.

        Raises:
            InputError: arguments that do not go together, or shapes that do not fit.
        """
        is_one_set = self.embeddings is not None or self.labels is not None or (sides is not None and sides.is_one_set)
        if self.is_share:
            self._require_share(is_one_set)
        if is_one_set:
            return self._of_one_set(sides or ITEM)
        is_named = self.queries is not None or self.documents is not None
        if is_named and (self.images is not None or self.captions is not None):
            raise InputError("watch must be given images and captions, or queries and documents; got both")
        return self._of_two_sides(sides or (QUERY_DOCUMENT if is_named else IMAGE_TEXT), is_named)

    def _has_mined(self, first: Tensor | None, second: Tensor | None, named: bool) -> bool:
        """Return whether mined negatives follow the positives. Raises InputError unless all queries have equally many.

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
                f"{len(first)} queries. Say which match: a lossscope.Mask(match=..., valid=...) beside the documents"
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
            raise InputError("one set of items must be S, or embeddings, with labels or a mask; got two sides")

    def _of_one_set(self, sides: Sides) -> BatchRows:
        """Return rows in which items of one label match, and an item is no candidate of itself."""
        self._require_one_set(sides)
        S, labels = _as_tensor(self.S, "S"), _as_labels(self.labels)
        E = _as_tensor(self.embeddings, "embeddings")
        if E is not None:
            _require_floats(E, "embeddings")
        if E is not None and E.ndim == 3 and self.mask is None:
            E, labels = _join_views(E, labels)
        unit = None if E is None else _unit_rows(E, E)[0]
        template = _template(S, unit, unit, "embeddings")
        if (labels is None) == (self.mask is None):
            raise InputError("one set of items needs labels, or a mask; got " + ("none" if labels is None else "both"))
        n = len(template)
        if template.ndim == 2 and template.shape == (1, 1):
            raise InputError(
                "a batch must have 2 items or more, as a single item has no candidate; got 1. To leave out a last "
                "short batch: DataLoader(..., drop_last=True)"
            )
        if template.ndim != 2 or n != template.shape[1] or n < 2:
            raise InputError(f"S of one set must be (n, n), n at least 2; got {tuple(template.shape)}")
        if labels is not None and labels.shape != (n,):
            raise InputError(f"labels must be one per item, ({n},); got {tuple(labels.shape)}")
        if self.mask is not None:
            mask = rows_of(without_itself(i2t_mask(template, self.mask)))
        else:
            assert labels is not None, "there are labels or a mask"
            mask = of_labels(labels.to(template.device))
        given = None if E is None else (E.detach(), E.detach())
        return BatchRows([Rows(n, n, mask, S, unit, unit)], Observed(None, sides, DIRECTIONS[:1], embeddings=given))

    def _of_two_sides(self, sides: Sides, is_named: bool) -> BatchRows:
        first, second, names = self._both_sides(sides, is_named)
        S, V, T, given = _as_tensor(self.S, "S"), None, None, None
        if first is not None and second is not None:
            V, T = _unit_rows(first, second)
            given = first.detach(), second.detach()
        template = _template(S, V, T, names)
        require_matrix(template, sides)
        (n, m), device = template.shape, template.device
        if self.is_share and not m:
            raise InputError("S must have the candidates of all processes as columns; got none")
        has_mined = self._has_mined(V, T, is_named)
        offset = 0 if has_mined else self.offset
        if self.mask is not None and offset is not None:
            raise InputError("offset says where the positives are, and so does mask; give one of them")
        mask = None if self.mask is None else i2t_mask(template, self.mask, sides)
        if mask is None:
            require_places(n, m, offset)
        rows = [Rows(n, m, pairs_at(n, m, device, offset or 0) if mask is None else rows_of(mask), S, V, T)]
        is_transposed = False
        if self.S_second is not None:
            rows.append(self._second_rows(offset, sides))
        elif has_mined:
            positives = None if S is None else S.T[:n], None if T is None else T[:n]
            rows.append(Rows(n, n, pairs_at(n, n, device, 0, "t2i"), *positives, V))
        elif not (self.is_share or sides.has_proxies) and (offset is None or n == m):
            is_transposed = True
            of_columns = pairs_at(m, n, device, 0, "t2i") if mask is None else columns_of(mask)
            rows.append(Rows(m, n, of_columns, None if S is None else S.T, T, V))
        batch = Observed(
            None, sides, DIRECTIONS[: len(rows)], embeddings=given, offset=self.offset,
            pairs_at=(offset or 0) if self.mask is None else None,
            mined=m // n - 1 if has_mined and self.negatives is not None else 0,
        )  # fmt: skip
        return BatchRows(rows, batch, is_transposed, self.is_share)

    def _second_rows(self, offset: int | None, sides: Sides) -> Rows:
        S = _as_tensor(self.S_second, "S_second")
        assert S is not None
        require_matrix(S, sides)
        if self.mask is not None:
            raise InputError("S_second has its positives at offset, as S has; leave out the mask")
        n, m = S.shape
        require_places(n, m, offset)
        return Rows(n, m, pairs_at(n, m, S.device, offset or 0, "t2i"), S)

    def _require_share(self, is_one_set: bool) -> None:
        """Raise InputError for a layout that does not say which rows of the batch belong to this process."""
        if is_one_set:
            raise InputError(
                "one set of items is no batch of rows that processes share, as an item is query and candidate. Watch "
                "it whole, without across_processes"
            )
        if self.offset is None and self.mask is None:
            raise InputError(
                "with across_processes, watch must be given offset, the column of the positive of its first row, "
                "or a mask. S is (b, B), the rows of a process against the candidates of all processes"
            )
        if self.negatives is not None:
            raise InputError(
                "with across_processes, mined negatives stand among the candidates of all processes: give documents=, "
                "without negatives="
            )

    def _both_sides(self, sides: Sides, named: bool) -> tuple[Tensor | None, Tensor | None, str]:
        """Return the embeddings of both sides, the second with its mined negatives, and their names."""
        a, b = (QUERY_DOCUMENT if named else IMAGE_TEXT).keys
        first, second = _as_tensor(getattr(self, a), a), _as_tensor(getattr(self, b), b)
        if first is None or second is None:
            if first is not second:
                raise InputError(f"{a} and {b} must be given together; got one of them")
            if self.S is None:
                raise InputError(
                    "watch must be given S, or images and captions; got neither. Of other sides: queries and documents"
                )
        if not named and first is not None and not sides.is_image_text:
            raise InputError(f"sides are {sides.text}; write watch(queries=..., documents=...) for their embeddings")
        negatives = _as_tensor(self.negatives, "negatives")
        for name, x in ((a, first), (b, second), ("negatives", negatives)):
            if x is not None:
                _require_floats(x, name)
        if negatives is not None:
            second = _append_negatives(second, negatives)
        return first, second, f"{a} and {b}"


def _name_features(given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with the features of SupCon as embeddings. Raises InputError for another shape, and for both."""
    features = _as_tensor(given.pop("features"), "features")
    if features is None:
        return given
    if given.get("embeddings") is not None:
        raise InputError("watch must be given features or embeddings; got both")
    if features.ndim < 3:
        raise InputError(
            f"features must be (b, views, d), as SupCon's loss takes them; got {tuple(features.shape)}. Of (n, d) "
            "write embeddings=..., with a label of each row"
        )
    return {**given, "embeddings": features.flatten(2)}


def _template(S: Tensor | None, V: Tensor | None, T: Tensor | None, names: str) -> Tensor:
    """Return S, or a tensor of its shape and type that holds a single number.

    Raises InputError where neither S nor embeddings are given, or their shapes differ.
    """
    if S is None:
        if V is None or T is None:
            raise InputError(f"watch must be given S, or {names}; got neither")
        require_one_width(V, T)
        return V.new_zeros(()).expand(len(V), len(T))
    if V is not None and T is not None and tuple(S.shape) != (len(V), len(T)):
        raise InputError(f"S must be of its {names}, {(len(V), len(T))}; got {tuple(S.shape)}")
    return S


def _join_views(E: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return (views b, d) and (views b,) from (b, views, d) and (b,), view by view; without labels views match.

    Raises InputError for labels of another number than b.
    """
    size, views = E.shape[:2]
    if labels is not None and labels.shape != (size,):
        raise InputError(
            f"labels must be one per item of embeddings (b, views, d), ({size},); got {tuple(labels.shape)}"
        )
    labels = torch.arange(size, device=E.device) if labels is None else labels
    return E.transpose(0, 1).flatten(0, 1), labels.repeat(views)


def _append_negatives(second: Tensor | None, negatives: Tensor | None) -> Tensor:
    """Return (b (1 + k), d) from (b, d) and (b, k, d), the positives first. Raises InputError for other shapes."""
    shapes = [None if x is None else tuple(x.shape) for x in (second, negatives)]
    if second is None or negatives is None or negatives.ndim != 3 or second.shape != negatives[:, 0].shape:
        raise InputError(f"negatives must be (b, k, d) of documents (b, d); got {shapes[1]} and {shapes[0]}")
    return torch.cat([second, negatives.flatten(0, 1).to(second.dtype)])


def _as_tensor(x: Any, what: str) -> Tensor | None:
    """Return a tensor as it is, and any other sequence of numbers as a tensor.

    Raises InputError for anything that is no matrix of numbers, such as texts.
    """
    if x is None or isinstance(x, Tensor):
        return x
    try:
        return to_tensor(x, what)
    except InputError as error:
        shape = "(images, captions) similarities" if what == "S" else "(n, d) embeddings, not texts or pictures"
        raise InputError(
            f"{what} must be a matrix of numbers, {shape}; got {type(x).__name__}. Write watch(S), or "
            "watch(images=..., captions=...)"
        ) from error


def _as_labels(labels: Any) -> Tensor | None:
    """Return labels as numbers: texts become class numbers, anything else stays as it is."""
    if labels is None or isinstance(labels, Tensor):
        return labels
    array = np.asarray(labels) if isinstance(labels, np.ndarray | list | tuple) else None
    if array is not None and array.dtype.kind in "US":
        return torch.from_numpy(np.unique(array, return_inverse=True)[1].reshape(array.shape))
    return _as_tensor(labels, "labels")


def _require_floats(x: Tensor, what: str) -> None:
    """Raise InputError for embeddings of whole numbers, such as token ids."""
    if not x.is_floating_point():
        raise InputError(
            f"{what} must be of floating point, embeddings and not ids of tokens; got {tuple(x.shape)} of {x.dtype}. "
            f"Write {what}={what}.float(), or encode them first"
        )


def _unit_rows(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return detached rows of unit length, in one type of at least float32."""
    with plain_mode(first.device):
        wide = [x.float() if x.dtype in HALF_TYPES else x for x in (first.detach(), second.detach())]
        dtype = torch.promote_types(wide[0].dtype, wide[1].dtype)
        V, T = (normalise(x.to(dtype)) for x in wide)
        return V, T
