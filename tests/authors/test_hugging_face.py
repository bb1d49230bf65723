"""Folders of Hugging Face: vectors are those of transformers' own model, tokeniser and image processor."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.errors import InputError
from lossscope.sources.base import load
from lossscope.sources.checkpoints.conversion import open_released
from lossscope.text.subwords import Subwords
from tests.authors.answers import TOLERANCE
from tests.authors.clip_files import CAPTIONS, SIDES, VOCABULARY, write_data, write_merges, write_odd_pictures

transformers = pytest.importorskip("transformers")

LENGTH, SIDE = 24, 64
TOWER = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2}
TEXT = {**TOWER, "vocab_size": VOCABULARY, "max_position_embeddings": LENGTH}
VISION = {**TOWER, "image_size": SIDE, "patch_size": 16}
SHORT = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
CLIP_CASES: dict[str, dict[str, Any]] = {
    "as_saved": {"processor": SHORT},
    "no_processor": {"processor": SHORT, "saved": False},
    "older_sizes": {"processor": {"size": SIDE, "crop_size": SIDE, "resample": 3, "do_center_crop": True}},
    "bilinear_and_own_mean": {"processor": {**SHORT, "resample": 2, "image_mean": [0.5] * 3, "image_std": [0.25] * 3}},
    "squeezed": {"processor": {"size": {"height": SIDE, "width": SIDE}, "do_center_crop": False}},
    "two_activations": {"processor": SHORT, "text": {"hidden_act": "gelu"}, "vision": {"hidden_act": "gelu_new"}},
    "eps": {"processor": SHORT, "text": {"layer_norm_eps": 0.01}, "vision": {"layer_norm_eps": 0.02}},
    "older_eos": {"processor": SHORT, "text": {"eos_token_id": 2}},
    "config_dict": {"processor": SHORT, "dict": {"text_config_dict": {**TEXT, "hidden_act": "gelu"}}},
}


def write_tokeniser(folder: Path) -> Any:
    """Write CLIP's tokeniser as transformers saves it, and return it."""
    folder.mkdir(exist_ok=True)
    content = json.loads(Subwords.from_merges(write_merges(folder / "merges.txt.gz")).content)["model"]
    merges = [tuple(merge) for merge in content["merges"]]
    tokeniser = transformers.CLIPTokenizer(vocab=content["vocab"], merges=merges, model_max_length=LENGTH)
    tokeniser.save_pretrained(folder)
    return tokeniser


def write_model(folder: Path, model: Any, changes: dict[str, Any] | None = None) -> Any:
    """Write a model with larger weights than new ones, its configuration changed, and return it as it is read again."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        if parameter.ndim:
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **(changes or {})}))
    return type(model).from_pretrained(folder).eval()


def pixels_of(folder: Path, processor: Any) -> Tensor:
    files = [folder / "data" / "images" / f"{k}.png" for k in range(len(SIDES))]
    return torch.from_numpy(processor([Image.open(file) for file in files], return_tensors="np")["pixel_values"])


def require_vectors(embedded: SplitEmbeddings, images: Tensor, captions: Tensor) -> None:
    for ours, theirs in ((embedded.images, images), (embedded.captions, captions)):
        assert ours is not None
        assert float((ours - torch.nn.functional.normalize(theirs, dim=1)).abs().max()) <= TOLERANCE


@pytest.mark.parametrize("case", CLIP_CASES)
def test_a_clip_folder_gives_the_vectors_of_transformers(case: str, tmp_path: Path) -> None:
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    known, folder = CLIP_CASES[case], tmp_path / "model"
    tokeniser = write_tokeniser(folder)
    end = {"eos_token_id": tokeniser.eos_token_id, "bos_token_id": tokeniser.bos_token_id, "pad_token_id": 1}
    config = transformers.CLIPConfig(
        text_config={**TEXT, **end, **known.get("text", {})},
        vision_config={**VISION, **known.get("vision", {})},
        projection_dim=16,
    )
    changes = {k: {**v, **end} for k, v in known.get("dict", {}).items()}
    model = write_model(folder, transformers.CLIPModel(config), changes)
    processor = CLIPImageProcessorPil(**known["processor"])
    if known.get("saved", True):
        (folder / "preprocessor_config.json").write_text(json.dumps(known["processor"]))
    data = write_data(tmp_path / "data")
    inputs = tokeniser(CAPTIONS, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
    with torch.no_grad():
        images = model.visual_projection(model.vision_model(pixels_of(tmp_path, processor)).pooler_output)
        captions = model.text_projection(model.text_model(**inputs).pooler_output)
    require_vectors(load(folder, data=data, split="test", cache=False), images, captions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": {"shortest_edge": 72}}, "size of the file's image processor must be 64"),
        ({"crop_size": 48}, "crop_size of the file's image processor must be 64"),
        ({"do_center_crop": False}, "do_center_crop of the file's image processor must be true where size is its"),
        ({"resample": 1}, r"resample of the file's image processor must be 2 \(bilinear\) or 3 \(bicubic\)"),
        ({"do_normalize": False}, "do_normalize of the file's image processor must be true"),
        ({"do_resize": False}, "do_resize of the file's image processor must be true"),
        ({"image_std": [1, 0, 1]}, "image_std must be three numbers > 0"),
        ({"do_convert_rgb": "yes"}, "do_convert_rgb of the file's image processor must be true, false or null"),
        ({"something_new": 3}, r"got preprocessor_config\.something_new=3"),
    ],
)
def test_an_image_processor_that_is_not_done_is_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_tokeniser(folder)
    write_model(folder, transformers.CLIPModel(transformers.CLIPConfig(text_config=TEXT, vision_config=VISION)))
    (folder / "preprocessor_config.json").write_text(json.dumps({**SHORT, **options}))
    with pytest.raises(InputError, match=message):
        load(folder, data=write_data(tmp_path / "data"), split="test", cache=False)


@pytest.mark.parametrize("resample", [2, 3])
def test_a_siglip_folder_gives_the_vectors_of_transformers(resample: int, tmp_path: Path) -> None:
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    folder = tmp_path / "model"
    tokeniser = write_tokeniser(folder)
    text = {**TEXT, "pad_token_id": 1, "projection_size": 64}  # not the tokeniser's
    config = transformers.SiglipConfig(text_config=text, vision_config=VISION)
    model = write_model(folder, transformers.SiglipModel(config))
    options = {"size": {"height": SIDE, "width": SIDE}, "resample": resample}
    (folder / "preprocessor_config.json").write_text(json.dumps({**options, "image_mean": [0.5] * 3}))
    data = write_data(tmp_path / "data")
    ids = tokeniser(CAPTIONS, padding="max_length", truncation=True, max_length=LENGTH, return_tensors="pt")[
        "input_ids"
    ]
    assert ids.max() == tokeniser.pad_token_id != 1
    with torch.no_grad():
        images = model.vision_model(pixels_of(tmp_path, SiglipImageProcessorPil(**options))).pooler_output
        captions = model.text_model(ids).pooler_output
    require_vectors(load(folder, data=data, split="test", cache=False), images, captions)


@pytest.fixture(params=["clip", "siglip"])
def odd_pictures(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str, Tensor]:
    """Return a folder, a data set with pictures of many modes, and their vectors by transformers."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    folder, size = tmp_path / "model", {"height": SIDE, "width": SIDE}
    end, data = write_tokeniser(folder).eos_token_id, write_data(tmp_path / "data")
    for number, file in enumerate(write_odd_pictures(tmp_path)):
        shutil.copy(file, tmp_path / "data" / "images" / f"{number}.png")
    if request.param == "clip":
        text = {**TEXT, "eos_token_id": end}
        config = transformers.CLIPConfig(text_config=text, vision_config=VISION, projection_dim=16)
        model = write_model(folder, transformers.CLIPModel(config))
        options, processor, project = SHORT, CLIPImageProcessorPil(**SHORT), model.visual_projection
    else:
        text = {**TEXT, "pad_token_id": 1, "projection_size": 64}
        config = transformers.SiglipConfig(text_config=text, vision_config=VISION)
        model, project = write_model(folder, transformers.SiglipModel(config)), torch.nn.Identity()
        options, processor = {"size": size, "image_mean": [0.5] * 3}, SiglipImageProcessorPil(size=size)
    (folder / "preprocessor_config.json").write_text(json.dumps(options))
    with torch.no_grad():
        return folder, data, project(model.vision_model(pixels_of(tmp_path, processor)).pooler_output)


