"""Are arrays of JAX and TensorFlow, which have DLPack or numpy's protocol, read wherever a tensor is?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import lossscope
from lossscope.core.foreign_arrays import to_tensor
from lossscope.errors import InputError
from tests.each import each

RNG = np.random.default_rng(0)
A = RNG.normal(size=(6, 4)).astype(np.float32)
A /= np.linalg.norm(A, axis=1, keepdims=True)
B = A[::-1].copy()
S, PAIRS, LABELS = A @ B.T, np.eye(6, dtype=bool), np.arange(6) // 2


class OnlyDlpack:
    """Stand for an array of another framework that numpy cannot read."""

    def __init__(self, values: Any) -> None:
        self.values = torch.as_tensor(values)

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


class OnlyArray:
    """Stand for an array of another framework that only numpy can read."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values if dtype is None else self.values.astype(dtype)


class NoBools(OnlyArray):
    """Stand for an array whose DLPack refuses its type, as that of booleans does in older releases."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("no such type")

    def __dlpack_device__(self) -> Any:
        return (1, 0)


KINDS = [OnlyDlpack, OnlyArray, NoBools, np.asarray]


@each("kind", KINDS, "loss", ["triplet:positive=all", lambda S: -S.log_softmax(1).diagonal().mean()])
def test_a_loss_of_several_positives_and_one_of_the_user_take_any_array(kind: Any, loss: Any) -> None:
    mask = lossscope.Mask(torch.as_tensor(PAIRS), torch.ones(6, 6, dtype=torch.bool))
    objective = lossscope.objective(loss)
    assert torch.equal(objective(kind(S), mask).W, objective(torch.as_tensor(S), mask).W)


@each("kind", KINDS)
def test_an_objective_and_its_mask_take_any_array(kind: Any) -> None:
    """`S must be a tensor` was the answer."""
    ntxent = lossscope.objective("ntxent:tau=0.1")
    expected = ntxent(torch.tensor(S), lossscope.pair_mask(torch.arange(6))).W
    mask = lossscope.Mask(kind(PAIRS), kind(np.ones_like(PAIRS)))
    assert torch.equal(ntxent(kind(S), mask).W, expected)
    assert torch.equal(ntxent(kind(S), lossscope.pair_mask(kind(np.arange(6)))).W, expected)
    assert torch.equal(lossscope.both(ntxent, kind(S), mask).i2t.W, expected)


@each("kind", KINDS, "names", [("S",), ("images", "captions"), ("queries", "documents"), ("embeddings", "labels")])
def test_watch_takes_any_array(kind: Any, names: tuple[str, ...]) -> None:
    arrays = {"S": S, "images": A, "captions": B, "queries": A, "documents": B, "embeddings": A, "labels": LABELS}
    rows = []
    for make in (torch.as_tensor, kind):
        scope = lossscope.LossScope(objective="ntxent:tau=0.1")
        rows.append(scope.watch(**{name: make(arrays[name]) for name in names}))
    assert rows[0] and rows[0] == rows[1]


@each("kind", KINDS)
def test_diagnose_takes_any_array(kind: Any) -> None:
    for source in ((A, B), {"queries": A, "documents": B}, {"embeddings": A, "labels": LABELS}):
        given = {name: kind(x) for name, x in source.items()} if isinstance(source, dict) else tuple(map(kind, source))
        rows = [lossscope.diagnose(x, objectives=["ntxent:tau=0.1"], batch_size="all").rows for x in (source, given)]
        assert rows[0]["mean"].equals(rows[1]["mean"])


def test_memory_of_another_framework_is_never_written() -> None:
    values = torch.tensor(A)
    to_tensor(OnlyDlpack(values), "x").zero_()
    assert torch.equal(values, torch.tensor(A))


@each("value", ["abc", object(), {"a": 1}, [[1], [1, 2]]])
def test_what_is_no_array_is_named(value: Any) -> None:
    with pytest.raises(InputError, match="x must be a tensor or an array of numbers; got"):
        to_tensor(value, "x")
