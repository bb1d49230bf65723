"""Does lossscope refuse a checkpoint with changed numbers, for any change and any way to write it?"""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from lossscope.errors import InputError
from lossscope.io.digests import digests_of
from lossscope.io.shipped import find_shipped
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from tests.each import each


@pytest.fixture
def content(tiny_checkpoint: Path) -> dict[str, Any]:
    """Return the content of the file."""
    return dict(torch.load(tiny_checkpoint, weights_only=True))


def _flip_a_bit(weights: dict[str, torch.Tensor]) -> None:
    next(tensor for tensor in weights.values() if tensor.dtype == torch.float32).view(torch.int32).view(-1)[3] ^= 1


def test_one_bit_of_the_weights_is_seen(content: dict[str, Any], tmp_path: Path) -> None:
    _flip_a_bit(content["weights"])
    torch.save(content, tmp_path / "c.pt")  # a whole file with correct checksums of the zip
    with pytest.raises(InputError, match=r"weights of .*c\.pt must match the digest"):
        Checkpoint.load(tmp_path / "c.pt")


@each("name", ["encoder", "data", "vocabulary", "training", "metrics", "epoch", "data_fingerprint"])
def test_every_other_part_is_seen(name: str, content: dict[str, Any], tmp_path: Path) -> None:
    changed = {str: "x", list: ["a"], dict: {"seed": 3}, int: 7}[type(content[name])]
    torch.save({**content, name: changed}, tmp_path / "c.pt")
    with pytest.raises(InputError, match=f"{name} of .* must match the digest"):
        Checkpoint.load(tmp_path / "c.pt")


def test_rows_that_changed_places_are_seen(content: dict[str, Any], tmp_path: Path) -> None:
    name = next(name for name, tensor in content["weights"].items() if tensor.ndim == 2)
    content["weights"][name] = content["weights"][name].flip(0)
    torch.save(content, tmp_path / "c.pt")
    with pytest.raises(InputError, match="weights of"):
        Checkpoint.load(tmp_path / "c.pt")


def test_a_file_without_a_digest_is_refused_unless_it_is_of_an_older_format(
    content: dict[str, Any], tmp_path: Path
) -> None:
    del content["digests"]["weights"]
    torch.save(content, tmp_path / "c.pt")
    with pytest.raises(InputError, match="must state the digest of its weights"):
        Checkpoint.load(tmp_path / "c.pt")
    del content["digests"]
    torch.save({**content, "version": 2}, tmp_path / "old.pt")
    assert Checkpoint.load(tmp_path / "old.pt").digests == {}


def test_the_safetensors_form_has_them_too(tiny_checkpoint: Path, tmp_path: Path) -> None:
    saved = tmp_path / "c.safetensors"
    Checkpoint.load(tiny_checkpoint).save(saved)
    again = Checkpoint.load(saved)
    weights = safetensors.torch.load_file(saved)
    _flip_a_bit(weights)
    safetensors.torch.save_file(weights, saved)
    with pytest.raises(InputError, match=r"weights of .*c\.safetensors must match the digest"):
        Checkpoint.load(saved)
    again.save(saved)
    plain = json.loads(saved.with_suffix(".json").read_text(encoding="utf-8"))
    saved.with_suffix(".json").write_text(json.dumps({**plain, "objective": "triplet"}), encoding="utf-8")
    with pytest.raises(InputError, match="objective of"):
        Checkpoint.load(saved)


def test_what_was_saved_is_read_and_saved_with_the_same_digests(tiny_checkpoint: Path, tmp_path: Path) -> None:
    first = Checkpoint.load(tiny_checkpoint)
    first.save(tmp_path / "c.pt")
    assert Checkpoint.load(tmp_path / "c.pt").digests == first.digests
    replace(first, epoch=first.epoch + 1).save(tmp_path / "d.pt")
    other = Checkpoint.load(tmp_path / "d.pt").digests
    assert {name for name in other if other[name] != first.digests[name]} == {"epoch"}


def test_equal_values_of_other_types_and_places_differ() -> None:
    x = torch.arange(6, dtype=torch.float32)
    values = [
        x, x.double(), x.view(2, 3), x.flip(0), x.int(), [x], {"x": x}, 1, 1.0, True, "1", None, b"1", {1: 2}, {"1": 2},
        [1, [2]], [[1], 2], {}, [],
    ]  # fmt: skip
    digests = digests_of({str(i): value for i, value in enumerate(values)})
    assert len(set(digests.values())) == len(values)
    same = digests_of(
        {"a": x.view(2, 3), "b": x.view(3, 2).t().contiguous().t().reshape(2, 3), "c": (1, 2), "d": [1, 2]}
    )
    assert same["a"] == same["b"] and same["c"] == same["d"]


def test_numbers_of_numpy_are_refused_where_they_are_saved() -> None:
    with pytest.raises(TypeError, match="float64"):
        digests_of({"metrics": {"rsum": np.float64(3.0)}})


def test_the_checkpoint_that_comes_with_the_package_states_its_digests(tmp_path: Path) -> None:
    shipped = find_shipped("checkpoints", Path("tiny"))
    assert Checkpoint.load(shipped).digests
    content = shipped.read_bytes()
    for position in range(40, len(content), 9973):  # for each changed byte: the same numbers, or an error
        (tmp_path / "c.pt").write_bytes(content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :])
        with contextlib.suppress(InputError):
            assert Checkpoint.load(tmp_path / "c.pt").digests == Checkpoint.load(shipped).digests
