"""A checkpoint of other authors, read without running any code of theirs: its contents under their own names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lossscope.errors import InputError
from lossscope.io.files import read_safetensors, read_torch, require_file
from lossscope.io.json_files import member, read_json
from lossscope.io.pickles.allow_list import WEIGHTS_ONLY_GLOBALS
from lossscope.io.pickles.legacy_torch import read_legacy_torch, refuse_torchscript
from lossscope.io.pickles.texts import is_of_python2

from ..types import ReleasedFile
from .payload import (
    is_state_dict,
    read_epoch,
    read_metrics,
    read_options,
    require_dense,
    strip_module_prefix,
    to_plain_options,
)

_STATE_KEYS = ("model", "state_dict")


def read_released(path: Path | str, old_pickle: bool = False) -> ReleasedFile:
    """Read a `.pth.tar`, `.pth`, `.pt`, `.bin` or `.safetensors` file, or a Hugging Face folder.

    Raises InputError when it is damaged, holds objects that are not data, or has no weights.

    Args:
        path: the file or folder.
        old_pickle: read it with the restricted unpickler of lossscope, for files of Python 2 that torch's refuses.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return _read_folder(path)
    if path.suffix == ".safetensors":
        return ReleasedFile(path, (strip_module_prefix(read_safetensors(path)),))
    content = read_legacy_torch(path) if old_pickle else _read_torch(path)
    return ReleasedFile(
        path,
        _extract_towers(content, path),
        read_options(content, path),
        read_epoch(content),
        read_metrics(content),
        is_of_python2(path),
    )


def _read_torch(path: Path) -> dict[Any, Any]:
    """Return the dict in a torch file, read by torch, as a plain dict: a file can replace methods of other classes."""
    refuse_torchscript(require_file(path))
    content = read_torch(path, WEIGHTS_ONLY_GLOBALS)
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold a checkpoint; it holds {type(content).__name__}")
    return dict(dict.items(content))


def _extract_towers(content: Mapping[Any, Any], path: Path) -> tuple[Mapping[str, Tensor], ...]:
    """Return the state dicts in a checkpoint. Raises InputError when there are none."""
    states = next((content[key] for key in _STATE_KEYS if isinstance(content.get(key), list | tuple | dict)), content)
    towers = tuple(states) if isinstance(states, list | tuple) else (states,)
    if not towers or not all(is_state_dict(tower) for tower in towers):
        got = [key[:60] for key in content if isinstance(key, str)][:6]
        raise InputError(f"{path} must hold weights: a dict of tensors, or a list of them under `model`; got {got}")
    for tower in towers:
        require_dense(tower, path)
    return tuple(strip_module_prefix(tower) for tower in towers)


def _read_folder(path: Path) -> ReleasedFile:
    """Read a Hugging Face folder: config.json and the weights beside it, safetensors first."""
    options = to_plain_options(read_json(require_file(path / "config.json")), path / "config.json")
    shards = sorted(path.glob("model*.safetensors"))
    if shards:
        tower = _merge_shards(path, [read_safetensors(shard) for shard in shards])
    else:
        parts = [_read_torch(file) for file in sorted(path.glob("pytorch_model*.bin"))]
        if not parts or not all(is_state_dict(part) for part in parts):
            raise InputError(f"{path} must hold model.safetensors or pytorch_model.bin with its weights; got neither")
        tower = _merge_shards(path, parts)
    require_dense(tower, path)
    _require_all_shards(path, tower)
    return ReleasedFile(path, (strip_module_prefix(tower),), options)


def _merge_shards(path: Path, parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the tensors of all shards. Raises InputError when two shards hold the same name."""
    merged = {name: tensor for part in parts for name, tensor in part.items()}
    if len(merged) != sum(map(len, parts)):
        raise InputError(f"{path} must hold each weight once; two files of it hold the same. Keep those of one model")
    return merged


def _require_all_shards(path: Path, tower: Mapping[str, Tensor]) -> None:
    """Raise InputError when a sharded folder lacks a shard that its index names."""
    for index in (path / "model.safetensors.index.json", path / "pytorch_model.bin.index.json"):
        if index.is_file():
            expected = member(read_json(require_file(index)), "weight_map", dict, str(index))
            missing = sorted(expected.keys() - tower.keys())
            if missing:
                what = f"{missing[0]} ({len(missing)}) is missing"
                raise InputError(f"{path} must hold every shard of {index.name}; {what}")
