"""Make small batches for tests of probes, stacked, single and cut into panels, and run probes on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.core.types import Direction
from lossscope.engine.reducers import reduce_column
from lossscope.engine.run_probes import ProbePlan, ProbeResult, merge_parts
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import build

Numbers = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Batches:
    """k batches of one shape."""

    queries: Tensor  # (k, q, d)
    candidates: Tensor  # (k, c, d)
    match: Tensor  # (k, q, c)
    valid: Tensor  # (k, q, c)
    direction: Direction = "i2t"

    @property
    def S(self) -> Tensor:
        """(k, q, c) similarities."""
        return torch.bmm(self.queries, self.candidates.transpose(1, 2))

    def rows(self) -> DenseRows:
        """Return the rows of all batches, stacked."""
        k, q, c = self.match.shape
        ids = torch.arange(k * q), torch.arange(k * c).view(k, c)
        mask = Mask(self.match.flatten(0, 1), self.valid.flatten(0, 1), direction=self.direction)
        shape = BatchShape(k, self.direction, *ids)
        return DenseRows(shape, self.S.flatten(0, 1), mask, self.queries.flatten(0, 1), self.candidates)

    def single_batches(self) -> Iterator[Batches]:
        """Yield each batch."""
        for b in range(len(self.match)):
            part = slice(b, b + 1)
            yield replace(
                self,
                queries=self.queries[part],
                candidates=self.candidates[part],
                match=self.match[part],
                valid=self.valid[part],
            )

    def permute(self, queries: Sequence[int], candidates: Sequence[int]) -> Batches:
        """Return a copy with the queries and candidates of each batch in another order."""
        return replace(
            self,
            queries=self.queries[:, queries],
            candidates=self.candidates[:, candidates],
            match=self.match[:, queries][:, :, candidates],
            valid=self.valid[:, queries][:, :, candidates],
        )


def cut_into_panels(rows: DenseRows, sizes: Sequence[int]) -> list[DenseRows]:
    """Return panels of a batch, each with a part of its queries and all candidates."""
    assert rows.shape.batches == 1
    panels = []
    for part in torch.arange(len(rows.S)).split(list(sizes)):
        shape = replace(rows.shape, query_ids=rows.shape.query_ids[part], has_all_queries=False)
        vectors = {name: getattr(rows, name) for name in ("queries", "query_keys", "related")}
        options = {name: values[part] for name, values in vectors.items() if values is not None}
        options["all_queries"] = None if rows.queries is None else rows.queries[None]
        panels.append(replace(rows, shape=shape, S=rows.S[part], mask=rows.mask.rows(part), **options))
    return panels


def random_batches(
    seed: int = 0, k: int = 3, q: int = 6, c: int = 7, d: int = 4, many: bool = False, gaps: bool = True
) -> Batches:
    """Return k batches of random unit rows in float64, q queries and c candidates of width d, pair i on the diagonal.

    Args:
        seed: of the random numbers.
        k: number of batches.
        q: number of queries of a batch.
        c: number of candidates of a batch.
        d: width.
        many: queries may have up to three positives.
        gaps: some candidates are invalid; query 1 has no positive, and query 2 no negative.
    """
    generator = torch.Generator().manual_seed(seed)
    queries, candidates = (
        torch.nn.functional.normalize(torch.randn(k, n, d, generator=generator, dtype=torch.float64), dim=-1)
        for n in (q, c)
    )
    match = torch.eye(q, c, dtype=torch.bool).repeat(k, 1, 1)
    if many:
        match |= torch.rand(k, q, c, generator=generator) < 0.2
    valid = torch.ones(k, q, c, dtype=torch.bool)
    if gaps:
        valid = (torch.rand(k, q, c, generator=generator) < 0.8) | match
        match[:, 1] = False
        valid[:, 2] = match[:, 2]
    return Batches(queries, candidates, match, valid)


def run(probe: str, batches: Batches | DenseRows, objective: str = "ntxent") -> ProbeResult:
    """Return the result of a probe on a stack."""
    rows = batches.rows() if isinstance(batches, Batches) else batches
    plan = ProbePlan.of([build("objectives", objective)], [build("probes", probe)])
    (result,) = plan.run(rows)
    return result


def statistics(result: ProbeResult) -> Numbers:
    """Return statistic -> a number per batch."""
    columns = result.columns
    return {s.name: reduce_column(s, columns, result.shape.batches).numpy() for s in result.statistics()}


def columns(result: ProbeResult) -> Numbers:
    """Return column -> a number per element."""
    return {name: value.numpy() for name, value in result.columns.items()}


def run_in_panels(probe: str, rows: DenseRows, sizes: Sequence[int], objective: str = "ntxent") -> ProbeResult:
    """Return the result of a probe on one batch whose queries come in panels."""
    return merge_parts([run(probe, panel, objective) for panel in cut_into_panels(rows, sizes)], rows.shape)


def assert_same(a: Numbers, b: Numbers, rtol: float = 1e-9, atol: float = 1e-11) -> None:
    """Assert that both have the same names and numbers."""
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=rtol, atol=atol, err_msg=name)


def assert_invariant_to_cuts(probe: str, batches: Batches, objective: str = "ntxent", panels: bool = True) -> None:
    """Assert that a stack gives the results of its batches, and a batch the same by rows, by columns and in panels."""
    stacked = statistics(run(probe, batches, objective))
    for b, batch in enumerate(batches.single_batches()):
        result = run(probe, batch, objective)
        assert_same({name: values[b : b + 1] for name, values in stacked.items()}, statistics(result))
        by_columns = replace(batch.rows(), S=batch.S[0].T.contiguous().T)
        assert_same(columns(run(probe, by_columns, objective)), columns(result))
        q = batch.match.shape[1]
        for sizes in ([q - 1, 1], [1, 2, q - 3]) if panels else []:
            parts = run_in_panels(probe, batch.rows(), sizes, objective)
            assert_same(columns(parts), columns(result))
            assert_same(statistics(parts), statistics(result))


def measure(probe: str, batches: Batches | DenseRows, objective: str = "ntxent") -> Numbers:
    """Return statistic -> a number per batch."""
    return statistics(run(probe, batches, objective))


DEGENERATE = ("collapsed", "one negative", "all skipped", "separated", "opposite")


def degenerate(kind: str) -> Batches:
    """Return two batches in float32 at which formulas break."""
    batch = random_batches(k=2, gaps=False)
    batch = replace(batch, queries=batch.queries.float(), candidates=batch.candidates.float())
    if kind == "collapsed":
        point = batch.queries[:1, :1]
        return replace(batch, queries=point.expand_as(batch.queries), candidates=point.expand(2, 7, 4))
    if kind == "one negative":
        return replace(batch, **{k: getattr(batch, k)[:, :2] for k in ("queries", "candidates")}, **_first_two(batch))
    if kind == "all skipped":
        return replace(batch, match=torch.zeros_like(batch.match))
    axes = torch.eye(8)[None].repeat(2, 1, 1)
    if kind == "separated":
        return replace(batch, queries=axes[:, :6], candidates=axes[:, :7])
    return replace(batch, queries=axes[:, :6], candidates=-axes[:, :7])


def _first_two(batch: Batches) -> dict[str, Tensor]:
    return {name: getattr(batch, name)[:, :2, :2] for name in ("match", "valid")}
