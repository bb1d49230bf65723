"""Do positives between two sides, or within a labelled set, match lists of pairs?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossscope.core.relations import Relations, as_relations
from lossscope.core.sides import QUERY_DOCUMENT, Sides
from lossscope.errors import InputError
from tests.each import each

PAIRS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=20)
ROWS = st.lists(st.integers(0, 5), max_size=8)


def relations_of(pairs: set[tuple[int, int]], negatives: np.ndarray | None = None) -> Relations:
    return Relations(6, 7, np.array(sorted(pairs), dtype=np.int64), QUERY_DOCUMENT, negatives=negatives)


@given(PAIRS, ROWS, ROWS)
def test_positives_are_those_of_the_list(pairs: set[tuple[int, int]], first: list[int], second: list[int]) -> None:
    relations, rows, columns = relations_of(pairs), np.array(first, np.int64), np.array(second, np.int64)
    expected = np.array([[(i, j) in pairs for j in second] for i in first], bool).reshape(len(first), len(second))
    assert np.array_equal(relations.is_positive(rows, columns), expected)
    assert np.stack(relations.entries(rows, columns), 1).tolist() == np.argwhere(expected).tolist()


@given(st.lists(st.integers(0, 3), min_size=2, max_size=9), st.data())
def test_items_of_one_label_are_positives_of_each_other(labels: list[int], data: st.DataObject) -> None:
    relations = Relations.of_labels(np.array(labels, np.int64))
    rows = np.array(data.draw(st.lists(st.integers(0, len(labels) - 1), max_size=8)), np.int64)
    expected = np.array([[i != j and labels[i] == labels[j] for j in rows] for i in rows], bool)
    expected = expected.reshape(len(rows), len(rows))
    assert np.array_equal(relations.is_positive(rows, rows), expected)
    assert np.stack(relations.entries(rows, rows), 1).tolist() == np.argwhere(expected).tolist()
    assert relations.number_of_positives.tolist() == [labels.count(label) - 1 for label in labels]


def test_captions_have_one_image_each() -> None:
    owners = np.array([0, 0, 2, 1])
    relations = as_relations(owners)
    assert relations.sides.is_image_text
    assert np.array_equal(relations.caption_image, owners)
    assert relations.is_positive(np.array([2, 0]), np.array([2, 1, 0])).tolist() == [
        [True, False, False],
        [False, True, True],
    ]


def test_caption_image_of_other_relations_is_refused() -> None:
    with pytest.raises(InputError, match="this needs documents that belong to one query each"):
        _ = relations_of({(0, 0), (1, 0)}).caption_image
    with pytest.raises(InputError, match="this needs items that belong to one item each"):
        _ = Relations.of_labels(np.array([0, 0])).caption_image


def test_mined_negatives_are_given_with_the_query_they_belong_to() -> None:
    negatives = np.full((6, 3), -1)
    negatives[4] = [1, 2, -1]
    negatives[2] = [5, -1, 6]
    relations = relations_of({(0, 0)}, negatives)
    rows, owners = relations.mined(np.array([2, 0, 4]))
    assert (rows.tolist(), owners.tolist()) == ([5, 6, 1, 2], [0, 0, 2, 2])
    rows, owners = relations.mined(np.array([2, 4]), 1)
    assert (rows.tolist(), owners.tolist()) == ([5, 1], [0, 1])


@each("pairs, negatives, says", [
    ([[0, 7]], None, "documents of positives must be rows 0..6; got 7..7"),
    ([[-1, 0]], None, "queries of positives must be rows 0..5; got -1..-1"),
    ([0, 1], None, r"positives must be \(n, 2\) rows of both sides"),
    ([[0.5, 1]], None, r"positives must be \(n, 2\) rows of both sides"),
    ([[0, 0]], [[0, 1]], "negatives must be a row for each of 6 queries"),
    ([[0, 0]], [[9]] * 6, "negatives must be rows 0..6; got 9..9"),
])  # fmt: skip
def test_rows_out_of_range_are_refused(pairs: list[list[float]], negatives: object, says: str) -> None:
    mined = None if negatives is None else np.array(negatives)
    with pytest.raises(InputError, match=says):
        Relations(6, 7, np.array(pairs), QUERY_DOCUMENT, negatives=mined)


def test_labels_are_of_one_set() -> None:
    with pytest.raises(InputError, match="labels must be 3, one per item"):
        Relations(3, 3, np.zeros((0, 2), np.int64), Sides("item", None), np.zeros(2, np.int64))
    with pytest.raises(InputError, match="labels must be given for one set, and only for that"):
        Relations(3, 3, np.zeros((0, 2), np.int64), QUERY_DOCUMENT, np.zeros(3, np.int64))
