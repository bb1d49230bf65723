"""Entries found by the maxima of blocks are those that comparing the whole tile finds, and so are all counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.engine.tiled.matrix import TiledMatrix
from lossscope.engine.tiled.one_pass import TiledRows, TilePass
from lossscope.engine.tiled.sparse_mask import SparseMask
from lossscope.objectives.counting import large_entries
from lossscope.objectives.counting.buffers import Buffers
from lossscope.objectives.counting.large_entries import EntrySearch, LargeEntries
from lossscope.probes.views.view import BatchShape
from lossscope.registry import build
from tests.each import each

SPECS = ("ntxent:tau=0.05", "ntxent:tau=0.01", "dcl", "unified", "triplet", "triplet-sh")


def tile_of(rows: int, columns: int, seed: int) -> Tensor:
    """Similarities of few different values, so that many equal a bound, and some that are no negatives."""
    generator = torch.Generator().manual_seed(seed)
    tile = torch.randint(-8, 9, (rows, columns), generator=generator) / 8
    return tile.masked_fill(torch.rand(rows, columns, generator=generator) < 0.1, -torch.inf)


def bounds_of(tile: Tensor, dim: int, seed: int) -> Tensor:
    """Bounds high enough that few entries reach them; one of them infinite."""
    generator = torch.Generator().manual_seed(seed)
    bound = tile.amax(dim).clamp(min=0.0) + torch.randint(0, 3, tile.shape[1 - dim : 2 - dim], generator=generator) / 8
    bound[0] = torch.inf
    return bound


@each("dim", [0, 1])
@given(rows=st.integers(1, 70), columns=st.integers(1, 90), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_the_entries_are_those_of_a_comparison_of_the_whole_tile(dim: int, rows: int, columns: int, seed: int) -> None:
    tile = tile_of(rows, columns, seed)
    bound = bounds_of(tile, dim, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_entries, "_SHARE", 0)  # never too many
        entries = Buffers().at_least(tile, bound, dim, EntrySearch())
    assert entries is not None
    expected = LargeEntries.where(tile >= bound.unsqueeze(dim), tile, dim)
    assert sorted_entries(entries) == sorted_entries(expected)
    assert sorted_entries(entries.above(bound)) == sorted_entries(
        LargeEntries.where(tile > bound.unsqueeze(dim), tile, dim)
    )


def sorted_entries(entries: LargeEntries) -> list[tuple[int, float]]:
    return sorted(zip(entries.queries.tolist(), entries.values.tolist(), strict=True))


def test_nan_hides_no_entry_of_its_block() -> None:
    tile = torch.zeros(16, 64)
    tile[3, 5], tile[4, 5] = torch.nan, 2.0
    for dim in (0, 1):
        entries = Buffers().at_least(tile, torch.ones(tile.shape[1 - dim]), dim, EntrySearch())
        assert entries is not None and entries.values.tolist() == [2.0]


def test_a_tile_with_too_many_entries_pauses_the_search_for_ever_longer() -> None:
    search, buffers, full, empty = EntrySearch(), Buffers(), torch.ones(16, 16), torch.zeros(16, 16)
    bound, searched = torch.full((16,), 0.5), []
    for tile in [full] * 12 + [empty] * 40:
        before = search.is_paused
        searched.append(buffers.at_least(tile, bound, 1, search) is not None)
        assert search.is_paused == before
    assert not any(searched[:12])
    first = searched.index(True)
    assert 12 <= first <= 28 and all(searched[first:])  # pauses of 1, 2, 4 and 8 tiles


def test_maxima_of_columns_are_exact_from_blocks() -> None:
    tile = tile_of(37, 41, 0)
    buffers = Buffers()
    buffers.next_tile()
    assert torch.equal(buffers.maxima(tile, 0), tile.amax(0)) and torch.equal(buffers.maxima(tile, 1), tile.amax(1))
    other = tile_of(37, 41, 1)
    buffers.next_tile()
    assert torch.equal(buffers.maxima(other, 0), other.amax(0)), "nothing of an earlier tile is left"


@each("dim", [0, 1])
def test_sums_of_squares(dim: int) -> None:
    tile = torch.rand(37, 5000, generator=torch.Generator().manual_seed(0))
    expected = tile.double().square().sum(dim)
    torch.testing.assert_close(Buffers().sum_of_squares(tile, dim).double(), expected, rtol=1e-5, atol=0)


def clustered_source(n: int, per_cluster: int) -> SplitEmbeddings:
    """Vectors of clusters, so that every query has near candidates, in no order."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(-(-n // per_cluster), 24, generator=generator)
    own = torch.randperm(n, generator=generator) // per_cluster
    v, t = (centres[own] + 0.4 * torch.randn(n, 24, generator=generator) for _ in range(2))
    v, t = (torch.nn.functional.normalize(x, dim=1) for x in (v, t))
    ids = [str(i) for i in range(n)]
    return SplitEmbeddings("clusters", v, t, None, np.arange(n), ids, ids, "f" * 64)


def run_pass(embedded: SplitEmbeddings) -> Pair[TiledRows]:
    batch = next(Sampling("pairs", None).batches(embedded.relations))
    images, captions = torch.from_numpy(batch.images), torch.from_numpy(batch.captions)
    shapes = Pair(BatchShape(1, "i2t", images, captions[None]), BatchShape(1, "t2i", captions, images[None]))
    mask = SparseMask.of(batch, embedded.relations, "keep")
    objectives = [build("objectives", spec) for spec in SPECS]
    tile_pass = TilePass(objectives, [0.01, 0.2], True, rows=90, columns=150)
    return tile_pass.run(TiledMatrix(embedded, batch.images, batch.captions), mask, shapes)


@each("per_cluster", [1, 6, 40])
def test_a_pass_gives_the_same_bits_whether_or_not_blocks_are_searched(
    per_cluster: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = clustered_source(600, per_cluster)
    searched = run_pass(embedded)
    monkeypatch.setattr(EntrySearch, "is_paused", lambda self: True)
    compared = run_pass(embedded)
    for a, b in zip(searched, compared, strict=True):
        for name in ("hardest", "column", "above", "ties"):
            assert torch.equal(getattr(a.extremes, name), getattr(b.extremes, name)), name
        for objective in a.accumulators:
            for eps in (0.01, 0.2):
                one, other = (rows.counts(objective, eps, "corrected") for rows in (a, b))
                for name in ("above", "mass_above", "mass_below", "positive", "n_eff"):
                    assert torch.equal(getattr(one, name).nan_to_num(9), getattr(other, name).nan_to_num(9)), name
