"""Do judged positives change retrieval as sorting every row does, and does a summary describe them?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import Relations
from lossscope.core.similarity import normalise
from lossscope.datasets.judgements.any_format import read_judgements
from lossscope.datasets.judgements.base import Judgements
from lossscope.datasets.karpathy import Karpathy
from lossscope.errors import InputError
from lossscope.io.frames import SUMMARY
from lossscope.retrieval.evaluate import evaluate
from lossscope.retrieval.judged import PROBE, evaluate_judged, match_judgements
from lossscope.tables import judged_retrieval
from tests.each import each

from ..datasets.judgements import judged_files

FLICKR8K = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "flickr8k"

IMAGES, CAPTIONS = 12, 36
OWNERS = np.repeat(np.arange(IMAGES), 3)
Matrix = npt.NDArray[Any]


def source(**changes: Any) -> SplitEmbeddings:
    """Return twelve images with three captions each."""
    generator = torch.Generator().manual_seed(3)
    v, t = (normalise(torch.randn(n, 4, generator=generator).double()) for n in (IMAGES, CAPTIONS))
    fields: dict[str, Any] = {
        "name": "source", "images": v, "captions": t, "similarity": None, "caption_image": OWNERS, "fingerprint": "",
        "image_ids": [f"{i}.jpg" for i in range(IMAGES)], "caption_ids": [f"c{j}" for j in range(CAPTIONS)],
        "split": "test",
    }  # fmt: skip
    return SplitEmbeddings(**{**fields, **changes})


def judgements(pairs: list[tuple[int, int, bool]], where: str = "judged.csv", **changes: Any) -> Judgements:
    first, second, positive = zip(*pairs, strict=True)
    ids = [f"{i}.jpg" for i in first], [f"{j // 3}.jpg#{j % 3}" for j in second]
    return Judgements(where, *ids, positive, "an annotator said so", **changes)


def sorted_measures(S: Matrix, match: Matrix, queries: Matrix) -> dict[str, float]:
    """Sort every row."""
    S, match = S[queries], match[queries]
    hits = [match[row][np.argsort(-S[row])] for row in range(len(S))]
    number = [int(row.sum()) for row in hits]
    found = [row[:R] * np.cumsum(row[:R]) / np.arange(1, R + 1) for row, R in zip(hits, number, strict=True)]
    return {
        **{f"R@{k}": 100 * float(np.mean([row[:k].any() for row in hits])) for k in (1, 5, 10)},
        "MAP@R": float(np.mean([precisions.mean() for precisions in found])),
        "R-precision": float(np.mean([row[:R].mean() for row, R in zip(hits, number, strict=True)])),
    }


def means(rows: pd.DataFrame, probe: str, direction: str) -> dict[str, float]:
    chosen = rows[(rows["probe"] == probe) & (rows["direction"] == direction)]
    assert chosen["statistic"].is_unique
    return dict(zip(chosen["statistic"], chosen["mean"], strict=True))


PAIRS = [(0, 5, True), (0, 6, False), (3, 0, True), (3, 35, True), (7, 21, True), (7, 22, False), (11, 1, True)]


@each("judged_only", [False, True])
def test_statistics_are_those_of_sorting_every_row(judged_only: bool) -> None:
    judged = match_judgements(source(), [judgements(PAIRS)])
    rows = evaluate_judged([source()], judged, judged_only=judged_only)
    labelled = OWNERS[None, :] == np.arange(IMAGES)[:, None]
    wider = labelled.copy()
    for i, j, positive in PAIRS:
        wider[i, j] |= positive
    embedded = source()
    assert embedded.images is not None
    assert embedded.captions is not None
    S = (embedded.images @ embedded.captions.T).numpy()
    queries = np.zeros(IMAGES, bool), np.zeros(CAPTIONS, bool)
    for side in (0, 1):
        queries[side][[pair[side] for pair in PAIRS] if judged_only else slice(None)] = True
    for probe, match in (("recall", labelled), (PROBE, wider)):
        for direction, oracle in (
            ("i2t", sorted_measures(S, match, queries[0])),
            ("t2i", sorted_measures(S.T, match.T, queries[1])),
        ):
            got = means(rows, probe, direction)
            assert {name: got[name] for name in oracle} == pytest.approx(oracle)
    assert set(rows.loc[rows["direction"] == "t2i", "n"]) == {int(queries[1].sum())}
    assert set(rows["sampling"]) == {"test split, judged queries" if judged_only else "test split"}
    assert list(rows.columns) == list(SUMMARY)


def test_the_usual_rows_are_those_of_eval() -> None:
    rows = evaluate_judged([source()], match_judgements(source(), [judgements(PAIRS)]))
    usual = evaluate([source()], cutoffs=(1, 5, 10))
    pd.testing.assert_frame_equal(rows[rows["probe"] == "recall"], usual)


def test_it_is_said_what_was_judged_and_added() -> None:
    strangers = Judgements("more.csv", ["0.jpg", "x.jpg"], ["x.jpg#0", "1.jpg#0"], [True, True], "an annotator said so")
    with pytest.raises(InputError, match=r"more.csv must judge pairs of the test split; none of its 2 pairs is"):
        match_judgements(source(), [strangers])
    second = judgements([(0, 6, True), (0, 5, True), (0, 5, True)], "second.csv")
    third = Judgements("third.csv", ["x.jpg", "5.jpg"], ["0.jpg#0", "5.jpg#0"], [True, True], "an annotator said so")
    judged = match_judgements(source(), [judgements(PAIRS), second, third])
    assert judged.added.tolist() == [[0, 5], [0, 6], [3, 0], [3, 35], [11, 1]]
    assert (judged.denied, judged.disputed, judged.skipped) == (1, 1, 1)
    assert "add 5 positives, to 3 images and 5 captions; judged as queries were 5 of 12 images" in judged.summary[3]
    rows = evaluate_judged([source()], judged)
    both, i2t = means(rows, PROBE, "both"), means(rows, PROBE, "i2t")
    assert (both["added_positives"], both["skipped_pairs"]) == (5, 1)
    assert (i2t["judged_queries"], i2t["queries_with_added"]) == (5, 3)


def test_queries_are_those_of_the_side_that_was_judged() -> None:
    judged = match_judgements(source(), [judgements(PAIRS, queries="first")])
    assert judged.queries.map(sum).i2t == 4
    assert not judged.queries.t2i.any()
    with pytest.raises(InputError, match="t2i must have at least one of the requested queries; no caption"):
        evaluate_judged([source()], judged, judged_only=True)


def test_coco_is_matched_by_numbers_and_never_by_rows(tmp_path: Path) -> None:
    judged_files.write(tmp_path)
    eccv = [read_judgements(tmp_path / f"eccv_{name}.json") for name in ("image_to_caption", "caption_to_image")]
    ids = {"image_ids": judged_files.IMAGES, "caption_ids": judged_files.CAPTIONS}
    sizes = {"images": torch.eye(3), "captions": torch.eye(3).repeat(2, 1), "caption_image": np.repeat(np.arange(3), 2)}
    judged = match_judgements(source(**sizes, **ids), eccv)
    assert judged.added.tolist() == [[0, 3], [2, 1], [2, 2]]
    assert judged.queries.i2t.tolist() == [True, False, True]
    assert np.flatnonzero(judged.queries.t2i).tolist() == [2]
    numbers = {"image_ids": ["0", "1", "2"], "caption_ids": judged_files.CAPTIONS}
    with pytest.raises(InputError, match="this split has no ids of COCO"):
        match_judgements(source(**sizes, **numbers), eccv)


def test_labels_have_no_judgements() -> None:
    labels = Relations.of_labels(np.arange(IMAGES) % 3)
    ids = [f"{i}.jpg" for i in range(IMAGES)]
    labelled = source(captions=source().images, caption_image=None, caption_ids=ids, relations=labels)
    with pytest.raises(InputError, match="is one set of items, whose positives are its labels"):
        match_judgements(labelled, [judgements(PAIRS)])


def test_a_split_without_a_new_positive_keeps_its_numbers() -> None:
    rows = evaluate_judged([source()], match_judgements(source(), [judgements([(0, 1, True), (0, 7, False)])]))
    for direction in ("i2t", "t2i", "both"):
        usual = means(rows, "recall", direction)
        wider = means(rows, PROBE, direction)
        assert {name: wider[name] for name in usual} == usual


def test_the_table_has_a_line_of_each_kind_of_positives() -> None:
    table = judged_retrieval.build(evaluate_judged([source()], match_judgements(source(), [judgements(PAIRS)])))
    assert [[cell.text for cell in row if cell.text] for row in table.rows] == [
        ["–", "the data's own"],
        ["–", "own and judged"],
    ]
    assert not any(cell.best for row in table.rows for cell in row)
    with pytest.raises(InputError, match="Run `lossscope eval SOURCE --judgements FILE`"):
        judged_retrieval.build(evaluate([source()]))


@pytest.mark.skipif(not FLICKR8K.is_dir(), reason="no real Flickr8k on this machine")
def test_the_numbers_of_captions_are_those_of_flickr8k() -> None:
    """Karpathy's sentences are in the order of Flickr8k.token.txt, by which judgements number them."""
    split = Karpathy(FLICKR8K, "flickr8k", size=64).split("test")
    lines = (FLICKR8K / "text" / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
    texts = dict(line.split("\t") for line in lines)
    assert split.caption_image is not None
    names = [f"{split.image_ids[owner]}#{row % 5}" for row, owner in enumerate(split.caption_image)]
    assert [texts[name].strip() for name in names] == split.captions
    embedded = SplitEmbeddings(
        "flickr8k", None, None, torch.zeros(1000, 5000), split.caption_image, split.image_ids, split.caption_ids, ""
    )
    experts, crowd = (
        match_judgements(embedded, [read_judgements(FLICKR8K / "text" / f"{name}Annotations.txt")])
        for name in ("Expert", "CrowdFlower")
    )
    assert (len(experts.positives), len(experts.added), experts.skipped) == (306, 232, 0)
    assert (len(crowd.positives), len(crowd.added), crowd.skipped) == (1286, 940, 0)
