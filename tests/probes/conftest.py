"""What tests of probes share: small batches, stacked, alone and cut into panels, and what a probe says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Direction, Mask
from lossscope.engine.run_probes import ProbeResult, merge_parts, plan_probes, run_probes
from lossscope.probes.base import reduce_column
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import build

Numbers = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Batches:
    """k batches of one shape: queries (k, q, d), candidates (k, c, d), match and valid (k, q, c)."""

    queries: Tensor
    candidates: Tensor
    match: Tensor
    valid: Tensor
    direction: Direction = "i2t"

    @property
    def S(self) -> Tensor:
        """(k, q, c)"""
        return torch.bmm(self.queries, self.candidates.transpose(1, 2))

    def rows(self) -> DenseRows:
        """All of them, stacked."""
        k, q, c = self.match.shape
        ids = torch.arange(k * q), torch.arange(k * c).view(k, c)
        mask = Mask(self.match.flatten(0, 1), self.valid.flatten(0, 1), direction=self.direction)
        shape = BatchShape(k, self.direction, *ids)
        return DenseRows(shape, self.S.flatten(0, 1), mask, self.queries.flatten(0, 1), self.candidates)

    def alone(self) -> Iterator[Batches]:
        """Each of them."""
        for b in range(len(self.match)):
            part = slice(b, b + 1)
            yield replace(
                self,
                queries=self.queries[part],
                candidates=self.candidates[part],
                match=self.match[part],
                valid=self.valid[part],
            )

    def in_order(self, queries: Sequence[int], candidates: Sequence[int]) -> Batches:
        """The same with queries and candidates of every batch in another order."""
        return replace(
            self,
            queries=self.queries[:, queries],
            candidates=self.candidates[:, candidates],
            match=self.match[:, queries][:, :, candidates],
            valid=self.valid[:, queries][:, :, candidates],
        )


def cut(rows: DenseRows, sizes: Sequence[int]) -> list[DenseRows]:
    """Panels of one batch: some of its queries each, and all candidates."""
    assert rows.shape.batches == 1
    panels = []
    for part in torch.arange(len(rows.S)).split(list(sizes)):
        shape = replace(rows.shape, query_ids=rows.shape.query_ids[part], whole=False)
        own = {name: getattr(rows, name) for name in ("queries", "query_keys", "query_groups")}
        own = {name: values[part] for name, values in own.items() if values is not None}
        own["everyone"] = None if rows.queries is None else rows.queries[None]
        panels.append(replace(rows, shape=shape, S=rows.S[part], mask=rows.mask.rows(part), **own))
    return panels


def drawn(
    seed: int = 0, k: int = 3, q: int = 6, c: int = 7, d: int = 4, many: bool = False, gaps: bool = True
) -> Batches:
    """Random unit rows in float64; pair i on the diagonal, or up to three positives a query.

    gaps: some candidates take no part; query 1 has no positive, and query 2 no negative.
    """
    random = torch.Generator().manual_seed(seed)
    queries, candidates = (
        torch.nn.functional.normalize(torch.randn(k, n, d, generator=random, dtype=torch.float64), dim=-1)
        for n in (q, c)
    )
    match = torch.eye(q, c, dtype=torch.bool).repeat(k, 1, 1)
    if many:
        match |= torch.rand(k, q, c, generator=random) < 0.2
    valid = torch.ones(k, q, c, dtype=torch.bool)
    if gaps:
        valid = (torch.rand(k, q, c, generator=random) < 0.8) | match
        match[:, 1] = False
        valid[:, 2] = match[:, 2]
    return Batches(queries, candidates, match, valid)


def found(probe: str, batches: Batches | DenseRows, objective: str = "ntxent") -> ProbeResult:
    """What a probe finds in a stack."""
    rows = batches.rows() if isinstance(batches, Batches) else batches
    questions = plan_probes([build("objectives", objective)], [build("probes", probe)])
    (one,) = run_probes(rows, questions)
    return one


def statistics(one: ProbeResult) -> Numbers:
    """Statistic -> a number per batch."""
    columns = one.columns()
    return {s.name: reduce_column(s, columns, one.shape.batches).numpy() for s in one.statistics()}


def columns(one: ProbeResult) -> Numbers:
    """Column -> a number per element."""
    return {name: value.numpy() for name, value in one.columns().items()}


def joined_panels(probe: str, rows: DenseRows, sizes: Sequence[int], objective: str = "ntxent") -> ProbeResult:
    """The same of one batch whose queries come in panels."""
    return merge_parts([found(probe, panel, objective) for panel in cut(rows, sizes)], rows.shape)


def same(a: Numbers, b: Numbers, rtol: float = 1e-9, atol: float = 1e-11) -> None:
    """Assert that both have the same names and numbers."""
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=rtol, atol=atol, err_msg=name)


def however_cut(probe: str, batches: Batches, objective: str = "ntxent", panels: bool = True) -> None:
    """Assert that a stack says what its batches say alone, and a batch the same by rows, by columns and in panels."""
    stacked = statistics(found(probe, batches, objective))
    for b, one in enumerate(batches.alone()):
        alone = found(probe, one, objective)
        same({name: values[b : b + 1] for name, values in stacked.items()}, statistics(alone))
        by_columns = replace(one.rows(), S=one.S[0].T.contiguous().T)
        same(columns(found(probe, by_columns, objective)), columns(alone))
        q = one.match.shape[1]
        for sizes in ([q - 1, 1], [1, 2, q - 3]) if panels else []:
            parts = joined_panels(probe, one.rows(), sizes, objective)
            same(columns(parts), columns(alone))
            same(statistics(parts), statistics(alone))


@dataclass(frozen=True)
class Lab:
    """The functions above, for tests, which can not import them."""

    drawn: Callable[..., Batches] = drawn
    found: Callable[..., ProbeResult] = found
    statistics: Callable[[ProbeResult], Numbers] = statistics
    columns: Callable[[ProbeResult], Numbers] = columns
    however_cut: Callable[..., None] = however_cut
    joined_panels: Callable[..., ProbeResult] = joined_panels
    cut: Callable[[DenseRows, Sequence[int]], list[DenseRows]] = cut
    same: Callable[..., None] = same

    def ask(self, probe: str, batches: Batches | DenseRows, objective: str = "ntxent") -> Numbers:
        """Statistic -> a number per batch."""
        return statistics(found(probe, batches, objective))


@pytest.fixture(scope="session")
def lab() -> Lab:
    """What makes batches and asks probes."""
    return Lab()


@pytest.fixture(params=["collapsed", "one negative", "all skipped", "separated", "opposite"])
def degenerate(request: pytest.FixtureRequest) -> Batches:
    """Batches in float32 at which formulas break: two each."""
    one = drawn(k=2, gaps=False)
    one = replace(one, queries=one.queries.float(), candidates=one.candidates.float())
    if request.param == "collapsed":
        same_place = one.queries[:1, :1]
        return replace(one, queries=same_place.expand_as(one.queries), candidates=same_place.expand(2, 7, 4))
    if request.param == "one negative":
        return replace(one, **{k: getattr(one, k)[:, :2] for k in ("queries", "candidates")}, **_corner(one))
    if request.param == "all skipped":
        return replace(one, match=torch.zeros_like(one.match))
    axes = torch.eye(8)[None].repeat(2, 1, 1)
    if request.param == "separated":
        return replace(one, queries=axes[:, :6], candidates=axes[:, :7])
    return replace(one, queries=axes[:, :6], candidates=-axes[:, :7])


def _corner(one: Batches) -> dict[str, Tensor]:
    return {name: getattr(one, name)[:, :2, :2] for name in ("match", "valid")}
