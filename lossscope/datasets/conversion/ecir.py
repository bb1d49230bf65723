"""Convert the pickled data sets of the ECIR 2022 reproduction of VSE++ to Karpathy's format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lossscope.core.types import Progress
from lossscope.errors import InputError
from lossscope.io.files import write_atomically, write_text
from lossscope.io.folder_lock import lock_folder
from lossscope.io.json_files import expect, member, shorten
from lossscope.io.pickles.unpickler import read_pickle

from .text_checks import require_file_name, require_id

SPLITS = ("train", "val", "test")
_Images = dict[str, dict[str, Any]]  # file name -> entry of Karpathy's list


@dataclass(frozen=True)
class ConversionResult:
    """Numbers of what was written and of what was dropped."""

    images: int  # written
    captions: int  # written
    dropped_captions: int  # caption ids of images that have no caption in the file
    dropped_images: int  # images without captions


def convert(source: Path, out: Path, name: str, progress: Progress | None = None) -> ConversionResult:
    """Convert `{source}/{train,val,test}_set.p` to `{out}/images/` (same jpeg bytes) and `{out}/dataset_{name}.json`.

    Captions of an image are in the order of the file's `captions`, which is that of the original evaluation. Ids
    without a caption, and images without captions, are dropped and counted. All is checked before the first picture is
    written, and the json is written last. Raises InputError when there is no set, and naming set and image when one is
    malformed.
    Source: Bleeker and de Rijke 2022.
    """
    images, pictures, dropped_captions, dropped_images = _read_sets(source)
    document = json.dumps({"dataset": name, "images": list(images.values())}) + "\n"
    totals = Counter(image["split"] for image in images.values())
    written: Counter[str] = Counter()
    with lock_folder(out, "images"):
        for picture, image in images.items():
            _write_once(out / "images" / picture, pictures.pop(picture))
            split = image["split"]
            written[split] += 1
            if progress is not None:
                progress(f"pictures of {split}", written[split], totals[split])
        write_text(out / f"dataset_{name}.json", document)
    captions = sum(len(image["sentences"]) for image in images.values())
    return ConversionResult(len(images), captions, dropped_captions, dropped_images)


def _read_sets(source: Path) -> tuple[_Images, dict[str, bytes], int, int]:
    """Return images with captions of all sets, their bytes, and the numbers of dropped captions and images."""
    files = {split: source / f"{split}_set.p" for split in SPLITS if (source / f"{split}_set.p").is_file()}
    if not files:
        raise InputError(f"{source} must hold train_set.p, val_set.p or test_set.p; got none of them")
    images: _Images = {}
    pictures: dict[str, bytes] = {}
    dropped_captions = dropped_images = 0
    for split, file in files.items():
        of_set, listed, content = _read_set(file, split)
        kept = {picture: image for picture, image in of_set.items() if image["sentences"]}
        twice = sorted(kept.keys() & images.keys())
        if twice:
            raise InputError(f"file names must be unique over all sets; got {twice[0]!r} in {file} again")
        images |= kept
        pictures |= {picture: content[picture] for picture in kept}
        dropped_captions += listed - sum(len(image["sentences"]) for image in of_set.values())
        dropped_images += len(of_set) - len(kept)
    return images, pictures, dropped_captions, dropped_images


def _read_set(file: Path, split: str) -> tuple[_Images, int, dict[str, bytes]]:
    """Return the images of a set in Karpathy's form, the number of captions they list, and their bytes."""
    document = read_pickle(file)
    images: _Images = {}
    pictures: dict[str, bytes] = {}
    by_id: dict[object, dict[str, Any]] = {}
    listed = 0
    for key, record in member(document, "images", dict, str(file)).items():
        number = require_id(key, f"an image of {file}")
        where = f"image {key!r} of {file}"
        name = require_file_name(member(record, "filename", object, where), f"'filename' of {where}")
        if name in images:
            raise InputError(f"'filename' of {where} must be unique; got {name!r} a second time")
        listed += len(member(record, "caption_ids", list, where))
        pictures[name] = member(record, "image", bytes, where)
        by_id[number] = images[name] = _image(split, name, number)
    for key, record in member(document, "captions", dict, str(file)).items():
        number = require_id(key, f"a caption of {file}")
        where = f"caption {key!r} of {file}"
        owner = member(record, "imgid", object, where)
        if type(owner) not in (int, str) or owner not in by_id:
            raise InputError(f"'imgid' of {where} must be that of one of its images; got {shorten(owner)}")
        by_id[owner]["sentids"].append(number)
        by_id[owner]["sentences"].append(_sentence(number, record, where))
    return images, listed, pictures


def _image(split: str, name: str, number: int | str) -> dict[str, Any]:
    return {"split": split, "filename": name, "imgid": number, "sentids": [], "sentences": []}


def _sentence(number: int | str, record: Mapping[str, Any], where: str) -> dict[str, Any]:
    raw = expect(member(record, "caption", object, where), str, f"'caption' of {where}")
    listed = record.get("tokens")
    words = raw.lower().split() if listed is None else expect(listed, list, f"'tokens' of {where}")
    tokens = [expect(word, str, f"a token of {where}") for word in words or raw.lower().split()]
    return {"raw": raw, "tokens": tokens, "sentid": number}


def _write_once(path: Path, content: bytes) -> None:
    """Write a file unless it is there with the same bytes."""
    if path.is_file() and path.read_bytes() == content:
        return
    with write_atomically(path) as part:
        part.write_bytes(content)
