"""Read arrays by name from a .npz or .safetensors file, or a folder of .npy shards or flat FAISS indices."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.errors import InputError
from lossscope.io.files import fingerprint, fingerprint_of, read_safetensors, require_file, write_atomically

NAMES = ("images", "captions", "similarity")
_INDICES = (".faiss", ".index")
_LARGE = 1 << 30  # bytes from which shards are concatenated on disk instead of in memory


def read_rows(path: Path) -> Any:
    """Read whole numbers of a .npy file, or of a text with one a line. Raises InputError for anything else."""
    try:
        if require_file(path).suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, dtype=np.int64, ndmin=1)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path} must be a .npy file or a text with one whole number per caption; {error}") from error


def read_arrays(path: Path, cache: Path | None = None) -> tuple[dict[str, Any], str]:
    """Return arrays by name and a fingerprint of their files.

    Args:
        path: the file or folder.
        cache: folder where large shards are concatenated; None: in memory.

    Raises:
        InputError: a file is missing, damaged, of another format, or holds pickled objects.
    """
    if path.is_dir():
        return _read_folder(path, cache)
    require_file(path)
    if path.suffix == ".safetensors":
        return dict(read_safetensors(path)), fingerprint(path)
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} must be a whole .npz file; it is no zip archive, or cut off. Write it again")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}, fingerprint(path)
    except ValueError as error:
        raise InputError(f"arrays of {path} must be plain numbers or texts, not pickled objects; {error}") from error
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        raise InputError(f"{path} must be a whole .npz file; {error}. Write it again") from error


def _read_folder(path: Path, cache: Path | None) -> tuple[dict[str, Any], str]:
    arrays: dict[str, Any] = {}
    files_read = []
    for name in NAMES:
        files = sorted(path.glob(f"{name}*.npy"))
        indices = [file for file in (path / f"{name}{suffix}" for suffix in _INDICES) if file.is_file()]
        if indices and name != "similarity":
            arrays[name] = _read_flat_index(indices[0])
            files_read.append(indices[0])
        elif files:
            try:
                arrays[name] = _concatenate(files, cache)
            except (ValueError, OSError, EOFError) as error:
                raise InputError(
                    f"shards {files[0].name}.. of {path} must be .npy arrays of one width; {error}"
                ) from error
            files_read += files
    table = path / "metadata.parquet"
    if table.is_file():
        try:
            columns = pd.read_parquet(table)
        except (ValueError, OSError) as error:
            raise InputError(f"{table} must be a whole parquet file; {error}") from error
        names = [name for name in ("caption_image", "image_id", "caption_id", "caption") if name in columns]
        arrays.update({name: columns[name].to_numpy() for name in names})
        files_read.append(table)
    return arrays, fingerprint_of(*(fingerprint(file) for file in files_read))


def _concatenate(files: list[Path], cache: Path | None) -> Any:
    """Return the rows of all shards, memory-mapped; several large shards are concatenated into a file of the cache."""
    parts = [np.load(file, mmap_mode="c", allow_pickle=False) for file in files]
    if len(parts) == 1:
        return parts[0]
    shape, dtype = (sum(len(part) for part in parts), *parts[0].shape[1:]), np.result_type(*parts)
    if cache is None or np.prod(shape) * dtype.itemsize < _LARGE:
        return np.concatenate(parts)
    cached = cache / f"{fingerprint_of('joined', *(fingerprint(file) for file in files))}.npy"
    if not cached.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with write_atomically(cached) as temporary:
            whole = np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape)
            start = 0
            for part in parts:
                whole[start : start + len(part)] = part
                start += len(part)
            whole.flush()
    return np.load(cached, mmap_mode="c", allow_pickle=False)


def is_folder_of_arrays(path: Path) -> bool:
    """Whether a folder has shards or indices of images, or shards of similarities."""
    patterns = ("images*.npy", "similarity*.npy", *(f"images{suffix}" for suffix in _INDICES))
    return any(any(path.glob(pattern)) for pattern in patterns)


def _read_flat_index(path: Path) -> npt.NDArray[np.float32]:
    """Return the vectors of a flat FAISS index, in the order they were added. Raises InputError for another kind."""
    try:
        import faiss
    except ImportError as error:
        raise InputError(f"{path} needs faiss to be read; install lossscope[faiss]") from error
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
