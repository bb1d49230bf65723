"""A folder of .npy shards, local or behind a URL, whose embeddings are read when needed and never as a whole."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.row_numbers import RowNumbers
from lossscope.core.sides import Sides
from lossscope.core.vector_shards import VectorShards
from lossscope.errors import InputError
from lossscope.io.file_states import unchanged
from lossscope.io.files import fingerprint, fingerprint_of
from lossscope.io.locations import is_url, open_location, path_of
from lossscope.io.parquet_tables import read_parquet
from lossscope.io.reading import show_path
from lossscope.io.row_shards import RowShards
from lossscope.io.url_files import list_url

from ._arrays import read_rows
from ._dump_arrays import caption_image_of

_SIDES = ("images", "captions")
_TABLE = "metadata.parquet"


def is_sharded(path: Path) -> bool:
    """Whether a folder has .npy files of both sides."""
    return path.is_dir() and all(any(path.glob(f"{name}*.npy")) for name in _SIDES)


def read_shards(location: str, caption_image: Path | None = None, sides: str | None = None) -> SplitEmbeddings:
    """Return the split of a folder of shards; headers are read, and which caption belongs to which image.

    Args:
        location: path or URL of the folder.
        caption_image: file of the image row of each caption; None: metadata.parquet, or k captions an image.
        sides: names of the sides that were typed; shards have no others than image and caption.

    Raises:
        InputError: files are missing or damaged, do not fit each other, or are of other sides.
    """
    files, name = _files_of(location), show_path(location)
    if sides and not Sides.parse(sides).is_image_text:
        raise InputError(
            f"--sides must be image/caption of a folder of shards; got {sides}. Leave out --queries and "
            f"--precision-of: lossscope then reads {name} whole"
        )
    rows_of = [RowShards.open(_of_side(files, side, name)) for side in _SIDES]
    if rows_of[0].width != rows_of[1].width:
        raise InputError(
            f"images and captions of {name} must have one width; got {rows_of[0].width} and {rows_of[1].width}"
        )
    notices, warnings = [_NOTICE.format(name=name)], list[str]()
    arrays, parts = _caption_image(files, caption_image, name, notices)
    n, m = (len(rows) for rows in rows_of)
    wide = any(shard.header.dtype.itemsize > 4 for rows in rows_of for shard in rows.shards)
    dtype = torch.float64 if wide else torch.float32
    vectors = [VectorShards(rows, f"{side} of {name}", dtype) for rows, side in zip(rows_of, _SIDES, strict=True)]
    return SplitEmbeddings(
        name=name,
        images=None,
        captions=None,
        similarity=None,
        caption_image=caption_image_of(arrays, n, m, name, notices, warnings),
        image_ids=cast("list[str]", RowNumbers(n)),
        caption_ids=cast("list[str]", RowNumbers(m)),
        fingerprint=fingerprint_of(*(rows.fingerprint for rows in rows_of), *parts),
        notices=tuple(notices),
        warnings=tuple(warnings),
        shards=Pair(*vectors),
    )


_NOTICE = (
    "{name} is read shard by shard: its fingerprint is of sizes and times, and rows that are not of unit length are "
    "normalised as they are read"
)


def _files_of(location: str) -> list[str]:
    if not is_url(location):
        return sorted(str(file) for file in Path(location).iterdir() if file.is_file())
    files, what = list_url(location)
    if what != "folder":
        raise InputError(
            f"{show_path(location)} must be a folder of .npy shards, images*.npy and captions*.npy; it is none"
        )
    return sorted(files)


def _of_side(files: Sequence[str], side: str, name: str) -> list[str]:
    """Return the shards of a side, in the order of their names."""
    shards = [file for file in files if _name(file).startswith(side) and file.endswith(".npy")]
    if not shards:
        raise InputError(f"{name} must hold images*.npy and captions*.npy; there is no {side}*.npy")
    return shards


def _caption_image(
    files: Sequence[str], stated: Path | None, name: str, notices: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the image row of each caption, where it is stated, and a fingerprint of where.

    Args:
        files: of the folder.
        stated: file of the rows that was typed.
        name: of the folder, in messages.
        notices: gets one of columns that are not read.
    """
    if stated is not None:
        with unchanged(stated):
            return {"caption_image": read_rows(stated)}, [fingerprint(stated)]
    table = next((file for file in files if _name(file) == _TABLE), None)
    if table is None:
        return {}, []
    with tempfile.TemporaryDirectory(prefix="lossscope-") as folder:
        copy = path_of(table) if not is_url(table) else Path(folder) / _TABLE
        if is_url(table):
            with open_location(table) as source, open(copy, "wb") as target:
                shutil.copyfileobj(source, target)
        rows = read_parquet(copy, {"caption_image": "number"}, complete=("caption_image",), advice="Write it again")
        unread = [str(column) for column in rows if column != "caption_image"]
        if unread:
            notices.append(f"{_TABLE} of {name} is read for caption_image alone; not for {', '.join(unread)}")
        if "caption_image" not in rows:
            return {}, []
        return {"caption_image": rows["caption_image"].to_numpy()}, [fingerprint(copy)]


def _name(file: str) -> str:
    return file.rpartition("/")[2]
