"""The pickled data sets of the ECIR 2022 reproduction of VSE++ -> Karpathy's format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossscope.errors import InputError
from lossscope.io.files import write_atomically, write_text
from lossscope.io.json_files import expect, member
from lossscope.io.pickles.unpickler import read_pickle

from .text_checks import file_name, identity, shown, sound

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
    without a caption, and images left without any, are dropped and counted. All is checked before the first picture
    is written, and the json is written last. Raises InputError when there is no set, or naming set and image for what
    is malformed.
    Source: Bleeker and de Rijke 2022.
    """
    told, pictures, lost, without = _all(source)
    document = json.dumps({"dataset": name, "images": list(told.values())}) + "\n"
    totals = Counter(image["split"] for image in told.values())
    written: Counter[str] = Counter()
    for picture, image in told.items():
        _write(out / "images" / picture, pictures.pop(picture))
        split = image["split"]
        written[split] += 1
        if progress is not None:
            progress(f"pictures of {split}", written[split], totals[split])
    write_text(out / f"dataset_{name}.json", document)
    return Converted(len(told), sum(len(image["sentences"]) for image in told.values()), lost, without)


def _all(source: Path) -> tuple[_Images, dict[str, bytes], int, int]:
    """Images with captions of every set there is, their bytes, and how many captions and images are left out."""
    files = {split: source / f"{split}_set.p" for split in SPLITS if (source / f"{split}_set.p").is_file()}
    if not files:
        raise InputError(f"{source} must hold train_set.p, val_set.p or test_set.p; got none of them")
    told: _Images = {}
    pictures: dict[str, bytes] = {}
    lost = without = 0
    for split, file in files.items():
        images, listed, found = _read(file, split)
        kept = {picture: image for picture, image in images.items() if image["sentences"]}
        twice = sorted(kept.keys() & told.keys())
        if twice:
            raise InputError(f"file names must be unique over all sets; got {twice[0]!r} in {file} again")
        told |= kept
        pictures |= {picture: found[picture] for picture in kept}
        lost += listed - sum(len(image["sentences"]) for image in images.values())
        without += len(images) - len(kept)
    return told, pictures, lost, without


def _read(file: Path, split: str) -> tuple[_Images, int, dict[str, bytes]]:
    """Images by file name in Karpathy's form, how many captions they list, and their bytes."""
    document = read_pickle(file)
    images: _Images = {}
    pictures: dict[str, bytes] = {}
    by_id: dict[object, dict[str, Any]] = {}
    listed = 0
    for key, record in member(document, "images", dict, str(file)).items():
        number = identity(key, f"an image of {file}")
        where = f"image {key!r} of {file}"
        name = file_name(member(record, "filename", object, where), f"'filename' of {where}")
        if name in images:
            raise InputError(f"'filename' of {where} must be its own; got {name!r} a second time")
        listed += len(member(record, "caption_ids", list, where))
        pictures[name] = member(record, "image", bytes, where)
        by_id[number] = images[name] = _image(split, name, number)
    for key, record in member(document, "captions", dict, str(file)).items():
        number = identity(key, f"a caption of {file}")
        where = f"caption {key!r} of {file}"
        owner = member(record, "imgid", object, where)
        if type(owner) not in (int, str) or owner not in by_id:
            raise InputError(f"'imgid' of {where} must be that of one of its images; got {shown(owner)}")
        by_id[owner]["sentids"].append(number)
        by_id[owner]["sentences"].append(_sentence(number, record, where))
    return images, listed, pictures


def _image(split: str, name: str, number: int | str) -> dict[str, Any]:
    return {"split": split, "filename": name, "imgid": number, "sentids": [], "sentences": []}


def _sentence(number: int | str, record: Mapping[str, Any], where: str) -> dict[str, Any]:
    raw = sound(member(record, "caption", object, where), f"'caption' of {where}")
    told = record.get("tokens")
    words = raw.lower().split() if told is None else expect(told, list, f"'tokens' of {where}")
    tokens = [sound(word, f"a token of {where}") for word in words or raw.lower().split()]
    return {"raw": raw, "tokens": tokens, "sentid": number}


def _write(path: Path, content: bytes) -> None:
    """Write once: what is there with the same bytes stays."""
    if path.is_file() and path.read_bytes() == content:
        return
    with write_atomically(path) as part:
        part.write_bytes(content)
