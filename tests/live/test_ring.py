"""Do blocks of S, one after another, give the row of `watch` on whole rows in the memory of one block?"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lossscope.core.similarity import normalise
from lossscope.engine import ring_rows
from lossscope.errors import InputError
from lossscope.live.monitor import LossScope

NTXENT = "ntxent:tau=0.05"
PROBES = ("cocos", "cocos:eps=0.001", "similarity", "recall", "weight_mass", "hubness", "alignment")
OBJECTIVES = (NTXENT, "triplet", "triplet-sh", "smoothap", "unified", "dcl", "goal")
EXACT = ("C_q", "C_B", "C_0", "C_neg", "skipped", "R@1", "medr", "meanr", "ties", "hub_max_count", "s_neg", "inverted")
B, b, OFFSET = 60, 20, 15


def similarities(seed: int = 0, tied: bool = False) -> tuple[Tensor, Tensor]:
    """Return (b, B) rows of both directions, with ties of many entries."""
    generator = torch.Generator().manual_seed(seed)
    first = normalise(torch.randn(B, 8, generator=generator))
    second = normalise(first + 0.8 * torch.randn(B, 8, generator=generator))
    S = first @ second.T
    S = (10 * S).round() / 10 if tied else S
    share = slice(OFFSET, OFFSET + b)
    return S[share], S.T.contiguous()[share]


def row_of_blocks(scope: LossScope, blocks: list[tuple[int, int]], S: Tensor, S_second: Tensor | None = None) -> Any:
    with scope.ring(columns=B, offset=OFFSET) as ring:
        for start, stop in blocks:
            ring.add(S[:, start:stop], start, None if S_second is None else S_second[:, start:stop])
    return ring.row


def same(row: Any, whole: Any) -> None:
    assert list(row) == list(whole)
    for name, value in whole.items():
        exact = name.rpartition("/")[2] in EXACT
        rel, absolute = (0.0, 0.0) if exact else (1e-5, 3e-6)
        assert row[name] == pytest.approx(value, rel=rel, abs=absolute, nan_ok=True), name


@pytest.mark.parametrize("objective", OBJECTIVES)
@settings(deadline=None, max_examples=8)
@given(st.sets(st.integers(1, B - 1), max_size=6), st.randoms(use_true_random=False), st.booleans())
def test_blocks_in_any_order_have_the_row_of_whole_rows(
    objective: str, edges: set[int], random: Any, tied: bool
) -> None:
    S, S_second = similarities(len(edges), tied)
    blocks = list(pairwise([0, *sorted(edges), B]))
    random.shuffle(blocks)
    whole = LossScope(objective, PROBES).watch(S, offset=OFFSET, S_second=S_second)
    same(row_of_blocks(LossScope(objective, PROBES), blocks, S, S_second), whole)
    one_way = LossScope(objective, PROBES).watch(S, offset=OFFSET)
    same(row_of_blocks(LossScope(objective, PROBES), blocks, S), one_way)


def test_tiles_of_blocks_have_the_same_row(monkeypatch: pytest.MonkeyPatch) -> None:
    S, _ = similarities()
    whole = LossScope(NTXENT, PROBES).watch(S, offset=OFFSET)
    monkeypatch.setattr(ring_rows, "ROWS", 7)
    monkeypatch.setattr(ring_rows, "COLUMNS", 5)
    same(row_of_blocks(LossScope(NTXENT, PROBES), [(20, B), (0, 20)], S), whole)


@pytest.mark.parametrize("eps", ["0", "1e-9", "0.0001"])
def test_every_entry_may_count(eps: str) -> None:
    S, probes = similarities()[0].repeat(1, 10), (f"cocos:eps={eps}",)
    whole = LossScope("ntxent:tau=1", probes).watch(S, offset=OFFSET)
    scope = LossScope("ntxent:tau=1", probes)
    with scope.ring(columns=10 * B, offset=OFFSET) as ring:
        for start in range(0, 10 * B, B):
            ring.add(S[:, start : start + B], start)
    same(ring.row, whole)
    assert ring.row is not None and ring.row["i2t/C_neg"] > 500


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_blocks_of_any_type_that_are_overwritten_afterwards(dtype: torch.dtype) -> None:
    S = similarities()[0].to(dtype)
    whole = LossScope(NTXENT, PROBES).watch(S, offset=OFFSET)
    scope, buffer = LossScope(NTXENT, PROBES), torch.empty(b, 30, dtype=dtype, requires_grad=True)
    with scope.ring(columns=B, offset=OFFSET) as ring:
        for start in (30, 0):  # of the first block some positives are still unknown
            buffer.data.copy_(S[:, start : start + 30])
            ring.add(buffer, start)
    same(ring.row, whole)
    assert torch.equal(buffer.detach(), S[:, :30])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("entry", [(3, OFFSET + 3), (3, 0)])
def test_a_block_that_is_not_finite_is_recorded(bad: float, entry: tuple[int, int]) -> None:
    S = similarities()[0].clone()
    S[entry] = bad
    scope = LossScope(NTXENT, PROBES)
    row = row_of_blocks(scope, [(0, 30), (30, B)], S)
    assert row["finite"] == 0 and all(math.isnan(value) for name, value in row.items() if name != "finite")
    assert row_of_blocks(scope, [(0, 30), (30, B)], similarities()[0])["finite"] == 1


def test_steps_are_counted_and_skipped_ones_cost_nothing() -> None:
    S, scope = similarities()[0], LossScope(NTXENT, ("cocos",), every=2, sides=("query", "document"))
    rows = [row_of_blocks(scope, [(0, B)], S) for _ in range(3)]
    assert [row is not None for row in rows] == [True, False, True]
    assert scope.frame()["step"].tolist() == [0, 2] and "q2d/C_neg" in scope.frame()
    with scope.ring(columns=B, offset=OFFSET, step=1) as ring:
        ring.add(torch.zeros(3), 0)
    assert ring.row is None


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([(0, 30)], r"blocks must have all 60 columns; got 30: 0\.\.29"),
        ([], "blocks must have all 60 columns; got none"),
        ([(0, 30), (29, 60)], r"each column must come once; got 29\.\.59 after 0\.\.29"),
        ([(0, 30), (0, 30)], r"each column must come once; got 0\.\.29 after 0\.\.29"),
    ],
)
def test_columns_that_are_missing_or_come_twice_are_refused(blocks: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        row_of_blocks(LossScope(NTXENT), blocks, similarities()[0])


def test_blocks_that_do_not_fit_are_refused() -> None:
    S, scope = similarities()[0], LossScope(NTXENT)

    def add(*blocks: Any, columns: Any = B, offset: Any = OFFSET) -> None:
        with scope.ring(columns=columns, offset=offset) as ring:
            for block in blocks:
                ring.add(*block)

    for blocks, message in (
        ([(S, 1)], r"columns must be in 0\.\.59; got 1\.\.60"),
        ([(S[:, :9], -1)], r"columns must be in 0\.\.59; got -1\.\.7"),
        ([(S[:, :9], 0), (S[:3, 9:], 9)], "every block must have the same rows, 20; got 3"),
        ([(S[:, :9], 0), (S[:, 9:], 9, S[:, 9:])], "S_second must be given with every block of a ring, or with none"),
        ([(S.long(), 0)], r"a block must be \(rows, columns\) of floating point; got \(20, 60\) of torch.int64"),
        ([(S[0], 0)], r"a block must be \(rows, columns\) of floating point; got \(60,\)"),
        ([([1.0], 0)], "a block must be .* got list"),
    ):
        with pytest.raises(InputError, match=message):
            add(*blocks)
    with pytest.raises(InputError, match=r"row i matches column offset \+ i of 60; got offset 50 and 20 rows"):
        add((S, 0), offset=50)
    with pytest.raises(InputError, match=r"columns of a ring must be a whole number; got 1\.5"):
        add(columns=1.5)
    with pytest.raises(InputError, match="offset of a ring must be a whole number; got -1"):
        add(offset=-1)
    with pytest.raises(ZeroDivisionError), scope.ring(columns=B):
        _ = 1 / 0
    assert not scope.history


def test_what_needs_whole_rows_is_refused() -> None:
    for objective, probe, message in (
        ("siglip", "cocos", "cocos under siglip.* needs whole rows of S"),
        (NTXENT, "contributors", "contributors under ntxent:tau=0.05 needs whole rows"),
        (NTXENT, "cocos:curve=true", "cocos:curve=true under .* needs whole rows"),
        (NTXENT, "uniformity", "uniformity needs whole rows"),
    ):
        with pytest.raises(InputError, match=message):
            LossScope(objective, (probe,)).ring(columns=B)
    with pytest.raises(InputError, match="doctor and recorder need whole rows"):
        LossScope(NTXENT, doctor=True).ring(columns=B)
    with pytest.raises(InputError, match="must be given an objective to watch blocks of S"):
        LossScope().ring(columns=B)


class LargestTensor(TorchDispatchMode):
    """Track the largest number of elements of a tensor that an operation returns."""

    most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.most = max(self.most, result.numel())
        return result


@pytest.mark.parametrize("objective", [NTXENT, "triplet", "smoothap"])
def test_no_tensor_is_larger_than_a_block_however_many_there_are(objective: str) -> None:
    rows, width, blocks = 64, 256, 24
    generator = torch.Generator().manual_seed(0)
    with LargestTensor() as largest:
        scope = LossScope(objective, ("cocos", "similarity", "recall"))
        with scope.ring(columns=width * blocks) as ring:
            for block in range(blocks):
                S = 0.2 * torch.randn(rows, width, generator=generator)
                ring.add(S, width * block)
    assert ring.row is not None and ring.row["finite"] == 1
    assert largest.most == rows * width
