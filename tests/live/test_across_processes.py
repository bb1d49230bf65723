"""Do processes that share a batch agree on samples, embeddings, masks and errors? engine/test_paths.py has more."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lossscope.core.distributed import ProcessGroup, process_group
from lossscope.core.exchange import FIRST, exchange
from lossscope.core.similarity import Mask, normalise
from lossscope.engine.one_batch import OneBatch
from lossscope.engine.reducers import REDUCERS as TABLE
from lossscope.engine.reducers import part_of, reduce_column
from lossscope.errors import InputError
from lossscope.live.doctor_options import DoctorOptions
from lossscope.live.monitor import LossScope
from lossscope.live.shared_batch import BatchPart, merge_processes
from lossscope.objectives.checks.spawn import join_file_group, run_processes
from lossscope.probes.base import ReducerName, Statistic
from lossscope.registry import build

from .test_wrap import SCALE, ClipLoss

NTXENT = "ntxent:tau=0.05"
OBJECTIVES = (NTXENT, "triplet", "triplet-sh", "siglip", "smoothap", "unified", "dcl", "goal", "circle")
PROBES = ("cocos", "cocos:eps=0.0001,unit=cosine", "similarity", "recall", "contributors", "weight_mass", "hubness")
OF_EMBEDDINGS = ("influence", "tangent", "false_negatives", "alignment", "effective_rank", "modality_gap")
RINGS = (NTXENT, "triplet", "triplet-sh", "smoothap")
OF_BLOCKS = ("cocos", "cocos:eps=0.0001", "similarity", "recall", "weight_mass", "hubness", "alignment")
OF_SAMPLES = ("cocos", "similarity", "recall", "contributors")
SHARES = {1: [(31,)], 2: [(16, 15), (31, 0)], 3: [(10, 10, 11), (1, 0, 30), (20, 11, 0)]}
COUNTS = ("C_q", "C_B", "C_0", "C_neg", "skipped", "R@1", "R@5", "medr", "meanr", "ties", "hub_max_count", "inverted")
B = 31


def vectors(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return unit vectors of both sides; pairs 3 and 4 share their second vector, which makes ties."""
    generator = torch.Generator().manual_seed(seed)
    first = normalise(torch.randn(B, 8, generator=generator))
    second = normalise(first + 0.9 * torch.randn(B, 8, generator=generator))
    second[4] = second[3]
    return first, second


def same(row: dict[str, float], whole: dict[str, float], tolerance: float = 1e-6) -> None:
    assert list(row) == list(whole)
    for name, value in whole.items():
        exact = name.rpartition("/")[2] in COUNTS
        rel, absolute = (0.0, 0.0) if exact else (tolerance, 1e-7)
        assert row[name] == pytest.approx(value, rel=rel, abs=absolute, nan_ok=True), name


# all cases run in one group of processes, because starting a group takes seconds


