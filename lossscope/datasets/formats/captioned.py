"""Picture files with captions -> a split, whatever format they were listed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from ..base import Split
from .pictures import PictureFiles, Resample
from .tar_index import TarMember

OnError = Literal["raise", "skip"]
__all__ = ["Captioned", "OnError", "PictureSplit", "Resample", "check_options", "picture_split"]


@dataclass(frozen=True)
class Captioned:
    """One picture as a list names it, a file or one inside a tar. captions: (id, text) pairs, in the list's order."""

    id: str
    path: Path | TarMember
    captions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PictureSplit(Split):
    """A split of picture files. skipped: paths left out, with their captions, as they could not be read."""

    skipped: tuple[str, ...] = ()


def picture_split(
    name: str,
    items: Sequence[Captioned],
    size: int,
    captions: int,
    crop: bool,
    on_error: OnError,
    resample: Resample = "bilinear",
) -> PictureSplit:
    """The split of `items`, with the first `captions` of each picture (0: all).

    on_error: `raise` stops at the first file that is missing, and when one is taken that can not be decoded;
    `skip` decodes all files now and leaves out those that fail.
    The fingerprint covers names, ids, captions, options and the files' sizes in bytes, not their content.
    Raises InputError when a picture has no caption, an id repeats, or nothing is left.
    """
    for item in items:
        if not item.captions:
            raise InputError(f"{item.path} must have at least one caption; got none: remove it from the list")
    kept, images = _readable(items, size, crop, on_error, resample)
    if not kept:
        raise InputError(f"split {name!r} must hold at least one image; got none of {len(items)} that can be read")
    told = [item.captions[: captions or None] for item in kept]
    ids = [caption for pairs in told for caption, _ in pairs]
    texts = [text for pairs in told for _, text in pairs]
    _unique("image ids", name, [item.id for item in kept])
    _unique("caption ids", name, ids)
    return PictureSplit(
        name=name,
        images=images,
        captions=texts,
        caption_image=np.repeat(np.arange(len(kept), dtype=np.int64), [len(pairs) for pairs in told]),
        image_ids=[item.id for item in kept],
        caption_ids=ids,
        fingerprint=fingerprint_of(name, f"{size} {crop}{_told(resample)}", *_files(kept), *ids, *texts),
        skipped=tuple(sorted({str(item.path) for item in items} - {str(item.path) for item in kept})),
    )


def _told(resample: Resample) -> str:
    """Nothing for bilinear, so that fingerprints of before there was a choice still hold."""
    return "" if resample == "bilinear" else f" {resample}"


def check_options(who: str, size: int, captions: int) -> None:
    """Raises InputError when size < 1 or captions < 0."""
    if size < 1:
        raise InputError(f"{who}:size must be at least 1 pixel; got {size}")
    if captions < 0:
        raise InputError(f"{who}:captions must be at least 1, or 0 for all; got {captions}")


def _readable(
    items: Sequence[Captioned], size: int, crop: bool, on_error: OnError, resample: Resample
) -> tuple[Sequence[Captioned], PictureFiles]:
    images = PictureFiles([item.path for item in items], size, crop, resample=resample)
    if on_error == "raise":
        return items, images
    rows = images.readable()
    if len(rows) == len(items):
        return items, images
    return [items[row] for row in rows], images.only(rows)


def _files(items: Iterable[Captioned]) -> list[str]:
    try:
        return [f"{item.id} {item.path.name} {item.path.stat().st_size} {len(item.captions)}" for item in items]
    except OSError as problem:
        advice = "fetch it, or leave such files out with on_error=skip"
        raise InputError(f"{problem.filename} must be a picture file; got {problem.strerror}: {advice}") from None


def _unique(what: str, split: str, ids: Sequence[str]) -> None:
    for value, count in Counter(ids).most_common(1):
        if count > 1:
            raise InputError(f"{what} of {split!r} must be unique; got {value!r} {count} times")
