"""A checkpoint of somebody else's program, read without running any of it: what is in it, under its own names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lossscope.errors import InputError
from lossscope.io.files import read_safetensors, read_torch, require_file
from lossscope.io.json_files import member, read_json
from lossscope.io.pickles.legacy_torch import read_old, refuse_program
from lossscope.io.pickles.stubs import INERT

from ..types import ReleasedFile
from .payload import epoch_of, is_state, metrics_of, options_of, plain_options, require_dense, without_module

_TOWERS = ("model", "state_dict")
_HEAD = 1 << 18  # bytes in which the keys of a torch file stand


def read_released(path: Path | str, old_pickle: bool = False) -> ReleasedFile:
    """An original `.pth.tar`, `.pth`, `.pt`, `.bin` or `.safetensors` file, or a Hugging Face folder.

    old_pickle: read the file with our own restricted unpickler, for files of Python 2 that torch's refuses.
    Raises InputError: damaged, holding objects that are not data, or without weights.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".safetensors":
        return ReleasedFile(path, (without_module(read_safetensors(path)),))
    found = read_old(path) if old_pickle else _read(path)
    return ReleasedFile(path, _towers(found, path), options_of(found, path), epoch_of(found), metrics_of(found))


def _read(path: Path) -> dict[Any, Any]:
    """The dict in a torch file, read by torch, as a plain one: a file can hang values on the methods of another."""
    refuse_program(require_file(path))
    found = read_torch(path, INERT)
    if not isinstance(found, dict):
        raise InputError(f"{path} must hold a checkpoint; it holds {type(found).__name__}")
    return dict(dict.items(found))


def looks_released(path: Path, own: str) -> bool:
    """Whether a torch file seems to be of another program: a name such as `state_dict` in it, and not `own`."""
    if path.suffix not in (".tar", ".pth", ".pt", ".bin", ".th"):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    if head[:1] not in (b"P", b"\x80") or own.encode() in head:
        return False
    return path.suffix == ".tar" or any(key in head for key in _MARKS)


def _towers(found: Mapping[Any, Any], path: Path) -> tuple[Mapping[str, Tensor], ...]:
    held = next((found[key] for key in _TOWERS if isinstance(found.get(key), list | tuple | dict)), found)
    towers = tuple(held) if isinstance(held, list | tuple) else (held,)
    if not towers or not all(is_state(tower) for tower in towers):
        got = [key[:60] for key in found if isinstance(key, str)][:6]
        raise InputError(f"{path} must hold weights: a dict of tensors, or a list of them under `model`; got {got}")
    for tower in towers:
        require_dense(tower, path)
    return tuple(without_module(tower) for tower in towers)


def _folder(path: Path) -> ReleasedFile:
    """A Hugging Face folder: config.json and the weights beside it, safetensors first."""
    options = plain_options(read_json(require_file(path / "config.json")), path / "config.json")
    shards = sorted(path.glob("model*.safetensors"))
    if shards:
        tower = _merged(path, [read_safetensors(shard) for shard in shards])
    else:
        found = [_read(file) for file in sorted(path.glob("pytorch_model*.bin"))]
        if not found or not all(is_state(part) for part in found):
            raise InputError(f"{path} must hold model.safetensors or pytorch_model.bin with its weights; got neither")
        tower = _merged(path, found)
    require_dense(tower, path)
    _whole(path, tower)
    return ReleasedFile(path, (without_module(tower),), options)


def _merged(path: Path, parts: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    merged = {name: tensor for part in parts for name, tensor in part.items()}
    if len(merged) != sum(map(len, parts)):
        raise InputError(f"{path} must hold each weight once; two files of it hold the same. Keep those of one model")
    return merged


def _whole(path: Path, tower: Mapping[str, Tensor]) -> None:
    """Raise InputError when a sharded folder lacks a shard that its index names."""
    for index in (path / "model.safetensors.index.json", path / "pytorch_model.bin.index.json"):
        if index.is_file():
            wanted = member(read_json(require_file(index)), "weight_map", dict, str(index))
            missing = sorted(wanted.keys() - tower.keys())
            if missing:
                what = f"{missing[0]} ({len(missing)}) is missing"
                raise InputError(f"{path} must hold every shard of {index.name}; {what}")


_MARKS = (
    b"state_dict", b"Eiters", b"best_rsum", b"text_encoder.", b"vision_model.", b"visual.", b"vid_bert.", b"config",
)  # fmt: skip
