"""Are lists of candidates those of a full sort, without known positives?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.audit.parts.material import Material
from lossscope.audit.search import candidates, list_lengths, top_lists
from lossscope.audit.search.candidates import candidate_pairs
from lossscope.audit.search.known import are_known
from lossscope.audit.search.random_batches import pairs_of, random_batches
from lossscope.audit.types import PairRows
from lossscope.core.relations import Relations
from lossscope.errors import InputError
from tests.audit.small import OWNERS, every_pair, material, source, split, vectors


def pair_set(pairs: PairRows) -> set[tuple[int, int]]:
    return set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


@given(st.integers(2, 9), st.integers(2, 9), st.integers(1, 12), st.booleans(), st.booleans(), st.integers(0, 99))
@settings(max_examples=60)
def test_lists_are_the_first_of_a_full_sort(n: int, m: int, k: int, one_set: bool, ties: bool, seed: int) -> None:
    n = m if one_set else n
    matrix = np.random.default_rng(seed).normal(size=(n, m)).astype(np.float32)
    matrix = matrix.round(0) if ties else matrix
    lists = top_lists.top_lists(None, None, matrix, k, one_set)
    kept = min(k, m - one_set)
    assert lists.rows.shape == (n, kept)
    for q in range(n):
        row = np.delete(matrix[q], q) if one_set else matrix[q]
        np.testing.assert_array_equal(lists.values[q], np.sort(row)[::-1][:kept])
        np.testing.assert_array_equal(matrix[q, lists.rows[q]], lists.values[q])
        assert len(set(lists.rows[q].tolist())) == kept
        assert not one_set or q not in lists.rows[q]


def test_lists_of_blocks_are_those_of_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = vectors(20, 0), vectors(30, 1)
    whole = top_lists.top_lists(a, b, None, 5)
    monkeypatch.setattr(top_lists, "_ENTRIES", 70)
    blocks = top_lists.top_lists(a, b, None, 5)
    np.testing.assert_array_equal(whole.rows, blocks.rows)
    np.testing.assert_allclose(whole.values, np.sort(a @ b.T, 1)[:, ::-1][:, :5], atol=1e-6)


def test_a_candidate_of_the_list_is_not_above_itself() -> None:
    """Similarities of pairs differ from the matrix product in the last bit: a candidate was above itself."""
    a, b = vectors(30, 0, 64), vectors(40, 1, 64)
    lists = top_lists.top_lists(a, b, None, 40)
    pairs = every_pair(30, 40)
    nudged = np.nextafter((a @ b.T).ravel(), -np.inf, dtype=np.float32)
    rank = lists.rank(pairs.left, pairs.right, nudged).reshape(30, 40)
    np.testing.assert_array_equal(np.sort(rank, 1), np.tile(np.arange(40), (30, 1)))


def test_equal_similarities_have_equal_ranks() -> None:
    matrix = np.array([[3, 1, 3, 0]], np.float32)
    lists = top_lists.top_lists(None, None, matrix, 4)
    assert lists.rank(np.zeros(4, int), np.arange(4), matrix[0]).tolist() == [0, 2, 0, 3]


def test_behind_the_end_of_a_list_the_rank_is_its_length() -> None:
    matrix = np.arange(10, dtype=np.float32)[None]
    lists = top_lists.top_lists(None, None, matrix, 3)
    assert lists.rank(np.zeros(10, int), np.arange(10), matrix[0]).tolist() == [3] * 7 + [2, 1, 0]


def test_of_a_small_set_every_pair_that_is_not_known_to_match_is_looked_at() -> None:
    known = {(int(owner), c) for c, owner in enumerate(OWNERS)}
    assert pair_set(candidate_pairs(material(), 3)) == pair_set(every_pair()) - known


def test_of_a_large_set_the_most_similar_of_each_item_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "ALL_PAIRS", 10)
    monkeypatch.setattr(list_lengths, "_NEAREST", 2)
    of = material(top=2)
    S = vectors(5, 0) @ vectors(12, 1).T
    expected = {(q, int(c)) for q in range(5) for c in np.argsort(-S[q])[:2]}
    expected |= {(int(q), c) for c in range(12) for q in np.argsort(-S[:, c])[:2]}
    found = pair_set(candidate_pairs(of, 2))
    known = {(int(owner), c) for c, owner in enumerate(OWNERS)}
    assert expected - known <= found
    assert not found & known
    assert len(found) < 60 - 12


def test_texts_alone_find_candidates_of_a_large_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "ALL_PAIRS", 10)
    found = pair_set(candidate_pairs(Material.of((), split()), 6))
    assert (0, 6) in found  # the same words
    assert not any(OWNERS[c] == q for q, c in found)


def labelled(n: int = 8) -> Material:
    relations = Relations.of_labels(np.arange(n) % 3)
    return Material.of((source(vectors(n, 0), vectors(n, 0), None, relations),), None)


@pytest.mark.parametrize("most", [1000, 1])
def test_of_one_set_no_item_is_its_own_candidate_nor_one_of_its_label(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "ALL_PAIRS", most)
    found = pair_set(candidate_pairs(labelled(), 7))
    assert found == {(a, b) for a in range(8) for b in range(8) if a % 3 != b % 3}


def test_positives_of_one_set_are_the_others_of_a_label() -> None:
    lists = labelled().positives_of_queries
    for row in range(8):
        assert {int(item) for item in lists[row] if item >= 0} == {k for k in range(8) if k % 3 == row % 3 and k != row}


def test_known_pairs_are_those_of_the_data() -> None:
    relations = split().relations
    pairs = every_pair()
    np.testing.assert_array_equal(are_known(relations, pairs), OWNERS[pairs.right] == pairs.left)


def test_pairs_of_batches_are_their_negatives() -> None:
    relations = split().relations
    batches = random_batches(relations, 4, 0)
    pairs, masks = pairs_of(batches, relations)
    assert len(pairs) == sum(int(mask.sum()) for mask in masks)
    assert not are_known(relations, pairs).any()
    again, _ = pairs_of(random_batches(relations, 4, 0), relations)
    np.testing.assert_array_equal(again.left, pairs.left)


def test_a_split_without_two_pairs_has_no_batch() -> None:
    with pytest.raises(InputError, match="must have two pairs"):
        random_batches(Relations(2, 2, np.array([[0, 0]])), 4, 0)


@pytest.mark.parametrize(("size", "batches"), [(64, 74), (1000, 2), (3000, 1)])
def test_large_batches_are_few(size: int, batches: int) -> None:
    """Two batches of 4,096 would be 33 million pairs with all their signals."""
    n = 10_000
    relations = Relations(n, n, np.repeat(np.arange(n)[:, None], 2, 1))
    assert len(random_batches(relations, size, 0)) == batches


def test_lists_are_a_fiftieth_of_a_large_set_within_six_million_pairs() -> None:
    def lengths(first: int, second: int) -> tuple[int, int]:
        relations = Relations(first, second, np.zeros((0, 2), np.int64))
        top = list_lengths.default_top(relations)
        return top, list_lengths.reverse_top(relations, top)

    assert lengths(6000, 30_000) == (600, 120)
    assert lengths(30_000, 150_000) == (200, 40)
    assert lengths(1000, 5000) == (100, 20)
    assert lengths(10**6, 50) == (50, 10**6)
