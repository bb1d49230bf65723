"""Move captions of photos and videos to a second item: they still match the first, without a label."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lossscope.core.types import ItemShape, Rows
from lossscope.datasets.base import Items, Split

from .base import DataSet

KIND, VIDEO_KIND = "hidden captions of photos", "hidden captions of videos"


class NoPictures:
    """Items of a first side whose pictures nobody reads."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __len__(self) -> int:
        return self.number

    @property
    def shape(self) -> ItemShape:
        """A number per item."""
        return (1,)

    def take(self, rows: Rows) -> Items:
        """Return zeros."""
        return np.zeros((len(rows), 1), np.float32)


def photo_captions(folder: Path, part: str) -> list[list[str]]:
    """Return the five captions of each photo of a part of Flickr30k."""
    files = [folder / "captions" / "flickr30k" / f"{part}.{k}.en.gz" for k in range(1, 6)]
    columns = [gzip.decompress(file.read_bytes()).decode().splitlines() for file in files]
    return [list(captions) for captions in zip(*columns, strict=True)]


def video_captions(folder: Path) -> list[list[str]]:
    """Return the captions of each video of MSR-VTT's test part."""
    with zipfile.ZipFile(folder / "captions" / "msrvtt" / "test_videodatainfo.json.zip") as archive:
        found = json.loads(archive.read(archive.namelist()[0]))
    captions: dict[str, list[str]] = defaultdict(list)
    for row in found["sentences"]:
        captions[row["video_id"]].append(row["caption"])
    return list(captions.values())


def caption_split(captions: Sequence[Sequence[str]]) -> Split:
    """Return items with their captions, and no pictures."""
    owners = np.repeat(np.arange(len(captions)), [len(texts) for texts in captions])
    texts = [text for of_item in captions for text in of_item]
    ids = [f"i{row}" for row in range(len(captions))], [f"c{row}" for row in range(len(texts))]
    return Split("test", NoPictures(len(captions)), texts, owners, *ids, "0")


def hide(
    kind: str, name: str, captions: Sequence[Sequence[str]], kept: int, hidden: int, share: float, seed: int
) -> DataSet:
    """Give some captions of a share of the items to a second item.

    Args:
        kind: of the data set.
        name: of the data set.
        captions: of each item.
        kept: captions that each item keeps.
        hidden: captions of its second item.
        share: of the items with a second item.
        seed: of the draw.
    """
    random = np.random.default_rng(seed)
    groups: list[list[str]] = []
    item: list[int] = []
    for number, texts in enumerate(captions):
        shuffled = [texts[k] for k in random.permutation(len(texts))]
        groups.append(shuffled[:kept])
        item.append(number)
        if random.random() < share:
            groups.append(shuffled[kept : kept + hidden])
            item.append(number)
    split = caption_split(groups)
    of_row = np.array(item)
    owners = of_row[split.caption_image]
    return DataSet(kind, name, split, lambda a, b: of_row[a] == owners[b], seed=seed)


def data_sets(folder: Path) -> Iterator[DataSet]:
    """Yield all data sets.

    Args:
        folder: with `captions/flickr30k` and `captions/msrvtt`.
    """
    test, val = photo_captions(folder, "test_2016"), photo_captions(folder, "val")
    for name, captions, kept, hidden, share in (
        ("all photos, 3 and 2", test[:500], 3, 2, 1.0), ("a tenth of the photos, 3 and 2", test[:700], 3, 2, 0.1),
        ("half of the photos, 2 and 1", val[:500], 2, 1, 0.5), ("all photos, 1 and 1", val[:600], 1, 1, 1.0),
    ):  # fmt: skip
        yield hide(KIND, name, captions, kept, hidden, share, 1)
    videos = video_captions(folder)
    for name, captions, kept, hidden, share in (
        ("all videos, 5 and 5", videos[:300], 5, 5, 1.0), ("a tenth, 5 and 5", videos[300:700], 5, 5, 0.1),
        ("half, 1 and 1", videos[700:1500], 1, 1, 0.5),
    ):  # fmt: skip
        yield hide(VIDEO_KIND, name, captions, kept, hidden, share, 2)
