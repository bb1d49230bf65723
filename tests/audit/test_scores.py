"""Are pairs of a file scored in its order, of any split, without their own text?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lossscope.audit.steps.inputs import read_inputs
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.score_pairs import score_pairs
from lossscope.datasets.scenes import Scenes
from lossscope.errors import InputError
from tests.audit.small import vectors

pytestmark = pytest.mark.usefixtures("transferred")  # the tests need probabilities
SCENES = Scenes(train=30, val=6, test=10, size=16, ambiguity=0.4)
OPTIONS = AuditOptions.of(data="scenes:train=30,val=6,test=10,size=16,ambiguity=0.4", batch_size=16, split="train")


def scores(
    tmp_path: Path, rows: list[tuple[str, str]], options: AuditOptions = OPTIONS, *sources: Path
) -> pd.DataFrame:
    path = tmp_path / "pairs.csv"
    path.write_text("image,caption\n" + "".join(f"{a},{b}\n" for a, b in rows))
    return score_pairs(sources, path, options)[0]


def test_scores_stand_in_the_order_of_the_file_and_a_pair_may_be_there_twice(tmp_path: Path) -> None:
    rows = [("train-00003", "train-00007-1"), ("train-00001", "train-00002-0"), ("train-00003", "train-00007-1")]
    table = scores(tmp_path, rows)
    assert list(zip(table["image"], table["caption"], strict=True)) == rows
    other = scores(tmp_path, rows[::-1])
    pd.testing.assert_frame_equal(other, table.iloc[::-1].reset_index(drop=True))
    assert table.iloc[0].equals(table.iloc[2])
    assert table["probability"].between(0, 1).all()


def test_a_known_pair_is_scored_without_its_own_text(tmp_path: Path) -> None:
    """Else each positive would repeat itself word for word, and match for certain."""
    split = SCENES.split("train")
    rows = [(split.image_ids[k // 5], split.caption_ids[k]) for k in range(150)]
    table = scores(tmp_path, rows)
    owners = np.repeat(np.arange(30), 5)
    copies = [
        any(
            split.captions[k].lower() == split.captions[t].lower() for t in np.nonzero(owners == owners[k])[0] if t != k
        )
        for k in range(150)
    ]
    assert not all(copies)
    np.testing.assert_array_equal(table["is_copy"], np.array(copies, int))
    assert (table["probability"][~np.array(copies)] < 1).all()
    assert table["text_cosine"][~np.array(copies)].max() < 0.9999


def test_own_pairs_of_a_model_are_compared_with_the_other_positives(tmp_path: Path) -> None:
    owners = np.repeat(np.arange(6), 2)
    images, captions = vectors(6, 0), vectors(12, 1)
    np.savez(tmp_path / "a.npz", images=images, captions=captions, caption_image=owners)
    table = scores(tmp_path, [("0", "0"), ("0", "1")], AuditOptions.of(split="test", batch_size=6), tmp_path / "a.npz")
    s = images[0] @ captions[:2].T
    np.testing.assert_allclose(table["difference"], [s[0] - s[1], s[1] - s[0]], atol=1e-5)


@pytest.mark.parametrize("split", ["test", "train"])
def test_pairs_across_splits_are_scored(tmp_path: Path, split: str) -> None:
    options = replace(OPTIONS, source=replace(OPTIONS.source, split=split))
    table = scores(tmp_path, [("test-00001", "train-00007-1"), ("train-00002", "train-00003-0")], options)
    assert table["probability"].between(0, 1).all()
    assert np.isfinite(table["text_items"]).all()


def test_pairs_across_splits_of_a_model_are_scored(tmp_path: Path, tiny_checkpoint: Path) -> None:
    options = AuditOptions.of(split="test", batch_size=16)
    table = scores(tmp_path, [("test-00001", "train-00007-1"), ("val-00002", "test-00003-0")], options, tiny_checkpoint)
    assert np.isfinite(table[["similarity", "density", "text_items"]]).all().all()


def test_mined_negatives_stay_where_splits_are_taken_together() -> None:
    """As soon as a file named a second split, signals were standardised on batches without mined negatives."""
    options = AuditOptions.of(data="passages:train=40,val=8,test=8")
    parts = [read_inputs([], options, [name]).material.relations for name in ("train", "val")]
    whole = read_inputs([], options, ["train", "val"]).material.relations
    assert whole.negatives is not None
    assert whole.negatives.shape[0] == whole.first == sum(part.first for part in parts)
    for part, rows, start in zip(parts, np.split(whole.negatives, [parts[0].first]), (0, parts[0].second), strict=True):
        assert part.negatives is not None
        width = part.negatives.shape[1]
        np.testing.assert_array_equal(rows[:, :width], np.where(part.negatives < 0, -1, part.negatives + start))
        assert (rows[:, width:] == -1).all()


def test_an_id_of_no_split_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 3 of .*pairs\.csv must name an image.*nobody"):
        scores(tmp_path, [("test-00001", "train-00007-1"), ("nobody", "train-00003-0")])


def test_a_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("picture,text\na,b\n")
    with pytest.raises(
        InputError, match="must have one column that names the image: image, image_id or image_row; got"
    ):
        score_pairs((), tmp_path / "p.csv", OPTIONS)


def test_pairs_of_one_set_across_splits_are_none(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", embeddings=vectors(12, 0), labels=np.arange(12) % 4)
    (tmp_path / "p.csv").write_text("item,item 2\n0,1\n99,3\n")
    with pytest.raises(InputError, match="line 3 of"):
        score_pairs([tmp_path / "set.npz"], tmp_path / "p.csv", AuditOptions.of(split="test", batch_size=6))
