"""Do TOML and JSON become dataclasses and come back unchanged, and does an error name the position of a bad value?"""

from __future__ import annotations

import datetime
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.io.decode import decode, decode_some, read_toml
from tests.each import each


@dataclass(frozen=True)
class Part:
    name: str
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.name == "none":
            raise InputError("name must not be none; got none")


@dataclass(frozen=True)
class Whole:
    title: str
    rate: float = 1.0
    steps: int = 0
    kind: Literal["a", "b"] = "a"
    note: str | None = None
    flag: bool = False
    parts: tuple[Part, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)


PLAIN = st.builds(
    Whole,
    title=st.text(),
    rate=st.floats(allow_nan=False, allow_infinity=False),
    steps=st.integers(-(2**60), 2**60),
    kind=st.sampled_from(["a", "b"]),
    note=st.none() | st.text(),
    flag=st.booleans(),
    parts=st.lists(st.builds(Part, name=st.text(min_size=5), sizes=st.lists(st.integers(0, 9)).map(tuple))).map(tuple),
    more=st.dictionaries(st.text(), st.integers(0, 9) | st.text()),
)


@given(PLAIN)
def test_what_was_written_is_read(whole: Whole) -> None:
    assert decode(Whole, asdict(whole), "a file") == whole


def test_whole_numbers_serve_as_floats_and_lists_as_tuples() -> None:
    whole = decode(Whole, {"title": "t", "rate": 2, "parts": [{"name": "p", "sizes": [1, 2]}]}, "a file")
    assert (whole.rate, type(whole.rate), whole.parts) == (2.0, float, (Part("p", (1, 2)),))


@each("value, message", [
    ({}, "title of a.toml must be given; it is missing"),
    ({"title": 3}, "title of a.toml must be text in quotes; got 3"),
    ({"title": "t", "steps": "3"}, "steps of a.toml must be a whole number; got '3'"),
    ({"title": "t", "steps": 1.0}, "steps of a.toml must be a whole number; got 1.0"),
    ({"title": "t", "steps": True}, "steps of a.toml must be a whole number; got True"),
    ({"title": "t", "rate": "fast"}, "rate of a.toml must be a number; got 'fast'"),
    ({"title": "t", "flag": 1}, "flag of a.toml must be true or false; got 1"),
    ({"title": "t", "kind": "c"}, "kind of a.toml must be one of a, b; got 'c'"),
    ({"title": "t", "parts": {}}, "parts of a.toml must be a list; got {}"),
    ({"title": "t", "parts": [{"name": "p"}, {"name": 1}]}, "name of parts 2 of a.toml must be text in"),
    ({"title": "t", "parts": [{"nam": "p"}]}, "keys of parts 1 of a.toml must be of name, sizes; got 'nam'"),
    ({"title": "t", "stepps": 1}, "got 'stepps'; did you mean 'steps'?"),
    ({"title": "t", "parts": [{"name": "none"}]}, "name must not be none; got none"),
    ({"title": "t", "more": 3}, "more of a.toml must be a table; got 3"),
    ([1], "a.toml must be"),
])  # fmt: skip
def test_what_does_not_fit_is_named_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(InputError) as problem:
        decode(Whole, value, "a.toml")
    assert message in str(problem.value)


def test_some_fields_are_checked_without_the_others() -> None:
    assert decode_some(Whole, {"rate": 2, "kind": "b"}, "a.toml") == {"rate": 2.0, "kind": "b"}
    with pytest.raises(
        InputError, match=r"keys of a\.toml must be of title, rate, .*; got 'ratee'; did you mean 'rate'"
    ):
        decode_some(Whole, {"ratee": 2}, "a.toml")
    with pytest.raises(InputError, match=r"steps of a\.toml must be a whole number; got 2\.5"):
        decode_some(Whole, {"steps": 2.5}, "a.toml")


def test_a_value_that_toml_alone_has_is_named() -> None:
    with pytest.raises(InputError, match=r"title of a\.toml must be text in quotes"):
        decode(Whole, {"title": datetime.date(2020, 1, 2)}, "a.toml")


@each("content", [b"a = = 1", b'a = "\xff"'])
def test_a_file_that_is_no_toml_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.toml must be a readable TOML file"):
        read_toml(tmp_path / "a.toml")
    with pytest.raises(InputError, match=r"gone\.toml must be a TOML file of mine"):
        read_toml(tmp_path / "gone.toml", "a TOML file of mine")
