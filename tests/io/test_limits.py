"""Is nesting limited, and is the size of an object with shared parts known without walking all of it?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lossscope.errors import InputError
from lossscope.io.limits import MAX_DEPTH, require_bounded, require_shallow
from tests.each import each


def nest(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def double(levels: int) -> Any:
    value: Any = {"x": 1}
    for _ in range(levels):
        value = [value, value]
    return value


@each("check", [lambda value: require_shallow(value, "a.json"), require_bounded])
def test_nesting_up_to_the_limit_passes_and_deeper_is_refused(check: Any) -> None:
    check(nest(MAX_DEPTH))
    with pytest.raises(InputError, match=r"100 (nested )?levels"):
        check(nest(MAX_DEPTH + 1))


def test_shared_parts_pass_as_long_as_their_copies_are_few() -> None:
    require_bounded(double(16))
    with pytest.raises(InputError, match="values that expand to more than"):
        require_bounded(double(60))


def test_a_large_value_that_shares_nothing_passes() -> None:
    require_bounded({"rows": [[float(i), str(i)] for i in range(20_000)], "same": [["x"]] * 20_000})


def test_objects_of_arrays_are_looked_at() -> None:
    array = np.empty(1, dtype=object)
    array[0] = double(60)
    with pytest.raises(InputError, match="expand"):
        require_bounded([array])


def test_a_container_in_itself_is_refused() -> None:
    value: list[Any] = []
    value.append({"a": value})
    with pytest.raises(InputError, match="a container inside itself"):
        require_bounded(value)


@each("value", ["\ud800", ["a\udfff"], {"\ud800": 1}, ({"a": "\udc80 b"},)])
def test_halves_of_surrogate_pairs_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="its texts must be of letters of Unicode; got "):
        require_bounded([value])
    require_bounded(["\U0001f600 \u00e9"])
