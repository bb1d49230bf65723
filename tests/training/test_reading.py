"""Does a training from a released model read pictures as its authors do, and do its checkpoints state it?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.conversion import open_released
from lossscope.training.loop import resume, train
from lossscope.training.reading import read_as_authors
from lossscope.training.recipe import Recipe
from tests.authors.clip_files import write_data
from tests.authors.test_hugging_face import SHORT, TEXT, VISION, write_model, write_tokeniser

transformers = pytest.importorskip("transformers")
READING = {"fit": "short-side-floor", "resample": "bicubic", "rgb": "on-white", "size": "64"}


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """Return a short training of a CLIP folder on pictures that are not square."""
    folder = tmp_path / "model"
    end = write_tokeniser(folder).eos_token_id
    config = transformers.CLIPConfig(text_config={**TEXT, "eos_token_id": end}, vision_config=VISION, projection_dim=16)
    write_model(folder, transformers.CLIPModel(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(SHORT))
    data = write_data(tmp_path / "data")
    listed = json.loads((tmp_path / "data" / "dataset_tiny.json").read_text("utf-8"))
    for row, image in enumerate(listed["images"]):
        image["split"] = ("train", "train", "val", "test")[row // 2]
    (tmp_path / "data" / "dataset_tiny.json").write_text(json.dumps(listed), "utf-8")
    return Recipe(data=data, encoder=f"clip:path={folder}", objective="infonce", epochs=1, batch_size=4, lr=1e-5)


def test_what_the_data_leave_unsaid_is_read_as_the_folder_says(recipe: Recipe) -> None:
    completed, notices = read_as_authors(recipe)
    assert notices == (
        "pictures are read with fit=short-side-floor, resample=bicubic, rgb=on-white, size=64, as the model's authors "
        "read them",
    )
    assert read_as_authors(completed) == (completed, ())
    said = replace(recipe, data=f"{recipe.data},fit=square,resample=bicubic,rgb=first,size=64")
    kept, warnings = read_as_authors(said)
    assert kept == said
    assert warnings[0].startswith("WARNING: pictures are read with fit=square, rgb=first, as the data set says")


@pytest.mark.parametrize("converted", [False, True])
def test_checkpoints_and_resumed_ones_keep_how_pictures_are_read(
    converted: bool, recipe: Recipe, tmp_path: Path
) -> None:
    if converted:
        open_released(tmp_path / "model")[0].save(tmp_path / "start.pt")
        recipe = replace(recipe, encoder="clip", init=str(tmp_path / "start.pt"))
    run = train(recipe, tmp_path / "run")
    resume(run.path, epochs=2)
    last = Checkpoint.load(run.last)
    assert (last.epoch, last.reading) == (2, READING)
    assert build("datasets", last.data).fit == "short-side-floor"
    other = write_data(tmp_path / "other")
    assert any("fit=short-side-floor" in text for text in load(run.path, data=other, split="test", cache=False).notices)


@pytest.mark.parametrize("option", ["activation=gelu", "text_heads=7", "model=ViT-H-14", "depth=9"])
def test_options_that_the_folder_contradicts_are_refused(option: str, recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        train(replace(recipe, encoder=f"{recipe.encoder},{option}"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_siglip_folder_with_an_unknown_option_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    folder = tmp_path / "siglip"
    write_tokeniser(folder)
    text = {**TEXT, "pad_token_id": 1, "projection_size": 64}
    write_model(folder, transformers.SiglipModel(transformers.SiglipConfig(text_config=text, vision_config=VISION)))
    recipe = replace(recipe, encoder=f"siglip:path={folder}", objective="siglip")
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.1] * 3, "image_std": [0.5] * 3}))
    with pytest.raises(InputError, match=r"image_mean and image_std of a SigLIP must be 0\.5"):
        train(recipe, tmp_path / "run")
    (folder / "preprocessor_config.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "something_new": 1}))
    with pytest.raises(InputError, match="got something_new=1"):
        train(recipe, tmp_path / "run")
