"""Are answers true, gaps, copies and mined negatives as many as stated, and the set equal on every machine?"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.core.embedded import SplitEmbeddings
from lossscope.datasets.base import Dataset, Split, Texts
from lossscope.datasets.formats.subset import first_images
from lossscope.datasets.passages import Passages
from lossscope.datasets.synthetic.answers import PassageSplit
from lossscope.datasets.synthetic.knowledge import FIRST_NAMES, LAST_NAMES, RELATION_NAMES, RELATIONS
from lossscope.datasets.synthetic.wording import QUESTIONS, STATEMENTS
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.text.vocabulary import SPECIAL, Vocabulary

Oracle = Callable[[str], ModuleType]
DEFAULT = "b55fd1472281d1ffb879679a431f65b1595fb0c6d56321253fefe5a8dcec27d0"
seeds = st.integers(0, 2**64 - 1)
options = st.fixed_dictionaries({
    "seed": seeds, "val": st.integers(2, 60), "facts": st.integers(2, 4), "negatives": st.integers(0, 6),
    "false_negatives": st.floats(0, 1), "duplicates": st.floats(0, 1), "mined": st.floats(0, 1),
})  # fmt: skip


def small(**fields: Any) -> PassageSplit:
    return Passages(**{"train": 2, "val": 30, "test": 2, "mined_answers": 0.0, **fields}).split("val")


def draw(values: dict[str, Any]) -> tuple[Passages, PassageSplit]:
    """Return a data set and its validation split; of the answers without a label a share `mined` is mined."""
    mined = values.pop("mined") * values["false_negatives"] / max(values["negatives"], 1)
    numbers = {"train": 12, "test": 12, **values}
    try:
        data = Passages(**numbers, mined_answers=mined)
    except InputError:  # rounded up
        data = Passages(**numbers, mined_answers=0.0)
    return data, data.split("val")


def questions(split: PassageSplit) -> list[str]:
    assert isinstance(split.images, Texts)
    return list(split.images.texts)


def labelled(split: PassageSplit) -> np.ndarray[Any, Any]:
    return split.relations.is_positive(np.arange(split.relations.first), np.arange(split.relations.second))


def whole(share: float, number: int) -> int:
    return int(share * number + 0.5)


@settings(max_examples=40)
@given(options)
def test_answers_are_what_the_texts_say(oracle: Oracle, values: dict[str, Any]) -> None:
    _, split = draw(values)
    slow = oracle("passages")
    asked, stated = [slow.asked(text) for text in questions(split)], [slow.stated(text) for text in split.captions]
    expected = [[fact in facts for facts in stated] for fact in asked]
    assert split.truth().tolist() == expected
    rows = range(len(asked)), range(len(stated))
    assert [[split.answers(question, passage) for passage in rows[1]] for question in rows[0]] == expected


@settings(max_examples=20)
@given(options, st.floats(0, 1))
def test_a_vague_question_is_answered_by_passages_about_anybody(
    oracle: Oracle, values: dict[str, Any], vague: float
) -> None:
    _, plain = draw({**values, "negatives": 0})
    _, split = draw({**values, "negatives": 0, "vague": vague})
    slow = oracle("passages")
    expected = [[slow.answers(question, passage) for passage in split.captions] for question in questions(split)]
    assert split.truth().tolist() == expected
    assert split.answers(0, 0) == expected[0][0]
    assert sum("somebody" in text for text in questions(split)) == whole(vague, split.relations.first)
    assert (labelled(split) == labelled(plain)).all()
    assert split.captions == plain.captions


def test_vague_questions_have_no_mined_negatives() -> None:
    with pytest.raises(InputError, match=r"negatives must be 0 where questions are vague.* got 4 with vague=0\.5"):
        Passages(vague=0.5)


@settings(max_examples=40)
@given(options)
def test_labels_lack_what_was_left_out_and_nothing_else(values: dict[str, Any]) -> None:
    data, split = draw(values)
    truth, label, copies = split.truth(), labelled(split), split.duplicate_of >= 0
    assert (truth | ~label).all()
    assert label.any(1).all()
    assert not label[:, copies].any()
    unlabelled = truth & ~label
    n, without_copies = data.val, int((~copies).sum())
    assert unlabelled[:, ~copies].sum() == whole(data.false_negatives, n)
    assert unlabelled[:, ~copies].sum(1).max(initial=0) <= 1
    assert copies.sum() == whole(data.duplicates, without_copies)
    assert [tuple(pair) for pair in split.false_negatives.tolist()] == list(zip(*unlabelled.nonzero(), strict=True))
    assert (truth[:, copies] == truth[:, split.duplicate_of[copies]]).all()


@settings(max_examples=40)
@given(options)
def test_mined_negatives_look_like_answers_and_a_stated_number_are(values: dict[str, Any]) -> None:
    data, split = draw(values)
    mined = split.relations.negatives
    if not data.negatives:
        assert mined is None and split.mined_answers.shape == (data.val, 0)
        return
    assert mined is not None and mined.shape == (data.val, data.negatives)
    truth, label = split.truth(), labelled(split)
    assert split.mined_answers.sum() == whole(data.mined_answers, data.val * data.negatives)
    for question, row in enumerate(mined.tolist()):
        real = [passage for passage in row if passage >= 0]
        assert len(set(real)) == len(real)
        for passage, is_answer in zip(row, split.mined_answers[question], strict=True):
            if passage < 0:
                assert not is_answer
                continue
            assert truth[question, passage] == is_answer and not label[question, passage]
            assert split.duplicate_of[passage] < 0
            same_person = split.passage_person[passage] == split.asked_person[question]
            assert same_person or split.stated[passage, split.asked_relation[question]]


@settings(max_examples=30)
@given(options)
def test_texts_repeat_only_where_they_are_copies(values: dict[str, Any]) -> None:
    _, split = draw(values)
    first = {text: row for row, text in reversed(list(enumerate(split.captions)))}
    assert [-1 if first[text] == row else first[text] for row, text in enumerate(split.captions)] == (
        split.duplicate_of.tolist()
    )
    assert len(set(questions(split))) == len(questions(split))


@settings(max_examples=30)
@given(options)
def test_a_person_has_one_value_for_each_relation(oracle: Oracle, values: dict[str, Any]) -> None:
    _, split = draw(values)
    known: dict[tuple[str, str], str] = {}
    for passage in split.captions:
        for fact, value in oracle("passages").stated(passage).items():
            assert known.setdefault(fact, value) == value
            assert value in RELATIONS[fact[1]]
    assert (split.stated.sum(1) == values["facts"]).all()


def test_hard_negatives_are_about_the_person_and_about_namesakes() -> None:
    split = Passages(val=600, false_negatives=0.0, mined_answers=0.0).split("val")
    mined = split.relations.negatives
    assert mined is not None and (mined >= 0).all()
    same_person = split.passage_person[mined] == split.asked_person[:, None]
    assert same_person.any(1).mean() > 0.5
    people = split.people
    namesakes = [
        any(
            (people[a].first == people[b].first) != (people[a].last == people[b].last)
            for b in split.passage_person[row].tolist()
        )
        for a, row in zip(split.asked_person.tolist(), mined, strict=True)
    ]
    assert np.mean(namesakes) > 0.5


def test_complete_labels_have_every_answer() -> None:
    split = Passages(false_negatives=0.2, mined_answers=0.04).split("val")
    complete = split.complete_relations()
    assert complete.negatives is not None
    assert np.array_equal(complete.is_positive(np.arange(250), np.arange(len(split.captions))), split.truth())
    assert (complete.negatives < 0).sum() == split.mined_answers.sum() == 40
    assert not np.take_along_axis(split.truth(), np.maximum(complete.negatives, 0), 1)[complete.negatives >= 0].any()


def test_columns_fit_and_ids_name_rows() -> None:
    split = Passages().split("val")
    assert isinstance(Passages(), Dataset)
    n, m = 250, len(split.captions)
    assert (len(split.images), split.relations.first, split.relations.second) == (n, n, m)
    assert (split.image_ids[17], split.caption_ids[33]) == ("val-q00017", "val-p00033")
    assert len({*split.image_ids, *split.caption_ids}) == n + m
    assert split.relations.sides.labels == ("q2d", "d2q")
    assert split.caption_image is None


def test_no_person_and_no_text_is_in_two_splits() -> None:
    data = Passages(train=300, val=300, test=300)
    splits = [data.split(name) for name in data.splits()]
    names = [{person.name for person in split.people} for split in splits]
    assert not names[0] & names[1] and not names[0] & names[2] and not names[1] & names[2]
    assert [len(of_split) for of_split in names] == [100, 100, 100]
    assert not set(splits[0].captions) & set(splits[1].captions)


def test_a_smaller_split_is_the_beginning_of_a_larger_one() -> None:
    gaps = {"false_negatives": 0.0, "duplicates": 0.0}
    part, more = small(val=31, **gaps), small(val=60, **gaps)
    assert questions(part) == questions(more)[:31]
    assert part.captions == more.captions[: len(part.captions)]
    assert more.people[: len(part.people)] == part.people


def test_seeds_and_options_differ() -> None:
    choices = (
        {}, {"seed": 1}, {"val": 31}, {"facts": 2}, {"negatives": 2}, {"false_negatives": 0.5}, {"duplicates": 0.5},
        {"mined_answers": 0.02},
    )  # fmt: skip
    assert len({small(**choice).fingerprint for choice in choices}) == len(choices)
    assert small(seed=7).fingerprint == small(seed=7).fingerprint


def test_the_default_set_is_the_same_on_every_machine() -> None:
    assert fingerprint_of(*(Passages().split(name).fingerprint for name in Passages().splits())) == DEFAULT


def test_the_words_are_few_and_all_of_them_are_in_the_training_split() -> None:
    data = Passages()
    train, test = (data.split(name) for name in ("train", "test"))
    words = Vocabulary.build([*questions(train), *train.captions], min_count=4)
    assert 300 < len(words.words) < 1000
    unknown = words.ids[SPECIAL[3]]
    assert not any(unknown in words.encode(text) for text in [*questions(test), *test.captions])


def test_names_and_forms_are_of_one_meaning() -> None:
    assert len({*FIRST_NAMES, *LAST_NAMES}) == len(FIRST_NAMES) + len(LAST_NAMES)
    for forms in (STATEMENTS, QUESTIONS):
        assert tuple(forms) == RELATION_NAMES
        all_forms = [form for of_relation in forms.values() for form in of_relation]
        assert len(set(all_forms)) == len(all_forms) and all(form.count("{}") == 1 for form in all_forms)


def test_relations_are_those_that_sources_take() -> None:
    split = small()
    S = torch.rand(30, len(split.captions))
    ids = split.image_ids, split.caption_ids
    embedded = SplitEmbeddings("x", None, None, S, None, *ids, "f", relations=split.relations)
    assert embedded.relations is split.relations and embedded.sides.labels == ("q2d", "d2q")
    assert embedded.similarities(np.arange(30), np.arange(len(split.captions))).i2t.shape == S.shape


def test_the_first_questions_are_a_split_without_answers_of_the_others() -> None:
    """The split kept the answers of all questions, and false_negatives raised IndexError."""
    split = small()
    part = first_images(split, 7)
    assert type(part) is Split and part.relations.first == len(part.images) == 7
    assert part.relations.second == len(part.captions) == len(split.captions)
    assert (labelled(split)[:7] == part.relations.is_positive(np.arange(7), np.arange(len(split.captions)))).all()


def test_the_largest_training_split_can_be_written() -> None:
    split = Passages(train=12288, negatives=0, mined_answers=0.0).split("train")
    assert len(split.people) == 4096 == len({person.name for person in split.people})
