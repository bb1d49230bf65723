"""Read a released file in any container: torch file, TorchScript archive, folder of Hugging Face or of open_clip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lossscope.io.files import require_file
from lossscope.io.json_files import read_json
from lossscope.io.pickles.torch_zip import is_torchscript
from lossscope.io.pickles.torchscript import read_torchscript
from lossscope.text.tokeniser_folder import find_padding

from ..types import ReleasedFile
from .checkpoint_file import read_released
from .image_processor import PROCESSOR
from .payload import to_plain_options

TOKENISER, PADDING = "tokenizer_config", "pad_token_id"  # option, and its part
_OPEN_CLIP_CONFIG = "open_clip_config.json"
_OPEN_CLIP_WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
_CONTENT = (".json", ".safetensors", ".bin", ".txt", ".gz")
_HUGGING_FACE_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")


def read_container(path: Path | str, old_pickle: bool = False) -> ReleasedFile:
    """Read a released file or folder. Raises InputError as read_released does.

    Args:
        path: the file or folder.
        old_pickle: read it with the restricted unpickler of lossscope, for files of Python 2 that torch's refuses.
    """
    path = Path(path).expanduser()
    weights = _find_open_clip_weights(path)
    if weights is not None:
        config = _read_options(path if path.is_dir() else path.parent, _OPEN_CLIP_CONFIG)
        return replace(read_released(weights, old_pickle), path=path, options=config)
    if is_torchscript(path):
        return ReleasedFile(path, (read_torchscript(path),))
    released = read_released(path, old_pickle)
    if not path.is_dir():
        return released
    return replace(released, options={**released.options, **_read_processor(path), **_read_padding(path)})


def is_configured(path: Path) -> bool:
    """Return whether a path is a folder of Hugging Face or open_clip, or weights beside an open_clip_config.json."""
    return (path.is_dir() and (path / "config.json").is_file()) or _find_open_clip_weights(path) is not None


def content_files(path: Path) -> list[Path]:
    """Return the files that say what a released file or folder holds: weights, configurations and words."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in _CONTENT)
    config = path.parent / _OPEN_CLIP_CONFIG
    return [path, config] if is_configured(path) else [path]


def _find_open_clip_weights(path: Path) -> Path | None:
    """Return the weights that open_clip_config.json describes: the file itself, or those of a folder without others.

    A folder that has Hugging Face's weights too is one of Hugging Face; its other file is named to open that.
    """
    if path.name in _OPEN_CLIP_WEIGHTS and (path.parent / _OPEN_CLIP_CONFIG).is_file():
        return path
    if not (path / _OPEN_CLIP_CONFIG).is_file():
        return None
    if (path / "config.json").is_file() and any(any(path.glob(name)) for name in _HUGGING_FACE_WEIGHTS):
        return None
    return next((path / name for name in _OPEN_CLIP_WEIGHTS if (path / name).is_file()), None)


def _read_processor(folder: Path) -> dict[str, Any]:
    """Return the configuration of a folder's image processor as one option, {} where it has none."""
    if (folder / "preprocessor_config.json").is_file():
        stated = _read_options(folder, "preprocessor_config.json")
        return {PROCESSOR: stated} if stated else {}
    if (folder / "processor_config.json").is_file():
        inner = _read_options(folder, "processor_config.json").get("image_processor")
        return {PROCESSOR: inner} if isinstance(inner, Mapping) else {}
    return {}


def _read_padding(folder: Path) -> dict[str, Any]:
    """Return the padding token of a folder's tokeniser as one option, {} where it has none."""
    number = find_padding(folder)
    return {} if number is None else {TOKENISER: {PADDING: number}}


def _read_options(folder: Path, name: str) -> dict[str, Any]:
    options = to_plain_options(read_json(require_file(folder / name)), folder / name)
    return options if isinstance(options, dict) else {}
