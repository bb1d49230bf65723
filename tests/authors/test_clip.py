"""OpenAI's CLIP: vectors and recalls are those of its authors' code, from state dicts and from TorchScript archives."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from lossscope.datasets.formats.decoding import Preprocessing, Rgb
from lossscope.errors import InputError
from lossscope.sources.base import load
from lossscope.sources.checkpoints.conversion import open_released
from lossscope.text.byte_pairs import MERGES_FILE
from lossscope.text.subwords import Subwords
from tests.authors.answers import Answers
from tests.authors.clip_answers import open_model, require_answers, require_ids
from tests.authors.clip_files import CAPTIONS, ODD_SIDE, SPECIAL, write_data, write_merges, write_odd_pictures
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
RGB: tuple[Rgb, ...] = ("first", "last")
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
        part: nn.Module = root
        for parent in parents:
            if parent not in dict(part.named_children()):
                part.add_module(parent, Part())
            part = part.get_submodule(parent)
        if tensor.is_floating_point():
            part.register_parameter(last, nn.Parameter(tensor))
        else:
            part.register_buffer(last, tensor)
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
        "pictures are read with fit=short-side, resample=bicubic, rgb=last, size=64, as the model's authors read them"
        in notices
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
    assert filled == "pictures are read with resample=bicubic, rgb=last, as the model's authors read them"
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
    with pytest.raises(InputError, match="needs its attention heads, which no tensor shows"):
        open_model(tmp_path / "ViT.pt", tmp_path)


def test_the_ids_are_those_of_the_authors(tmp_path: Path) -> None:
    require_ids(ANSWERS.array("ids"), tmp_path)


def test_special_words_in_captions_are_where_the_authors_pattern_finds_them(tmp_path: Path) -> None:
    require_ids(ANSWERS.array("special_ids"), tmp_path, SPECIAL)


def test_pictures_of_other_modes_are_resized_in_their_own_mode_as_by_the_authors(tmp_path: Path) -> None:
    for file, expected in zip(write_odd_pictures(tmp_path), ANSWERS.array("odd"), strict=True):
        ours = {rgb: Preprocessing(ODD_SIDE, "short-side", "bicubic", rgb).decode(file) for rgb in RGB}
        np.testing.assert_array_equal(ours["last"], expected, err_msg=file.name)
        assert (ours["first"] != expected).any() == (file.name != "grey.png"), file.name


def test_weights_that_the_authors_would_round_are_named(tmp_path: Path) -> None:
    words = write_merges(tmp_path / MERGES_FILE)
    state = weights()
    for kind, expected in ((torch.float32, True), (torch.float16, False)):
        torch.save({**{name: tensor.to(kind) for name, tensor in state.items()}, **SCALARS}, tmp_path / "ViT.pt")
        _, notices = open_released(tmp_path / "ViT.pt", words)
        assert any("rounds those of linear layers to half precision" in notice for notice in notices) == expected


def test_parts_of_words_that_are_no_byte_pairs_are_refused(tmp_path: Path) -> None:
    torch.save({**weights(), **SCALARS}, tmp_path / "ViT.pt")
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "tokenizer.json").write_text(Subwords.train(CAPTIONS, 300).content, encoding="utf-8")
    with pytest.raises(InputError, match=r"need byte pairs with </w> .* got a tokeniser of WordPiece"):
        open_released(tmp_path / "ViT.pt", tmp_path / "words")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("depth=99", "depth of the CLIP in this file is 2 and stays so; got 99"),
        ("context=5", "context of the CLIP in this file is 24 and stays so; got 5"),
        ("patch=32", "patch of the CLIP in this file is 16 and stays so; got 32"),
        ("path=X", "path is for training a model from a folder"),
        ("mean_std=inception", "mean_std of .* must be openai, as in all of OpenAI's; got 'inception'"),
        ("heads=1", "heads of .* must be 2 and text_heads 1, as its model has them; got 1 and 1"),
    ],
)
def test_what_the_file_is_cannot_be_changed(choice: str, message: str, tmp_path: Path) -> None:
    torch.save({**weights(), **SCALARS}, tmp_path / "ViT.pt")
    with pytest.raises(InputError, match=message):
        open_model(tmp_path / "ViT.pt", tmp_path, encoder=(choice,))
