"""Which images and captions are the same input."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.datasets.base import Split
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources._inputs import caption_keys, image_keys, keys_of
from lossscope.sources.base import load

UNIT = np.eye(3, dtype=np.float32)


class Held:
    """Images in memory, which remembers what was taken."""

    def __init__(self, arrays: Any) -> None:
        self.arrays, self.taken = arrays, 0

    @property
    def shape(self) -> Any:
        return {k: v.shape[1:] for k, v in self.arrays.items()} if self.several else self.arrays.shape[1:]

    @property
    def several(self) -> bool:
        return isinstance(self.arrays, Mapping)

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()))) if self.several else len(self.arrays)

    def take(self, rows: Any) -> Any:
        self.taken += len(rows)
        return {k: v[rows] for k, v in self.arrays.items()} if self.several else self.arrays[rows]


def split(images: Any, captions: list[str], **more: Any) -> Split:
    n, m = len(images), len(captions)
    owner = np.arange(m, dtype=np.int64) % n
    return Split("test", images, captions, owner, [str(i) for i in range(n)], [str(i) for i in range(m)], "f", **more)


def test_images_are_equal_by_their_bytes() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (300, 3, 4, 4), dtype=np.uint8)
    pixels[299] = pixels[1]
    pixels[7] = pixels[3]
    pixels[7, 2, 3, 3] ^= 1
    told: list[tuple[str, int, int]] = []
    found = image_keys(Held(pixels), "val", lambda *step: told.append(step))
    assert found.tolist() == [*range(299), 1]
    assert told == [("comparing val images", n, 300) for n in (128, 256, 300)]


def test_items_of_several_arrays_are_equal_when_all_of_them_are() -> None:
    first = np.array([[0.0], [0.0], [0.0]], dtype=np.float32)
    second = np.array([[1.0, 2.0], [1.0, 2.5], [1.0, 2.0]], dtype=np.float32)
    assert image_keys(Held({"a": first, "b": second}), "test").tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("captions", "expected"),
    [
        (["A dog.", "a  dog", "A dog runs", "the dog", "a dog!"], [0, 0, 1, 2, 0]),
        (["...", "!", "..."], [0, 1, 0]),
    ],
)
def test_captions_are_equal_by_their_words(captions: list[str], expected: list[int]) -> None:
    assert caption_keys(captions).tolist() == expected


def test_ids_of_the_data_set_come_before_its_texts() -> None:
    images = Held(np.zeros((3, 2), dtype=np.float32))
    found = keys_of(split(images, ["", "", ""], tokens=[[1, 4, 2], [1, 5, 2], [1, 4, 2]]))
    assert (found.i2t.tolist(), found.t2i.tolist()) == ([0, 0, 0], [0, 1, 0])  # type: ignore[union-attr]


def test_a_checkpoint_knows_them_when_asked(tiny_checkpoint: Path) -> None:
    embedded = load(tiny_checkpoint, split="val")
    scenes = build("datasets", "scenes:train=60,val=20,test=20,size=16").split("val")
    texts = [" ".join(caption.lower().replace(".", " ").replace(",", " ").split()) for caption in scenes.captions]
    images, captions = embedded.keys
    assert images is not None
    assert captions is not None
    assert len(np.unique(images)) == 20
    assert len(np.unique(captions)) == len(set(texts))
    assert embedded.keys is embedded.keys


def test_images_are_read_only_when_they_are_asked_for(tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(tiny_checkpoint, split="val")  # keeps the embeddings
    monkeypatch.setattr(
        "lossscope.datasets.synthetic.rendering.ScenePictures.take", lambda *_: pytest.fail("images were read")
    )
    assert load(tiny_checkpoint, split="val").images is not None


def dump(tmp_path: Path, **arrays: Any) -> Any:
    np.savez(tmp_path / "dump.npz", images=UNIT, captions=UNIT, caption_image=np.arange(3), **arrays)
    return load(tmp_path / "dump.npz").keys


def test_a_dump_without_texts_and_ids_does_not_know(tmp_path: Path) -> None:
    assert tuple(dump(tmp_path)) == (None, None)


def test_a_dump_knows_what_its_columns_tell(tmp_path: Path) -> None:
    found = dump(tmp_path, caption=np.array(["A dog", "a dog.", "a cat"]), image_id=np.array(["x", "y", "x"]))
    assert (found.i2t.tolist(), found.t2i.tolist()) == ([0, 1, 0], [0, 0, 1])
    alone = dump(tmp_path, caption=np.array(["A dog", "a dog.", "a cat"]))
    assert (alone.i2t, alone.t2i.tolist()) == (None, [0, 0, 1])


def test_texts_that_do_not_fit_the_captions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"caption of .*dump.npz must have 3 entries; got 2"):
        dump(tmp_path, caption=np.array(["a", "b"]))


def test_ids_of_captions_in_a_table_are_those_of_their_images(tmp_path: Path) -> None:
    home = tmp_path / "folder"
    home.mkdir()
    np.save(home / "images.npy", UNIT)
    np.save(home / "captions.npy", UNIT[[0, 1, 2, 0]])
    table = {"caption_image": [2, 0, 1, 0], "image_id": ["x", "y", "x", "y"]}
    pd.DataFrame(table).to_parquet(home / "metadata.parquet")
    assert load(home).keys.i2t.tolist() == [0, 1, 1]  # type: ignore[union-attr]
