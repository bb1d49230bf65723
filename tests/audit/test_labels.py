"""Are labels read as people gave them, and does the message for a bad file name the place?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lossscope.audit.estimate.labels import read_labels
from lossscope.audit.estimate.pair_file import answer_column, pair_columns, read_pair_file
from lossscope.audit.parts.material import Material
from lossscope.audit.types import PairRows
from lossscope.core.relations import Relations
from lossscope.core.sides import Sides
from lossscope.core.types import Rows
from lossscope.errors import InputError
from lossscope.io.csv_tables import format_csv
from tests.audit.small import material, source, split, vectors

PAIRS = [(q, c) for q in range(4) for c in range(12) if c // 3 != q][:12]


def write(path: Path, answers: Sequence[str], pairs: Sequence[tuple[int, int]] = PAIRS) -> Path:
    rows = [f"i{q},c{c},{word}" for (q, c), word in zip(pairs, answers, strict=True)]
    path.write_text("\n".join(["image,caption,answer", *rows]) + "\n")
    return path


HALF = ["yes", "no"] * 6


def test_answers_are_read_with_their_pairs(tmp_path: Path) -> None:
    labels = read_labels(write(tmp_path / "a.csv", HALF), material())
    assert labels.answers.tolist() == [True, False] * 6
    assert list(zip(labels.pairs.left.tolist(), labels.pairs.right.tolist(), strict=True)) == PAIRS
    assert (labels.skipped, labels.known, labels.notices) == (0, 0, ())


@pytest.mark.parametrize("yes", ["yes", "Y", "1", "1.0", "TRUE", "positive", " yes "])
@pytest.mark.parametrize("no", ["no", "N", "0", "0.0", "False", "negative"])
def test_words_of_answers(tmp_path: Path, yes: str, no: str) -> None:
    labels = read_labels(write(tmp_path / "a.csv", [yes, no] * 6), material())
    assert labels.answers.tolist() == [True, False] * 6


def test_what_is_unsure_or_unanswered_is_left_out(tmp_path: Path) -> None:
    labels = read_labels(write(tmp_path / "a.csv", ["yes", "no"] * 5 + ["unsure", ""]), material())
    assert (len(labels.answers), labels.skipped) == (10, 2)


def test_a_pair_that_is_answered_alike_twice_counts_once(tmp_path: Path) -> None:
    labels = read_labels(write(tmp_path / "a.csv", [*HALF, "yes"], [*PAIRS, PAIRS[0]]), material())
    assert len(labels.answers) == 12


def test_pairs_that_are_known_to_match_say_nothing_of_the_others(tmp_path: Path) -> None:
    labels = read_labels(write(tmp_path / "a.csv", [*HALF, "yes"], [*PAIRS, (0, 0)]), material())
    assert (len(labels.answers), labels.known) == (12, 1)
    assert labels.notices[0].startswith("1 answered pairs of")


def copies_of(*known: tuple[int, int]) -> Callable[[PairRows], Rows]:
    return lambda pairs: np.array(
        [pair in known for pair in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)]
    )


def test_copies_say_nothing_of_the_others_and_are_kept(tmp_path: Path) -> None:
    """Copies match whatever their signals are, and moved the weights of the signals."""
    path = write(tmp_path / "a.csv", HALF)
    labels = read_labels(path, material(), copies_of(PAIRS[0], PAIRS[3]))
    assert (len(labels.answers), labels.copies, labels.denied) == (10, 2, 1)
    assert labels.answers.tolist() == [False, True, *[True, False] * 4]
    assert len(labels.given) == len(labels.given_answers) == 12
    assert "2 answered pairs of" in labels.notices[0]
    assert "1 of them are answered no" in labels.notices[0]
    with pytest.raises(InputError, match=r"beside those that say nothing of the others \(3 are copies\); got 9"):
        read_labels(path, material(), copies_of(*PAIRS[:3]))


def test_ids_that_look_like_numbers_or_nothing_are_texts(tmp_path: Path) -> None:
    """pandas read 007 as 7, and NA as a missing id."""
    path = tmp_path / "a.csv"
    path.write_text("image,caption,answer\n007,NA,yes\nnull,1e3,no\n")
    file = read_pair_file(path, Sides())
    assert (list(file.left), list(file.right)) == (["007", "null"], ["NA", "1e3"])


def test_ids_with_letters_of_formulas_come_back(tmp_path: Path) -> None:
    ids = ["=1+1", "@cmd", "-x", "'=y", "+1", "plain", 'a,"b"']
    path = tmp_path / "a.csv"
    path.write_text(format_csv(pd.DataFrame({"image": ids, "caption": ids, "answer": "yes"})))
    file = read_pair_file(path, Sides())
    assert list(file.left) == list(file.right) == ids
    assert "\n=1" not in path.read_text()


def test_no_side_is_called_as_the_answers_are() -> None:
    """`read_csv` refuses equal columns."""
    for sides in (Sides(), Sides("item", None), Sides("question", "answer"), Sides("answer", "label")):
        assert answer_column(sides) not in pair_columns(sides)
    assert answer_column(Sides("question", "answer")) == "label"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no header"),
        ("image,caption,answer\n", "at least one pair"),
        (
            "image,answer\ni0,yes\n",
            "must have one column that names the caption",
        ),
        ("picture,caption,answer\ni0,c4,yes\n", "must have one column that names the image"),
        ("image,caption\ni0,c4\n", "must have the column answer"),
        ("image,caption,answer\ni0,c4,maybe\n", r"must be yes, no or unsure; line 2 has .maybe."),
        ("image,caption,answer\ni0,,yes\n", "line 2 of .* must name a caption of this split: .* got ''"),
        ("image,caption,answer\ni0,c4,yes\ni0,c99,yes\n", "line 3 of .* must name a caption"),
        ("image,caption,answer\ni77,c4,yes\n", "line 2 of .* must name an image"),
        ("image,caption,answer\ni0,c4\n", "must have 3 values"),
        ("image,caption,answer, answer\ni0,c4,yes,no\n", "must have different names"),
    ],
)
def test_a_file_that_is_none_says_where_it_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_labels(path, material())


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv"):
        read_labels(tmp_path / "none.csv", material())


def test_both_answers_of_a_pair_are_named_by_their_lines(tmp_path: Path) -> None:
    """The message named rows of items instead."""
    path = write(tmp_path / "a.csv", [*HALF, "no"], [*PAIRS, PAIRS[2]])
    with pytest.raises(InputError, match=r"lines 4 and 14 of .* answer the same pair with .yes. and .no."):
        read_labels(path, material())


@pytest.mark.parametrize("word", ["yes", "no"])
def test_answers_of_one_kind_tell_nothing(tmp_path: Path, word: str) -> None:
    with pytest.raises(InputError, match=f"answers of both kinds, yes and no; all 12 are {word}"):
        read_labels(write(tmp_path / "a.csv", [word] * 12), material())


def test_few_answers_tell_little(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 10 answers, yes or no; got 4"):
        read_labels(write(tmp_path / "a.csv", ["yes", "no"] * 2 + [""] * 8), material())


def labelled() -> Material:
    relations = Relations.of_labels(np.arange(5))
    return Material.of((source(vectors(5, 0), vectors(5, 0), None, relations),), None)


def one_set(tmp_path: Path, rows: Sequence[str]) -> Path:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["item,item 2,answer", *rows]) + "\n")
    return path


def test_of_one_set_a_pair_is_the_same_both_ways_round(tmp_path: Path) -> None:
    pairs = [(a, b) for a in range(5) for b in range(5) if a < b]
    rows = [f"i{a},c{b},{'yes' if a else 'no'}" for a, b in pairs]
    assert len(read_labels(one_set(tmp_path, [*rows, "i1,c0,no"]), labelled()).answers) == 10
    with pytest.raises(InputError, match=r"lines 2 and 12 of .* answer the same pair"):
        read_labels(one_set(tmp_path, [*rows, "i1,c0,yes"]), labelled())


def test_an_item_is_no_pair_with_itself(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"of two items; line 2"):
        read_labels(one_set(tmp_path, ["i1,c1,yes"]), labelled())


def test_a_split_of_the_tests_has_these_pairs() -> None:
    assert not split().relations.is_positive(np.array([PAIRS[0][0]]), np.array([PAIRS[0][1]]))[0, 0]
