"""A checkpoint of somebody else's program, read without running any of it: what is in it, under its own names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from ..errors import InputError
from ..files import existing_file, read_safetensors, read_torch
from .inert import INERT, Bag, PathBag, read_old

_TOWERS = ("model", "state_dict")
_HEAD = 1 << 18  # bytes in which the keys of a torch file stand


@dataclass(frozen=True)
class Original:
    """What an original file holds.

    towers: its state dicts in the file's order (one for most, [image, text(, similarity)] for the VSE family), without
    `module.` in front of the names; only that very prefix is dropped, and only where every name of a tower has it.
    options: its opt or config as plain values, {} when it has none. epoch, metrics: as far as it says.
    """

    path: Path
    towers: tuple[Mapping[str, Tensor], ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    epoch: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Opened:
    """An original file as one of our encoders.

    encoder: the encoder's dataclass. weights: every tensor under our names. ignored: names left out on purpose.
    kept: the configuration that a checkpoint of it must hold, as EncoderSpec.kept. context: ids of the longest caption
    it takes (0: any).
    item_shape: of one image, as the model takes it. vocabulary_size: rows of its word embedding (0: its tokeniser's).
    objective: spec of what it was trained with, with the margin and temperature it says. notices: what to tell.
    """

    encoder: Any
    weights: Mapping[str, Tensor]
    item_shape: Any
    vocabulary_size: int
    objective: str
    ignored: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    context: int = 0


def read_original(path: Path | str, old_pickle: bool = False) -> Original:
    """An original `.pth.tar`, `.pth`, `.pt`, `.bin` or `.safetensors` file, or a Hugging Face folder.

    old_pickle: read the file with our own restricted unpickler, for files of Python 2 that torch's refuses.
    Raises InputError: damaged, holding objects that are not data, or without weights.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return _folder(path)
    if path.suffix == ".safetensors":
        return Original(path, (_without_module(read_safetensors(path)),))
    found = read_old(path) if old_pickle else read_torch(path, INERT)
    if not isinstance(found, Mapping):
        raise InputError(f"{path} must hold a checkpoint; it holds {type(found).__name__}")
    return Original(path, _towers(found, path), _options(found), _epoch(found), _metrics(found))


def looks_original(path: Path, own: str) -> bool:
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
    held = next((found[key] for key in _TOWERS if isinstance(found.get(key), list | tuple | Mapping)), found)
    towers = tuple(held) if isinstance(held, list | tuple) else (held,)
    if not towers or not all(_is_state(tower) for tower in towers):
        raise InputError(
            f"{path} must hold weights: a dict of tensors, or a list of them under `model`; "
            f"got the keys {sorted(map(str, found))[:6]}"
        )
    return tuple(_without_module(tower) for tower in towers)


def _is_state(tower: Any) -> bool:
    tensors = isinstance(tower, Mapping) and bool(tower)
    return tensors and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in tower.items())


def _without_module(tower: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    if all(name.startswith("module.") for name in tower):
        return {name.removeprefix("module."): tensor for name, tensor in tower.items()}
    return dict(tower)


def _options(found: Mapping[Any, Any]) -> Mapping[str, Any]:
    held = found.get("opt", found.get("config", {}))
    options = plain(held)
    inner = options.get("_config") if isinstance(options, dict) else None
    if isinstance(inner, dict):
        return inner
    return options if isinstance(options, dict) else {}


def _epoch(found: Mapping[Any, Any]) -> int:
    epoch = found.get("epoch", 0)
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) and epoch >= 0 else 0


def _metrics(found: Mapping[Any, Any]) -> Mapping[str, float]:
    named = {"best_rsum": "rsum", "monitor_best": "monitor_best"}
    return {ours: float(found[k]) for k, ours in named.items() if isinstance(found.get(k), int | float)}


def plain(value: Any) -> Any:
    """Inert objects as dicts and paths as texts, all the way down; everything that is neither stays as it is."""
    if isinstance(value, PathBag):
        return str(value)
    if isinstance(value, Bag):
        return {str(k): plain(v) for k, v in vars(value).items()}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _folder(path: Path) -> Original:
    """A Hugging Face folder: config.json and the weights beside it, safetensors first."""
    config = path / "config.json"
    try:
        options = json.loads(existing_file(config).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{config} must be a readable JSON file; {error}") from error
    if not isinstance(options, dict):
        raise InputError(f"{config} must hold an object; got {type(options).__name__}")
    shards = sorted(path.glob("model*.safetensors"))
    if shards:
        tower = {name: tensor for shard in shards for name, tensor in read_safetensors(shard).items()}
    else:
        found = [read_torch(file) for file in sorted(path.glob("pytorch_model*.bin"))]
        if not found or not all(_is_state(part) for part in found):
            raise InputError(f"{path} must hold model.safetensors or pytorch_model.bin with its weights; got neither")
        tower = {name: tensor for part in found for name, tensor in part.items()}
    _whole(path, tower)
    return Original(path, (_without_module(tower),), options)


def _whole(path: Path, tower: Mapping[str, Tensor]) -> None:
    """Raise InputError when a sharded folder lacks a shard that its index names."""
    for index in (path / "model.safetensors.index.json", path / "pytorch_model.bin.index.json"):
        if index.is_file():
            wanted = json.loads(index.read_text(encoding="utf-8")).get("weight_map", {})
            missing = sorted(wanted.keys() - tower.keys())
            if missing:
                what = f"{missing[0]} ({len(missing)}) is missing"
                raise InputError(f"{path} must hold every shard of {index.name}; {what}")


_MARKS = (
    b"state_dict", b"Eiters", b"best_rsum", b"text_encoder.", b"vision_model.", b"visual.", b"vid_bert.", b"config",
)  # fmt: skip
