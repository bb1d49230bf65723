"""Does lossscope recognise the container of a released file, and read the files beside it?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lossscope.encoders.released.containers import read_container
from lossscope.encoders.released.signs import content_files, is_configured

CONFIG = {"model_cfg": {"embed_dim": 4}, "preprocess_cfg": {"mean": [0.5] * 3}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "open_clip_config.json").write_text(json.dumps(CONFIG))
    torch.save({"theirs": torch.ones(2)}, tmp_path / "open_clip_pytorch_model.bin")
    return tmp_path


def test_a_folder_of_open_clip_is_read_with_its_configuration(folder: Path) -> None:
    assert is_configured(folder)
    released = read_container(folder)
    assert (released.path, list(released.towers[0]), released.options) == (folder, ["theirs"], CONFIG)
    save_file({"better": torch.ones(2)}, folder / "open_clip_model.safetensors")
    assert list(read_container(folder).towers[0]) == ["better"]


def test_a_folder_with_weights_of_hugging_face_is_one_of_hugging_face(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "clip"}')
    assert read_container(folder).options == CONFIG  # no weights of theirs yet
    save_file({"ours": torch.ones(2)}, folder / "model.safetensors")
    (folder / "preprocessor_config.json").write_text('{"size": 224}')
    released = read_container(folder)
    assert list(released.towers[0]) == ["ours"]
    assert released.options == {"model_type": "clip", "preprocessor_config": {"size": 224}}
    named = read_container(folder / "open_clip_pytorch_model.bin")
    assert (list(named.towers[0]), named.options) == (["theirs"], CONFIG)


def test_weights_of_another_name_are_not_taken_for_those_of_the_configuration(folder: Path) -> None:
    torch.save({"tuned": torch.ones(2)}, folder / "epoch_3.pt")
    assert read_container(folder / "epoch_3.pt").options == {}
    assert not is_configured(folder / "epoch_3.pt")


def test_processors_are_read_in_their_newer_form_too(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    save_file({"ours": torch.ones(2)}, tmp_path / "model.safetensors")
    (tmp_path / "processor_config.json").write_text('{"image_processor": {"size": 64}, "processor_class": "x"}')
    assert read_container(tmp_path).options == {"preprocessor_config": {"size": 64}}


def test_a_configuration_is_part_of_the_content(folder: Path) -> None:
    names = {file.name for file in content_files(folder / "open_clip_pytorch_model.bin")}
    assert names == {"open_clip_config.json", "open_clip_pytorch_model.bin"}
    torch.save({}, folder / "epoch_3.pt")
    assert content_files(folder / "epoch_3.pt") == [folder / "epoch_3.pt"]
