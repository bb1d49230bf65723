"""Does each format of a dump give the same numbers, with notices on odd input and errors on invalid input?"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.sources.base import find_source, load
from lossscope.sources.dump import Dump
from tests.each import each

N, M, D = 6, 12, 4
OWNERS = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
Arrays = dict[str, Any]


def unit(n: int, seed: int) -> np.ndarray[Any, Any]:
    rows = np.random.default_rng(seed).normal(size=(n, D))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def arrays(**changes: Any) -> Arrays:
    contents = {"images": unit(N, 0), "captions": unit(M, 1), "caption_image": OWNERS, **changes}
    return {name: value for name, value in contents.items() if value is not None}


def npz(tmp_path: Path, contents: Arrays) -> Path:
    np.savez(tmp_path / "dump.npz", **contents)
    return tmp_path / "dump.npz"


def compressed(tmp_path: Path, contents: Arrays) -> Path:
    np.savez_compressed(tmp_path / "dump.npz", **contents)
    return tmp_path / "dump.npz"


def tensors(tmp_path: Path, contents: Arrays) -> Path:
    path = tmp_path / "dump.safetensors"
    safetensors.torch.save_file({name: torch.from_numpy(np.array(value)) for name, value in contents.items()}, path)
    return path


def folder(tmp_path: Path, contents: Arrays) -> Path:
    """Write two shards of images and of captions, and the other columns to the table."""
    home = tmp_path / "dump"
    home.mkdir()
    for name in {"images", "captions", "similarity"} & contents.keys():
        for index, part in enumerate(np.array_split(contents[name], 2)):
            np.save(home / f"{name}-{index:03d}.npy", part)
    table = {name: contents[name] for name in ("caption_image", "image_id", "caption_id") if name in contents}
    if table:
        pd.DataFrame(table).to_parquet(home / "metadata.parquet")
    return home


FORMATS = [npz, compressed, tensors, folder]
Write = Callable[[Path, Arrays], Path]


@each("write", FORMATS)
def test_every_format_gives_the_same_embeddings(write: Write, tmp_path: Path) -> None:
    embedded = load(write(tmp_path, arrays()))
    assert isinstance(embedded, SplitEmbeddings)
    assert embedded.images is not None
    assert embedded.captions is not None
    assert np.array_equal(embedded.images.numpy(), unit(N, 0))
    assert np.array_equal(embedded.captions.numpy(), unit(M, 1))
    assert embedded.caption_image.tolist() == OWNERS.tolist()
    assert (embedded.notices, embedded.objective, embedded.split) == ((), None, None)
    assert embedded.image_ids == [str(row) for row in range(N)]


@each("write", FORMATS)
def test_similarities_alone_are_a_dump(write: Write, tmp_path: Path) -> None:
    S = unit(N, 0) @ unit(M, 1).T
    embedded = load(write(tmp_path, {"similarity": S, "caption_image": OWNERS}))
    assert embedded.images is None
    block = embedded.similarity_block(np.array([2, 0]), np.array([5, 1, 0]))
    assert np.array_equal(block.numpy(), S[[2, 0]][:, [5, 1, 0]])


@each("write", FORMATS)
def test_embeddings_and_their_similarities_give_the_same_counts(write: Write, tmp_path: Path) -> None:
    (tmp_path / "S").mkdir()
    S = unit(N, 0) @ unit(M, 1).T
    sweep = Sweep(("ntxent", "smoothap"), ("cocos:unit=paper",), batch_size=None)
    both = [load(write(tmp_path, arrays())), load(npz(tmp_path / "S", {"similarity": S, "caption_image": OWNERS}))]
    a, b = (sweep.run(embedded).summary["mean"] for embedded in both)
    assert np.allclose(a, b, rtol=1e-4, equal_nan=True)


@each("dtype", [np.float16, np.float64, np.longdouble, ">f4"])
def test_other_floats_are_read(dtype: Any, tmp_path: Path) -> None:
    embedded = load(npz(tmp_path, arrays(images=unit(N, 0).astype(dtype))))
    assert embedded.images is not None
    assert embedded.captions is not None
    assert np.allclose(embedded.images.numpy(), unit(N, 0), atol=1e-3)
    assert embedded.images.dtype == embedded.captions.dtype
    assert embedded.similarity_block(np.arange(2), np.arange(3)).shape == (2, 3)


def test_bfloat16_tensors_are_read(tmp_path: Path) -> None:
    contents = {"images": torch.from_numpy(unit(N, 0)).bfloat16(), "captions": torch.from_numpy(unit(M, 1)).bfloat16()}
    safetensors.torch.save_file(contents, tmp_path / "a.safetensors")
    images = load(tmp_path / "a.safetensors").images
    assert images is not None
    assert images.dtype == torch.float32
    assert torch.allclose(images.norm(dim=1), torch.ones(N), atol=1e-4)


def test_rows_that_are_not_of_unit_length_are_normalised_with_a_notice(tmp_path: Path) -> None:
    images = unit(N, 0)
    images[2] *= 3
    embedded = load(npz(tmp_path, arrays(images=images)))
    assert embedded.images is not None
    assert torch.allclose(embedded.images.norm(dim=1), torch.ones(N))
    assert embedded.notices[0].startswith("1 of 6 images of ")
    assert "were normalised to unit length" in embedded.notices[0]
    assert np.array_equal(embedded.images[3:].numpy(), images[3:])


def test_similarities_beyond_cosines_are_named(tmp_path: Path) -> None:
    similarity = (unit(N, 0) @ unit(12, 1).T).astype(np.float64)
    cosines = npz(tmp_path, {"similarity": similarity, "caption_image": OWNERS})
    assert load(cosines).notices == ()
    (notice,) = load(npz(tmp_path, {"similarity": similarity / 0.05, "caption_image": OWNERS})).notices
    assert (
        f"reach {abs(similarity / 0.05).max():.3g}, so they are not cosines" in notice and "write the cosines" in notice
    )


def test_without_caption_image_several_captions_an_image_are_assumed_with_a_warning(tmp_path: Path) -> None:
    embedded = load(npz(tmp_path, arrays(caption_image=None)))
    assert embedded.caption_image.tolist() == OWNERS.tolist()
    (warning,) = embedded.warnings
    assert "its 12 captions are taken as 2 of each image, in image order, every one a positive" in warning
    assert "Where some are hard negatives" in warning and "--caption-image FILE" in warning


def test_without_caption_image_pairs_are_assumed_with_a_notice(tmp_path: Path) -> None:
    embedded = load(npz(tmp_path, {"images": unit(N, 0), "captions": unit(N, 1)}))
    assert embedded.caption_image.tolist() == list(range(N))
    assert embedded.warnings == ()
    assert embedded.notices[0].endswith("has no caption_image: image and caption of one row are taken as a pair")


def test_ids_are_read_per_image_or_per_caption(tmp_path: Path) -> None:
    names = np.array([f"i{row}" for row in range(N)])
    assert load(npz(tmp_path, arrays(image_id=names))).image_ids == names.tolist()
    per_caption = {"image_id": names[OWNERS], "caption_id": np.arange(M) + 100}
    embedded = load(folder(tmp_path, arrays(**per_caption)))
    assert embedded.image_ids == names.tolist()
    assert embedded.caption_ids[0] == "100"


def test_unknown_arrays_are_ignored(tmp_path: Path) -> None:
    path = npz(tmp_path, arrays(labels=np.arange(3), note=np.array("x"), deep=np.zeros((2, 2, 2))))
    assert load(path).notices == ()


def test_the_fingerprint_is_that_of_the_content(tmp_path: Path) -> None:
    first = load(folder(tmp_path, arrays())).fingerprint
    (tmp_path / "b").mkdir()
    (tmp_path / "c").mkdir()
    assert load(folder(tmp_path / "b", arrays())).fingerprint == first
    assert load(folder(tmp_path / "c", arrays(captions=unit(M, 2)))).fingerprint != first


def unit_with(n: int, row: int, value: float) -> np.ndarray[Any, Any]:
    rows = unit(n, 0)
    rows[row, 1] = value
    return rows


@each("changes, fragment", [
    ({"images": unit_with(N, 4, np.nan)}, r"images of .* must be finite; row 4 is not \(1 such rows\)"),
    ({"captions": unit_with(M, 7, np.inf)}, r"captions of .* must be finite; row 7"),
    ({"images": unit(N, 0) * (np.arange(N) != 3)[:, None]}, "images of .* must not be zero; row 3 is"),
    ({"images": np.array([None] * N)}, "plain numbers or texts, not pickled objects"),
    ({"images": np.array(["a"] * N)}, "must be numbers; got <U1"),
    ({"images": np.arange(N)}, r"must be a matrix of floats; got \(6,\) of torch.int64"),
    ({"images": np.ones((N, D, 2), np.float32)}, "must be a matrix of floats"),
    ({"images": np.ones((N, D), np.complex64)}, "must be numbers; got complex64"),
    ({"captions": np.eye(M, 5, dtype=np.float32) + 1}, "must have one width; got 4 and 5"),
    ({"images": None}, "must hold `images` and `captions`, or `similarity`; got caption_image, captions"),
    ({"caption_image": None, "captions": unit(11, 1)}, "got 11 captions for 6 images"),
    ({"caption_image": OWNERS[:5]}, r"caption_image of .* must be 12 integers; got \(5,\)"),
    ({"caption_image": OWNERS.astype(float)}, "must be 12 integers; got .* of float64"),
    ({"caption_image": OWNERS + 1}, r"must be rows 0\.\.5; got 1\.\.6"),
    ({"caption_image": OWNERS - 1}, r"must be rows 0\.\.5; got -1\.\.4"),
    ({"image_id": np.arange(4)}, "image_id of .* must have 6 entries; got 4"),
    ({"images": unit(1, 0), "captions": unit(1, 1), "caption_image": None}, "at least 2 images and 2 captions"),
    ({"images": unit(0, 0), "caption_image": None}, r"images of .* must hold numbers; got \(0, 4\), which has none"),
])  # fmt: skip
def test_invalid_arrays_are_refused_by_name(changes: Arrays, fragment: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=fragment):
        load(npz(tmp_path, arrays(**changes)))


def test_a_similarity_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    S = unit(N, 0) @ unit(M, 1).T
    S[3, 2] = np.nan
    with pytest.raises(InputError, match=r"similarity of .* must be finite; row 3 is not"):
        load(npz(tmp_path, {"similarity": S}))


@each("write", [npz, compressed])
def test_damaged_archives_are_input_errors(write: Write, tmp_path: Path) -> None:
    whole = write(tmp_path, arrays()).read_bytes()
    path = tmp_path / "bad.npz"
    for content in (b"", b"a text", whole[:50], whole[: len(whole) // 2], whole[:-5]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"bad\.npz must be a whole \.npz file"):
            load(path)
    for position in range(0, len(whole), 19):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x15]) + whole[position + 1 :])
        with contextlib.suppress(InputError):
            load(path)


def test_an_array_under_the_name_of_an_archive_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", unit(N, 0))
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    with pytest.raises(InputError, match="it is no zip archive"):
        load(tmp_path / "a.npz")


@each("content", [b"", b"a text", b"\x93NUMPY\x01\x00"])
def test_damaged_shards_and_tables_are_refused_by_name(content: bytes, tmp_path: Path) -> None:
    home = folder(tmp_path, arrays())
    whole = (home / "metadata.parquet").read_bytes()
    (home / "metadata.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"metadata\.parquet must be a whole parquet file"):
        load(home)
    (home / "metadata.parquet").write_bytes(whole)
    (home / "images-001.npy").write_bytes(content)
    with pytest.raises(InputError, match=r"images-001\.npy must be a whole \.npy file"):
        load(home)


def test_for_an_unknown_kind_of_file_the_kinds_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    for path in (tmp_path / "a.txt", tmp_path):
        with pytest.raises(
            InputError, match=r"must be one of: an embedding or similarity dump .*; a lossscope checkpoint"
        ):
            find_source(path)
    with pytest.raises(InputError, match="source must exist; there is nothing at"):
        find_source(tmp_path / "none.npz")
    assert find_source(npz(tmp_path, arrays())) == Dump(tmp_path / "dump.npz")


def test_large_shards_are_concatenated_once_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOSSSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("lossscope.sources._arrays.LARGE", 100)
    folder = tmp_path / "dump"
    folder.mkdir()
    rows = torch.nn.functional.normalize(torch.randn(12, 8), dim=1).numpy()
    for number, part in enumerate((rows[:5], rows[5:6], rows[6:])):
        np.save(folder / f"images-{number}.npy", part)
    np.save(folder / "captions.npy", rows)
    first = load(folder)
    assert first.images is not None
    np.testing.assert_array_equal(first.images.numpy(), rows)
    (cached,) = (tmp_path / "cache").glob("*.npy")
    written = cached.stat().st_ino
    before = first.images.clone()  # the others are memory-mapped
    assert torch.equal(load(folder).images, before)  # type: ignore[arg-type]
    assert cached.stat().st_ino == written
    assert load(folder, cache=False).images is not None
    content = bytearray(cached.read_bytes())
    content[-3] ^= 1
    cached.write_bytes(content)
    for damage in (lambda: None, cached.with_suffix(".json").unlink, cached.unlink):
        damage()
        assert torch.equal(load(folder).images, before)  # type: ignore[arg-type]
    monkeypatch.setenv("LOSSSCOPE_CACHE", str(folder / "captions.npy" / "cache"))
    assert torch.equal(load(folder).images, before)  # type: ignore[arg-type]


@each("scale", [1e20, 1e-25, 3e37, 1e-38])
def test_rows_whose_squares_over_or_underflow_are_normalised(scale: float, tmp_path: Path) -> None:
    images = unit(N, 0)
    images[2:] *= np.float32(scale)
    embedded = load(npz(tmp_path, arrays(images=images, captions=unit(M, 1) * np.float32(scale))))
    assert embedded.images is not None and embedded.captions is not None
    assert np.array_equal(embedded.images[:2].numpy(), images[:2])
    np.testing.assert_allclose(embedded.images.numpy(), unit(N, 0), rtol=1e-5)
    np.testing.assert_allclose(embedded.captions.numpy(), unit(M, 1), rtol=1e-5)
    assert [notice[:8] for notice in embedded.notices] == ["4 of 6 i", "all 12 c"]


@each("name", ["image_id", "caption_id", "caption", "caption_image", "images"])
def test_an_array_of_no_dimension_is_refused_by_name(name: str, tmp_path: Path) -> None:
    rows = np.eye(4, dtype=np.float32)
    held: dict[str, Any] = {"images": rows, "captions": rows, "caption_image": np.arange(4), name: np.array(2)}
    np.savez(tmp_path / "a.npz", **held)
    with pytest.raises(InputError, match=rf"{name} of .*a\.npz must be"):
        load(tmp_path / "a.npz")


def test_a_table_of_captions_with_missing_values_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.eye(2, dtype=np.float32))
    np.save(tmp_path / "captions.npy", np.eye(2, dtype=np.float32))
    pd.DataFrame({"caption_image": [0, None]}).to_parquet(tmp_path / "metadata.parquet")
    with pytest.raises(InputError, match=r"caption_image of .* must have a value in every row; row 1 has none"):
        load(tmp_path)


def test_matrices_without_numbers_are_refused(tmp_path: Path) -> None:
    """A shape of 2^60 empty rows fits into any file: ValueError, array is too big."""
    header = {"dtype": "F32", "shape": [2**60, 0], "data_offsets": [0, 0]}
    text = json.dumps({"images": header, "captions": header}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(InputError, match=r"a\.safetensors must .* hold numbers; one is of shape \(1152921504606846976"):
        load(tmp_path / "a.safetensors")
