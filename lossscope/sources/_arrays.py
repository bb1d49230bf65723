"""Read arrays by name from a .npz or .safetensors file, or a folder of .npy shards or flat FAISS indices."""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError, needing
from lossscope.io.arrays import LARGE, in_memory_if_small, open_npy, read_npy, read_npz
from lossscope.io.column_types import ColumnType
from lossscope.io.file_states import unchanged
from lossscope.io.files import fingerprint, fingerprint_of, read_safetensors, require_file, write_atomically
from lossscope.io.manifests import read_manifest, write_manifest
from lossscope.io.parquet_tables import read_parquet
from lossscope.io.reading import naming, reading
from lossscope.io.temporary_files import reserve
from lossscope.io.text_files import read_utf8
from lossscope.io.vector_cache import mark_used

NAMES = ("images", "captions", "similarity")
_TABLE_FILE = "metadata.parquet"
_TABLE = ("caption_image", "image_id", "caption_id", "caption")  # columns of metadata.parquet that are read
_TABLE_TYPES: Mapping[str, ColumnType] = {"caption_image": "number", "caption": "text"}
_INDICES = (".faiss", ".index")
_INDEX_HEADER = 256  # bytes that a flat index has beside its vectors, at most
_FLAT = (b"IxFI", b"IxF2", b"IxFl")  # first bytes of flat indices, then d and the number of vectors
_SHA = "rows"  # entry of the manifest of concatenated shards: SHA-256 of their file


def read_rows(path: Path) -> Any:
    """Read whole numbers of a .npy file, or of a text with one a line. Raises InputError for anything else."""
    what = "a .npy file or a text with one whole number per caption"
    if require_file(path).suffix == ".npy":
        with naming(path, what):
            return read_npy(path)
    with reading(path, what, "Write it again"):
        text = read_utf8(path)
        return np.loadtxt(io.StringIO(text), dtype=np.int64, ndmin=1) if text.strip() else np.zeros(0, np.int64)


def read_arrays(path: Path, cache: Path | None = None) -> tuple[dict[str, Any], str]:
    """Return arrays by name and a fingerprint of their files.

    Args:
        path: the file or folder.
        cache: folder where large shards are concatenated; None: in memory.

    Raises:
        InputError: a file is missing, damaged, of another format, changes meanwhile, or holds pickled objects.
    """
    if path.is_dir():
        return _read_folder(path, cache)
    with unchanged(path):
        if path.suffix == ".safetensors":  # whose tensors are mapped into memory
            return {name: tensor.clone() for name, tensor in read_safetensors(path).items()}, fingerprint(path)
        return dict(read_npz(path)), fingerprint(path)


def _read_folder(path: Path, cache: Path | None) -> tuple[dict[str, Any], str]:
    with unchanged(*(file for file in path.iterdir() if _is_read(file))):
        return _read_files(path, cache)


def _is_read(file: Path) -> bool:
    """Return whether a file of a folder may be one of its sides, or its table."""
    is_side = file.name.startswith(NAMES) and file.suffix in (".npy", *_INDICES)
    return (is_side or file.name == _TABLE_FILE) and file.is_file()


def _read_files(path: Path, cache: Path | None) -> tuple[dict[str, Any], str]:
    arrays: dict[str, Any] = {}
    files_read = []
    for name in NAMES:
        files = sorted(path.glob(f"{name}*.npy"))
        indices = [file for file in (path / f"{name}{suffix}" for suffix in _INDICES) if file.is_file()]
        if indices and name != "similarity":
            arrays[name] = _read_flat_index(indices[0])
            files_read.append(indices[0])
        elif files:
            arrays[name] = _concatenate(files, cache)
            files_read += files
    table = path / _TABLE_FILE
    if table.exists():
        columns = read_parquet(table, _TABLE_TYPES, complete=_TABLE, advice="Write it again")
        arrays.update({name: columns[name].to_numpy() for name in _TABLE if name in columns})
        files_read.append(table)
    return arrays, fingerprint_of(*(fingerprint(file) for file in files_read))


def _concatenate(files: list[Path], cache: Path | None) -> Any:
    """Return the rows of all shards, memory-mapped if large; several are concatenated into a file of the cache."""
    parts = [open_npy(file, "c") for file in files]
    _require_one_width(files, parts)
    if len(parts) == 1:
        return in_memory_if_small(parts[0])
    shape, dtype = (sum(len(part) for part in parts), *parts[0].shape[1:]), np.result_type(*parts)
    if cache is not None and np.prod(shape) * dtype.itemsize >= LARGE:
        cached = cache / f"{fingerprint_of('joined', *(fingerprint(file) for file in files))}.npy"
        with contextlib.suppress(OSError):  # a full or read-only disk: in memory
            if not _is_whole(cached):
                _concatenate_into(cached, parts, shape, dtype)
            mark_used(cached)
            return open_npy(cached, "c")
    with reading(files[0].parent, "a folder of shards that fit together"):
        return np.concatenate(parts)


def _is_whole(cached: Path) -> bool:
    """Whether concatenated shards are those of their SHA-256."""
    try:
        return read_manifest(cached.with_suffix(".json")).get(_SHA) == fingerprint(cached)
    except (InputError, OSError):
        return False


def _concatenate_into(
    cached: Path, parts: Sequence[npt.NDArray[Any]], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    with write_atomically(cached) as temporary:
        whole = np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape)
        reserve(temporary)
        start = 0
        for part in parts:
            whole[start : start + len(part)] = part
            start += len(part)
        whole.flush()
    write_manifest(cached.with_suffix(".json"), {_SHA: fingerprint(cached)})


def _require_one_width(files: list[Path], parts: list[npt.NDArray[Any]]) -> None:
    """Raise InputError, naming the first that differs, unless shards are rows of numbers of one width."""
    for file, part in zip(files, parts, strict=True):
        if part.ndim < 1 or part.dtype.kind not in "fiu" or part.shape[1:] != parts[0].shape[1:]:
            raise InputError(
                f"shards {files[0].name}.. of {file.parent} must be .npy arrays of one width; {file.name} holds "
                f"{part.dtype} {part.shape}, and {files[0].name} {parts[0].dtype} {parts[0].shape}"
            )


def _read_flat_index(path: Path) -> npt.NDArray[np.float32]:
    """Return the vectors of a flat FAISS index, in the order they were added. Raises InputError for another kind."""
    with needing("faiss", f"{path} needs faiss"):
        import faiss
    _require_flat_size(path)
    try:
        index = faiss.read_index(str(path))
    except RuntimeError as error:
        raise InputError(f"{path} must be a whole FAISS index; faiss cannot read it. Write it again") from error
    if not isinstance(index, faiss.IndexFlat):
        raise InputError(
            f"{path} must be a flat FAISS index, which keeps its vectors as they are; got {type(index).__name__}"
        )
    vectors: npt.NDArray[np.float32] = index.reconstruct_n(0, index.ntotal)
    return vectors


def _require_flat_size(path: Path) -> None:
    """Raise InputError when a flat index states more vectors, or fewer, than its file holds."""
    with open(require_file(path), "rb") as file:
        head = file.read(16)
    if head[:4] not in _FLAT:
        return
    width, vectors = struct.unpack("<iq", head[4:].ljust(12, b"\0"))
    more = path.stat().st_size - 4 * width * vectors
    if width < 1 or vectors < 0 or not 0 <= more <= _INDEX_HEADER:
        stated = f"{vectors} vectors of {width} numbers"
        raise InputError(f"{path} must be a whole FAISS index; it states {stated}, and holds others")
