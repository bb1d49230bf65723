"""Does a dump find the texts of its items by their ids?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lossscope.sources.base import load

VECTORS = np.random.default_rng(0).normal(size=(4, 3))


def test_captions_have_their_texts_and_images_none(tmp_path: Path) -> None:
    captions = ["a dog", "a cat", "a cow", "a pig"]
    path = tmp_path / "dump.npz"
    np.savez(path, images=VECTORS, captions=VECTORS, caption=captions, caption_id=list("wxyz"))
    read = load(path, cache=False).read_texts
    assert read is not None
    assert read().i2t is None
    assert read().t2i == dict(zip("wxyz", captions, strict=True))


def test_both_sides_have_theirs_and_an_id_of_two_texts_has_none(tmp_path: Path) -> None:
    path = tmp_path / "dump.npz"
    texts = ["one", "two", "two", "three"]
    np.savez(
        path, queries=VECTORS, documents=VECTORS, query_text=texts, document_text=texts,
        document_id=["a", "b", "b", "a"],
    )  # fmt: skip
    read = load(path, cache=False).read_texts
    assert read is not None
    assert read().i2t == {"0": "one", "1": "two", "2": "two", "3": "three"}
    assert read().t2i == {"b": "two"}  # the file does not say which text belongs to the item with the id a


def test_a_dump_without_texts_reads_none(tmp_path: Path) -> None:
    np.savez(tmp_path / "dump.npz", images=VECTORS, captions=VECTORS)
    assert load(tmp_path / "dump.npz", cache=False).read_texts is None
