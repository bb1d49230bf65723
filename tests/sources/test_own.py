"""Do lossscope checkpoints name their data, and does the cache store their embeddings under the right key?"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from lossscope.errors import InputError
from lossscope.io.files import read_safetensors
from lossscope.io.trusted_code import trust
from lossscope.registry import build, names
from lossscope.registry import load as load_class
from lossscope.sources._checkpoint import _floors_median_rank
from lossscope.sources.base import load
from lossscope.sources.checkpoints.captions import CaptionBatcher
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.embed import embed
from lossscope.sources.checkpoints.embedding_cache import read_cache, write_cache
from tests.each import each


def entries() -> list[Path]:
    folder = Path(os.environ["LOSSSCOPE_CACHE"])
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_checkpoint_and_its_run_folder_are_the_same_source(tiny_run: Path) -> None:
    file, folder = load(tiny_run / "best.pt", split="val"), load(tiny_run, split="val")
    assert file.images is not None
    assert torch.equal(file.images, folder.images)  # type: ignore[arg-type]
    assert (file.objective, file.seed, file.split) == ("ntxent:tau=0.1", 0, "val")
    assert (len(file.image_ids), len(file.caption_ids)) == (20, 100)
    assert file.notices == ()
    assert torch.allclose(file.images.norm(dim=1), torch.ones(20))


def test_the_split_defaults_to_train(tiny_checkpoint: Path) -> None:
    assert load(tiny_checkpoint).split == "train"
    with pytest.raises(InputError, match="split must be one of train, val, test; got 'dev'"):
        load(tiny_checkpoint, split="dev")


def test_embeddings_are_those_of_the_model_for_any_batch_size(tiny_checkpoint: Path) -> None:
    checkpoint = Checkpoint.load(tiny_checkpoint)
    split = build("datasets", checkpoint.data).split("test")
    model = checkpoint.model()
    model.train()
    images, captions = embed(model, CaptionBatcher(split, checkpoint.words()), batch_size=7)
    embedded = load(tiny_checkpoint, split="test")
    assert model.training
    assert torch.allclose(embedded.images, images, atol=1e-6)  # type: ignore[arg-type]
    assert torch.allclose(embedded.captions, captions, atol=1e-6)  # type: ignore[arg-type]


def test_other_data_override_those_of_the_checkpoint(tiny_checkpoint: Path) -> None:
    embedded = load(tiny_checkpoint, data="scenes:train=5,val=7,test=5,size=16", split="val")
    assert len(embedded.image_ids) == 7
    with pytest.raises(InputError, match=r"must have the shape .* was trained on, \(3, 16, 16\); got \(3, 32, 32\)"):
        load(tiny_checkpoint, data="scenes:train=5,val=7,test=5,size=32")


def test_data_that_changed_since_training_give_a_notice(tiny_checkpoint: Path, tmp_path: Path) -> None:
    content = torch.load(tiny_checkpoint, weights_only=True)
    torch.save({**content, "version": 2, "digests": {}, "data_fingerprint": "0" * 64}, tmp_path / "a.pt")
    assert "differ from those the checkpoint was trained on" in load(tmp_path / "a.pt").notices[0]


def test_embeddings_are_cached_per_checkpoint_and_split(tiny_run: Path) -> None:
    first = load(tiny_run / "checkpoints" / "epoch-01.pt", split="val")
    again = load(tiny_run / "checkpoints" / "epoch-01.pt", split="val")
    assert len(entries()) == 1
    assert torch.equal(first.images, again.images)  # type: ignore[arg-type]
    load(tiny_run / "checkpoints" / "epoch-01.pt", split="test")
    assert len(entries()) == 2
    other = load(tiny_run / "checkpoints" / "epoch-02.pt", split="val")
    assert len(entries()) == 3
    assert not torch.equal(first.images, other.images)  # type: ignore[arg-type]


def test_a_cached_entry_saves_the_encoding(tiny_checkpoint: Path) -> None:
    calls: list[str] = []
    for _ in range(2):
        load(tiny_checkpoint, split="val", progress=lambda label, *_: calls.append(label))
    assert calls == ["encoding val images", "encoding val captions"]


def test_without_a_cache_nothing_is_kept(tiny_checkpoint: Path) -> None:
    load(tiny_checkpoint, split="val", cache=False)
    assert entries() == []


@each("content", [b"", b"junk"])
def test_a_damaged_entry_is_computed_again(content: bytes, tiny_checkpoint: Path) -> None:
    first = load(tiny_checkpoint, split="val")
    entry = entries()[0]
    whole = entry.read_bytes()
    entry.write_bytes(content or whole[: len(whole) // 2])
    again = load(tiny_checkpoint, split="val")
    assert torch.equal(first.images, again.images)  # type: ignore[arg-type]
    assert _is_whole(entry)


def _is_whole(entry: Path) -> bool:
    """Whether an entry of the cache states the digest of its content and of its key; else it is an error."""
    return set(read_safetensors(entry, needs_digest=True, of=entry.stem)) == {"images", "captions"}


def test_an_entry_with_other_numbers_is_computed_again(tiny_checkpoint: Path) -> None:
    """One bit in the cache changed the counts of all later commands."""
    first = load(tiny_checkpoint, split="val")
    entry = entries()[0]
    whole = entry.read_bytes()
    vectors = {"images": torch.ones(20, 16), "captions": torch.ones(100, 16)}
    for damage in (
        lambda: entry.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]),
        lambda: safetensors.torch.save_file(vectors, entry),  # without a digest
    ):
        damage()
        again = load(tiny_checkpoint, split="val")
        assert torch.equal(first.images, again.images)  # type: ignore[arg-type]
        assert _is_whole(entry)


def test_a_cache_that_cannot_be_written_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    write_cache(tmp_path / "file" / "entry.safetensors", torch.ones(1, 2), torch.ones(1, 2), "model", "checkpoint")
    assert read_cache(tmp_path / "file" / "entry.safetensors", 2, 2) is None


def test_a_run_folder_without_a_best_checkpoint_is_no_source(tiny_run: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_run, tmp_path / "run")
    (tmp_path / "run" / "best.pt").unlink()
    with pytest.raises(InputError, match=r"or a run folder \(its best\.pt\)"):
        load(tmp_path / "run")


def test_rows_of_a_block_are_dot_products(tiny_checkpoint: Path) -> None:
    embedded = load(tiny_checkpoint, split="test")
    block = embedded.similarity_block(np.array([3]), np.array([0, 4]))
    assert torch.equal(block, embedded.images[[3]] @ embedded.captions[[0, 4]].T)  # type: ignore[index]


@each("name", names("encoders"))
def test_what_a_file_declares_of_the_median_rank_is_what_its_class_has(name: str) -> None:
    assert _floors_median_rank(name) == load_class("encoders", name).floors_median_rank


def test_the_median_rank_of_a_plug_in_is_that_of_its_class(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(PLUG_IN)
    with trust([f"{file}:Mine"]):
        assert [_floors_median_rank(f"{file}:{name}") for name in ("Mine", "Yours")] == [False, True]


PLUG_IN = """
from dataclasses import dataclass
from typing import ClassVar
from lossscope.encoders.base import EncoderSpec

@dataclass(frozen=True)
class Mine(EncoderSpec):
    floors_median_rank: ClassVar[bool] = False

@dataclass(frozen=True)
class Yours(EncoderSpec):
    pass
"""
