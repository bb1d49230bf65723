"""Do tiles keep last bits, memory and processes in order? tests/engine/test_paths.py has the numbers."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lossscope.core import memory
from lossscope.core.batches import Batch, Sampling
from lossscope.core.distributed import ProcessGroup
from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine import large_batches, small_batches
from lossscope.engine.blocks.matrix import COLUMNS, ROWS, MatrixBlocks, TiledMatrix, row_slices, tile_size
from lossscope.engine.blocks.sparse_mask import SparseMask
from lossscope.engine.fold import FoldedRows, fold, folds_of
from lossscope.engine.run_probes import ProbePlan
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting import kept_entries
from lossscope.probes.cocos import Cocos
from lossscope.probes.similarity import Similarity
from lossscope.probes.views.view import DenseRows
from lossscope.registry import build
from tests.engine.paths import KINDS, Kind, captions

SINGLE = ("ntxent:tau=0.05", "ntxent:tau=0.01", "unified", "vlc", "dcl", "triplet", "triplet:margin=0", "triplet_sh")


def whole_batch(embedded: SplitEmbeddings, how: Any) -> Batch:
    return next(Sampling(how, None, shuffle=False).batches(embedded.caption_image))


def run_pass(
    embedded: SplitEmbeddings, batch: Batch, objectives: list[Objective], eps: list[float], rows: int, columns: int
) -> list[FoldedRows]:
    blocks = MatrixBlocks(TiledMatrix(embedded, batch.images, batch.captions), rows, columns)
    plan = ProbePlan.of(objectives, [Similarity(), *(Cocos(eps=threshold) for threshold in eps)])
    mask = SparseMask.of(batch, embedded.caption_image, "keep")
    return fold(blocks, mask, large_batches.batch_shapes(batch), lambda _, positives: folds_of(plan, positives))


def assert_same(tiled_rows: FoldedRows, whole: DenseRows, objectives: list[Objective], eps: list[float]) -> None:
    for name in ("positive", "hardest", "column", "above", "ties"):
        actual, expected = (getattr(rows.extremes, name).double() for rows in (tiled_rows, whole))
        assert torch.equal(actual.nan_to_num(9), expected.nan_to_num(9)), name
    for objective, threshold in product(objectives, eps):
        actual, expected = (rows.counts(objective, threshold, "corrected") for rows in (tiled_rows, whole))
        assert torch.equal(actual.above, expected.above), (objective, threshold)
        assert torch.equal(actual.skipped, expected.skipped)
        torch.testing.assert_close(actual.n_eff, expected.n_eff, rtol=1e-5, atol=0, equal_nan=True)
        for name in ("mass_above", "mass_below", "positive"):
            a, b = getattr(actual, name).double(), getattr(expected, name).double()
            torch.testing.assert_close(a, b, rtol=3e-6, atol=3e-6 * max(1.0, float(expected.positive.max())))


@pytest.mark.parametrize("kind", KINDS)
def test_general_floats_differ_only_beside_a_threshold(kind: Kind) -> None:
    embedded = captions(kind, 150, 2, d=100, grid=False)
    batch, objective, eps = whole_batch(embedded, "pairs"), build("objectives", "ntxent:tau=0.05"), 0.01
    tiled_rows = run_pass(embedded, batch, [objective], [eps], rows=37, columns=41)
    for side, whole in zip(tiled_rows, small_batches.rows_of_stack(embedded, [batch], "keep"), strict=True):
        p = (whole.S.double() / 0.05).softmax(1)
        beside = ((p / eps - 1).abs() < 4 * 1.2e-7 / 0.05).sum(1)
        actual, expected = (rows.counts(objective, eps, "corrected").above for rows in (side, whole))
        assert ((actual - expected).abs() <= beside).all()


def test_a_positive_does_not_outrank_itself_whatever_the_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate product differs in its last bits: the sweep ranks such queries again from one product."""
    embedded = captions("collapsed", 30, 1)
    batch = whole_batch(embedded, "pairs")
    shifted = lambda matrix, mask: (matrix.images * matrix.captions).double().sum(1).float() - 1e-7  # noqa: E731
    monkeypatch.setattr("lossscope.engine.blocks.matrix.positive_similarities", shifted)
    tiled_rows = run_pass(embedded, batch, [], [], rows=7, columns=11)
    for side, whole in zip(tiled_rows, small_batches.rows_of_stack(embedded, [batch], "keep"), strict=True):
        assert torch.equal(side.extremes.above, whole.extremes.above)
        assert torch.equal(side.extremes.ties, whole.extremes.ties)


