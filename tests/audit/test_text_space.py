"""Is the space in which texts of one item lie together Fisher's, and independent of the order of texts?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from lossscope.audit.parts import text_space
from lossscope.audit.parts.text_space import TextSpace, phrases, sibling_projection, stems
from lossscope.core.facts import Missing
from lossscope.core.normal_form import normal_form


def planted(items: int = 60, each: int = 6, d: int = 12, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return rows that differ between items in 2 of 12 directions, and within items in all."""
    random = np.random.default_rng(seed)
    item = np.repeat(np.arange(items), each)
    centres = np.zeros((items, d))
    centres[:, :2] = 5 * random.normal(size=(items, 2))
    return sparse.csr_matrix(centres[item] + random.normal(size=(len(item), d))), item


def test_directions_in_which_items_differ_get_nearly_all_length() -> None:
    X, item = planted()
    P, c = sibling_projection(X, item)
    Z = X @ P - c
    means = np.stack([Z[item == number].mean(0) for number in range(60)])
    between, within = means.var(0).sum(), (Z - means[item]).var(0).sum()
    raw = X.toarray()
    raw_means = np.stack([raw[item == number].mean(0) for number in range(60)])
    assert between / within > 5 * raw_means.var(0).sum() / (raw - raw_means[item]).var(0).sum()
    assert np.abs(P[:2]).max() > 10 * np.abs(P[4:]).max()


def test_items_are_centred_on_0() -> None:
    X, item = planted()
    P, c = sibling_projection(X, item)
    means = np.stack([np.asarray(X[item == number].mean(0)).ravel() for number in range(60)])
    np.testing.assert_allclose((means @ P - c).mean(0), 0, atol=1e-8)


def test_cosines_do_not_depend_on_the_order_of_texts_and_items() -> None:
    X, item = planted()
    order = np.random.default_rng(1).permutation(len(item))
    names = np.random.default_rng(2).permutation(60)
    P, c = sibling_projection(X, item)
    Q, d = sibling_projection(X[order], names[item][order])
    plain, permuted = text_space.unit(X @ P - c), text_space.unit(X @ Q - d)
    np.testing.assert_allclose(plain @ plain.T, permuted @ permuted.T, atol=1e-3)


def test_texts_without_siblings_keep_latent_semantics() -> None:
    X, _ = planted()
    P, c = sibling_projection(X, np.arange(X.shape[0]))
    np.testing.assert_allclose(P.T @ P, np.eye(P.shape[1]), atol=1e-8)
    assert not c.any()


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (1, 5), (5, 1), (3, 3)])
def test_few_words_and_few_texts_are_projected_too(shape: tuple[int, int]) -> None:
    X = sparse.csr_matrix(np.ones(shape))
    P, c = sibling_projection(X, np.zeros(shape[0], np.int64))
    assert np.isfinite(X @ P - c).all()


def test_texts_without_words_are_not_known() -> None:
    with pytest.raises(Missing, match="no words"):
        TextSpace.fit([["...", "?!"]], ["..."])


def test_a_text_of_unknown_words_has_no_direction() -> None:
    said: list[tuple[str, int, int]] = []
    groups = [["a dog", "dogs run"], ["red car", "a car"]]
    space = TextSpace.fit(groups, ["zebra", "a dog", ""], progress=lambda *step: said.append(step))
    assert [step[1:] for step in said] == [(step, 3) for step in range(4)]
    assert not space.words[[0]].nnz
    assert np.isfinite(space.siblings).all()


@given(st.text(max_size=60))
@settings(max_examples=60)
def test_a_text_is_the_same_in_any_case_and_with_any_blanks(text: str) -> None:
    assert normal_form(f"  {text}\t") == normal_form(text)
    assert normal_form(normal_form(text)) == normal_form(text)
    assert phrases(text)[: len(stems(text))] == stems(text)


def test_more_texts_than_are_learnt_from_are_drawn_as_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_space, "_FIT", 10)
    groups = [[f"{g} {k}" for k in range(4)] for g in range(10)]
    chosen = text_space._sample(groups)
    assert 2 <= len(chosen) <= 4
    assert all(group in groups for group in chosen)
