"""The arguments of `watch` -> rows of S that are computed for the sampled queries alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.sides import Sides
from lossscope.core.similarity import Mask, require_one_width
from lossscope.core.types import DIRECTIONS, Direction
from lossscope.engine.batch_masks import i2t_mask, require_matrix, require_offset, require_pairs
from lossscope.engine.sampled.draw import draw_queries
from lossscope.errors import InputError

from .query_rows import MaskOf, QueryRows, columns_of, of_labels, pairs_at, rows_of, without_itself
from .vectors import unit_rows


@dataclass(frozen=True)
class SampledInputs:
    """Rows of each direction of a batch; S of embeddings is never whole."""

    sides: Sides
    rows: Sequence[QueryRows]  # of each direction
    offset: int | None = None  # of the rows of one process, see `watch`

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions of the rows."""
        return DIRECTIONS[: len(self.rows)]

    def places(self, direction: int, queries: int, step: int, is_share: bool) -> Tensor:
        """(n,) places of the queries that are drawn, in increasing order, on the device of S.

        Of rows of one process those are taken that are in the sample of the whole batch, which all processes draw.

        Args:
            direction: 0 or 1.
            queries: to draw, at most.
            step: seed of the sample.
            is_share: whether the rows are those of one process of several.
        """
        rows, start = self.rows[direction], self.offset or 0
        of = rows.columns if is_share else rows.number  # each query of the batch has a column of its own
        drawn = torch.from_numpy(draw_queries(of, 0, min(queries, of), step, DIRECTIONS[direction]))
        if is_share:
            drawn = drawn[(drawn >= start) & (drawn < start + rows.number)] - start
        return drawn.to(rows.device)


def rows_of_one_set(
    sides: Sides, S: Tensor | None, E: Tensor | None, labels: Tensor | None, mask: Mask | None
) -> SampledInputs:
    """Return the rows of one set of items. Raises InputError for shapes that do not fit.

    Args:
        sides: of one set.
        S: (n, n); None: the cosines of E.
        E: (n, d) embeddings.
        labels: (n,); None: the mask says what matches.
        mask: of all items.
    """
    unit = None if E is None else unit_rows(E, E)[0]
    template = _template(S, unit, unit, "embeddings")
    n = len(template)
    if (labels is None) == (mask is None):
        raise InputError("one set of items needs labels, or a mask; got " + ("none" if labels is None else "both"))
    if template.ndim != 2 or n != template.shape[1] or n < 2:
        raise InputError(f"S of one set must be (n, n), n at least 2; got {tuple(template.shape)}")
    if labels is not None and labels.shape != (n,):
        raise InputError(f"labels must be one an item, ({n},); got {tuple(labels.shape)}")
    masks = without_itself(i2t_mask(template, mask)) if labels is None else of_labels(labels.to(template.device))
    return SampledInputs(sides, [QueryRows(n, n, masks, S, unit, unit)])


def rows_of_two_sides(
    sides: Sides,
    given: tuple[Tensor | None, Tensor | None, Tensor | None],
    names: str,
    mask: Mask | None,
    offset: int | None,
    S_second: Tensor | None,
    has_mined: bool,
    is_share: bool,
) -> SampledInputs:
    """Return the rows of both directions, or of the first where the second is not known.

    Args:
        sides: of both.
        given: S, and the embeddings of both sides, any of them None.
        names: of the embeddings, in messages.
        mask: of the first direction.
        offset: row i matches column offset + i, where it was given.
        S_second: rows of the second side.
        has_mined: whether mined negatives stand behind the positives of all queries.
        is_share: whether the rows are those of one process of several.

    Raises:
        InputError: for shapes that do not fit.
    """
    S, first, second = given
    V, T = (None, None) if first is None or second is None else unit_rows(first, second)
    template = _template(S, V, T, names)
    require_matrix(template, sides)
    n, m = template.shape
    whole_mask = None if mask is None else i2t_mask(template, mask, offset, sides)
    of_rows = _masks(whole_mask, n, m, 0 if has_mined else offset)
    rows = [QueryRows(n, m, of_rows, S, V, T)]
    back = None if S is None else S.T
    if S_second is not None:
        require_matrix(S_second, sides)
        if mask is not None:
            raise InputError("S_second has its positives at offset, as S has; a mask cannot be given beside it")
        b, c = S_second.shape
        rows.append(QueryRows(b, c, _masks(None, b, c, offset, "t2i"), S_second))
    elif has_mined:
        rows.append(QueryRows(n, n, pairs_at(n, 0, "t2i"), None if back is None else back[:n], _first(T, n), V))
    elif not is_share and (offset is None or n == m):
        of_columns = pairs_at(n, 0, "t2i") if whole_mask is None else columns_of(whole_mask)
        rows.append(QueryRows(m, n, of_columns, back, T, V))
    return SampledInputs(sides, rows, offset)


def _first(x: Tensor | None, n: int) -> Tensor | None:
    return None if x is None else x[:n]


def _masks(mask: Mask | None, n: int, m: int, offset: int | None, direction: Direction = "i2t") -> MaskOf:
    """Return the masks of rows of S (n, m). Raises InputError where it has no room for the positives."""
    if mask is not None:
        return rows_of(mask)
    if offset is None:
        require_pairs(n, m)
        return pairs_at(m, 0, direction)
    require_offset(n, m, offset)
    return pairs_at(m, offset, direction)


def _template(S: Tensor | None, V: Tensor | None, T: Tensor | None, names: str) -> Tensor:
    """Return a tensor of the shape and type of S that holds one number. Raises InputError for other embeddings."""
    if S is None:
        if V is None or T is None:
            raise InputError(f"watch must be given S, or {names}; got neither")
        require_one_width(V, T)
        return V.new_zeros(()).expand(len(V), len(T))
    if V is not None and T is not None and tuple(S.shape) != (len(V), len(T)):
        raise InputError(f"S must be of its {names}, {(len(V), len(T))}; got {tuple(S.shape)}")
    return S
