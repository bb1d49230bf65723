"""The pickled data sets of the ECIR 2022 reproduction of VSE++ -> Karpathy's format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..documents import expect, member
from ..errors import InputError
from ..files import replacing, write_text
from .unpickler import read_pickle

SPLITS = ("train", "val", "test")
Progress = Callable[[str, int, int], None]
_Images = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Converted:
    """What was written and what was not. lost: caption ids of images that had no caption in the file."""

    images: int
    captions: int
    lost: int
    images_without: int


def convert(source: Path, out: Path, name: str, progress: Progress | None = None) -> Converted:
    """`{source}/{train,val,test}_set.p` -> `{out}/images/` with the very jpeg bytes, and `{out}/dataset_{name}.json`.

    Captions of an image come in the order of the file's `captions`, which is that of the original evaluation. Ids
    without a caption, and images left without any, are dropped and counted. The json is written last.
    Raises InputError when there is no set, or naming set and image for what is malformed.
    Source: Bleeker and de Rijke 2022.
    """
    present = [split for split in SPLITS if (source / f"{split}_set.p").is_file()]
    if not present:
        raise InputError(f"{source} must hold train_set.p, val_set.p or test_set.p; got none of them")
    told: _Images = {}
    lost = without = 0
    for split in present:
        file = source / f"{split}_set.p"
        images, listed, pictures = _read(file, split)
        kept = {file_name: image for file_name, image in images.items() if image["sentences"]}
        twice = sorted(kept.keys() & told.keys())
        if twice:
            raise InputError(f"file names must be unique over all sets; got {twice[0]!r} in {file} again")
        for done, file_name in enumerate(kept, 1):
            _write(out / "images" / file_name, pictures[file_name])
            if progress is not None:
                progress(f"pictures of {split}", done, len(kept))
        told |= kept
        lost += listed - sum(len(image["sentences"]) for image in images.values())
        without += len(images) - len(kept)
    document = {"dataset": name, "images": list(told.values())}
    write_text(out / f"dataset_{name}.json", json.dumps(document) + "\n")
    return Converted(len(told), sum(len(image["sentences"]) for image in told.values()), lost, without)


def _read(file: Path, split: str) -> tuple[_Images, int, dict[str, bytes]]:
    """Images by file name in Karpathy's form, how many captions they list, and their bytes."""
    document = read_pickle(file)
    images: _Images = {}
    pictures: dict[str, bytes] = {}
    by_id: dict[Any, dict[str, Any]] = {}
    listed = 0
    for key, record in member(document, "images", dict, str(file)).items():
        where = f"image {key!r} of {file}"
        name = _plain(member(record, "filename", str, where), where)
        if name in images:
            raise InputError(f"'filename' of {where} must be its own; got {name!r} a second time")
        listed += len(member(record, "caption_ids", list, where))
        pictures[name] = member(record, "image", bytes, where)
        by_id[key] = images[name] = {"split": split, "filename": name, "imgid": key, "sentids": [], "sentences": []}
    for key, record in member(document, "captions", dict, str(file)).items():
        where = f"caption {key!r} of {file}"
        owner = member(record, "imgid", object, where)
        if isinstance(owner, list | dict | set) or owner not in by_id:
            raise InputError(f"'imgid' of {where} must be that of one of its images; got {owner!r}")
        by_id[owner]["sentids"].append(key)
        by_id[owner]["sentences"].append(_sentence(key, record, where))
    return images, listed, pictures


def _sentence(key: object, record: Mapping[str, Any], where: str) -> dict[str, Any]:
    if isinstance(key, bool) or not isinstance(key, int | str):
        raise InputError(f"id of {where} must be a whole number or text; got {key!r}")
    raw = member(record, "caption", str, where)
    tokens = [expect(word, str, f"a token of {where}") for word in record.get("tokens") or raw.lower().split()]
    return {"raw": raw, "tokens": tokens, "sentid": key}


def _plain(name: str, where: str) -> str:
    if not name or name in (".", "..") or any(mark in name for mark in "/\\\0"):
        raise InputError(f"'filename' of {where} must be a file's name without folders; got {name!r}")
    return name


def _write(path: Path, content: bytes) -> None:
    """Write once: what is there with the same bytes stays."""
    if path.is_file() and path.read_bytes() == content:
        return
    with replacing(path) as part:
        part.write_bytes(content)
