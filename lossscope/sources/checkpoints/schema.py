"""The keys and types of a checkpoint file, of either form, checked before anything is built from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from lossscope.errors import InputError
from lossscope.io.digests import require_digests
from lossscope.io.files import read_safetensors, read_torch
from lossscope.io.json_files import read_json_value, shorten
from lossscope.io.text_files import read_utf8

FORMAT = "lossscope.checkpoint"
VERSION = 3
_WITH_DIGESTS = 3  # the first version that states the digests of its parts
STATE_PREFIX = "objective_state."  # of the names of the objective's tensors, in the safetensors form

_MAX_COUNT = 1 << 31  # of an epoch, a step or a side of an item
_NONE = type(None)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "encoder": str, "objective": str, "data": str, "vocabulary": list, "item_shape": (list, dict),
    "data_fingerprint": str, "epoch": int, "step": int,
    "metrics": dict, "weights": dict, "training": dict, "optimiser": (dict, _NONE),
    "rng": (dict, _NONE), "versions": dict, "objective_state": (dict, _NONE),
    "tokeniser": (str, _NONE), "word_tokeniser": str, "kept": dict, "reading": dict,
    "digests": dict,
}  # fmt: skip
_ITEM_TYPES: dict[str, type | tuple[type, ...]] = {  # of the items of lists and the values of dicts
    "vocabulary": str, "item_shape": (int, list), "weights": Tensor, "kept": str, "reading": str, "digests": str,
}  # fmt: skip


_ABSENT: dict[str, Any] = {
    "objective_state": None, "tokeniser": None, "word_tokeniser": "words", "kept": {}, "reading": {},
    "digests": {},
}  # fmt: skip
"""Key that older files lack -> its value there."""


def read_checkpoint_file(path: Path | str, keys: Sequence[str]) -> dict[str, Any]:
    """Read the values of a checkpoint file by key; keys that older files lack are filled in.

    Args:
        path: a `.pt` file, or a `.safetensors` file with its `.json`.
        keys: that the file must have.

    Raises:
        InputError: not a checkpoint, of a newer format, a key missing, a value of a wrong type, or a part that is not
            what was saved.
    """
    content = _read(Path(path))
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        names = sorted(map(str, content))[:6] if isinstance(content, dict) else []
        what = f"a dict with the keys {names}" if isinstance(content, dict) else type(content).__name__
        from .._how_to_convert import tensors_to_dump

        hint = tensors_to_dump(Path(path), content)
        raise InputError(f"{path} must be a lossscope checkpoint; it holds {what}" + (f": {hint}" if hint else ""))
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
    _require_counts(path, content)
    if version >= _WITH_DIGESTS or content["digests"]:
        require_digests(path, {name: content[name] for name in keys if name != "digests"}, content["digests"])
    return content


def _require_counts(path: Path | str, content: dict[str, Any]) -> None:
    """Raise InputError for epochs, steps and shapes that are no whole numbers, or out of range."""
    counts = {"epoch": content["epoch"], "step": content["step"], "warmup": content["training"].get("warmup", 0)}
    for name, value in counts.items():
        if type(value) is not int or not 0 <= value < _MAX_COUNT:
            raise InputError(f"{name} of {path} must be a whole number of at least 0; got {shorten(value)}")
    shape = content["item_shape"]
    for sizes in shape.values() if isinstance(shape, dict) else [shape]:
        if not isinstance(sizes, list | tuple) or not all(
            type(size) is int and -1 <= size < _MAX_COUNT for size in sizes
        ):
            raise InputError(f"item_shape of {path} must be whole numbers; got {shorten(sizes)}")


def _require_type(where: str, value: Any, kind: type | tuple[type, ...]) -> None:
    if not isinstance(value, kind):
        allowed = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise InputError(f"{where} {allowed}; got {type(value).__name__}")


def is_safetensors_checkpoint(path: Path) -> bool:
    """Whether a file is the safetensors form of a checkpoint, by the `.json` of the same name."""
    json_file = path.with_suffix(".json")
    try:
        return path.suffix == ".safetensors" and FORMAT in read_utf8(json_file)
    except InputError:
        return False


def _read(path: Path) -> Any:
    """Read the content of a file of either form."""
    if path.suffix != ".safetensors":
        return read_torch(path)
    weights = read_safetensors(path)
    values = read_json_value(path.with_suffix(".json"))
    if not isinstance(values, dict):
        return values
    state = {k.removeprefix(STATE_PREFIX): v for k, v in weights.items() if k.startswith(STATE_PREFIX)}
    weights = {k: v for k, v in weights.items() if not k.startswith(STATE_PREFIX)}
    return {**values, "weights": weights, "objective_state": state or None, "optimiser": None, "rng": None}
