"""Is a folder a Hugging Face model of texts?"""

from __future__ import annotations

from pathlib import Path

from lossscope.encoders.released.signs import is_configured
from lossscope.errors import InputError
from lossscope.io.json_files import read_json


def is_text_encoder(path: Path) -> bool:
    """Whether a folder is a Hugging Face model without images: a configuration that names no towers."""
    if not path.is_dir() or not (path / "config.json").is_file() or (path / "modules.json").is_file():
        return False
    if (path / "open_clip_config.json").is_file() or not is_configured(path):
        return False
    try:
        config = read_json(path / "config.json")
    except InputError:
        return False
    towers = ("vision_config", "text_config")  # older files: vision_config_dict
    return "model_type" in config and not any(str(name).startswith(towers) for name in config)
