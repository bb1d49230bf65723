"""Data sets as Hugging Face's `save_to_disk` writes them: a folder a split, rows in files of Arrow's stream format.

The package `datasets` is not needed. What it stores beside the rows, such as formats for display, is not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from lossscope.errors import InputError

from .arrow_rows import bound_batches, iter_arrow_rows
from .column_blocks import ColumnBlock, Keep, Only
from .json_files import expect, member, parse_json
from .limits import MAX_TEXT_BYTES
from .locations import join_location, location_exists, open_location, suffix_of
from .reading import reading, show_path
from .text_files import decode_utf8

_END = b"\xff\xff\xff\xff\0\0\0\0"  # of a stream that was closed


def saved_splits(root: str) -> dict[str, str]:
    """Return the folder of each split, by its name; a data set that was saved without splits is `train`.

    Raises InputError for a folder that `save_to_disk` did not write.
    """
    index = join_location(root, "dataset_dict.json")
    if location_exists(index):
        names = member(_read_json(index), "splits", list, show_path(index))
        return {name: join_location(root, name) for name in (_plain_name(split, index) for split in names)}
    if location_exists(join_location(root, "state.json")):
        return {"train": root}
    raise InputError(
        f"{show_path(root)} must be a folder that save_to_disk wrote; it has no dataset_dict.json and no state.json"
    )


def saved_files(folder: str) -> list[str]:
    """Return the files of a split, in their order.

    Raises InputError when what says so is missing, or the rows are chosen by indices that were saved apart.
    """
    state_file = join_location(folder, "state.json")
    state, name = _read_json(state_file), show_path(state_file)
    if state.get("_indices_data_files"):
        raise InputError(f"rows of {name} must be whole; an old release chose them by indices: save them again")
    entries = member(state, "_data_files", list, name)
    files = [member(entry, "filename", str, f"'_data_files' of {name}") for entry in entries]
    for file in files:
        name_of_file = _plain_name(file, state_file)
        if not name_of_file.endswith(".arrow") or suffix_of(name_of_file) != ".arrow":
            raise InputError(f"files of {name} must be .arrow files; got {file!r}")
    return [join_location(folder, file) for file in files]


def iter_saved_rows(location: str, keep: Keep, only: Only = None) -> Iterator[ColumnBlock]:
    """Yield the rows of a file of Arrow's stream format in blocks.

    Args:
        location: path or URL.
        keep: whether a column is read, by its name.
        only: numbers of the blocks that are yielded; None: all.

    Raises:
        InputError: the file is missing, damaged or cut off.
    """
    import pyarrow.ipc

    name = show_path(location)
    with open_location(location) as file, reading(location, "a whole file of Arrow's stream format"):
        size = _require_closed(file, name)
        batches = pyarrow.ipc.open_stream(file)
        kept = list(filter(keep, batches.schema.names))
        bounded = bound_batches(batches, size, name)
        yield from iter_arrow_rows(bounded, name, kept, only, lambda _: file.tell())


def _require_closed(file: IO[bytes], name: str) -> int:
    """Return the bytes of a stream. Raises InputError where its end is missing: a reader takes it for fewer rows."""
    size = file.seek(0, 2)
    if size >= len(_END):
        file.seek(-len(_END), 2)
    if file.read() != _END:
        raise InputError(f"{name} must be a whole file of Arrow's stream format; its end is missing. Copy it again")
    file.seek(0)
    return size


def _read_json(location: str) -> dict[str, Any]:
    name = show_path(location)
    with open_location(location) as file, reading(location, "a readable file"):
        content = file.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise InputError(f"{name} must be of at most {MAX_TEXT_BYTES} bytes; it is larger")
    return expect(parse_json(decode_utf8(content, name), name), dict, name)


def _plain_name(value: object, location: str) -> str:
    """Return the name of an entry of the folder. Raises InputError for a path that leads elsewhere."""
    where = show_path(location)
    name = expect(value, str, f"names in {where}")
    if not name or "/" in name or "\\" in name or name in (".", ".."):
        raise InputError(f"names in {where} must be of files beside it; got {name!r}")
    return name
