"""Are BFAN's captions read as ids with their text and ends, and are malformed files refused?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lossscope.datasets.base import Dataset
from lossscope.datasets.precaps import Precaps
from lossscope.errors import InputError
from lossscope.registry import build, spec_of
from tests.each import each

WORDS = ["<pad>", "<start>", "<end>", "<unk>", "a", "dog", "runs"]


def write(root: Path, lines: list[str], images: int = 1, split: str = "train") -> Path:
    np.save(root / f"{split}_ims.npy", np.ones((images, 3, 2), np.float32))
    (root / f"{split}_precaps.txt").write_text("".join(f"{line}\n" for line in lines))
    ids = {word: row for row, word in enumerate(WORDS)}
    inverse = {str(row): word for word, row in ids.items()}
    (root / "v.json").write_text(json.dumps({"word2idx": ids, "idx2word": inverse, "idx": len(ids)}))
    return root


def precaps(root: Path, **options: object) -> Precaps:
    return Precaps(root, root / "v.json", **options)  # type: ignore[arg-type]


def test_tokens_are_the_ids_and_captions_their_words(tmp_path: Path) -> None:
    data = precaps(write(tmp_path, ["4,5", "4, 6", "5", "3,5,6", "6"]))
    split = data.split("train")
    assert isinstance(data, Dataset)
    assert split.captions == ["a dog", "a runs", "dog", "<unk> dog runs", "runs"]
    assert split.tokens == [[4, 5], [4, 6], [5], [3, 5, 6], [6]]
    assert split.caption_image.tolist() == [0] * 5
    assert split.images.shape == (3, 2)


def test_ends_are_added_only_by_option_and_when_missing(tmp_path: Path) -> None:
    write(tmp_path, ["4,5"] * 5)
    assert precaps(tmp_path, ends=True).split("train").tokens == [[1, 4, 5, 2]] * 5
    write(tmp_path, ["1,4,5,2"] * 5)
    for ends in (False, True):
        split = precaps(tmp_path, ends=ends).split("train")
        assert split.tokens == [[1, 4, 5, 2]] * 5
        assert split.captions == ["a dog"] * 5


@each(
    "lines, message",
    [
        (["4,5"] * 4 + ["1,4,2"], r"must all begin with id 1 and end with 2, .*; got a mixture: line 5 differs"),
        (["1,4,2"] * 3 + ["4,5"] * 2, "got a mixture: line 4 differs from line 1"),
        (["1,4"] * 5, "got a mixture"),
        (["4,7"] * 5, "ids of line 1 of .*precaps.txt must be below 7, the vocabulary's size; got 7"),
        (["4,x"] + ["4"] * 4, "line 1 of .* must be ids between commas; got '4,x'"),
        (["4", ""] + ["4"] * 3, "line 2 of .* must be ids between commas; got ''"),
        (["4" * 10_000] * 5, "must be ids between commas; got '4444"),  # more digits than Python converts
        (["-1"] * 5, "must be ids between commas; got '-1'"),
        (["4"] * 3, "must have 1 or 5 lines, for 1 rows in train_ims.npy; got 3"),
    ],
)
def test_malformed_files_are_refused(lines: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        precaps(write(tmp_path, lines)).split("train")


def test_a_missing_split_or_vocabulary_is_refused(tmp_path: Path) -> None:
    write(tmp_path, ["4"] * 5)
    with pytest.raises(InputError, match="must be one of train; got 'test'"):
        precaps(tmp_path).split("test")
    (tmp_path / "v.json").unlink()
    with pytest.raises(InputError, match=r"v\.json must exist"):
        precaps(tmp_path).split("train")


def test_dev_may_be_cut_and_the_fingerprint_covers_the_tokens(tmp_path: Path) -> None:
    write(tmp_path, ["4"] * 10, images=2, split="dev")
    first = precaps(tmp_path, dev_first=5).split("val")
    assert (len(first.images), len(first.captions), first.tokens) == (1, 5, [[4]] * 5)
    ended = precaps(tmp_path, dev_first=5, ends=True).split("val")
    assert ended.captions == first.captions
    assert ended.fingerprint != first.fingerprint
    with pytest.raises(InputError, match="dev_first must be at least 1"):
        precaps(tmp_path, dev_first=-1)


def test_specs_round_trip(tmp_path: Path) -> None:
    spec = f"precaps:root={tmp_path},vocab={tmp_path}/v.json"
    data = build("datasets", spec)
    assert data == precaps(tmp_path)
    assert build("datasets", spec_of(data)) == data


def test_rows_that_are_said_five_times_are_merged(tmp_path: Path) -> None:
    split = precaps(write(tmp_path, ["4,5"] * 5, images=5)).split("train")
    assert (len(split.images), len(split.captions), len(split.notices)) == (1, 5, 1)
    assert len(precaps(tmp_path, redundant="false").split("train").images) == 5
