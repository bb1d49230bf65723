"""Are signals what their formulas say, without the query's own candidate, and NaN without a value?"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from lossscope.audit.base import Signal
from lossscope.audit.estimate import signal_table
from lossscope.audit.estimate.signal_table import SignalTable
from lossscope.audit.parts.material import Material
from lossscope.audit.parts.model_view import ModelView
from lossscope.audit.parts.text_space import TextSpace, phrases, stems
from lossscope.audit.types import PairRows
from lossscope.core.facts import Missing
from lossscope.core.relations import Relations
from lossscope.core.sides import Sides
from lossscope.datasets.base import Split, Texts
from lossscope.registry import build, names
from tests.audit.small import (
    OWNERS,
    TEXTS,
    Pixels,
    every_pair,
    material,
    pixels,
    positives_without,
    source,
    split,
    two_texts,
    vectors,
)

PAIRS = every_pair()
IMAGES, CAPTIONS = vectors(5, 0), vectors(12, 1)
S = IMAGES @ CAPTIONS.T
NAN = float("nan")
OF_TWO_TEXTS = ("text_direct", "text_names")
Oracle = Callable[[int, int, list[int]], float]  # of query, candidate, and the query's other positives


def values(name: str, of: Material, pairs: PairRows = PAIRS) -> np.ndarray:
    column: np.ndarray = build("signals", name).values(of, pairs)
    return column


def best(q: int, others: list[int]) -> float:
    return max((float(S[q, t]) for t in others), default=NAN)


def nearest(column: np.ndarray, k: int = 10) -> float:
    return float(np.sort(column)[::-1][:k].mean())


def embeddings_near(q: int, c: int) -> float:
    owners = [v for v in {int(OWNERS[c])} if v != q]
    return max((float(IMAGES[q] @ IMAGES[v]) for v in owners), default=NAN)


MODEL: dict[str, Oracle] = {
    "similarity": lambda q, c, others: S[q, c],
    "difference": lambda q, c, others: S[q, c] - best(q, others),
    "ratio": lambda q, c, others: np.clip(1 + (S[q, c] - best(q, others)) / abs(best(q, others)), -10, 10),
    "rank": lambda q, c, others: -np.log2(1 + (S[q] > S[q, c]).sum()),
    "reverse_rank": lambda q, c, others: -np.log2(1 + (S[:, c] > S[q, c]).sum()),
    "density": lambda q, c, others: 2 * S[q, c] - nearest(S[q]) - nearest(S[:, c]),
    "candidate_neighbours": lambda q, c, others: max((CAPTIONS[c] @ CAPTIONS[t] for t in others), default=NAN),
    "query_neighbours": lambda q, c, others: embeddings_near(q, c),
}


@pytest.mark.parametrize("name", MODEL)
def test_signals_of_a_model_are_their_formulas(name: str) -> None:
    oracle = MODEL[name]
    expected = [
        oracle(q, c, positives_without(PAIRS, row))
        for row, (q, c) in enumerate(zip(PAIRS.left.tolist(), PAIRS.right.tolist(), strict=True))
    ]
    np.testing.assert_allclose(values(name, material()), np.array(expected, np.float32), rtol=1e-4, atol=1e-5)


def test_the_oracles_are_of_every_signal_of_a_model() -> None:
    """A new signal of a model needs an oracle here."""
    of_models = {name for name in names("signals") if build("signals", name).group == "embeddings"}
    assert of_models == {*MODEL, "agreement"}


def test_a_signal_of_several_models_is_their_mean() -> None:
    two = material(2)
    each = [vectors(5, 2 * k) @ vectors(12, 2 * k + 1).T for k in range(2)]
    expected = (each[0] + each[1]).ravel() / 2
    np.testing.assert_allclose(values("similarity", two), expected, atol=1e-6)


def test_agreement_is_the_share_of_models_that_find_the_candidate_as_good() -> None:
    of = material(3)
    expected = []
    for row, (q, c) in enumerate(zip(PAIRS.left.tolist(), PAIRS.right.tolist(), strict=True)):
        votes = 0
        for k in range(3):
            similarities = vectors(5, 2 * k) @ vectors(12, 2 * k + 1).T
            other = [similarities[q, t] for t in positives_without(PAIRS, row)]
            votes += bool(other) and similarities[q, c] >= max(other) - 0.05 * abs(max(other))
        expected.append(votes / 3 if positives_without(PAIRS, row) else NAN)
    np.testing.assert_allclose(values("agreement", of), expected, atol=1e-6)
    with pytest.raises(Missing, match="two sources or more"):
        values("agreement", material(1))


def cosine(a: Counter[str], b: Counter[str], idf: dict[str, float]) -> float:
    """Return the cosine of counts 1 + log n, times idf."""

    def weigh(counts: Counter[str]) -> dict[str, float]:
        return {word: (1 + np.log(n)) * idf[word] for word, n in counts.items()}

    x, y = weigh(a), weigh(b)
    norms = [np.sqrt(sum(v * v for v in weights.values())) for weights in (x, y)]
    return float(sum(x[word] * y.get(word, 0) for word in x) / (norms[0] * norms[1]))


def test_text_cosine_is_the_best_tf_idf_cosine_with_another_text_of_the_query() -> None:
    words = [Counter(stems(text)) for text in TEXTS]
    idf = {w: np.log((1 + len(words)) / (1 + sum(w in counts for counts in words))) + 1 for text in words for w in text}
    expected = [
        max((cosine(words[int(c)], words[t], idf) for t in positives_without(PAIRS, row)), default=NAN)
        for row, c in enumerate(PAIRS.right)
    ]
    np.testing.assert_allclose(values("text_cosine", material()), expected, atol=1e-5)


def test_text_missing_is_the_weight_of_what_no_other_text_of_the_query_says() -> None:
    said = [set(phrases(text)) for text in TEXTS]
    idf = {w: np.log((1 + len(said)) / (1 + sum(w in text for text in said))) + 1 for text in said for w in text}
    expected = []
    for row, c in enumerate(PAIRS.right.tolist()):
        others = positives_without(PAIRS, row)
        left = said[c].difference(*(said[t] for t in others))
        expected.append(-np.log1p(sum(idf[w] for w in left)) if others else NAN)
    np.testing.assert_allclose(values("text_missing", material()), expected, atol=1e-4)


def test_text_siblings_and_items_are_cosines_in_the_learnt_space() -> None:
    of = material()
    Z = of.part(TextSpace).siblings.astype(np.float64)

    def unit(x: np.ndarray) -> np.ndarray:
        length = np.linalg.norm(x)
        return x / length if length else x

    siblings, items = [], []
    for row, (q, c) in enumerate(zip(PAIRS.left.tolist(), PAIRS.right.tolist(), strict=True)):
        others = positives_without(PAIRS, row)
        siblings.append(max((Z[c] @ Z[t] for t in others), default=NAN))
        whole = Z[OWNERS[c] == OWNERS].sum(0) if OWNERS[c] != q else Z[c]
        items.append(unit(sum((Z[t] for t in others), np.zeros(Z.shape[1]))) @ unit(whole) if others else NAN)
    np.testing.assert_allclose(values("text_siblings", of), siblings, atol=1e-5)
    np.testing.assert_allclose(values("text_items", of), items, atol=1e-4)


def test_a_positive_that_is_alone_has_no_value_of_texts() -> None:
    """The sum without it was a rounding error, which has a random direction."""
    owners = np.arange(12) % 12
    alone = Material.of((), split(owners, TEXTS, 12))
    known = PairRows(np.arange(12), np.arange(12))
    for name in ("text_items", "text_missing", "text_siblings", "text_cosine"):
        assert np.isnan(values(name, alone, known)).all(), name


def test_same_text_is_1_where_another_positive_has_these_words() -> None:
    texts = [*TEXTS[:6], "  Two DOGS run on\tgrass", *TEXTS[7:]]
    copies = values("same_text", Material.of((), split(texts=texts)))
    assert {(int(PAIRS.left[k]), int(PAIRS.right[k])) for k in np.nonzero(copies)[0]} == {(0, 6), (2, 0)}


PASSAGE = "Emma Stone is a nurse in ward 482 of the well-known hospital"
SAME = {
    "full stop": f"{PASSAGE}.",
    "quotes and comma": f"“{PASSAGE.replace(' is', ', is')}”",
    "no hyphen": PASSAGE.replace("well-known", "well known"),
    "title": f"Nurses of York: {PASSAGE}",
    "title with a bar and full stop": f"Nurses | {PASSAGE}.",
}
OTHER = {
    "number": PASSAGE.replace("482", "116"),
    "mark in a number": PASSAGE.replace("482", "4.82"),
    "name": PASSAGE.replace("Emma", "Mary"),
    "article": PASSAGE.replace("of the", "of"),
    "negation": PASSAGE.replace("is a", "is not a"),
    "last word": f"{PASSAGE} alone",
    "long title": f"{'Nurses ' * 20}: {PASSAGE}",
    "title of another text": f"Nurses: {PASSAGE.replace('482', '116')}",
}


@pytest.mark.parametrize("what", [*SAME, *OTHER])
def test_same_text_is_1_where_punctuation_or_a_title_differ_alone(what: str) -> None:
    text = {**SAME, **OTHER}[what]
    for positive, candidate in ((PASSAGE, text), (text, PASSAGE)):
        copies = values("same_text", Material.of((), split(texts=[positive, *TEXTS[1:3], candidate, *TEXTS[4:]])))
        found = {(int(PAIRS.left[k]), int(PAIRS.right[k])) for k in np.nonzero(copies)[0]}
        assert found - {(0, 6), (2, 0)} == ({(0, 3), (1, 0)} if what in SAME else set())


def test_short_ids_are_the_same_text_only_where_they_are_equal() -> None:
    texts = ["A 482.", *TEXTS[1:3], "A 116.", "A 482", "a  482.", *TEXTS[6:]]
    copies = values("same_text", Material.of((), split(texts=texts)))
    found = {(int(PAIRS.left[k]), int(PAIRS.right[k])) for k in np.nonzero(copies)[0]}
    assert found == {(0, 5), (1, 0)}


def test_same_picture_is_1_where_an_owner_of_the_candidate_has_a_copy_of_the_picture() -> None:
    copies = values("same_picture", material())
    expected = {(0, c) for c in (6, 7, 8)} | {(2, c) for c in (0, 1, 2)}
    assert {(int(PAIRS.left[k]), int(PAIRS.right[k])) for k in np.nonzero(copies)[0]} == expected


def test_pictures_of_one_plain_ground_are_no_copies() -> None:
    plain = split()
    plain.images.pixels[:] = 128  # type: ignore[attr-defined]
    assert not values("same_picture", Material.of((), plain)).any()


def test_a_picture_is_the_copy_of_itself_in_another_size() -> None:
    images = pixels()
    images[3] = images[1].reshape(3, 16, 2, 16, 2).mean((2, 4)).repeat(2, 1).repeat(2, 2).astype(np.uint8)
    resized = dataclasses.replace(split(), images=Pixels(images))
    copies = values("same_picture", Material.of((), resized))
    assert copies[(PAIRS.left == 1) & (OWNERS[PAIRS.right] == 3)].all()


def queries_and_documents() -> Split:
    texts, pairs = ["who runs?", "what is parked?", "a dog"], np.array([[0, 0], [1, 4], [2, 1]])
    relations = Relations(3, 12, pairs, Sides("query", "document"))
    ids = ["q0", "q1", "q2"], [f"c{k}" for k in range(12)]
    return Split("test", Texts(texts), TEXTS, None, *ids, "0", relations=relations)  # type: ignore[arg-type]


def test_text_direct_is_the_cosine_of_two_texts_and_of_no_pictures() -> None:
    of = Material.of((), queries_and_documents())
    direct = values("text_direct", of, every_pair(3)).reshape(3, 12)
    words = [Counter(stems(text)) for text in [*queries_and_documents().images.texts, *TEXTS]]  # type: ignore[attr-defined]
    idf = {w: np.log((1 + len(words)) / (1 + sum(w in counts for counts in words))) + 1 for text in words for w in text}
    expected = [[cosine(words[q], words[3 + c], idf) for c in range(12)] for q in range(3)]
    np.testing.assert_allclose(direct, expected, atol=1e-5)
    with pytest.raises(Missing, match="first side has no texts"):
        values("text_direct", material())


def test_words_of_documents_without_a_query_count() -> None:
    """The space was fitted on texts with a partner alone, so that `a dog` and `dogs chase a ball` were the same."""
    direct = values("text_direct", Material.of((), queries_and_documents()), every_pair(3)).reshape(3, 12)
    assert direct[2].max() < 0.9


@pytest.mark.parametrize("name", [n for n in names("signals") if n not in (*OF_TWO_TEXTS, "agreement")])
def test_a_query_without_positives_breaks_no_signal(name: str) -> None:
    column = values(name, material(), PairRows(np.full(12, 4), np.arange(12)))
    assert column.shape == (12,)
    assert column.dtype == np.float32
    assert not np.isinf(column).any()
    of_positives = {"difference", "ratio", "candidate_neighbours", "text_cosine", "text_items", "text_siblings"}
    assert np.isnan(column).all() == (name in {*of_positives, "text_missing"})


@pytest.mark.parametrize("name", names("signals"))
def test_a_signal_is_of_pairs_in_any_order_and_says_why_it_speaks(name: str) -> None:
    of, pairs = (two_texts(), every_pair(4, 6)) if name in OF_TWO_TEXTS else (material(2), PAIRS)
    assert np.isfinite(values(name, of, pairs)).any()
    order = np.random.default_rng(0).permutation(len(pairs))
    shuffled = PairRows(pairs.left[order], pairs.right[order])
    np.testing.assert_allclose(values(name, of, shuffled), values(name, of, pairs)[order], atol=1e-6)
    signal: Signal = build("signals", name)
    assert signal.name() == name
    assert signal.because
    assert not signal.because.endswith(".")


def test_the_last_pairs_similarities_are_not_those_of_other_pairs() -> None:
    """Similarities of the last pairs are cached, and must not serve other pairs of the same number."""
    model = material().models[0]
    pair, turned = PairRows(np.array([0]), np.array([1])), PairRows(np.array([1]), np.array([0]))
    assert [float(model.similarity(pairs)[0]) for pairs in (pair, turned, pair)] == pytest.approx(
        [S[0, 1], S[1, 0], S[0, 1]], abs=1e-6
    )


def test_ratios_to_a_positive_of_no_similarity_are_kept_within_ten() -> None:
    """Ratios near a positive's 0 are clipped to -10..10; they are NaN without another positive."""
    images, captions = vectors(5, 0), vectors(12, 1)
    captions[:3] -= np.outer(captions[:3] @ images[0], images[0])  # positives of image 0 have similarity 0
    ratio = values("ratio", Material.of((source(images, captions),), split()))
    assert np.abs(ratio[PAIRS.left == 0]).max() <= 10


