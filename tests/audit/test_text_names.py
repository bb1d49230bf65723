"""Which words are names, and do query and candidate share them? Compared with names marked by a person."""

from __future__ import annotations

import numpy as np
import pytest

from lossscope.audit.parts.material import Material
from lossscope.audit.parts.text_names import find_names
from lossscope.audit.types import PairRows
from lossscope.core.facts import Missing
from lossscope.core.relations import Relations
from lossscope.core.sides import Sides
from lossscope.datasets.base import Split, Texts
from lossscope.registry import build
from tests.audit.small import PAIRS_OF_TEXTS, every_pair, material, two_texts

OF_QUERIES = [{"ada", "byron"}, {"paris"}, {"12", "oak", "street"}, set()]
OF_DOCUMENTS = [
    {"ada", "byron", "1816"}, {"ada", "rome"}, {"paris", "eiffel", "1889"}, {"12", "oak", "street", "rome"}, set(),
    {"byron", "paris", "1816"},
]  # fmt: skip
OF_ALL = [*OF_QUERIES, *OF_DOCUMENTS]
IDF = {name: np.log(11 / (1 + sum(name in names for names in OF_ALL))) + 1 for names in OF_ALL for name in names}


def values(of: Material, pairs: PairRows) -> np.ndarray:
    column: np.ndarray = build("signals", "text_names").values(of, pairs)
    return column


def agreement(query: set[str], candidate: set[str], idf: dict[str, float]) -> float:
    """Return the cosine of two sets of names."""
    lengths = [sum(idf[name] for name in names) for names in (query, candidate)]
    if not all(lengths):
        return float("nan")
    return float(sum(idf[name] for name in query & candidate) / np.sqrt(lengths[0] * lengths[1]))


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["It cost 3.5 on 2024-05-01 at 12:30, or 1,000."], {"3.5", "2024-05-01", "12:30", "1,000"}),
        (["we took flight ba2490."], {"ba2490"}),
        (["We met Ada in Rome."], {"ada", "rome"}),
        (["We met Zoë in Köln."], {"zoë", "köln"}),
        (["We met Ada here.", "ask ada"], {"ada"}),
        (["We met Ada here.", "ask ada", "where is ada"], set()),
        (["The Rise And Fall Of Rome"], set()),
        (["The Rise And Fall Of Rome", "they went to Rome"], {"rome"}),
        (["Dogs run. Cats sit! Who knows? “Birds” fly: Yes; No (Or so).\nFish swim – Well"], set()),
        (["so I went, and I saw"], set()),
        (["a dog runs", ""], set()),
    ],
)
def test_names_are_numbers_and_words_with_a_capital_within_sentences(texts: list[str], names: set[str]) -> None:
    """Starts of sentences and titles do not count; a query in small letters has the names of the documents."""
    assert find_names(texts) == names


def test_it_is_the_cosine_of_names_of_the_query_and_its_other_documents_with_those_of_the_candidate() -> None:
    pairs = every_pair(4, 6)
    expected = []
    for q, c in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        others = [OF_DOCUMENTS[d] for query, d in PAIRS_OF_TEXTS.tolist() if query == q and d != c]
        expected.append(agreement(OF_QUERIES[q].union(*others), OF_DOCUMENTS[c], IDF))
    assert np.isnan(expected).sum() == 6 + 3, "the query and the document without a name"
    np.testing.assert_allclose(values(two_texts(), pairs), np.array(expected, np.float32), atol=1e-6)


def test_a_document_of_the_query_does_not_agree_with_itself() -> None:
    """Else each known pair would find all of its names among the query's."""
    known = values(two_texts(), PairRows(np.array([1]), np.array([2])))
    assert known[0] == pytest.approx(agreement({"paris"}, {"paris", "eiffel", "1889"}, IDF), abs=1e-6)


def test_texts_of_one_template_are_told_apart_by_their_names() -> None:
    texts = [f"The house of {name} was sold in {year}." for name in ("Ada", "Byron") for year in (1816, 1901)]
    relations = Relations(4, 4, np.stack([np.arange(4)] * 2, 1), Sides("query", "document"))
    ids = [f"q{row}" for row in range(4)], [f"d{row}" for row in range(4)]
    of = Material.of((), Split("test", Texts(list(texts)), texts, None, *ids, "0", relations=relations))
    table = values(of, every_pair(4, 4)).reshape(4, 4)
    np.testing.assert_allclose(np.diag(table), 1, atol=1e-6)
    assert table[0, 3] == table[1, 2] == 0
    assert (table[0, 1:3] > 0).all() and (table[0, 1:3] < 1).all()


def test_of_a_set_of_texts_the_names_of_an_item_alone_are_compared() -> None:
    """Other items of its label have other subjects, and both orders of a pair are the same pair."""
    texts = ["so Ada met Byron", "then Ada saw Rome", "near Paris it ends", "no name"]
    names = [{"ada", "byron"}, {"ada", "rome"}, {"paris"}, set()]
    idf = {"ada": np.log(9 / 5) + 1} | {name: np.log(9 / 3) + 1 for name in ("byron", "rome", "paris")}
    ids = [f"i{row}" for row in range(4)]
    relations = Relations.of_labels(np.array([0, 1, 0, 1]))
    of = Material.of((), Split("test", Texts(texts), texts, None, ids, ids, "0", relations=relations))
    table = values(of, every_pair(4, 4)).reshape(4, 4)
    expected = [[agreement(first, second, idf) for second in names] for first in names]
    np.testing.assert_allclose(table, expected, atol=1e-6)
    np.testing.assert_array_equal(table, table.T)


def test_texts_without_any_name_have_no_value() -> None:
    relations = Relations(2, 2, np.stack([np.arange(2)] * 2, 1), Sides("query", "document"))
    texts = Split("test", Texts(["a", "b"]), ["c", ""], None, ["0", "1"], ["0", "1"], "0", relations=relations)
    assert np.isnan(values(Material.of((), texts), every_pair(2, 2))).all()


def test_pictures_have_no_names() -> None:
    with pytest.raises(Missing, match="first side has no texts"):
        values(material(), every_pair())
