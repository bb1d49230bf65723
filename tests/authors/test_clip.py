"""OpenAI's CLIP: vectors and recalls are those of its authors' code, from state dicts and from TorchScript archives."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from lossscope.errors import InputError
from lossscope.sources.base import load
from lossscope.sources.checkpoints.conversion import open_released
from lossscope.text.byte_pairs import MERGES_FILE
from tests.authors.answers import Answers
from tests.authors.clip_answers import open_model, require_answers, require_ids
from tests.authors.clip_files import write_data, write_merges
from tests.authors.rule import weights_by_rule

pytest.importorskip("transformers")
pytest.importorskip("ftfy")

ANSWERS = Answers("clip")
SIZES = ANSWERS.content["sizes"]
SCALARS = {
    "input_resolution": torch.tensor(SIZES["image_resolution"]),
    "context_length": torch.tensor(SIZES["context_length"]),
    "vocab_size": torch.tensor(SIZES["vocab_size"]),
}
KNOWN = (ANSWERS.array("images"), ANSWERS.array("captions"), ANSWERS.content["recalls"])


def weights() -> dict[str, Tensor]:
    return weights_by_rule(ANSWERS.content["shapes"], scale=ANSWERS.content["scale"])


class Part(nn.Module):
    """A module that holds tensors and does nothing."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def module_of(state: dict[str, Tensor]) -> nn.Module:
    """Return a tree of modules with this state dict."""
    root = Part()
    for name, tensor in state.items():
        *parents, last = name.split(".")
        place: nn.Module = root
        for parent in parents:
            if parent not in dict(place.named_children()):
                place.add_module(parent, Part())
            place = place.get_submodule(parent)
        if tensor.is_floating_point():
            place.register_parameter(last, nn.Parameter(tensor))
        else:
            place.register_buffer(last, tensor)
    return root


def write_archive(path: Path) -> Path:
    """Write a TorchScript archive with the weights, as OpenAI's are."""
    with warnings.catch_warnings(action="ignore"):
        torch.jit.trace(module_of({**weights(), **SCALARS}), torch.zeros(1)).save(str(path))
    return path


@pytest.mark.parametrize("kind", ["state", "archive", "converted"])
def test_vectors_and_recalls_are_those_of_the_authors(kind: str, tmp_path: Path) -> None:
    if kind == "state":
        torch.save({**weights(), **SCALARS}, tmp_path / "ViT.pt")
    else:
        write_archive(tmp_path / "ViT.pt")
    if kind != "converted":
        require_answers(open_model(tmp_path / "ViT.pt", tmp_path), *KNOWN)
        return
    data, words = write_data(tmp_path / "data"), write_merges(tmp_path / MERGES_FILE)
    checkpoint, notices = open_released(tmp_path / "ViT.pt", words, data)
    assert (
        "pictures are read with fit=short-side, resample=bicubic, size=64, as the model's authors read them" in notices
    )
    checkpoint.save(tmp_path / "clip.safetensors")
    require_answers(load(tmp_path / "clip.safetensors", split="test", cache=False), *KNOWN)
    named = load(tmp_path / "clip.safetensors", data=data, split="test", cache=False)
    require_answers(named, *KNOWN)


def test_an_archive_opens_in_every_command(tmp_path: Path) -> None:
    from lossscope_cli import app

    archive, data = write_archive(tmp_path / "ViT.pt"), write_data(tmp_path / "data")
    write_merges(tmp_path / MERGES_FILE)
    for command in (["convert", str(archive), str(tmp_path / "clip.pt")], ["eval", str(archive), "--split", "test"]):
        result = CliRunner().invoke(app, [*command, "--data", data])
        assert result.exit_code == 0, result.output


def test_pictures_that_the_user_reads_otherwise_are_named(tmp_path: Path) -> None:
    torch.save({**weights(), **SCALARS}, tmp_path / "ViT.pt")
    data, words = write_data(tmp_path / "data"), write_merges(tmp_path / MERGES_FILE)
    embedded = load(tmp_path / "ViT.pt", data=f"{data},crop=true,size=64", vocabulary=words, split="test", cache=False)
    filled, warning = (notice for notice in embedded.notices if "pictures are read" in notice)
    assert filled == "pictures are read with resample=bicubic, as the model's authors read them"
    assert warning == (
        "WARNING: pictures are read with fit=square, as the data set says; the model's authors read them with "
        "fit=short-side"
    )


def test_an_activation_that_is_not_openais_is_refused(tmp_path: Path) -> None:
    torch.save({**weights(), **SCALARS}, tmp_path / "ViT.pt")
    with pytest.raises(InputError, match=r"must be quick_gelu, as in all of OpenAI's; got 'gelu'"):
        open_model(tmp_path / "ViT.pt", tmp_path, encoder=("activation=gelu",))


def test_weights_without_openais_numbers_are_not_taken_for_openais(tmp_path: Path) -> None:
    torch.save(weights(), tmp_path / "ViT.pt")
    with pytest.raises(InputError, match="must be opened with its attention heads, which no tensor shows"):
        open_model(tmp_path / "ViT.pt", tmp_path)


def test_the_ids_are_those_of_the_authors(tmp_path: Path) -> None:
    require_ids(ANSWERS.array("ids"), tmp_path)
