"""Are configurations of image processors read, and values of other types refused by name?"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from lossscope.encoders.released.image_processor import PREPROCESS, PROCESSOR, normalisation_of, reading_of
from lossscope.errors import InputError
from tests.each import each

USUAL = {"fit": "short-side", "resample": "bicubic"}
ODD: list[Any] = [[3], {"a": 1}, "bicubic", 7, 10**400]


def test_without_a_configuration_pictures_are_read_as_usual() -> None:
    assert reading_of({}, 224, USUAL) == USUAL
    assert normalisation_of({}) == {}


@each("resample", ODD)
def test_another_filter_is_refused(resample: Any) -> None:
    with pytest.raises(InputError, match=r"resample of the file's image processor must be 2 .* or 3 .*; got"):
        reading_of({PROCESSOR: {"resample": resample}}, 224, USUAL)


@each("name", ["resize_mode", "interpolation"], "value", [["squash"], {"a": 1}, "longest", 3])
def test_another_way_of_resizing_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{name} of the file's image processor must be .*; got"):
        reading_of({PREPROCESS: {name: value}}, 224, USUAL)


@each(
    "name",
    ["do_resize", "size", "crop_size", "do_center_crop"],
    "value",
    [["squash"], {"a": [1]}, "longest", 3, None, 10**400],
)
def test_values_of_other_types_are_refused_or_read(name: str, value: Any) -> None:
    with contextlib.suppress(InputError):
        assert reading_of({PROCESSOR: {name: value}}, 224, USUAL)["resample"] == "bicubic"


@each("value", [[1, 2], [1, 2, "x"], "abc", 3, {"a": 1}, [0.5, 0.5, 10**400], [0.5, 0.5, True]])
def test_a_mean_that_is_no_three_numbers_is_refused(value: Any) -> None:
    for options in ({PREPROCESS: {"mean": value}}, {PROCESSOR: {"image_mean": value}}):
        with pytest.raises(InputError):
            normalisation_of(options)
