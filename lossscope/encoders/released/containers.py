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
from .signs import OPEN_CLIP_CONFIG, find_open_clip_weights

TOKENISER, PADDING = "tokenizer_config", "pad_token_id"  # option, and its part


def read_container(path: Path | str, old_pickle: bool = False) -> ReleasedFile:
    """Read a released file or folder. Raises InputError as read_released does.

    Args:
        path: the file or folder.
        old_pickle: read it with the restricted unpickler of lossscope, for files of Python 2 that torch's refuses.
    """
    path = Path(path).expanduser()
    weights = find_open_clip_weights(path)
    if weights is not None:
        config = _read_options(path if path.is_dir() else path.parent, OPEN_CLIP_CONFIG)
        return replace(read_released(weights, old_pickle), path=path, options=config)
    if is_torchscript(path):
        return ReleasedFile(path, (read_torchscript(path),))
    released = read_released(path, old_pickle)
    if not path.is_dir():
        return released
    return replace(released, options={**released.options, **_read_processor(path), **_read_padding(path)})


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