def test_pictures_of_every_mode_give_the_vectors_of_transformers(odd_pictures: tuple[Path, str, Tensor]) -> None:
    """Pictures with transparency lost it, and gave vectors that differ by up to 0.5 an entry."""
    folder, data, images = odd_pictures
    embedded = load(folder, data=data, split="test", cache=False)
    assert embedded.captions is not None
    require_vectors(embedded, images, embedded.captions)


def test_a_checkpoint_states_what_becomes_of_transparency(
    odd_pictures: tuple[Path, str, Tensor], tmp_path: Path
) -> None:
    """A checkpoint from before there was a choice says `first`, and keeps its vectors."""
    folder, data, _ = odd_pictures
    checkpoint, _ = open_released(folder)
    assert checkpoint.reading["rgb"] == "on-white"
    checkpoint.save(tmp_path / "new.pt")
    replace(checkpoint, reading={**checkpoint.reading, "rgb": "first"}).save(tmp_path / "older.pt")
    vectors = {
        name: load(path, data=spec, split="test", cache=False).images
        for name, path, spec in (
            ("folder", folder, data), ("new", tmp_path / "new.pt", data), ("older", tmp_path / "older.pt", data),
            ("said", folder, f"{data},rgb=first"),
        )
    }  # fmt: skip
    assert torch.equal(vectors["new"], vectors["folder"])
    assert torch.equal(vectors["older"], vectors["said"])
    assert float((vectors["older"] - vectors["new"]).abs().max()) > 0.02


@pytest.mark.parametrize(("value", "rgb"), [(True, "on-white"), (False, "first"), (None, "first")])
def test_a_processor_that_takes_rgb_alone_leaves_transparency_to_its_caller(
    value: bool | None, rgb: str, odd_pictures: tuple[Path, str, Tensor]
) -> None:
    file = odd_pictures[0] / "preprocessor_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "do_convert_rgb": value}))
    assert open_released(odd_pictures[0])[0].reading["rgb"] == rgb


def test_an_empty_image_processor_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_tokeniser(folder)
    write_model(folder, transformers.CLIPModel(transformers.CLIPConfig(text_config=TEXT, vision_config=VISION)))
    data, images = write_data(tmp_path / "data"), []
    for content in (None, {}):
        if content is not None:
            (folder / "preprocessor_config.json").write_text(json.dumps(content))
        images.append(load(folder, data=data, split="test", cache=False).images)
    assert torch.equal(*images)


def test_a_folder_without_its_words_is_told_which_files_hold_them(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_model(folder, transformers.CLIPModel(transformers.CLIPConfig(text_config=TEXT, vision_config=VISION)))
    with pytest.raises(InputError, match=r"tokenizer\.json \(spiece\.model is not read\), .* vocab\.json and merges"):
        load(folder, data=write_data(tmp_path / "data"), split="test", cache=False)
