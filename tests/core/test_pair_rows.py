"""Do ids, ITEM#k and row numbers resolve to rows, and what do unknown values give?"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossscope.core.pair_rows import ABSENT, IdKind, resolve_pairs
from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.errors import InputError
from tests.each import each

OWNERS = np.array([0, 0, 1, 1, 2])


@dataclass(frozen=True)
class Sided:
    """Ids and positives as in a split."""

    image_ids: Sequence[str]
    caption_ids: Sequence[str]
    relations: Relations


def pictures(captions: Sequence[str] = ("901", "17", "30", "4", "25")) -> Sided:
    return Sided(["a.jpg", "b.jpg", "c.jpg"], captions, Relations.of_captions(OWNERS, 3))


def resolved(split: Sided, first: Sequence[str], second: Sequence[str]) -> tuple[list[int], list[int]]:
    rows, others = resolve_pairs(split, first, second, "pairs.csv")
    assert rows.dtype == others.dtype == np.int64
    return rows.tolist(), others.tolist()


def test_ids_are_those_of_the_data_set() -> None:
    assert resolved(pictures(), ["b.jpg", "b.jpg", "a.jpg"], ["17", "901", "25"]) == ([1, 1, 0], [1, 0, 4])


def test_a_text_is_the_kth_of_its_item_in_row_order() -> None:
    assert resolved(pictures(), ["c.jpg", "c.jpg"], ["a.jpg#1", "b.jpg#0"]) == ([2, 2], [1, 2])
    positives = np.array([[1, 3], [0, 2], [1, 0], [0, 3]])  # the list has another order than the rows
    split = Sided(["q", "r"], list("wxyz"), Relations(2, 4, positives, QUERY_DOCUMENT))
    assert resolved(split, ["q", "q", "q"], ["q#0", "r#0", "r#1"]) == ([0, 0, 0], [2, 0, 3])


def test_ids_that_look_like_places_are_ids() -> None:
    split = pictures(["a.jpg#1", "a.jpg#0", "b.jpg#0", "b.jpg#1", "c.jpg#0"])
    assert resolved(split, ["a.jpg", "b.jpg"], ["a.jpg#1", "a.jpg#0"]) == ([0, 1], [0, 1])


def test_numbers_are_rows_where_no_id_is_a_number() -> None:
    assert resolved(pictures(list("vwxyz")), ["2", "0"], ["4", "0"]) == ([2, 0], [4, 0])


def test_numbers_are_ids_where_an_id_is_a_number() -> None:
    assert resolved(pictures(["4", "3", "2", "1", "0"]), ["0"], ["4"]) == ([0], [0])
    with pytest.raises(InputError, match=r"pair 1 of pairs.csv must name a caption of this split.*got '2'.*"):
        resolve_pairs(pictures(), ["0"], ["2"], "pairs.csv")


def test_a_stated_kind_is_the_only_one() -> None:
    rows = resolve_pairs(pictures(), ["a.jpg"], ["4"], "pairs.csv", kinds=(None, "row"))
    assert [side.tolist() for side in rows] == [[0], [4]]
    with pytest.raises(InputError, match=r"pair 1 of .* must name an image"):
        resolve_pairs(pictures(), ["1"], ["4"], "pairs.csv", kinds=("id", "row"))


def test_one_set_has_ids_and_rows_and_no_places() -> None:
    split = Sided(["s", "t", "u"], ["s", "t", "u"], Relations.of_labels(np.array([0, 1, 0])))
    assert resolved(split, ["s", "u"], ["2", "1"]) == ([0, 2], [2, 1])
    with pytest.raises(InputError, match="got 's#0'"):
        resolve_pairs(split, ["s"], ["s#0"], "pairs.csv")


@each(
    "first, second, says",
    [
        (["a.jpg", "x.jpg", "y.jpg"], ["17"] * 3, "line 7 of pairs.csv must name an image.*'x.jpg', and 1 more that"),
        (["a.jpg"] * 3, ["17", "30", "a.jpg#0"], "line 8 of pairs.csv must name a caption.*such as '901'.*'a.jpg#0'"),
        (["a.jpg"] * 3, ["a.jpg#0", "a.jpg#2", "b.jpg#1"], "line 7 of .*IMAGE#k for the k-th of an image.*'a.jpg#2'"),
        (["a.jpg"] * 3, ["a.jpg#01", "a.jpg#", "#"], "line 3 of .*'a.jpg#01', and 2 more"),
        (["0", "3", "1"], ["17"] * 3, r"line 7 of pairs.csv .*the number of a row, 0\.\.2; got '3'"),
        (["0", "1", "b.jpg"], ["17"] * 3, "line 3 of pairs.csv must name an image.*'0', and 1 more"),
        (["-1", "²", "٣"], ["17"] * 3, "got '-1', and 2 more"),
    ],
)
def test_what_names_nothing_is_refused_by_its_line(first: list[str], second: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        resolve_pairs(pictures(), first, second, "pairs.csv", [3, 7, 8])


def test_what_is_of_another_split_is_marked() -> None:
    rows = resolve_pairs(
        pictures(), ["a.jpg", "z.jpg", "b.jpg"], ["a.jpg#0", "a.jpg#1", "z.jpg#0"], "pairs.csv", absent="mark"
    )
    assert [side.tolist() for side in rows] == [[0, ABSENT, 1], [0, 1, ABSENT]]


@each(
    "first, second, kinds, says",
    [
        (["y.jpg", "z.jpg"], ["17", "30"], (None, None), "pair 1 of .* must name an image.*'y.jpg', and 1 more"),
        (["0", "3"], ["17", "30"], (None, None), r"pair 2 of .*the number of a row, 0\.\.2; got '3'"),
        (
            ["a.jpg", "z.jpg"],
            ["17", "a.jpg#0"],
            (None, None),
            "one kind of name; others are ids, and pair 2 .*'a.jpg#0'",
        ),
        (
            ["a.jpg", "0"],
            ["17", "30"],
            (None, None),
            "one kind of name; others are ids, and pair 2 of pairs.csv has '0'",
        ),
        (["a.jpg", "z.jpg"], ["4", "5"], (None, "row"), r"pair 2 of .*the number of a row, 0\.\.4; got '5'"),
    ],
)
def test_what_cannot_be_of_another_split_is_refused(
    first: list[str], second: list[str], kinds: tuple[IdKind | None, IdKind | None], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        resolve_pairs(pictures(), first, second, "pairs.csv", kinds=kinds, absent="mark")


def test_an_id_of_two_items_is_refused_where_it_is_named() -> None:
    split = Sided(["a", "a", "b"], list("vwxyz"), Relations.of_captions(OWNERS, 3))
    assert resolved(split, ["b"], ["v"]) == ([2], [0])
    with pytest.raises(InputError, match=r"line 9 of pairs.csv: 'a' must name one image; 2 have this id.*image_row"):
        resolve_pairs(split, ["a"], ["v"], "pairs.csv", [9])
    with pytest.raises(InputError, match="'a' must name one image"):
        resolve_pairs(split, ["b"], ["a#0"], "pairs.csv")
    assert resolve_pairs(split, ["1"], ["v"], "pairs.csv", kinds=("row", None))[0].tolist() == [1]


def test_columns_must_be_of_one_length_and_may_be_empty() -> None:
    assert resolved(pictures(), [], []) == ([], [])
    with pytest.raises(InputError, match="two columns of one length; got 1 and 0"):
        resolve_pairs(pictures(), ["a.jpg"], [], "pairs.csv")


def test_messages_show_what_cannot_be_printed_and_cut_what_is_long() -> None:
    with pytest.raises(InputError) as caught:
        resolve_pairs(pictures(), ["\x1b[31m" + "x" * 5000], ["17"], "pairs.csv")
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 500


@given(st.lists(st.text(max_size=6), min_size=1, max_size=4), st.lists(st.text(max_size=6), min_size=4, max_size=4))
def test_any_text_is_a_row_or_an_error(first: list[str], second: list[str]) -> None:
    with contextlib.suppress(InputError):
        rows, others = resolve_pairs(pictures(), first, second[: len(first)], "pairs.csv", absent="mark")
        assert len(rows) == len(others) == len(first)
        assert min(rows.min(), others.min()) >= ABSENT
        assert rows.max() < 3
        assert others.max() < 5
