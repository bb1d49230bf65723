"""Do tensors fit a model by names, shapes and kinds of numbers, and are they finite?"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lossscope.encoders.base import require_finite, require_fit
from lossscope.errors import InputError
from tests.each import each

EXPECTED = {"a": torch.zeros(2, 3), "count": torch.zeros((), dtype=torch.int64)}


def test_other_widths_of_the_same_kind_fit() -> None:
    require_fit(
        EXPECTED, {"a": torch.zeros(2, 3, dtype=torch.float16), "count": torch.tensor(3, dtype=torch.int32)}, "x"
    )
    require_fit({"a": torch.zeros(2, device="meta")}, {"a": torch.ones(2)}, "x")


@each("change, message", [
    ({"b": torch.zeros(1)}, r"must be those of a model, no more and no fewer; .* left over \['b'\] \(1\)"),
    ({"a": torch.zeros(3, 2)}, r"a must be \(2, 3\); got \(3, 2\)"),
    ({"a": torch.zeros(2, 3).long()}, "a must be of dense floating numbers; got dense whole ones"),
    ({"a": torch.zeros(2, 3, dtype=torch.complex64)}, "got dense complex ones"),
    ({"a": torch.zeros(2, 3, dtype=torch.bool)}, "got dense true or false ones"),
    ({"a": torch.zeros(2, 3).to_sparse()}, "a must be of dense floating numbers; got sparse floating ones"),
    ({"count": torch.tensor(1.0)}, "count must be of dense whole numbers; got dense floating ones"),
])  # fmt: skip
def test_the_first_difference_is_named(change: dict[str, Tensor], message: str) -> None:
    with pytest.raises(InputError, match=message):
        require_fit(EXPECTED, {**EXPECTED, **change}, "a model")


def test_a_missing_tensor_is_named() -> None:
    with pytest.raises(InputError, match=r"missing \['a'\] \(1\)"):
        require_fit(EXPECTED, {"count": EXPECTED["count"]}, "a model")


@each("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_named(value: float) -> None:
    require_finite(EXPECTED, "x.pth")
    with pytest.raises(InputError, match=r"b of x\.pth must hold finite numbers; got NaN or infinity"):
        require_finite({**EXPECTED, "b": torch.tensor([1.0, value])}, "x.pth")
    with pytest.raises(InputError, match=r"b of x\.pth must hold finite numbers; got none"):
        require_finite({"b": torch.zeros(2, device="meta")}, "x.pth")
