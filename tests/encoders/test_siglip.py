"""SigLIP: equal to transformers' model, from a folder, with its scale and bias in the objective."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from lossscope.encoders.siglip import SigLIP
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.checkpoints.conversion import open_released
from lossscope.text.subwords import Subwords
from tests.each import each
from tests.encoders.examples import siglip_folder

pytest.importorskip("transformers")
CAPTIONS = ["a red square", "two blue dots near a line", "green circle left of a red one"] * 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path)


def write_folder(path: Path) -> Path:
    siglip_folder(path / "siglip", Subwords.train(CAPTIONS, 80), context=10, filled_by="[UNK]")
    return path / "siglip"


def test_the_model_is_transformers_own_on_captions_filled_to_the_context(folder: Path) -> None:
    from transformers import SiglipModel

    theirs = SiglipModel.from_pretrained(folder).eval()
    words = Subwords.from_folder(folder, max_length=10)
    rows = [words.encode(caption) for caption in CAPTIONS[:3]]
    filled = torch.tensor([row + [1] * (10 - len(row)) for row in rows])
    padded = torch.tensor([row + [0] * (max(map(len, rows)) - len(row)) for row in rows])
    images = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8)
    checkpoint, _ = open_released(folder)
    ours = checkpoint.model()
    with torch.no_grad():
        logits = theirs(input_ids=filled, pixel_values=images.float() / 127.5 - 1).logits_per_image
        texts = ours.encode_texts(padded, torch.tensor([len(row) for row in rows]))
        S = ours.score(ours.encode_images(images), texts)
    assert isinstance(S, torch.Tensor)
    objective = build("objectives", checkpoint.objective)
    torch.testing.assert_close(S * objective.scale + objective.bias, logits, atol=1e-4, rtol=1e-5)
    assert objective.bias == -3.0 and not objective.learn


def test_wrong_items_and_folders_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"pictures must be \(3, 16, 16\) for this SigLIP"):
        SigLIP(folder).build((3, 32, 32), 10)
    with pytest.raises(InputError, match="needs the folder of its first weights"):
        SigLIP().build((3, 16, 16), 10)
    (folder / "config.json").write_text('{"model_type": "siglip"}')
    with pytest.raises(InputError, match="must hold text_config and vision_config"):
        open_released(folder)


def test_captions_are_filled_up_with_the_tokenisers_padding_and_not_the_configurations(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"pad_token": "[PAD]"}')
    checkpoint, _ = open_released(folder)
    assert json.loads(checkpoint.kept["config"])["text_config"]["pad_token_id"] == 0
    assert json.loads(SigLIP(folder).stored_files()["config"])["text_config"]["pad_token_id"] == 0


@each("name", ["tokenizer.json", "tokenizer_config.json"])
def test_a_folder_without_a_padding_token_is_refused(name: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    (folder / name).unlink()
    (folder / "spiece.model").write_bytes(b"")
    with pytest.raises(InputError, match=r"must hold tokenizer.json, and .* pad_token.* does not read spiece.model"):
        open_released(folder)


def test_a_file_keeps_its_own_folder(folder: Path) -> None:
    checkpoint, _ = open_released(folder)
    with pytest.raises(InputError, match="path is where a new model begins"):
        checkpoint.with_encoder(["path=X"])
