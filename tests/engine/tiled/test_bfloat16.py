"""Tiles in bfloat16 with exact rechecks against float32 tiles: the same counts, hardest negatives, ranks and ties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.core.batches import Batch, Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.engine import large_batches
from lossscope.engine.sweep import Sweep
from lossscope.engine.tiled import bfloat16
from lossscope.engine.tiled.bfloat16 import Bfloat16Tiles
from lossscope.engine.tiled.matrix import Tile, TiledMatrix, row_slices
from lossscope.engine.tiled.one_pass import TiledRows, TilePass
from lossscope.engine.tiled.sparse_mask import SparseMask
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.buffers import Buffers
from lossscope.probes.views.view import BatchShape
from lossscope.registry import build

Kind = Literal["random", "tied", "collapsed", "clusters", "sorted"]
Passes = tuple[Pair[TiledRows], Pair[TiledRows]]  # in float32, in bfloat16
SPECS = ("triplet", "triplet:margin=0", "triplet_sh")
EXTREMES = ("positive", "hardest", "column", "above", "ties")
EVERY = pytest.mark.parametrize("kind", ["random", "tied", "collapsed", "clusters", "sorted"])
SHARES = pytest.mark.parametrize("share", [0, 128], ids=["never float32", "float32 where much is undecided"])


def source(
    kind: Kind, images: int, captions: int = 1, d: int = 16, seed: int = 0, grid: bool = True
) -> SplitEmbeddings:
    """Embeddings of a kind; on a dyadic grid products are exact in float32, and need more bits than bfloat16 has."""
    generator = torch.Generator().manual_seed(seed)
    owner = np.repeat(np.arange(images), captions)
    v = torch.randn(images, d, generator=generator) / d**0.5
    t = v[owner] + 0.5 * torch.randn(len(owner), d, generator=generator) / d**0.5
    if kind == "tied":
        v, t = v.sign() / 8, t.sign() / 8
    if kind == "collapsed":
        v, t = torch.full_like(v, 0.2568359375), torch.full_like(t, 0.2509765625)
    if kind == "clusters":
        v, t = (x[torch.randint(min(3, len(x)), (len(x),), generator=generator)] for x in (v, t))
    if kind == "sorted":
        t = t * torch.linspace(0.1, 1, len(t))[:, None]
    if grid:
        v, t = ((x * 1024).round() / 1024 for x in (v, t))
    ids = [[str(i) for i in range(n)] for n in (images, len(owner))]
    return SplitEmbeddings("made", v, t, None, owner, ids[0], ids[1], "f" * 64)


def inputs_of(embedded: SplitEmbeddings, same_image: Any = "keep") -> tuple[TiledMatrix, SparseMask, Pair[BatchShape]]:
    batch: Batch = next(Sampling("pairs", None, shuffle=False).batches(embedded.caption_image))
    images, captions = torch.from_numpy(batch.images), torch.from_numpy(batch.captions)
    shapes = Pair(BatchShape(1, "i2t", images, captions[None]), BatchShape(1, "t2i", captions, images[None]))
    mask = SparseMask.of(batch, embedded.caption_image, same_image)
    return TiledMatrix(embedded, batch.images, batch.captions), mask, shapes


def both(embedded: SplitEmbeddings, specs: tuple[str, ...], same_image: Any = "keep", **options: Any) -> Passes:
    objectives: list[Objective] = [build("objectives", spec) for spec in specs]
    in_float32 = TilePass(objectives, [0.01], **{"extremes": True, **options})
    case = inputs_of(embedded, same_image)
    return in_float32.run(*case), replace(in_float32, precision="bf16").run(*case)


def assert_same(plain: Pair[TiledRows], rounded: Pair[TiledRows], exactly: bool = True) -> None:
    for a, b in zip(plain, rounded, strict=True):
        for name in EXTREMES if a.tracker is not None else ():
            actual, expected = (getattr(rows.extremes, name).double().nan_to_num(9) for rows in (b, a))
            tolerance = 0 if exactly or name in ("column", "above", "ties") else 1e-6
            torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance, msg=name)
        for objective in a.accumulators:
            x, y = (rows.counts(objective, 0.01, "corrected") for rows in (a, b))
            for name in ("above", "mass_above", "mass_below", "positive", "skipped"):
                torch.testing.assert_close(getattr(x, name), getattr(y, name), rtol=0, atol=0 if exactly else 1e-4)


@EVERY
@SHARES
@pytest.mark.parametrize("extremes", [False, True])
@given(
    st.integers(3, 40), st.integers(3, 50), st.integers(2, 30), st.sampled_from(["keep", "mask"]), st.integers(0, 99)
)
@settings(max_examples=6, deadline=None)
def test_results_equal_those_of_float32_bit_for_bit(
    kind: Kind, share: int, extremes: bool, rows: int, columns: int, images: int, same_image: str, seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bfloat16, "_SHARE", share)
        embedded = source(kind, images, 2, seed=seed)
        assert_same(*both(embedded, SPECS, same_image, rows=rows, columns=columns, extremes=extremes))


@SHARES
@EVERY
@pytest.mark.parametrize("d", [3, 100])
def test_general_floats(kind: Kind, share: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat16, "_SHARE", share)
    monkeypatch.setattr(bfloat16, "_TIED", 0)
    assert_same(
        *both(source(kind, 150, d=d, grid=False), ("triplet", "triplet_sh"), rows=37, columns=41), exactly=False
    )


@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
@given(st.integers(1, 200), st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_no_entry_is_further_off_than_its_error_bound(scale: float, d: int, seed: int) -> None:
    embedded = source("random", 40, d=d, seed=seed, grid=False)
    assert embedded.images is not None and embedded.captions is not None
    embedded = replace(embedded, images=embedded.images * scale, captions=embedded.captions / 3)
    matrix, _, _ = inputs_of(embedded)
    assert matrix.images is not None and matrix.captions is not None
    tiles = Bfloat16Tiles(matrix, Buffers())
    for tile in tiles.tiles(row_slices(40, 13), row_slices(40, 17), Buffers()):
        exact = matrix.images[tile.rows].double() @ matrix.captions[tile.columns].double().T
        for error, dim in zip(tiles.error(tile), (1, 0), strict=True):
            low, high = ((exact + sign * error.unsqueeze(dim)).bfloat16().double() for sign in (-1, 1))
            assert ((low <= tile.S) & (high >= tile.S)).all()


def test_bfloat16_without_rechecks_gives_other_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = source("random", 100)
    monkeypatch.setattr(Bfloat16Tiles, "make_exact", lambda self, tile, undecided: True)
    with pytest.raises(AssertionError):
        assert_same(*both(embedded, ("triplet",), rows=37, columns=41, extremes=False))


def test_a_tile_with_too_many_undecided_entries_is_computed_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    exact: list[bool] = []
    make_exact = Bfloat16Tiles.make_exact

    def record(self: Bfloat16Tiles, tile: Tile, undecided: Any) -> bool:
        exact.append(make_exact(self, tile, undecided))
        return exact[-1]

    monkeypatch.setattr(Bfloat16Tiles, "make_exact", record)
    assert_same(*both(source("collapsed", 60), ("triplet:margin=0",), rows=5, columns=10, extremes=False))
    assert exact and not any(exact)
    assert len(exact) < 10, "most of the 72 tiles must be computed in float32 at once"
    exact.clear()
    assert_same(*both(source("collapsed", 60), (), rows=5, columns=10))
    assert not exact, "ranking all of them again would take longer than float32"
    embedded = source("random", 300, d=64)
    assert_same(*both(embedded, ("triplet:margin=100",), rows=150, columns=150, extremes=False))
    assert exact == [True] * 4


def test_positives_that_are_tied_in_a_float32_tile_are_returned() -> None:
    embedded = source("random", 64, d=48, grid=False)
    assert embedded.images is not None and embedded.captions is not None
    embedded.captions[32:] = embedded.captions[5]
    matrix, mask, _ = inputs_of(embedded)
    tiles = Bfloat16Tiles(matrix, Buffers())
    best = tiles.positives(mask)
    rows, columns = tiles.tied_positives(tiles.product(slice(0, 16), slice(32, 64)), Pair(best, best), mask)
    assert rows.tolist() == [5] and columns.tolist() == []


def test_equal_vectors_have_equal_similarities() -> None:
    embedded = source("random", 50, d=123, grid=False)
    assert embedded.images is not None and embedded.captions is not None
    embedded = replace(embedded, captions=embedded.captions[:1].repeat(50, 1))
    tiles = Bfloat16Tiles(inputs_of(embedded)[0], Buffers())
    alone = torch.stack([tiles.exact(torch.tensor([3]), torch.tensor([j]))[0] for j in range(50)])
    assert torch.equal(tiles.exact(torch.full((50,), 3), torch.arange(50)), alone)
    assert torch.equal(alone, alone[:1].repeat(50))


def test_an_objective_that_adds_up_exponentials_is_refused_before_any_work() -> None:
    for spec in ("ntxent", "smoothap"):
        with pytest.raises(InputError, match=r"adds up exponentials of every similarity; use --precision float32"):
            _ = Sweep((spec,), precision="bf16").plan


def test_only_float32_vectors_are_taken() -> None:
    embedded = source("random", 5)
    assert embedded.images is not None and embedded.captions is not None
    double = replace(embedded, images=embedded.images.double(), captions=embedded.captions.double())
    with pytest.raises(InputError, match=r"float32 embeddings on a CPU; got torch.float64 on cpu"):
        Bfloat16Tiles(inputs_of(double)[0], Buffers())
    alone = replace(embedded, images=None, captions=None, similarity=torch.eye(5))
    with pytest.raises(InputError, match=r"must be given embeddings; got similarities"):
        Bfloat16Tiles(inputs_of(alone)[0], Buffers())


def test_a_sweep_gives_the_same_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_batches, "PANEL", 1500)
    embedded, specs, probes = source("random", 60, 3), ("triplet", "triplet_sh", "siglip"), ("cocos", "recall")
    sweep = Sweep(specs, probes, batch_size=None, sampling="pairs", engine="tiled")
    assert sweep.run(embedded).summary.equals(replace(sweep, precision="bf16").run(embedded).summary)
    assert sweep.uses_tiles(embedded) and not replace(sweep, engine="auto").uses_tiles(embedded)
    assert not replace(sweep, objectives=("siglip",), probes=("cocos",)).uses_tiles(embedded), "panels are not tiles"
