"""Does a score decide which rows are positives, by a cut that a notice states first?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lossscope.datasets.base import Split, Texts
from lossscope.datasets.lint.suite import lint
from lossscope.datasets.lint.targets import lint_sources
from lossscope.datasets.saved import Saved
from lossscope.datasets.texts import TextRows
from lossscope.errors import InputError
from tests.each import each

STS = [("a man rides", "a man is riding", 4.8), ("a cat sits", "a cat lies", 3.0), ("a man rides", "a dog", 0.2)]


def write(folder: Path, names: tuple[str, ...], rows: list[tuple[Any, ...]], suffix: str = "jsonl") -> str:
    table, path = pd.DataFrame(rows, columns=list(names)), folder / f"train.{suffix}"
    if suffix == "parquet":
        table.to_parquet(path)
    elif suffix == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    return str(path)


def whole(file: str, **options: Any) -> Split:
    return TextRows(file, val_share=0, test_share=0, **options).split("train")


def pairs(split: Split) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    assert isinstance(split.images, Texts)
    queries, table = split.images.texts, split.relations.negatives
    negatives = [] if table is None else [(q, d) for q, row in enumerate(table.tolist()) for d in row if d >= 0]
    return [(queries[q], split.captions[d]) for q, d in split.relations.positives.tolist()], [
        (queries[q], split.captions[d]) for q, d in negatives
    ]


@each(
    "suffix",
    ["jsonl", "csv", "parquet"],
    "names",
    [
        ("sentence1", "sentence2", "score"),
        ("sentence_A", "sentence_B", "relatedness_score"),
        ("text1", "text2", "similarity_score"),
    ],
)
def test_pairs_of_sts_are_cut_at_4_of_5_which_is_said_first(
    suffix: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    """Such files were refused for want of a column `query`."""
    split = whole(write(tmp_path, names, STS, suffix))
    assert pairs(split) == (
        [("a man rides", "a man is riding")],
        [("a man rides", "a dog"), ("a cat sits", "a cat lies")],
    )
    scored = {(split.images.texts[query], split.captions[row]): score for query, row, score in split.scores}  # type: ignore[attr-defined]
    assert scored == {(first, second): score for first, second, score in STS}
    assert split.notices[0].endswith(
        "is 0.2..4.8: rows with 4 or more are positives (1 of 3), all others are negatives of their query. Assuming "
        "cut=4; set it with cut=S"
    )
    assert "1 queries have no positive: they are candidates alone" in split.notices


def test_the_cut_is_an_option(tmp_path: Path) -> None:
    split = whole(write(tmp_path, ("sentence1", "sentence2", "score"), STS), cut=3)
    assert pairs(split)[0] == [("a man rides", "a man is riding"), ("a cat sits", "a cat lies")]
    assert "rows with 3 or more are positives (2 of 3)" in split.notices[0] and "Assuming" not in split.notices[0]


def test_normalised_scores_are_cut_at_four_fifths_and_other_scales_need_a_cut(tmp_path: Path) -> None:
    names = ("sentence1", "sentence2", "score")
    assert "0.8 or more" in whole(write(tmp_path, names, [("a", "b", 0.96), ("a", "c", 0.1)])).notices[0]
    for scores in ((90.0, 10.0), (3.5, 0.5), (0.9, -0.5)):
        file = write(tmp_path, names, [("a", "b", scores[0]), ("a", "c", scores[1])])
        with pytest.raises(InputError, match=r"a scale that lossscope does not know: .*,cut="):
            whole(file)
        assert len(pairs(whole(file, cut=scores[0]))[0]) == 1


@each("value", ["int", "float", "bool", "text"])
def test_labels_of_0_and_1_are_negatives_and_positives(value: str, tmp_path: Path) -> None:
    kind = {"int": int, "float": float, "bool": bool, "text": str}[value]
    rows = [("q", "p", kind(1)), ("q", "n", kind(0) if value != "text" else "0")]
    split = whole(write(tmp_path, ("question1", "question2", "label"), rows))
    assert pairs(split) == ([("q", "p")], [("q", "n")])
    assert "is 0 or 1: rows of 1 are positives (1 of 2), rows of 0 are negatives of their query" in split.notices[0]


@each(
    "labels",
    [[0, 1, 2], [0, 2], [-1, 0, 1], ["entailment", "neutral", "contradiction"]],
    "suffix",
    ["jsonl", "csv", "parquet"],
)
def test_labels_of_nli_are_refused_with_lines_that_work(
    labels: list[Any], suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [("p", f"h{row}", label) for row, label in enumerate(labels)]
    file = write(tmp_path, ("premise", "hypothesis", "label"), rows, suffix)
    with pytest.raises(InputError, match=r"must be a score or a label of 0 or 1") as caught:
        whole(file)
    lines = str(caught.value).partition("in Python: ")[2].partition(". If they")[0]
    exec(lines, {})  # the message promises that they run
    split = whole(str(tmp_path / "train-entailment.jsonl"))
    assert pairs(split) == ([("p", f"h{labels.index(0) if 0 in labels else 0}")], [])


def test_grades_are_read_where_a_cut_says_so(tmp_path: Path) -> None:
    file = write(tmp_path, ("sentence1", "sentence2", "score"), [("q", "a", 2), ("q", "b", 1), ("q", "c", 0)])
    assert pairs(whole(file, cut=1)) == ([("q", "a"), ("q", "b")], [("q", "c")])


def test_a_labelled_pair_of_mined_negatives_is_no_positive(tmp_path: Path) -> None:
    """What mine_hard_negatives(output_format="labeled-pair") writes: label 0 was read as a positive, in silence."""
    file = write(tmp_path, ("query", "answer", "label"), [("q", "p", 1), ("q", "n", 0), ("r", "s", 1)])
    assert pairs(whole(file)) == ([("q", "p"), ("r", "s")], [("q", "n")])


def test_a_list_of_labels_is_of_the_list_of_answers(tmp_path: Path) -> None:
    """What mine_hard_negatives(output_format="labeled-list") writes."""
    file = write(tmp_path, ("query", "answer", "labels"), [("q", ["p", "n", "m"], [1, 0, 0])])
    assert pairs(whole(file)) == ([("q", "p")], [("q", "n"), ("q", "m")])
    with pytest.raises(InputError, match=r"'labels' of line 1 of .* must be a score of each of 2 texts; got"):
        whole(write(tmp_path, ("query", "answer", "labels"), [("q", ["p", "n"], [1, 0, 0])]))


def test_a_list_of_labels_may_be_of_positive_and_negatives(tmp_path: Path) -> None:
    names = ("query", "positive", "negative_1", "negative_2", "label")
    split = whole(write(tmp_path, names, [("q", "p", "n", "m", [1, 0, 0])]))
    assert pairs(split) == ([("q", "p")], [("q", "n"), ("q", "m")])


@each("name, values", [("score", [0.7, 0.2]), ("label", ["sports", "news"]), ("label", [3, 4])])
def test_other_scores_of_queries_and_positives_are_not_read_and_it_says_so(
    name: str, values: list[Any], tmp_path: Path
) -> None:
    file = write(tmp_path, ("query", "positive", name), [("q", "p", values[0]), ("r", "s", values[1])])
    split = whole(file)
    assert len(pairs(split)[0]) == 2
    assert f"{name!r} of {file} is not read, as it is not a label of 0 and 1: every text" in split.notices[0]
    if name == "score":
        assert len(pairs(whole(file, cut=0.5))[0]) == len(pairs(whole(file, cut=0.5, columns="score=score"))[0]) == 1


def test_scores_of_a_list_of_answers_are_told_and_cut(tmp_path: Path) -> None:
    """What mine_hard_negatives writes as labeled-list with output_scores: negatives among the answers."""
    file = write(tmp_path, ("query", "answer", "scores"), [("q", ["p", "n"], [0.9, 0.3])])
    assert "'scores' of" in whole(file).notices[0] and len(pairs(whole(file))[0]) == 2
    assert pairs(whole(file, cut=0.5)) == ([("q", "p")], [("q", "n")])


def test_an_id_of_a_pair_is_not_of_its_query(tmp_path: Path) -> None:
    rows = [(7, "q", "p", 1), (8, "q", "n", 0)]
    assert pairs(whole(write(tmp_path, ("id", "sentence1", "sentence2", "label"), rows)))[1] == [("q", "n")]


@each("value, says", [(None, "must be a number; got None"), (float("inf"), "must be a number; got")])
def test_a_score_that_is_none_is_named(value: Any, says: str, tmp_path: Path) -> None:
    row = json.dumps({"sentence1": "a", "sentence2": "b", "score": value})
    (tmp_path / "a.jsonl").write_text('{"sentence1": "a", "sentence2": "b", "score": 4.5}\n' + row + "\n")
    with pytest.raises(InputError, match=rf"'score' of line 2 of .*a\.jsonl {says}"):
        whole(str(tmp_path / "a.jsonl"))


def test_a_cut_without_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cut=0\.5 needs a column of scores; .* Name it: columns=score=NAME"):
        whole(write(tmp_path, ("query", "positive"), [("q", "p")]), cut=0.5)


def test_scores_that_begin_in_a_later_block_are_refused(tmp_path: Path) -> None:
    """Rows before would have been taken as positives."""
    rows = [{"sentence1": f"q{row}", "sentence2": "p" * 200} for row in range(3000)]
    rows.append({"sentence1": "q", "sentence2": "n", "label": 0})  # type: ignore[dict-item]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"'label' of line 1 of .* must be a number; got None"):
        whole(str(tmp_path / "a.jsonl"))


def test_lint_counts_no_row_of_a_low_score_as_a_row_without_positive(tmp_path: Path) -> None:
    file = write(tmp_path, ("sentence1", "sentence2", "label"), [("q", "p", 1), ("q", "n", 0), ("q", "m", 0)])
    report = lint(lint_sources(file))
    assert not report.findings
    assert "rows of 1 are positives (1 of 3)" in report.notes[0]


def test_a_saved_data_set_is_cut_too(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    table = datasets.Dataset.from_pandas(pd.DataFrame(STS, columns=["sentence1", "sentence2", "score"]))
    datasets.DatasetDict(train=table, validation=table).save_to_disk(tmp_path / "sts")
    data = Saved(str(tmp_path / "sts"), cut=3)
    assert data.splits() == ("train", "val")
    assert len(pairs(data.split("val"))[0]) == 2
