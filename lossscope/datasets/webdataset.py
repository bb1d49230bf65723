"""Tar shards of pictures with captions: `KEY.jpg` beside `KEY.txt` or `KEY.json`, as WebDataset keeps them."""

from __future__ import annotations

import functools
import glob
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.json_files import expect

from .formats.captioned import Captioned, OnError, PictureSplit, Resample, check_options, picture_split
from .formats.tar_index import TarMember, members

_SPLITS = ("train", "val", "test")
_PICTURES = ("jpg", "jpeg", "png", "webp")


@dataclass(frozen=True)
class WebDataset:
    """The samples of all shards that fit a pattern, e.g. shards=data/flickr-*.tar; read with tarfile, at random.

    A sample is what shares a key, the name up to its first dot. `txt`: each line is a caption. `json` (where there
    is no txt): `caption`, a text or a list, or `captions`, a list.
    cut: `name` takes train, val or test from the shard's file name; `hash` cuts 80/10/10 by the key's hash.
    size: pixels of a side. captions: the first so many of each picture (0: all). crop: cut the middle square out,
    else squeeze. resample: bilinear or bicubic. on_error: `raise`, or `skip` pictures that can not be read.
    Shards are indexed when a split is first asked for; pictures are decoded when taken. Compressed shards can not
    be read at random and are refused. Raises InputError for anything missing or malformed.
    """

    shards: str
    cut: Literal["name", "hash"] = "name"
    size: int = 224
    captions: int = 0
    crop: bool = True
    on_error: OnError = "raise"
    resample: Resample = "bilinear"

    def __post_init__(self) -> None:
        check_options("webdataset", self.size, self.captions)

    def splits(self) -> tuple[str, ...]:
        """train, val and test, as far as shards are named so."""
        if self.cut == "hash":
            return _SPLITS
        return tuple(name for name in _SPLITS if any(_named(path) == name for path in self._paths))

    def split(self, name: str) -> PictureSplit:
        """The split of that name; its `skipped` says what on_error=skip left out."""
        if name not in self.splits():
            known = ", ".join(self.splits()) or f"one that shards like {self.shards} are named by"
            raise InputError(f"split of webdataset must be one of {known}; got {name!r}: cut=hash needs no names")
        if self.cut == "hash":
            items = [item for item in self._every if _part(item.id) == name]
        else:
            items = [item for path in self._paths if _named(path) == name for item in _samples(path)]
        if not items:
            raise InputError(f"split must hold at least one image; got none in {name!r} of {self.shards}")
        return picture_split(name, items, self.size, self.captions, self.crop, self.on_error, self.resample)

    @property
    def _paths(self) -> list[Path]:
        paths = [Path(path) for path in sorted(glob.glob(str(Path(self.shards).expanduser())))]
        if not paths:
            raise InputError(f"webdataset:shards must fit files; got none like {self.shards}")
        return paths

    @functools.cached_property
    def _every(self) -> list[Captioned]:
        return [item for path in self._paths for item in _samples(path)]


def _samples(shard: Path) -> list[Captioned]:
    samples: dict[str, dict[str, TarMember]] = {}
    for item in members(shard):
        folder, slash, file = item.name.rpartition("/")
        stem, _, suffix = file.partition(".")
        samples.setdefault(folder + slash + stem, {})[suffix.lower()] = item
    return [_sample(key, parts) for key, parts in samples.items() if any(kind in parts for kind in _PICTURES)]


def _sample(key: str, parts: Mapping[str, TarMember]) -> Captioned:
    picture = next(parts[kind] for kind in _PICTURES if kind in parts)
    told = _captions(picture, parts)
    return Captioned(key, picture, tuple((f"{key}#{k}", text) for k, text in enumerate(told)))


def _captions(picture: TarMember, parts: Mapping[str, TarMember]) -> list[str]:
    if "txt" in parts:
        lines = _text(parts["txt"]).splitlines()
        return [line.strip() for line in lines if line.strip()]
    if "json" not in parts:
        raise InputError(f"{picture} must have a caption beside it, .txt or .json; got {', '.join(parts)}")
    try:
        document = expect(json.loads(_text(parts["json"])), dict, str(parts["json"]))
    except (json.JSONDecodeError, RecursionError) as problem:
        raise InputError(f"{parts['json']} must be whole JSON; got {problem}") from None
    found: Any = document.get("caption", document.get("captions"))
    texts = found if isinstance(found, list) else [found]
    return [expect(text, str, f"'caption' of {parts['json']}").strip() for text in texts]


def _text(item: TarMember) -> str:
    try:
        return item.read().decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as problem:
        raise InputError(f"{item} must be UTF-8 text; got {problem}") from None


def _named(shard: Path) -> str | None:
    """The split in a shard's name, between what are no letters: `flickr-train-00012.tar`, `val_3.tar`."""
    words = re.split(r"[^a-z]+", shard.name.lower())
    return next((name for name in _SPLITS if name in words), None)


def _part(key: str) -> str:
    """The split of a sample: ten equal parts of its key's hash, eight of them train."""
    tenth = int(fingerprint_of(key)[:15], 16) % 10
    return "train" if tenth < 8 else ("val", "test")[tenth - 8]
