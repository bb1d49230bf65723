"""Does every path from a source to its numbers give those of the whole matrix in float64?

Sizes of pieces, orders of blocks and shares of processes are drawn; tests/engine/paths.py has the scenarios.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.core.distributed import process_group
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import Mask, normalise
from lossscope.engine.paired_sweep import PairedSweep
from lossscope.engine.sweep import Sweep
from lossscope.live.monitor import LossScope
from lossscope.registry import build, names
from lossscope.sources.base import load
from tests.engine.paths import (
    COUPLED,
    KINDS,
    MANY,
    ONE,
    ONE_WHOLE,
    ROWS,
    SCENARIOS,
    TILES,
    WHOLE,
    Kind,
    Numbers,
    assert_same,
    captions,
    numbers_of_batches,
    numbers_of_summary,
    pieces,
    row_of_matrix,
    shares,
    similarities,
    whole_matrix,
    write_shards,
)
from tests.farm import run_ranks
from tests.lengths import thorough

IN_PIECES = [name for name, scenario in SCENARIOS.items() if scenario.in_pieces]
SAMPLED = [name for name in IN_PIECES if SCENARIOS[name].sampled]
sources = st.tuples(st.sampled_from(KINDS), st.integers(3, 12), st.integers(2, 3), st.integers(0, 99))
Source = tuple[Kind, int, int, int]


# paths of a sweep


def sweep_numbers(sweep: Sweep, source: SplitEmbeddings, **options: Any) -> Numbers:
    return numbers_of_batches(sweep.run(source, **options))


@pytest.mark.parametrize("name", SCENARIOS)
@settings(max_examples=5)
@given(source=sources)
def test_dense(name: str, source: Source) -> None:
    scenario, made = SCENARIOS[name], SCENARIOS[name].make(*source)
    sweep = scenario.sweep(engine="dense")
    assert_same(sweep_numbers(sweep, made), whole_matrix(scenario, made, sweep))


@pytest.mark.parametrize("name", SCENARIOS)
@settings(max_examples=5)
@given(source=sources, pairs=st.integers(2, 4), entries=st.integers(1, 400), seed=st.integers(0, 9))
def test_stacks(name: str, source: Source, pairs: int, entries: int, seed: int) -> None:
    scenario, made = SCENARIOS[name], SCENARIOS[name].make(*source)
    sweep = scenario.sweep(batch_size=2 * pairs, seed=seed)
    with pieces({"stack": entries}):
        assert_same(sweep_numbers(sweep, made), whole_matrix(scenario, made, sweep))


@pytest.mark.parametrize("name", IN_PIECES)
@settings(max_examples=5)
@given(source=sources, rows=st.integers(3, 20), columns=st.integers(3, 20), panel=st.integers(1, 300))
def test_tiles_and_panels(name: str, source: Source, rows: int, columns: int, panel: int) -> None:
    scenario, made = SCENARIOS[name], SCENARIOS[name].make(*source)
    sweep = scenario.sweep(engine="tiled")
    with pieces({"tile rows": rows, "tile columns": columns, "panel": panel}):
        assert_same(sweep_numbers(sweep, made), whole_matrix(scenario, made, sweep))


@pytest.mark.parametrize("name", SAMPLED)
@settings(max_examples=5)
@given(source=sources, strip=st.integers(3, 40))
def test_a_sample_of_all_queries(name: str, source: Source, strip: int) -> None:
    scenario, made = SCENARIOS[name], SCENARIOS[name].make(*source)
    sweep = scenario.sweep(queries=10_000, interval=0.95)
    with pieces({"strip": strip}):
        assert_same(sweep_numbers(sweep, made), whole_matrix(scenario, made, sweep))


@pytest.mark.parametrize("name", ["pairs", "images", "rows", "views"])
@pytest.mark.parametrize(("kind", "number", "strip"), [("tied", 3, 7), ("random", 1, 50), ("random", 7, 9)])
def test_shards(name: str, kind: Kind, number: int, strip: int, tmp_path: Path) -> None:
    """lossscope normalises vectors as it reads them: only tied ones are normalised already, and have exact products.

    The others have one caption an image, because the last bits decide whether an image ranks before its copy.
    """
    scenario, made = SCENARIOS[name], captions(kind, 12, 2 if kind == "tied" else 1)
    assert made.images is not None and made.captions is not None
    made = replace(made, images=normalise(made.images), captions=normalise(made.captions))
    sweep = scenario.sweep(queries=10_000, interval=0.95)
    with pieces({"strip": strip}):
        shards = load(write_shards(tmp_path / "shards", made, number), sharded=True)
        assert shards.shards is not None
        actual = sweep_numbers(sweep, shards)
    assert_same(actual, whole_matrix(scenario, made, sweep), exact=kind == "tied")


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "coupled"])
@settings(max_examples=4)
@given(source=sources, seed=st.integers(0, 9), engine=st.sampled_from(["dense", "tiled"]))
def test_pairs_of_sources(name: str, source: Source, seed: int, engine: Any) -> None:
    scenario, a = SCENARIOS[name], SCENARIOS[name].make(*source)
    assert a.captions is not None
    order = torch.randperm(len(a.captions), generator=torch.Generator().manual_seed(seed))
    b = replace(a, captions=a.captions[order])
    b = b if name != "classes" else replace(b, images=b.captions)
    sweep = scenario.sweep(engine=engine, per_query=False)
    rows = PairedSweep(sweep, sweep).run(a, b).rows
    for column, side in (("mean", a), ("b_mean", b)):
        assert_same(numbers_of_summary(rows, column), whole_matrix(scenario, side, sweep))


OF_RANKS: Source = ("tied", 11, 2, 1)
SWEEPS: dict[str, dict[str, Any]] = {
    "stacks": {"batch_size": 8},
    "tiled": {"engine": "tiled"},
    "sampled": {"queries": 10_000, "interval": 0.95},
}


WAYS = [
    (name, path)
    for path, scenarios in (("stacks", list(SCENARIOS)), ("tiled", IN_PIECES), ("sampled", SAMPLED))
    for name in scenarios
]


def sweeps_of_ranks() -> list[Numbers]:
    """Run each sweep in each process; only the first has all numbers."""
    here, done = process_group(), list[Numbers]()
    with pieces({"tile rows": 7, "tile columns": 9, "panel": 60, "strip": 8, "stack": 100}):
        for name, path in WAYS:
            sweep, source = SCENARIOS[name].sweep(**SWEEPS[path]), SCENARIOS[name].make(*OF_RANKS)
            done.append(sweep_numbers(sweep, source, processes=here))
    return done


@cache
def numbers_of_one_process(name: str, path: str) -> Numbers:
    scenario = SCENARIOS[name]
    return whole_matrix(scenario, scenario.make(*OF_RANKS), scenario.sweep(**SWEEPS[path]))


@pytest.mark.parametrize("size", [2, *thorough(3)])
def test_processes(size: int, subtests: pytest.Subtests) -> None:
    for (name, path), actual in zip(WAYS, run_ranks(sweeps_of_ranks, size)[0], strict=True):
        with subtests.test(name, path=path):
            assert_same(actual, numbers_of_one_process(name, path))


def test_every_objective_takes_every_path_that_it_can() -> None:
    needs_more = {name for name in names("objectives") if build("objectives", name).traits.required_info}
    tested = {spec.partition(":")[0] for spec in (*ONE, *MANY, *WHOLE, *ONE_WHOLE, *COUPLED)}
    assert tested == set(names("objectives")) - needs_more
    assert needs_more == {"aoq"}


# paths of a training loop

OF_PAIRS = (*ONE, *MANY, "goal:triplet=cir,pair=lin")
OF_ROWS = (*WHOLE, *ONE[:2])
HUBS = (*TILES, "hubness", "weight_mass:unit=paper")
loops = st.tuples(st.sampled_from(KINDS), st.integers(4, 20), st.integers(0, 99))
Loop = tuple[Kind, int, int]


def rows_of(loop: Loop, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor, Mask]:
    """Return rows of both directions, of queries `start` to `stop`, and their mask."""
    S = similarities(*loop)
    match = torch.eye(len(S), dtype=torch.bool)[start:stop]
    return S[start:stop], S.T.contiguous()[start:stop], Mask(match, torch.ones_like(match))


def numbers(row: Any) -> Numbers:
    assert row is not None
    return {(name,): value for name, value in row.items()}


@pytest.mark.parametrize(("objectives", "probes"), [(OF_PAIRS, HUBS), (OF_ROWS, ROWS[:2])], ids=["pairs", "rows"])
@settings(max_examples=8)
@given(loop=loops, data=st.data())
def test_a_batch_of_a_loop(objectives: tuple[str, ...], probes: tuple[str, ...], loop: Loop, data: Any) -> None:
    objective, (start, stop) = data.draw(st.sampled_from(objectives)), drawn_range(data, loop[1])
    S, S_second, mask = rows_of(loop, start, stop)
    scope = LossScope(objective, probes)
    expected = row_of_matrix(scope, S, S_second, mask)
    assert_same(numbers(scope.watch(S, offset=start, S_second=S_second)), expected)
    if probes == HUBS:
        with pieces({"large in a loop": 1, "tile rows": 5, "tile columns": 7}):
            assert_same(numbers(scope.watch(S, offset=start, S_second=S_second)), expected)


@settings(max_examples=30)
@given(objective=st.sampled_from(OF_PAIRS), loop=loops, tile=st.integers(2, 9), data=st.data())
def test_a_ring_of_blocks_in_any_order(objective: str, loop: Loop, tile: int, data: Any) -> None:
    (start, stop), n = drawn_range(data, loop[1]), loop[1]
    S, S_second, mask = rows_of(loop, start, stop)
    blocks = [
        block for block in shares(data.draw(st.lists(st.integers(1, n - 1), max_size=5)), n) if block.stop > block.start
    ]
    scope = LossScope(objective, HUBS)
    with pieces({"tile rows": tile, "tile columns": tile}), scope.ring(columns=n, offset=start) as ring:
        for block in data.draw(st.permutations(blocks)):
            ring.add(S[:, block], block.start, S_second[:, block])
    assert_same(numbers(ring.row), row_of_matrix(scope, S, S_second, mask))


@settings(max_examples=15)
@given(objective=st.sampled_from((*OF_PAIRS, *WHOLE)), loop=loops, data=st.data())
def test_a_sample_of_all_queries_of_a_loop(objective: str, loop: Loop, data: Any) -> None:
    (start, stop), probes = drawn_range(data, loop[1]), ("cocos", "similarity", "recall", "contributors")
    S, S_second, mask = rows_of(loop, start, stop)
    scope = LossScope(objective, probes, queries=max(loop[1], 2))
    row = scope.watch(S, offset=start, S_second=S_second)
    assert row is not None
    beside = {f"{name}{end}" for name in row for end in ("_low", "_high")} | {"i2t/rows", "t2i/rows"}
    estimates = {name: value for name, value in row.items() if name not in beside}
    assert_same(numbers(estimates), row_of_matrix(scope, S, S_second, mask))


Way = Literal["whole", "tiles", "blocks"]
Shared = tuple[str, tuple[str, ...], Loop, list[int], Way]
"""Objective, probes, batch, the first queries of all processes but the first, and how a process reads its rows."""


def shared_batches(size: int, number: int) -> list[Shared]:
    """Return batches that `size` processes share; a share may be empty."""
    dice, batches = random.Random(size), list[Shared]()
    for index in range(number):
        way = dice.choice(get_args(Way))
        objectives, probes = ((*OF_PAIRS, *WHOLE), (*TILES[:4], "contributors")) if way == "whole" else (OF_PAIRS, HUBS)
        loop = dice.choice(KINDS), dice.randint(4, 20), index
        edges = [dice.randint(0, loop[1]) for _ in range(size - 1)]
        batches.append((dice.choice(objectives), probes, loop, edges, way))
    return batches


def loops_of_ranks(batches: list[Shared]) -> list[Numbers]:
    """Watch this process's share of each batch."""
    here, rows = process_group(), []
    for objective, probes, loop, edges, way in batches:
        share = shares(edges, loop[1])[here.rank]
        S, S_second, _ = rows_of(loop, share.start, share.stop)
        scope = LossScope(objective, probes, across_processes=True)
        if way == "blocks":
            with scope.ring(columns=loop[1], offset=share.start) as ring:
                for block in shares(edges, loop[1])[here.rank :] + shares(edges, loop[1])[: here.rank]:
                    if block.stop > block.start:
                        ring.add(S[:, block], block.start, S_second[:, block])
            rows.append(numbers(ring.row))
        else:
            with pieces({"large in a loop": 1 if way == "tiles" else 1 << 22, "tile rows": 5, "tile columns": 7}):
                rows.append(numbers(scope.watch(S, offset=share.start, S_second=S_second)))
    return rows


@pytest.mark.parametrize("size", [1, *thorough(2), 3])
def test_processes_that_share_a_batch(size: int, subtests: pytest.Subtests) -> None:
    batches = shared_batches(size, 40)
    for rank, rows in enumerate(run_ranks(loops_of_ranks, size, batches)):
        for batch, row in zip(batches, rows, strict=True):
            with subtests.test(f"rank {rank}", batch=batch):
                objective, probes, loop, _, _ = batch
                whole = rows_of(loop, 0, loop[1])
                assert_same(row, row_of_matrix(LossScope(objective, probes), *whole))


def drawn_range(data: Any, n: int) -> tuple[int, int]:
    """Return the first query of a process and the one after its last."""
    start = data.draw(st.integers(0, n - 2))
    return start, data.draw(st.integers(start + 1, n))