def unknown_words() -> Material:
    """Return captions; those of image 1 have no word of the training texts, and two of image 3 no word at all."""
    texts = [*TEXTS[:3], "qwerty zzyzx", "foobar kwyjibo", "blarg", *TEXTS[6:10], "", " "]
    return Material.of((), split(texts=texts), split())


@pytest.mark.parametrize("name", ["text_siblings", "text_items"])
def test_texts_without_a_known_word_are_not_alike(name: str) -> None:
    """All of them lay at the centre of the space, and the cosine of any two was 1."""
    of = unknown_words()
    column = values(name, of).reshape(5, 12)
    assert np.isnan(column[:, 3:6]).all()
    assert np.isnan(column[1]).all()
    assert np.isfinite(column[np.ix_([0, 2], [0, 1, 2, 6, 7, 8, 9])]).all()
    assert of.part(TextSpace).is_known.tolist() == [True] * 3 + [False] * 3 + [True] * 4 + [False] * 2


def test_words_that_no_training_text_has_are_missing_most() -> None:
    """Their weight was 0, so that a text of unknown words said nothing beyond the query's texts."""
    of = unknown_words()
    missing = values("text_missing", of).reshape(5, 12)
    largest = np.log(1 + len(TEXTS)) + 1
    np.testing.assert_allclose(missing[0, 3:6], -np.log1p(np.array([3, 3, 1]) * largest), atol=1e-5)
    assert np.isnan(missing[:3, 10:]).all()


