"""The keys and types of a checkpoint file, of either form, checked before anything is built from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from lossscope.errors import InputError
from lossscope.io.files import read_safetensors, read_torch, require_file

FORMAT = "lossscope.checkpoint"
VERSION = 2
STATE_PREFIX = "objective_state."  # of the names of the objective's tensors, in the safetensors form

_NONE = type(None)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "encoder": str, "objective": str, "data": str, "vocabulary": list, "item_shape": (list, dict),
    "data_fingerprint": str, "epoch": int, "step": int,
    "metrics": dict, "weights": dict, "training": dict, "optimiser": (dict, _NONE),
    "rng": (dict, _NONE), "versions": dict, "objective_state": (dict, _NONE),
    "tokeniser": (str, _NONE), "word_tokeniser": str, "kept": dict, "reading": dict,
}  # fmt: skip
_ITEM_TYPES: dict[str, type | tuple[type, ...]] = {  # of the items of lists and the values of dicts
    "vocabulary": str, "item_shape": (int, list), "weights": Tensor, "kept": str, "reading": str,
}  # fmt: skip


_ABSENT: dict[str, Any] = {
    "objective_state": None, "tokeniser": None, "word_tokeniser": "words", "kept": {}, "reading": {},
}  # fmt: skip
"""Key that older files lack -> its value there."""


def read_checkpoint_file(path: Path | str, keys: Sequence[str]) -> dict[str, Any]:
    """Read the values of a checkpoint file by key; keys that older files lack are filled in.

    Args:
        path: a `.pt` file, or a `.safetensors` file with its `.json`.
        keys: that the file must have.

    Raises:
        InputError: not a checkpoint, of a newer format, a key missing, or a value of a wrong type.
    """
    content = _read(Path(path))
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        names = sorted(map(str, content))[:6] if isinstance(content, dict) else []
        what = f"a dict with the keys {names}" if isinstance(content, dict) else type(content).__name__
        raise InputError(f"{path} must be a lossscope checkpoint; it holds {what}")
    version = content.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise InputError(
            f"{path} must have checkpoint format {VERSION} or older; got {version}. Install a newer lossscope"
        )
    content = {**_ABSENT, **content}
    missing = [name for name in keys if name not in content]
    if missing:
        raise InputError(f"{path} must hold every key of a checkpoint; missing {', '.join(missing)}")
    for name, kind in _TYPES.items():
        _require_type(f"{name} of {path} must be", content[name], kind)
    for name, kind in _ITEM_TYPES.items():
        for value in content[name].values() if isinstance(content[name], dict) else content[name]:
            _require_type(f"{name} of {path} must hold", value, kind)
    return content


def _require_type(where: str, value: Any, kind: type | tuple[type, ...]) -> None:
    if not isinstance(value, kind):
        allowed = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise InputError(f"{where} {allowed}; got {type(value).__name__}")


def is_safetensors_checkpoint(path: Path) -> bool:
    """Whether a file is the safetensors form of a checkpoint, by the `.json` of the same name."""
    json_file = path.with_suffix(".json")
    try:
        return path.suffix == ".safetensors" and FORMAT in json_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _read(path: Path) -> Any:
    """Read the content of a file of either form."""
    if path.suffix != ".safetensors":
        return read_torch(path)
    weights = read_safetensors(path)
    json_file = require_file(path.with_suffix(".json"))
    try:
        values = json.loads(json_file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{json_file} must be a readable JSON file; {error}") from error
    if not isinstance(values, dict):
        return values
    state = {k.removeprefix(STATE_PREFIX): v for k, v in weights.items() if k.startswith(STATE_PREFIX)}
    weights = {k: v for k, v in weights.items() if not k.startswith(STATE_PREFIX)}
    return {**values, "weights": weights, "objective_state": state or None, "optimiser": None, "rng": None}
