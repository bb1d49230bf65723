"""Do the maxima of blocks find the entries and counts that comparing the whole tile finds?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Direction
from lossscope.engine.blocks.matrix import MatrixBlocks, TiledMatrix
from lossscope.engine.blocks.sparse_mask import SparseMask
from lossscope.engine.fold import FoldedRows, fold, folds_of
from lossscope.engine.large_batches import batch_shapes
from lossscope.engine.run_probes import ProbePlan
from lossscope.objectives.counting import large_entries
from lossscope.objectives.counting.block import Block, Buffers, Tile
from lossscope.objectives.counting.large_entries import EntrySearch, LargeEntries
from lossscope.registry import build
from tests.each import each

SPECS = ("ntxent:tau=0.05", "ntxent:tau=0.01", "dcl", "unified", "triplet", "triplet-sh")
OBJECTIVES = [build("objectives", spec) for spec in SPECS]
PROBES = [build("probes", spec) for spec in ("cocos:eps=0.01", "cocos:eps=0.2", "similarity")]


def tile_of(rows: int, columns: int, seed: int) -> Tensor:
    """Return similarities of few values, so that many equal a bound; a part are no negatives."""
    generator = torch.Generator().manual_seed(seed)
    tile = torch.randint(-8, 9, (rows, columns), generator=generator) / 8
    return tile.masked_fill(torch.rand(rows, columns, generator=generator) < 0.1, -torch.inf)


def bounds_of(tile: Tensor, dim: int, seed: int) -> Tensor:
    """Return bounds that few entries reach; one bound is infinite."""
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
        entries = find_entries(tile, bound, dim, EntrySearch())
    assert entries is not None
    expected = LargeEntries.where(tile >= bound.unsqueeze(dim), tile, dim)
    assert sorted_entries(entries) == sorted_entries(expected)
    assert sorted_entries(entries.above(bound)) == sorted_entries(
        LargeEntries.where(tile > bound.unsqueeze(dim), tile, dim)
    )


def find_entries(tile: Tensor, bound: Tensor, dim: int, search: EntrySearch) -> LargeEntries | None:
    return None if search.is_paused() else search.at_least(tile, block_of(tile, dim).tile.block_maxima, bound, dim)


def block_of(tile: Tensor, dim: int) -> Block:
    return Block(Tile(tile, *(slice(0, n) for n in tile.shape)), dim)


def sorted_entries(entries: LargeEntries) -> list[tuple[int, float]]:
    return sorted(zip(entries.queries.tolist(), entries.values.tolist(), strict=True))


def test_nan_hides_no_entry_of_its_block() -> None:
    tile = torch.zeros(16, 64)
    tile[3, 5], tile[4, 5] = torch.nan, 2.0
    for dim in (0, 1):
        entries = find_entries(tile, torch.ones(tile.shape[1 - dim]), dim, EntrySearch())
        assert entries is not None and entries.values.tolist() == [2.0]


def test_a_tile_with_too_many_entries_pauses_the_search_for_ever_longer() -> None:
    search, full, empty = EntrySearch(), torch.ones(16, 16), torch.zeros(16, 16)
    bound, searched = torch.full((16,), 0.5), []
    for tile in [full] * 12 + [empty] * 40:
        before = search.is_paused
        searched.append(find_entries(tile, bound, 1, search) is not None)
        assert search.is_paused == before
    assert not any(searched[:12])
    first = searched.index(True)
    assert 12 <= first <= 28 and all(searched[first:])  # pauses of 1, 2, 4 and 8 tiles


def test_maxima_of_columns_are_exact_from_blocks() -> None:
    buffers = Buffers()
    for seed in (0, 1):  # entries of an earlier tile are gone
        tile = tile_of(37, 41, seed)
        both = Tile(tile, slice(0, 37), slice(0, 41), buffers).both
        assert [torch.equal(block.max(), tile.amax(block.dim)) for block in both] == [True, True]


@each("dim", [0, 1])
def test_sums_of_squares(dim: int) -> None:
    tile = torch.rand(37, 5000, generator=torch.Generator().manual_seed(0))
    expected = tile.double().square().sum(dim)
    torch.testing.assert_close(block_of(tile, dim).sum_of_squares(tile).double(), expected, rtol=1e-5, atol=0)


def clustered_source(n: int, per_cluster: int) -> SplitEmbeddings:
    """Return vectors in clusters, in random order, so that every query has near candidates."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(-(-n // per_cluster), 24, generator=generator)
    cluster = torch.randperm(n, generator=generator) // per_cluster
    v, t = (centres[cluster] + 0.4 * torch.randn(n, 24, generator=generator) for _ in range(2))
    v, t = (torch.nn.functional.normalize(x, dim=1) for x in (v, t))
    ids = [str(i) for i in range(n)]
    return SplitEmbeddings("clusters", v, t, None, np.arange(n), ids, ids, "f" * 64)


def run_pass(embedded: SplitEmbeddings) -> dict[Direction, FoldedRows]:
    batch = next(Sampling("pairs", None).batches(embedded.relations))
    blocks = MatrixBlocks(TiledMatrix(embedded, batch.images, batch.captions), 90, 150)
    mask = SparseMask.of(batch, embedded.relations, "keep")
    plan = ProbePlan.of(OBJECTIVES, PROBES)
    folded = fold(blocks, mask, batch_shapes(batch), lambda _, positives: folds_of(plan, positives))
    return {rows.shape.direction: rows for rows in folded}


@each("per_cluster", [1, 6, 40])
def test_a_pass_gives_the_same_bits_whether_or_not_blocks_are_searched(
    per_cluster: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = clustered_source(600, per_cluster)
    searched = run_pass(embedded)
    monkeypatch.setattr(EntrySearch, "is_paused", lambda self: True)
    compared = run_pass(embedded)
    for a, b in zip(searched.values(), compared.values(), strict=True):
        for name in ("hardest", "column", "above", "ties"):
            assert torch.equal(getattr(a.extremes, name), getattr(b.extremes, name)), name
        for objective in OBJECTIVES:
            for eps in (0.01, 0.2):
                first, second = (rows.counts(objective, eps, "corrected") for rows in (a, b))
                for name in ("above", "mass_above", "mass_below", "positive", "n_eff"):
                    assert torch.equal(getattr(first, name).nan_to_num(9), getattr(second, name).nan_to_num(9)), name
