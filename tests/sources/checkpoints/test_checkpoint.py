"""Are checkpoints plain, validated before use, and free of code?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch

from lossscope.errors import InputError
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint, verify
from tests.each import each

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
def content(tiny_checkpoint: Path) -> dict[str, Any]:
    values: dict[str, Any] = torch.load(tiny_checkpoint, weights_only=True)
    return {**values, "version": 2, "digests": {}}


def save(tmp_path: Path, content: dict[str, Any], **changes: Any) -> Path:
    torch.save({**content, **changes}, tmp_path / "changed.pt")
    return tmp_path / "changed.pt"


def test_a_saved_checkpoint_loads_unchanged(tmp_path: Path, tiny_checkpoint: Path) -> None:
    first = Checkpoint.load(tiny_checkpoint)
    first.save(tmp_path / "again.pt")
    second = Checkpoint.load(tmp_path / "again.pt")
    assert {k: v for k, v in vars(first).items() if k != "weights"} == {
        k: v for k, v in vars(second).items() if k != "weights"
    }
    assert first.weights.keys() == second.weights.keys()
    assert all(torch.equal(tensor, second.weights[name]) for name, tensor in first.weights.items())
    assert [path.name for path in tmp_path.iterdir()] == ["again.pt"]


def test_it_is_a_plain_dict_of_its_fields(content: dict[str, Any]) -> None:
    assert (content["format"], content["version"]) == ("lossscope.checkpoint", 2)
    assert (content["optimiser"], content["rng"]) == (None, None)
    assert content["encoder"].startswith("vsepp:") and content["training"]["batch_size"] == 32


def test_the_model_is_rebuilt_in_eval_mode_with_its_weights(tiny_checkpoint: Path) -> None:
    checkpoint = Checkpoint.load(tiny_checkpoint)
    model = checkpoint.model()
    assert not model.training
    assert all(torch.equal(value, checkpoint.weights[key]) for key, value in model.state_dict().items())
    assert checkpoint.words().to_list() == checkpoint.vocabulary


def test_verify_describes_a_checkpoint(tiny_run: Path) -> None:
    description = verify(tiny_run / "best.pt")
    assert description["objective"] == "ntxent:tau=0.1"
    assert description["can be continued"] == "no (weights only)"
    assert verify(tiny_run / "checkpoints" / "last.pt")["can be continued"] == "yes"


def test_a_newer_format_is_refused(tmp_path: Path, content: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="Install a newer lossscope"):
        Checkpoint.load(save(tmp_path, content, version=4))


@each("version", [None, "1", 1.0])
def test_a_version_must_be_a_whole_number(tmp_path: Path, content: dict[str, Any], version: Any) -> None:
    with pytest.raises(InputError, match="must have checkpoint format"):
        Checkpoint.load(save(tmp_path, content, version=version))


def test_other_torch_files_are_refused(tmp_path: Path) -> None:
    for content, fragment in (({"state_dict": {}, "epoch": 1}, "keys"), ([1, 2], "list"), (torch.ones(2), "Tensor")):
        torch.save(content, tmp_path / "a.pt")
        with pytest.raises(InputError, match=f"must be a lossscope checkpoint; it holds .*{fragment}"):
            Checkpoint.load(tmp_path / "a.pt")


def test_cut_text_and_foreign_files_are_refused(tmp_path: Path, tiny_checkpoint: Path, content: dict[str, Any]) -> None:
    whole = tiny_checkpoint.read_bytes()
    for damaged in (whole[:100], whole[: len(whole) // 2], whole[:-1], b"text", b""):
        (tmp_path / "a.pt").write_bytes(damaged)
        with pytest.raises(InputError, match=r"a\.pt must be a"):
            Checkpoint.load(tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"it holds argparse\.Namespace objects"):
        Checkpoint.load(save(tmp_path, content, training=argparse.Namespace()))


@each("key", ["encoder", "weights", "vocabulary", "optimiser", "versions"])
def test_a_missing_key_is_refused_by_name(tmp_path: Path, content: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError, match=f"missing {key}"):
        Checkpoint.load(save(tmp_path, {name: value for name, value in content.items() if name != key}))


@each("key, value, fragment", [
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
])  # fmt: skip
def test_a_wrong_type_is_refused_by_name(
    tmp_path: Path, content: dict[str, Any], key: str, value: Any, fragment: str
) -> None:
    with pytest.raises(InputError, match=fragment):
        Checkpoint.load(save(tmp_path, content, **{key: value}))


def test_weights_that_do_not_fit_are_refused_by_name(tmp_path: Path, content: dict[str, Any]) -> None:
    name, tensor = next(iter(content["weights"].items()))
    less = {k: v for k, v in content["weights"].items() if k != name}
    for weights, fragment in (
        (less, r"missing \['image"),
        ({**content["weights"], "more": tensor}, r"left over \['more'\] \(1\)"),
        ({**content["weights"], name: tensor[:1]}, f"{name} must be "),
    ):
        with pytest.raises(InputError, match=fragment):
            verify(save(tmp_path, content, weights=weights))
    with pytest.raises(InputError, match=r"embed\.weight must be \(\d+, 8\)"):
        verify(save(tmp_path, content, vocabulary=[*content["vocabulary"], "unheard"]))


def test_weights_that_are_not_finite_are_refused_by_name(tmp_path: Path, content: dict[str, Any]) -> None:
    content["weights"]["image.fc.bias"] = torch.full((16,), torch.nan)
    path = save(tmp_path, content)
    with pytest.raises(InputError, match=r"image\.fc\.bias is not\. The training diverged"):
        verify(path)
    with pytest.raises(InputError, match="image vectors of split 'test' must be finite; row 0"):
        load(path, split="test")


@each("key", ["encoder", "objective", "data"])
def test_a_python_file_is_imported_only_when_trusted(tmp_path: Path, content: dict[str, Any], key: str) -> None:
    plugin, mark = tmp_path / "mine.py", tmp_path / "imported"
    plugin.write_text(PLUGIN.format(mark=str(mark)))
    path = save(tmp_path, content, **{key: f"{plugin}:Mine"})
    with pytest.raises(InputError, match="lossscope imports it only with --trust-code"):
        verify(path)
    if key != "objective":
        with pytest.raises(InputError, match="lossscope imports it only with --trust-code"):
            load(path, split="val")
    assert not mark.exists()


def test_a_python_file_is_imported_when_trusted(tmp_path: Path, content: dict[str, Any]) -> None:
    plugin, mark = tmp_path / "mine.py", tmp_path / "imported"
    plugin.write_text(PLUGIN.format(mark=str(mark)))
    path = save(tmp_path, content, encoder=f"{plugin}:Mine")
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


def test_a_safetensors_checkpoint_without_its_json_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    Checkpoint.load(tiny_checkpoint).save(tmp_path / "shared.safetensors")
    (tmp_path / "shared.json").unlink()
    with pytest.raises(InputError, match=r"shared\.json must exist"):
        Checkpoint.load(tmp_path / "shared.safetensors")
