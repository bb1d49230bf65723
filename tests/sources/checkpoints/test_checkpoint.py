"""Checkpoints: plain, whole, checked before use, and never a way to run code."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch

from lossscope.errors import InputError
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint, verify

PLUGIN = """
from pathlib import Path
from dataclasses import dataclass
Path({mark!r}).write_text("imported")
from lossscope.encoders.base import EncoderSpec
from lossscope.encoders.vsepp import VSEPP
@dataclass(frozen=True)
class Mine(EncoderSpec):
    dim: int = 16
    def build(self, shape, words):
        return VSEPP(dim=16, words=8, width=4).build(shape, words)
"""


@pytest.fixture
def held(tiny_checkpoint: Path) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(tiny_checkpoint, weights_only=True)
    return found


def saved(tmp_path: Path, held: dict[str, Any], **changes: Any) -> Path:
    torch.save({**held, **changes}, tmp_path / "changed.pt")
    return tmp_path / "changed.pt"


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path, tiny_checkpoint: Path) -> None:
    first = Checkpoint.load(tiny_checkpoint)
    first.save(tmp_path / "again.pt")
    second = Checkpoint.load(tmp_path / "again.pt")
    assert {k: v for k, v in vars(first).items() if k != "weights"} == {
        k: v for k, v in vars(second).items() if k != "weights"
    }
    assert first.weights.keys() == second.weights.keys()
    assert all(torch.equal(tensor, second.weights[name]) for name, tensor in first.weights.items())
    assert [path.name for path in tmp_path.iterdir()] == ["again.pt"]


def test_it_is_a_plain_dict_of_its_fields(held: dict[str, Any]) -> None:
    assert (held["format"], held["version"]) == ("lossscope.checkpoint", 2)
    assert (held["optimiser"], held["rng"]) == (None, None)
    assert held["encoder"].startswith("vsepp:") and held["training"]["batch_size"] == 32


def test_the_model_is_rebuilt_in_eval_mode_with_its_weights(tiny_checkpoint: Path) -> None:
    checkpoint = Checkpoint.load(tiny_checkpoint)
    model = checkpoint.model()
    assert not model.training
    assert all(torch.equal(value, checkpoint.weights[key]) for key, value in model.state_dict().items())
    assert checkpoint.words().to_list() == checkpoint.vocabulary


def test_verify_says_what_it_is(tiny_run: Path) -> None:
    found = verify(tiny_run / "best.pt")
    assert found["objective"] == "ntxent:tau=0.1"
    assert found["can be continued"] == "no (weights only)"
    assert verify(tiny_run / "checkpoints" / "last.pt")["can be continued"] == "yes"


def test_a_newer_format_says_so(tmp_path: Path, held: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="Install a newer lossscope"):
        Checkpoint.load(saved(tmp_path, held, version=3))


@pytest.mark.parametrize("version", [None, "1", 1.0])
def test_a_version_is_a_whole_number(tmp_path: Path, held: dict[str, Any], version: Any) -> None:
    with pytest.raises(InputError, match="must have checkpoint format"):
        Checkpoint.load(saved(tmp_path, held, version=version))


def test_other_torch_files_are_told_apart(tmp_path: Path) -> None:
    for content, fragment in (({"state_dict": {}, "epoch": 1}, "keys"), ([1, 2], "list"), (torch.ones(2), "Tensor")):
        torch.save(content, tmp_path / "a.pt")
        with pytest.raises(InputError, match=f"must be a lossscope checkpoint; it holds .*{fragment}"):
            Checkpoint.load(tmp_path / "a.pt")


def test_cut_text_and_foreign_files_are_refused(tmp_path: Path, tiny_checkpoint: Path, held: dict[str, Any]) -> None:
    whole = tiny_checkpoint.read_bytes()
    for content in (whole[:100], whole[: len(whole) // 2], whole[:-1], b"text", b""):
        (tmp_path / "a.pt").write_bytes(content)
        with pytest.raises(InputError, match=r"a\.pt must be a"):
            Checkpoint.load(tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"it holds argparse\.Namespace objects"):
        Checkpoint.load(saved(tmp_path, held, training=argparse.Namespace()))


@pytest.mark.parametrize("key", ["encoder", "weights", "vocabulary", "optimiser", "versions"])
def test_a_missing_key_is_named(tmp_path: Path, held: dict[str, Any], key: str) -> None:
    del held[key]
    with pytest.raises(InputError, match=f"missing {key}"):
        Checkpoint.load(saved(tmp_path, held))


@pytest.mark.parametrize(
    ("key", "value", "fragment"),
    [
        ("epoch", "3", "epoch of .* must be int; got str"),
        ("step", 1.5, "step of .* must be int; got float"),
        ("encoder", 1, "encoder of .* must be str; got int"),
        ("weights", [1], "weights of .* must be dict; got list"),
        ("weights", {"a": 1}, "weights of .* must hold Tensor; got int"),
        ("vocabulary", ["a", 1], "vocabulary of .* must hold str; got int"),
        ("item_shape", ["x"], "item_shape of .* must hold int or list; got str"),
        ("optimiser", 3, "optimiser of .* must be dict or NoneType; got int"),
        ("versions", None, "versions of .* must be dict; got NoneType"),
        ("data_fingerprint", 5, "data_fingerprint of .* must be str; got int"),
    ],
)
def test_a_wrong_type_is_named(tmp_path: Path, held: dict[str, Any], key: str, value: Any, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        Checkpoint.load(saved(tmp_path, held, **{key: value}))


def test_weights_that_do_not_fit_are_named(tmp_path: Path, held: dict[str, Any]) -> None:
    name, tensor = next(iter(held["weights"].items()))
    less = {k: v for k, v in held["weights"].items() if k != name}
    for weights, fragment in (
        (less, r"missing \['image"),
        ({**held["weights"], "more": tensor}, r"left over \['more'\] \(1\)"),
        ({**held["weights"], name: tensor[:1]}, f"{name} must be "),
    ):
        with pytest.raises(InputError, match=fragment):
            verify(saved(tmp_path, held, weights=weights))
    with pytest.raises(InputError, match=r"embed\.weight must be \(\d+, 8\)"):
        verify(saved(tmp_path, held, vocabulary=[*held["vocabulary"], "unheard"]))


def test_weights_that_are_not_finite_are_named(tmp_path: Path, held: dict[str, Any]) -> None:
    held["weights"]["image.fc.bias"] = torch.full((16,), torch.nan)
    path = saved(tmp_path, held)
    with pytest.raises(InputError, match=r"image\.fc\.bias is not\. The training diverged"):
        verify(path)
    with pytest.raises(InputError, match="image vectors of split 'test' must be finite; row 0"):
        load(path, split="test")


@pytest.mark.parametrize("key", ["encoder", "objective", "data"])
def test_a_python_file_is_never_imported_unasked(tmp_path: Path, held: dict[str, Any], key: str) -> None:
    plugin, mark = tmp_path / "mine.py", tmp_path / "imported"
    plugin.write_text(PLUGIN.format(mark=str(mark)))
    path = saved(tmp_path, held, **{key: f"{plugin}:Mine"})
    with pytest.raises(InputError, match="not imported unless you pass --trust-code"):
        verify(path)
    if key != "objective":
        with pytest.raises(InputError, match="not imported unless you pass --trust-code"):
            load(path, split="val")
    assert not mark.exists()


def test_a_python_file_is_imported_when_trusted(tmp_path: Path, held: dict[str, Any]) -> None:
    plugin, mark = tmp_path / "mine.py", tmp_path / "imported"
    plugin.write_text(PLUGIN.format(mark=str(mark)))
    path = saved(tmp_path, held, encoder=f"{plugin}:Mine")
    assert verify(path, trust_code=True)["encoder"] == f"{plugin}:Mine"
    assert mark.read_text() == "imported"
    assert load(path, split="val", trust_code=True).images is not None


def test_the_safetensors_form_is_the_same_checkpoint_without_training_state(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    first = Checkpoint.load(tiny_checkpoint)
    first.save(tmp_path / "shared.safetensors")
    second = Checkpoint.load(tmp_path / "shared.safetensors")
    assert (second.objective, second.vocabulary, second.metrics) == (first.objective, first.vocabulary, first.metrics)
    assert all(torch.equal(second.weights[name], tensor) for name, tensor in first.weights.items())
    assert second.optimiser is None
    assert load(tmp_path / "shared.safetensors").objective == first.objective


def test_a_safetensors_checkpoint_without_its_json_is_a_clear_error(tiny_checkpoint: Path, tmp_path: Path) -> None:
    Checkpoint.load(tiny_checkpoint).save(tmp_path / "shared.safetensors")
    (tmp_path / "shared.json").unlink()
    with pytest.raises(InputError, match=r"shared\.json must exist"):
        Checkpoint.load(tmp_path / "shared.safetensors")
