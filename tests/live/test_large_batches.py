"""Does a large batch of pairs, read tile by tile, give the row of the whole matrix without the memory of one?"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lossscope.core.similarity import normalise, pair_mask
from lossscope.errors import InputError
from lossscope.live import batch_statistics
from lossscope.live.batch_inputs import BatchInputs
from lossscope.live.monitor import LossScope

from .test_ring import same

NTXENT = "ntxent:tau=0.05"
PROBES = ("cocos", "cocos:eps=0.001", "similarity", "recall", "weight_mass", "hubness", "alignment")
B = 40


class LargestStorage(TorchDispatchMode):
    """Track the largest number of elements in one tensor's storage among all results of operations, S excepted."""

    def __init__(self, S: Tensor) -> None:
        super().__init__()
        self.S, self.most = S, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.untyped_storage().data_ptr() != self.S.untyped_storage().data_ptr():
            self.most = max(self.most, result.untyped_storage().nbytes() // result.element_size())
        return result


@pytest.fixture(name="vectors")
def two_sides() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    first = normalise(torch.randn(B, 8, generator=generator))
    return first, normalise(first + 0.8 * torch.randn(B, 8, generator=generator))


@pytest.fixture(name="tiled")
def seen_tiles(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gains a number for each batch that is read tile by tile."""
    seen: list[int] = []
    in_tiles = batch_statistics._in_tiles

    def counted(*arguments: Any) -> Any:
        seen.append(1)
        return in_tiles(*arguments)

    monkeypatch.setattr(batch_statistics, "_in_tiles", counted)
    return seen


def layouts(first: Tensor, second: Tensor) -> list[dict[str, Any]]:
    """Return each form in which `watch` accepts pairs."""
    S = first @ second.T
    mined = normalise(torch.randn(B, 2, 8, generator=torch.Generator().manual_seed(5)))
    return [
        {"S": S},
        {"S": S.half()},
        {"queries": first, "documents": second},
        {"queries": first, "documents": second, "negatives": mined},
        {"S": S[5:20], "offset": 5},
        {"S": S[5:20], "offset": 5, "S_second": S.T[5:20]},
        {"S": S, "offset": 0},
    ]


@pytest.mark.parametrize("objective", [NTXENT, "triplet", "triplet-sh", "smoothap", "unified", "goal"])
def test_tiles_have_the_row_of_the_matrix(
    objective: str, vectors: tuple[Tensor, Tensor], tiled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = layouts(*vectors)
    whole = [LossScope(objective, PROBES).watch(**arguments) for arguments in given]
    assert not tiled
    monkeypatch.setattr(batch_statistics, "LARGE_ENTRIES", 1)
    for arguments, expected in zip(given, whole, strict=True):
        same(LossScope(objective, PROBES).watch(**arguments), expected)
    assert len(tiled) == len(given)


def test_what_needs_more_than_tiles_of_pairs_has_the_matrix(
    vectors: tuple[Tensor, Tensor], tiled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = vectors
    S = first @ second.T
    cases: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
        (NTXENT, ("cocos", "contributors"), {"S": S}),
        ("siglip", ("cocos",), {"S": S}),
        (NTXENT, ("cocos",), {"S": S, "mask": pair_mask(torch.arange(B) // 2, "mask")}),
        ("supcon", ("cocos",), {"embeddings": first, "labels": torch.arange(B) // 2}),
    ]
    whole = [LossScope(objective, probes).watch(**given) for objective, probes, given in cases]
    monkeypatch.setattr(batch_statistics, "LARGE_ENTRIES", 1)
    assert [LossScope(objective, probes).watch(**given) for objective, probes, given in cases] == whole
    assert not tiled


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_large_batch_that_is_not_finite_is_recorded(
    bad: float, vectors: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_statistics, "LARGE_ENTRIES", 1)
    first, second = vectors
    S = first @ second.T
    broken, vector = S.clone(), first.clone()
    broken[3, 7] = vector[2, 1] = bad
    for given in (
        {"S": broken},
        {"S": S, "images": vector, "captions": second},
        {"images": vector, "captions": second},
    ):
        row = LossScope(NTXENT, PROBES).watch(**given)
        assert row is not None and row["finite"] == 0 and math.isnan(row["t2i/s_pos"])
        if "images" in given:
            sample = LossScope(NTXENT, queries=5).watch(**given)
            assert sample is not None and sample["finite"] == 0


def test_the_doctor_sees_large_batches_as_others(
    vectors: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = vectors
    rows = []
    for _ in range(2):
        scope = LossScope(NTXENT, doctor=True, recorder=1)
        rows.append(scope.watch(first @ second.T))
        monkeypatch.setattr(batch_statistics, "LARGE_ENTRIES", 1)
    same(rows[1], rows[0])


def test_no_tensor_as_large_as_the_matrix_is_made() -> None:
    n = 2100  # more than 2^22 entries
    generator = torch.Generator().manual_seed(0)
    S = 0.2 * torch.randn(n, n, generator=generator)
    inputs = BatchInputs(S=S).rows(None).observed()
    assert inputs.pairs_at == 0
    scope = LossScope(NTXENT)
    scope.watch(S)  # the mask of pairs is built once
    with LargestStorage(S) as largest:
        row = scope.watch(S)
    assert row is not None and row["finite"] == 1
    assert 0 < largest.most <= n * n // 4


def test_a_shape_that_has_no_room_for_its_pairs_is_refused(
    vectors: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_statistics, "LARGE_ENTRIES", 1)
    with pytest.raises(InputError, match="S of pairs must be"):
        LossScope(NTXENT).watch(torch.zeros(3, 4))
