"""Do threads give the same bits in any number, raise their errors, and stay one where a caller has one alone?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine import small_batches
from lossscope.engine.sweep import Sweep
from lossscope.engine.workers import VARIABLE, Behind, Workers, number_of_jobs
from lossscope.errors import InputError
from lossscope.objectives.counting.block import Buffers
from lossscope.sources.base import load

from .paths import write_shards

OBJECTIVES = ("ntxent:tau=0.05", "ntxent:tau=0.005", "triplet", "triplet_sh", "smoothap", "circle")
TILED = ("cocos:unit=paper", "cocos:eps=0.000001,unit=paper", "similarity", "recall", "hubness")
PROBES = (*TILED, "tangent", "uniformity")


def split(n: int = 90) -> SplitEmbeddings:
    generator = torch.Generator().manual_seed(0)
    images = torch.nn.functional.normalize(torch.randn(n, 16, generator=generator))
    noise = torch.randn(2 * n, 16, generator=generator)
    captions = torch.nn.functional.normalize(images.repeat_interleave(2, 0) + noise)
    ids = [[str(i) for i in range(size)] for size in (n, 2 * n)]
    return SplitEmbeddings("made", images, captions, None, np.repeat(np.arange(n), 2), ids[0], ids[1], "f" * 64)


SWEEPS: dict[str, dict[str, Any]] = {
    "stacks": {"objectives": OBJECTIVES, "probes": PROBES, "batch_size": 16, "per_query": True},
    "jackknife": {"objectives": ("ntxent",), "probes": ("hubness",), "batch_size": 16, "interval_groups": 10},
    "tiles": {"objectives": OBJECTIVES[:5], "probes": TILED, "batch_size": None, "engine": "tiled"},
    "panels": {"objectives": ("circle",), "probes": ("tangent", "cocos"), "batch_size": None, "engine": "tiled"},
    "strips": {"objectives": OBJECTIVES[:5], "probes": TILED[:4], "batch_size": None, "queries": 40},
}


@pytest.mark.parametrize("name", SWEEPS)
def test_numbers_are_the_same_bits_with_any_number_of_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_batches, "STACK_ENTRIES", 1200)
    for constant, size in (("ROWS", 7), ("COLUMNS", 31)):
        monkeypatch.setattr(f"lossscope.engine.blocks.matrix.{constant}", size)
    monkeypatch.setattr("lossscope.engine.blocks.strips.STRIP", 20)
    monkeypatch.setattr("lossscope.objectives.counting.kept_entries.PER_QUERY", 4)  # some entries need a second pass
    sweep, embedded = Sweep(**SWEEPS[name]), split()
    single, *others = (sweep.run(embedded, jobs=jobs) for jobs in (1, 2, 3))
    for other in others:
        pd.testing.assert_frame_equal(other.summary, single.summary, check_exact=True)
        pd.testing.assert_frame_equal(other.batches, single.batches, check_exact=True)
        pd.testing.assert_frame_equal(other.queries, single.queries, check_exact=True)


def test_results_come_in_order_from_threads_with_one_thread_of_torch_each() -> None:
    seen: set[int] = set()

    def work(piece: int, buffers: Buffers) -> tuple[int, int, bool]:
        seen.add(threading.get_ident())
        return piece, torch.get_num_threads(), torch.is_grad_enabled()

    before = torch.get_num_threads()
    with Workers(3) as workers:
        results = list(workers.run(work, range(20)))
        assert list(workers.run(work, range(3), ahead=2)) == results[:3]  # the same threads, with other work
    assert results == [(piece, 1, False) for piece in range(20)]
    assert threading.get_ident() not in seen and torch.get_num_threads() == before
    assert list(Workers(1).run(work, [7])) == [(7, before, torch.is_grad_enabled())]
    assert threading.get_ident() in seen


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_error_of_a_thread_ends_the_work(jobs: int) -> None:
    done: list[int] = []

    def work(piece: int, buffers: Buffers) -> int:
        if piece == 4:
            raise InputError("the fourth is none")
        done.append(piece)
        return piece

    def run(results: list[int]) -> None:
        with Workers(jobs) as workers:
            results.extend(workers.run(work, range(1000)))

    results: list[int] = []
    with pytest.raises(InputError, match="the fourth is none"):
        run(results)
    assert results == [] or results == list(range(len(results)))
    assert len(done) < 20
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lossscope")]


@pytest.mark.parametrize("jobs", [1, 3])
def test_what_is_done_behind_is_done_in_order_and_to_the_end(jobs: int) -> None:
    done: list[int] = []

    def slow(piece: int) -> None:
        time.sleep(0.01)
        done.append(piece)

    def all_but_the_end() -> None:
        with Behind(jobs) as behind:
            for piece in range(5):
                behind.do(partial(slow, piece))
            raise KeyError("body")

    with pytest.raises(KeyError, match="body"):
        all_but_the_end()
    assert done == list(range(5))


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("more", [0, 1])
def test_an_error_behind_surfaces(jobs: int, more: int) -> None:
    def fail() -> None:
        raise OSError("no space left")

    def run() -> None:
        with Behind(jobs) as behind:
            behind.do(fail)
            for _ in range(more):
                behind.do(lambda: None)

    with pytest.raises(OSError, match="no space left"):
        run()


def hinge(S: torch.Tensor) -> torch.Tensor:
    return (0.2 + S - S.diagonal()[:, None]).relu().sum()


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(10.0))

    def forward(self, S: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self.scale * S, torch.arange(len(S)))


@pytest.mark.parametrize("objective", [hinge, Scaled, "meta_spn"])
def test_own_losses_modules_and_objectives_with_state_have_one_thread(
    objective: Callable[..., Any] | str,
) -> None:
    given = objective() if isinstance(objective, type) else objective
    embedded = split()
    assert Sweep(("ntxent", "circle")).plan.workers(embedded, 3).jobs == 3
    assert Sweep(("ntxent", given)).plan.workers(embedded, 3).jobs == 1
    assert Sweep((given,), sampling="pairs", captions="first").run(embedded, jobs=3).summary["mean"].notna().any()


def test_models_that_score_pairs_have_one_thread() -> None:
    assert Sweep(("ntxent",), ("cocos", "parameter_gradients")).plan.workers(split(), 3).jobs == 1


@pytest.mark.parametrize("kind", ["vectors", "similarities", "shards"])
def test_sources_on_another_device_have_one_thread(kind: str, tmp_path: Path) -> None:
    made = split()
    if kind == "similarities":
        made = replace(
            made, images=None, captions=None, similarity=torch.rand(len(made.image_ids), len(made.caption_ids))
        )
    elif kind == "shards":
        made = load(write_shards(tmp_path / "shards", made, 2), sharded=True)
    plan, elsewhere = Sweep(("ntxent",)).plan, made.to(torch.device("meta"))
    assert (made.device.type, plan.workers(made, 3).jobs) == ("cpu", 3)
    assert (elsewhere.device.type, plan.workers(elsewhere, 3).jobs) == ("meta", 1)


@pytest.mark.parametrize("typed", ["0", "-1", "two", "1.5"])
def test_jobs_that_are_no_number_are_refused(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, typed)
    with pytest.raises(InputError, match="LOSSSCOPE_JOBS must be a number of threads, at least 1; got"):
        number_of_jobs()
    with pytest.raises(InputError, match="--jobs must be at least 1; got 0"):
        number_of_jobs(0)


def test_the_jobs_are_as_typed_or_the_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)))
    assert number_of_jobs() == 8 and number_of_jobs(3) == 3
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    assert number_of_jobs() == 2
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "16")
    assert number_of_jobs() == 1
    monkeypatch.setenv(VARIABLE, "5")
    assert number_of_jobs() == 5 and number_of_jobs(2) == 2