def test_too_many_kept_entries_lead_to_a_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_entries, "PER_QUERY", 1)
    for kind, how, spec in (("random", "pairs", "ntxent:tau=0.5"), ("random", "images", "smoothap:tau=0.2")):
        embedded, objective = captions(kind, 40, 3), build("objectives", spec)
        batch = whole_batch(embedded, how)
        tiled_rows = run_pass(embedded, batch, [objective], [1e-4], rows=16, columns=16)
        for side, whole in zip(tiled_rows, small_batches.rows_of_stack(embedded, [batch], "keep"), strict=True):
            assert side.folds[objective].recounted is not None
            assert_same(side, whole, [objective], [1e-4])


def test_an_objective_that_needs_the_whole_matrix_is_refused_if_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedded = captions("random", 60, 2)
    monkeypatch.setattr(memory, "LARGE_ENTRIES", 100)
    Sweep(("goal:pair=sig-ms",), batch_size=None).run(embedded)  # it fits
    monkeypatch.setattr(memory, "free_bytes", lambda device: 100_000)
    with pytest.raises(InputError, match=r"must fit into memory.*takes about 0\.0 GB. Use a smaller --batch-size"):
        Sweep(("goal:pair=sig-ms",), batch_size=None).run(embedded)
    with pytest.raises(InputError, match="must fit into memory"):
        Sweep(("triplet",), ("cocos:convention=released",), batch_size=None).run(embedded)


def test_tiles_shrink_when_memory_runs_out() -> None:
    tried = []

    def work(size: int) -> int:
        tried.append(size)
        if size > 40:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory")
        return size

    assert memory.retry_smaller(work, 256, 16) == 32
    assert tried == [256, 128, 64, 32]
    with pytest.raises(RuntimeError, match="allocate"):
        memory.retry_smaller(work, 256, 64)
    with pytest.raises(RuntimeError, match="other"):
        memory.retry_smaller(lambda size: (_ for _ in ()).throw(RuntimeError("other")), 256, 16)


def test_free_memory_is_positive() -> None:
    assert memory.free_bytes(torch.device("cpu")) > 1 << 20


@given(st.integers(1, 5000), st.integers(2, 300))
def test_slices_cover_everything_evenly(n: int, size: int) -> None:
    slices = row_slices(n, size)
    assert [i for part in slices for i in range(part.start, part.stop)] == list(range(n))
    lengths = {part.stop - part.start for part in slices}
    assert max(lengths) <= size and max(lengths) - min(lengths) <= 1


def test_no_process_of_many_changes_its_tiles_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other processes would wait for ever for the sums of its tiles."""
    embedded, tried = captions("random", 20, 2), []

    def scarce(blocks: MatrixBlocks, *_: object) -> None:
        tried.append(blocks.height)
        raise MemoryError

    monkeypatch.setattr(large_batches, "fold", scarce)
    for size, times in ((2, 1), (1, 5)):
        tried.clear()
        runner = large_batches.LargeBatchRunner(
            ProbePlan(((build("objectives", "ntxent"), build("probes", "cocos")),)), "keep", ProcessGroup(0, size)
        )
        with pytest.raises(MemoryError):
            list(runner.run(embedded, whole_batch(embedded, "pairs")))
        assert len(tried) == times


def test_a_tile_of_another_device_has_sixteen_times_the_entries_of_one_of_the_cpu() -> None:
    (rows, columns), (more_rows, more_columns) = (tile_size(torch.device(name)) for name in ("cpu", "meta"))
    assert (rows, columns) == (ROWS, COLUMNS)
    assert (
        more_rows * more_columns
        == memory.entries_at_a_time(rows * columns, torch.device("meta"))
        == 16 * rows * columns
    )
