"""Which images and captions are the same input?"""

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
from lossscope.sources.base import load
from lossscope.sources.checkpoints.input_keys import caption_keys, image_keys, input_keys
from tests.each import each
from tests.tiny import SCENES

UNIT = np.eye(3, dtype=np.float32)


class InMemory:
    """Images in memory that count their reads."""

    def __init__(self, arrays: Any) -> None:
        self.arrays, self.n_read = arrays, 0

    @property
    def shape(self) -> Any:
        return {k: v.shape[1:] for k, v in self.arrays.items()} if self.several else self.arrays.shape[1:]

    @property
    def several(self) -> bool:
        return isinstance(self.arrays, Mapping)

    def __len__(self) -> int:
        return len(next(iter(self.arrays.values()))) if self.several else len(self.arrays)

    def take(self, rows: Any) -> Any:
        self.n_read += len(rows)
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
    steps: list[tuple[str, int, int]] = []
    keys = image_keys(InMemory(pixels), "val", lambda *step: steps.append(step))
    assert keys.tolist() == [*range(299), 1]
    assert steps == [("comparing val images", n, 300) for n in (128, 256, 300)]


def test_items_of_several_arrays_are_equal_when_all_of_them_are() -> None:
    first = np.array([[0.0], [0.0], [0.0]], dtype=np.float32)
    second = np.array([[1.0, 2.0], [1.0, 2.5], [1.0, 2.0]], dtype=np.float32)
    assert image_keys(InMemory({"a": first, "b": second}), "test").tolist() == [0, 1, 0]


@each(
    "captions, expected",
    [(["A dog.", "a  dog", "A dog runs", "the dog", "a dog!"], [0, 0, 1, 2, 0]), (["...", "!", "..."], [0, 1, 0])],
)
def test_captions_are_equal_by_their_words(captions: list[str], expected: list[int]) -> None:
    assert caption_keys(captions).tolist() == expected


def test_token_ids_of_the_data_set_take_precedence_over_its_texts() -> None:
    images = InMemory(np.zeros((3, 2), dtype=np.float32))
    keys = input_keys(split(images, ["", "", ""], tokens=[[1, 4, 2], [1, 5, 2], [1, 4, 2]]))
    assert (keys.i2t.tolist(), keys.t2i.tolist()) == ([0, 0, 0], [0, 1, 0])  # type: ignore[union-attr]


def test_a_checkpoint_has_keys_of_its_inputs(tiny_checkpoint: Path) -> None:
    embedded = load(tiny_checkpoint, split="val")
    scenes = build("datasets", SCENES).split("val")
    texts = [" ".join(caption.lower().replace(".", " ").replace(",", " ").split()) for caption in scenes.captions]
    images, captions = embedded.input_keys
    assert images is not None
    assert captions is not None
    assert len(np.unique(images)) == 20
    assert len(np.unique(captions)) == len(set(texts))
    assert embedded.input_keys is embedded.input_keys


def test_images_are_read_only_for_their_keys(tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(tiny_checkpoint, split="val")  # caches the embeddings
    monkeypatch.setattr(
        "lossscope.datasets.synthetic.rendering.ScenePictures.take", lambda *_: pytest.fail("images were read")
    )
    assert load(tiny_checkpoint, split="val").images is not None


def dump(tmp_path: Path, **arrays: Any) -> Any:
    np.savez(tmp_path / "dump.npz", images=UNIT, captions=UNIT, caption_image=np.arange(3), **arrays)
    return load(tmp_path / "dump.npz").input_keys


def test_a_dump_without_texts_and_ids_has_no_keys(tmp_path: Path) -> None:
    assert tuple(dump(tmp_path)) == (None, None)


def test_a_dump_has_keys_of_its_texts_and_ids(tmp_path: Path) -> None:
    keys = dump(tmp_path, caption=np.array(["A dog", "a dog.", "a cat"]), image_id=np.array(["x", "y", "x"]))
    assert (keys.i2t.tolist(), keys.t2i.tolist()) == ([0, 1, 0], [0, 0, 1])
    texts_alone = dump(tmp_path, caption=np.array(["A dog", "a dog.", "a cat"]))
    assert (texts_alone.i2t, texts_alone.t2i.tolist()) == (None, [0, 0, 1])


def test_texts_that_do_not_fit_the_captions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"caption of .*dump.npz must have 3 entries; got 2"):
        dump(tmp_path, caption=np.array(["a", "b"]))


def test_ids_of_captions_in_a_table_are_those_of_their_images(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    np.save(folder / "images.npy", UNIT)
    np.save(folder / "captions.npy", UNIT[[0, 1, 2, 0]])
    table = {"caption_image": [2, 0, 1, 0], "image_id": ["x", "y", "x", "y"]}
    pd.DataFrame(table).to_parquet(folder / "metadata.parquet")
    assert load(folder).input_keys.i2t.tolist() == [0, 1, 1]  # type: ignore[union-attr]
