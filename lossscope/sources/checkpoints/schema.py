"""What a checkpoint file holds, either form, looked through before anything is made of it."""

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
STATE = "objective_state."  # before the names of what the objective has learnt, in the safetensors form

_NONE = type(None)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "encoder": str, "objective": str, "data": str, "vocabulary": list, "item_shape": (list, dict),
    "data_fingerprint": str, "epoch": int, "step": int,
    "metrics": dict, "weights": dict, "training": dict, "optimiser": (dict, _NONE),
    "rng": (dict, _NONE), "versions": dict, "objective_state": (dict, _NONE),
    "tokeniser": (str, _NONE), "kept": dict,
}  # fmt: skip
_INSIDE: dict[str, type | tuple[type, ...]] = {
    "vocabulary": str, "item_shape": (int, list), "weights": Tensor, "kept": str,
}  # fmt: skip


def checked(path: Path | str, wanted: Sequence[str]) -> dict[str, Any]:
    """The keys of a checkpoint file, those that older files lack filled in.

    Raises InputError: not a checkpoint, of a newer format, a key of `wanted` missing, or of a wrong type.
    """
    found = _content(Path(path))
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        keys = sorted(map(str, found))[:6] if isinstance(found, dict) else []
        what = f"a dict with the keys {keys}" if isinstance(found, dict) else type(found).__name__
        raise InputError(f"{path} must be a lossscope checkpoint; it holds {what}")
    version = found.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise InputError(
            f"{path} must have checkpoint format {VERSION} or older; got {version}. Install a newer lossscope"
        )
    found = {"objective_state": None, "tokeniser": None, "kept": {}, **found}
    missing = [name for name in wanted if name not in found]
    if missing:
        raise InputError(f"{path} must hold every key of a checkpoint; missing {', '.join(missing)}")
    for name, kind in _TYPES.items():
        _require(f"{name} of {path} must be", found[name], kind)
    for name, kind in _INSIDE.items():
        for value in found[name].values() if isinstance(found[name], dict) else found[name]:
            _require(f"{name} of {path} must hold", value, kind)
    return found


def _require(where: str, value: Any, kind: type | tuple[type, ...]) -> None:
    if not isinstance(value, kind):
        wanted = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise InputError(f"{where} {wanted}; got {type(value).__name__}")


def stored_as_safetensors(path: Path) -> bool:
    """Whether a file is the safetensors form of a checkpoint: its `.json` says so."""
    beside = path.with_suffix(".json")
    try:
        return path.suffix == ".safetensors" and FORMAT in beside.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _content(path: Path) -> Any:
    """What the file holds, either form."""
    if path.suffix != ".safetensors":
        return read_torch(path)
    weights = read_safetensors(path)
    beside = require_file(path.with_suffix(".json"))
    try:
        told = json.loads(beside.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{beside} must be a readable JSON file; {error}") from error
    if not isinstance(told, dict):
        return told
    state = {k.removeprefix(STATE): v for k, v in weights.items() if k.startswith(STATE)}
    weights = {k: v for k, v in weights.items() if not k.startswith(STATE)}
    return {**told, "weights": weights, "objective_state": state or None, "optimiser": None, "rng": None}
