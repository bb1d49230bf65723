"""A CLIP folder of Hugging Face: configuration, tokeniser, image processor, weights."""

from __future__ import annotations

import json
from pathlib import Path

import transformers

from tests.authors.test_hugging_face import SHORT, TEXT, VISION, write_model, write_tokeniser
from tests.fuzz.released import open_model

FILES = {
    "clip/config.json": "json", "clip/preprocessor_config.json": "json", "clip/tokenizer_config.json": "json",
    "clip/tokenizer.json": "json", "clip/model.safetensors": "safetensors", "clip": "folder",
}  # fmt: skip
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a small model as transformers saves it."""
    tokeniser = write_tokeniser(folder / "clip")
    end = {"eos_token_id": tokeniser.eos_token_id, "bos_token_id": tokeniser.bos_token_id, "pad_token_id": 1}
    config = transformers.CLIPConfig(text_config={**TEXT, **end}, vision_config=VISION, projection_dim=16)
    write_model(folder / "clip", transformers.CLIPModel(config))
    (folder / "clip" / "preprocessor_config.json").write_text(json.dumps(SHORT), encoding="utf-8")


def read(folder: Path) -> object:
    """Open it, and build its model."""
    return open_model(folder / "clip", None, "scenes:size=64")