def attempt(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the message of its InputError."""
    try:
        return call()
    except InputError as error:
        return str(error)


def cases(rank: int, size: int, folder: Path) -> dict[str, Any]:
    """Return the rows and messages of process `rank`, by the name of the case."""
    first, second = vectors()
    done: dict[str, Any] = {}
    for shares in SHARES[size]:
        start = sum(shares[:rank])
        share = slice(start, start + shares[rank])
        S, S_second = first[share] @ second.T, second[share] @ first.T
        scope = LossScope(NTXENT, (*OF_EMBEDDINGS, "similarity"), across_processes=True)
        done[f"embeddings {shares}"] = scope.watch(queries=2 * first[share], documents=second, offset=start)
        for queries in (12, 2 * B):
            scope = LossScope(NTXENT, OF_SAMPLES, across_processes=True, queries=queries)
            done[f"{queries} queries {shares}"] = scope.watch(S, offset=start, S_second=S_second, step=3)
        match = (torch.arange(B)[:, None] // 2 == torch.arange(B) // 2)[share]
        valid = (torch.arange(B) != B - 1).expand(len(match), B)
        scope = LossScope("supcon", ("cocos", "similarity"), across_processes=True)
        done[f"mask {shares}"] = scope.watch(S, Mask(match, valid))
        for bad in {0, size - 1}:
            broken = S * (math.nan if rank == bad and len(S) else 1)
            scope = LossScope(NTXENT, ("cocos",), across_processes=True)
            done[f"NaN {shares} {bad}"] = scope.watch(broken, offset=start), shares[bad]
    done["wrapped"] = wrapped(rank, size)
    if size > 1:
        done |= {f"error: {name}": attempt(call) for name, call in mistakes(rank, size, folder).items()}
        done |= beside_a_shared_batch(rank, size, folder)
    return done


def wrapped(rank: int, size: int) -> Any:
    """Return the row of a wrapped local loss at the scale of the step."""
    b = B // size
    first, second = (x[: b * size] for x in vectors())
    share, loss = slice(rank * b, rank * b + b), ClipLoss(True, rank, size)
    loss.others = first, second
    scope = LossScope(across_processes=True)
    scope.wrap(loss)(first[share].clone().requires_grad_(), second[share], SCALE)
    return scope.history[-1]


def mistakes(rank: int, size: int, folder: Path) -> dict[str, Callable[[], Any]]:
    """Return calls for all processes; in most of them the last process makes a mistake."""
    first, second = vectors()
    last, b = rank == size - 1, B // size
    S, offset = first[rank * b : (rank + 1) * b] @ second.T, rank * b

    def watch(objective: str = NTXENT, probes: tuple[str, ...] = ("cocos",), **given: Any) -> Any:
        given = {"S": S, "offset": offset} | given
        return LossScope(objective, probes, across_processes=True).watch(**given)

    def turn(leaves_out: bool) -> Any:
        with LossScope(NTXENT, ("cocos",), across_processes=True).ring(columns=B, offset=offset) as ring:
            for start in (0, 10, 20):
                if not (leaves_out and start == 10):
                    ring.add(S[:, start : B if start == 20 else start + 10], start)
        return ring.row

    return {
        "objective": lambda: watch("ntxent:tau=0.06" if last else NTXENT),
        "probes": lambda: watch(probes=("cocos", "similarity", "recall", "contributors") if last else ("cocos",)),
        "options": lambda: watch(probes=("cocos:eps=0.02",) if last else ("cocos",)),
        "step": lambda: watch(step=5 if last else 4),
        "direction": lambda: watch(**({"S_second": S} if last else {})),
        "columns": lambda: watch(S=S[:, :-1] if last else S, offset=0 if last else offset),
        "offset": lambda: watch(offset=0),
        "shape": lambda: watch(S=torch.zeros(3) if last else S),
        "log": lambda: watch(log={"lr": "high" if last else 0.1}),
        "empty": lambda: watch(S=S[:0]),
        "missing block": lambda: turn(last),
        "after all of these": lambda: watch()["finite"],
    }


def beside_a_shared_batch(rank: int, size: int, folder: Path) -> dict[str, Any]:
    """Return what the doctor, the recorder and a group of two processes find."""
    first, second = vectors()
    b, done = B // size, dict[str, Any]()
    share = slice(rank * b, rank * b + b)
    scope = LossScope(
        NTXENT, ("cocos",), across_processes=True, recorder=2, recorder_folder=folder / "recorder",
        doctor=DoctorOptions(every=1, first=1, learning_by=2, settled=2),
    )  # fmt: skip
    rows = []
    for step in range(4):
        S = first[share] @ second.T * (math.nan if step == 3 and rank == size - 1 else 1)
        rows.append(scope.watch(S, offset=share.start))
    done["doctor"] = [row["finite"] for row in rows if row], [path.name for path in scope.recordings]
    done["doctor with an empty share"] = attempt(
        lambda: LossScope(NTXENT, across_processes=True, doctor=True, recorder=1).watch(
            first[: B if rank == 0 else 0] @ second.T, offset=0 if rank == 0 else B
        )
    )
    pair = dist.new_group([0, 1])
    if rank < 2:
        scope = LossScope(NTXENT, ("cocos",), across_processes=pair)
        half = slice(16 * rank, 16 + 15 * rank)
        done["two of all"] = scope.watch(first[half] @ second.T, offset=half.start)
    else:
        done["not of the pair"] = attempt(
            lambda: LossScope(NTXENT, across_processes=pair).watch(first @ second.T, offset=0)
        )
    long = torch.arange(FIRST * rank, dtype=torch.float64)
    done["exchange"] = all(
        torch.equal(x, torch.arange(FIRST * i, dtype=torch.float64))
        for i, x in enumerate(exchange(process_group(), long))
    )
    return done


def worker(rank: int, size: int, group: Path) -> list[dict[str, Any]]:
    """Return the results of each process, by the name of the case."""
    with join_file_group(group, rank, size):
        return process_group().gather(cases(rank, size, group.parent))


@pytest.fixture(name="results", scope="module", params=sorted(SHARES))
def results_of_processes(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = run_processes(worker, request.param)
    return results


def of_all(results: list[dict[str, Any]], name: str) -> Any:
    """Return the result on which all processes agree."""
    mine = results[0][name]
    for other in results[1:]:
        assert repr(other[name]) == repr(mine), name
    return mine


def test_samples_embeddings_and_masks_are_those_of_one_process(
    results: list[dict[str, Any]],
) -> None:
    first, second = vectors()
    for shares in SHARES[len(results)]:
        for queries in (12, 2 * B):
            scope = LossScope(NTXENT, OF_SAMPLES, queries=queries)
            whole = scope.watch(first @ second.T, S_second=second @ first.T, offset=0, step=3)
            assert whole is not None and whole["i2t/rows"] == min(queries, B)
            same(of_all(results, f"{queries} queries {shares}"), whole, 2e-6)
        whole = LossScope(NTXENT, (*OF_EMBEDDINGS, "similarity")).watch(queries=2 * first, documents=second)
        assert whole is not None
        expected = {name: value for name, value in whole.items() if not name.startswith("d2q/")}
        same(of_all(results, f"embeddings {shares}"), expected, 1e-4)
        match = torch.arange(B)[:, None] // 2 == torch.arange(B) // 2
        valid = (torch.arange(B) != B - 1).expand(B, B)
        whole = LossScope("supcon", ("cocos", "similarity")).watch(first @ second.T, Mask(match, valid))
        assert whole is not None and whole["i2t/skipped"] == 1
        same(of_all(results, f"mask {shares}"), {k: v for k, v in whole.items() if not k.startswith("t2i/")})


def test_a_local_loss_that_is_wrapped_has_the_row_of_the_whole_loss(results: list[dict[str, Any]]) -> None:
    n = B // len(results) * len(results)
    first, second = (x[:n].clone().requires_grad_() for x in vectors())
    scope = LossScope()
    scope.wrap(ClipLoss())(first, second, SCALE)
    row, whole = of_all(results, "wrapped"), scope.history[-1]
    assert row["loss_gap"] < 1e-6 and "t2i/C_neg" in row
    same({**row, "loss_gap": 0.0}, {**whole, "loss_gap": 0.0}, 1e-5)


def test_a_row_is_not_finite_where_that_of_one_process_is_not(results: list[dict[str, Any]]) -> None:
    size = len(results)
    for shares in SHARES[size]:
        for bad in {0, size - 1}:
            row, rows = of_all(results, f"NaN {shares} {bad}")
            assert row["finite"] == (0 if rows else 1)
            assert all(math.isnan(value) == bool(rows) for name, value in row.items() if name == "i2t/C_neg")


MESSAGES = {
    "objective": "must have the same objective; those of process rank {last} differ from those of rank 0",
    "probes": "must have the same probes, sides and directions; those of process rank {last} differ",
    "options": "must have the same probes, sides and directions; those of process rank {last} differ",
    "step": "all processes must watch the same step; got 4",
    "direction": "must have the same probes, sides and directions; those of process rank {last} differ",
    "columns": "must have the candidates of all as columns of S; got 31",
    "offset": "rows of each process must have their own positives",
    "empty": "a batch must have a query; every process has none",
}


def test_processes_that_do_not_watch_the_same_say_so_in_each(results: list[dict[str, Any]]) -> None:
    last = len(results) - 1
    if not last:
        return
    for name, message in MESSAGES.items():
        assert message.format(last=last) in of_all(results, f"error: {name}"), name
    for name, message in (
        ("shape", "S must be (images, captions) of floating point; got (3,)"),
        ("log", "lr of a step must be a number; got str"),
        ("missing block", "blocks must have all 31 columns; got 21: 0..9, 20..30"),
    ):
        assert results[last][f"error: {name}"].startswith(message)
        assert f"process rank {last} raised an error in step 0" in of_all(results[:last], f"error: {name}")
    assert of_all(results, "error: after all of these") == 1


def test_doctor_and_recorder_look_at_the_rows_of_their_process(results: list[dict[str, Any]]) -> None:
    size = len(results)
    if size == 1:
        return
    for rank, result in enumerate(results):
        finite, recordings = result["doctor"]
        assert finite == [1, 1, 1, 0]
        assert f"step-000003-non-finite-rank{rank}" in recordings
    rows = [result["doctor with an empty share"] for result in results]
    assert all(row == rows[0] and row["finite"] == 1 for row in rows)
    first, second = vectors()
    whole = LossScope(NTXENT, ("cocos",)).watch(first @ second.T)
    assert whole is not None
    same(of_all(results[:2], "two of all"), {k: v for k, v in whole.items() if not k.startswith("t2i/")})
    assert of_all(results, "exchange")
    for result in results[2:]:
        assert "must be a group that has this process" in result["not of the pair"]


REDUCERS: list[ReducerName] = [name for name in TABLE if name != "curve"]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from([-2.0, 0.0, 0.25, 1.0, 3.5, math.nan]), max_size=6), min_size=1, max_size=5),
    st.data(),
)
def test_parts_of_any_size_have_the_statistic_of_all(parts: list[list[float]], data: st.DataObject) -> None:
    values = [torch.tensor(part, dtype=torch.float32).view(-1, 1) for part in parts]
    skipped = [torch.tensor(data.draw(st.lists(st.booleans(), min_size=len(p), max_size=len(p)))).bool() for p in parts]
    for reducer in REDUCERS:
        if reducer == "true":  # counts elements; none is NaN
            values = [part.nan_to_num(0) for part in values]
        table = TABLE[reducer]
        sums = [part_of(table, part.view(1, -1), skip.view(1, -1)) for part, skip in zip(values, skipped, strict=True)]
        columns = {"all": torch.cat(values), "skipped": torch.cat(skipped)}
        merged = table.value(functools.reduce(table.merge, sums))
        if len(columns["all"]):
            whole = reduce_column(Statistic("all", "all", reducer, ""), columns, 1)
            torch.testing.assert_close(merged, whole.view(1).double(), equal_nan=True, rtol=1e-12, atol=1e-12)
        elif reducer not in ("sum", "zeros", "true"):
            assert merged.isnan().all()


class Sent(ProcessGroup):
    """Two processes; the other one sends what this one sends."""

    messages: ClassVar[list[Tensor]] = []

    def stack(self, x: Tensor) -> Tensor:
        self.messages.append(x)
        return torch.stack([x, x])


class BrokenShare:
    """A share whose numbers raise an error."""

    names, rows, queries = ("i2t/C_neg",), 3, 3

    def numbers(self) -> Tensor:
        raise ValueError("of a probe")


def test_an_error_of_a_probe_is_told_to_the_others() -> None:
    plan = OneBatch(build("objectives", NTXENT), (build("probes", "cocos"),), directions=("i2t",))
    part = BatchPart(plan, [BrokenShare()], [4], torch.tensor(True), 0)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="of a probe"):
        merge_processes(Sent(0, 2), 7, lambda: part)
    assert len(Sent.messages) == 1 and Sent.messages[0][1:3].tolist() == [1, 7]


def test_what_cannot_be_added_up_is_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"uniformity needs the embeddings of all queries"):
        LossScope(NTXENT, ("uniformity",), across_processes=True)
    with pytest.raises(InputError, match=r"tangent:of=candidate needs the embeddings"):
        LossScope(NTXENT, ("tangent:of=candidate",), across_processes=True)
    with pytest.raises(InputError, match="depend on other queries under lifted_structure"):
        LossScope("lifted_structure", ("cocos",), across_processes=True)
    with pytest.raises(InputError, match=r"depend on other queries under triplet.* with cocos:convention=released"):
        LossScope("triplet", ("cocos:convention=released",), across_processes=True)
    with pytest.raises(InputError, match="must be True, False or a process group; got 'merge'"):
        LossScope(NTXENT, across_processes="merge")  # type: ignore[arg-type]


def test_layouts_whose_rows_are_not_known_are_refused(tmp_path: Path) -> None:
    S, E = torch.eye(4), torch.eye(4)
    scope = LossScope(NTXENT, across_processes=True)
    with pytest.raises(InputError, match="in every process of an initialised group; got none"):
        scope.watch(S, offset=0)
    with join_file_group(tmp_path / "group", 0, 1):
        assert process_group() == ProcessGroup(0, 1)
        with pytest.raises(InputError, match="must be given offset, the column of the positive"):
            scope.watch(S)
        with pytest.raises(InputError, match="one set of items is no batch of rows that processes share"):
            LossScope("supcon", across_processes=True).watch(embeddings=E, labels=torch.arange(4) // 2)
        with pytest.raises(InputError, match="mined negatives stand among the candidates of all"):
            scope.watch(queries=E, documents=E, negatives=E[:, None], offset=0)
        with pytest.raises(InputError, match="a sample of queries needs offset in place of a mask"):
            LossScope(NTXENT, across_processes=True, queries=2).watch(S, Mask(S > 0, S < 2))
        loss = scope.wrap(lambda S: torch.nn.functional.cross_entropy(S, torch.arange(len(S))))
        with pytest.raises(InputError, match="Other losses do not tell which rows a process has"):
            loss(S.requires_grad_())
        with pytest.raises(InputError, match="Other losses do not tell which rows a process has"):
            LossScope(across_processes=True).wrap(ClipLoss())(S, E, SCALE)
        with pytest.raises(InputError, match="must be given an objective to watch S or embeddings"):
            LossScope(across_processes=True).watch(S, offset=0)
        with pytest.raises(InputError, match="candidates of all processes as columns; got none"):
            scope.watch(S[:0, :0], offset=0)
