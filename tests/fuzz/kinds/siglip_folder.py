"""A SigLIP folder of Hugging Face: configuration, tokeniser, image processor, weights."""

from __future__ import annotations

import json
from pathlib import Path

import transformers

from tests.authors.test_hugging_face import TEXT, VISION, write_model, write_tokeniser
from tests.fuzz.released import open_model

FILES = {
    "siglip/config.json": "json",
    "siglip/preprocessor_config.json": "json",
    "siglip/model.safetensors": "safetensors",
}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a small model as transformers saves it."""
    write_tokeniser(folder / "siglip")
    config = transformers.SiglipConfig(text_config=TEXT, vision_config=VISION)
    write_model(folder / "siglip", transformers.SiglipModel(config))
    processor = {"size": {"height": 64, "width": 64}, "resample": 3}
    (folder / "siglip" / "preprocessor_config.json").write_text(json.dumps(processor), encoding="utf-8")


def read(folder: Path) -> object:
    """Open it, and build its model."""
    return open_model(folder / "siglip", None, "scenes:size=64")