def test_empty_texts_are_no_copies() -> None:
    of = unknown_words()
    copies = values("same_text", of).reshape(5, 12)
    assert not copies[:, 10:].any()
    assert copies[0, 6], "two dogs run on grass"


def one_set_of(texts: list[str], labels: list[int], pictures: np.ndarray) -> Material:
    relations = Relations.of_labels(np.array(labels))
    ids = [f"i{row}" for row in range(len(texts))]
    return Material.of((), Split("test", Pixels(pictures), texts, None, ids, ids, "0", relations=relations))  # type: ignore[arg-type]


def test_of_one_set_the_querys_own_text_and_picture_have_copies() -> None:
    """Candidates were compared with the other items of the query's label only."""
    of = one_set_of(["a red dog", "a red hound", "A red  DOG", "a car", ""], [0, 0, 1, 1, 2], pixels())
    text, picture = (values(name, of, every_pair(5, 5)).reshape(5, 5) for name in ("same_text", "same_picture"))
    assert text[0, 2] == text[2, 0] == 1
    assert text[1, 2] == 1, "a copy of an item of the query's label"
    assert not text[:, 4].any()
    assert picture[0, 2] == picture[2, 0] == 1
    assert not picture[4, :4].any()


@pytest.mark.parametrize("top", [1, 3, 150])
def test_a_longer_search_changes_no_signal(top: int) -> None:
    """Ranks and densities were counted in the lists of the search."""
    of = source(vectors(40, 0), vectors(200, 1), np.repeat(np.arange(40), 5))
    usual, other = (Material.of((of,), None, top=k) for k in (None, top))
    for name in ("rank", "reverse_rank", "density", "similarity"):
        pairs = every_pair(40, 200)
        np.testing.assert_array_equal(values(name, usual, pairs), values(name, other, pairs))


def test_similarities_of_random_pairs_are_computed_once_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """With several parts, each signal computed them anew."""
    monkeypatch.setattr(signal_table, "_CHUNK", 20)
    of, computed = material(), []
    plain = ModelView._similarity

    def counted(view: ModelView, pairs: PairRows) -> np.ndarray:
        computed.append(len(pairs))
        return plain(view, pairs)

    monkeypatch.setattr(ModelView, "_similarity", counted)
    of.models[0].positive(PAIRS)
    computed.clear()
    SignalTable.of(of, [build("signals", name) for name in ("similarity", "difference", "ratio", "rank")], PAIRS)
    assert computed == [20, 20, 20]
