"""Arrays by name from what others write: .npz, .safetensors, or a folder of .npy shards or FAISS flat indices."""

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
_JOINED = 1 << 30  # bytes from which shards are not joined in memory


def read_rows(path: Path) -> Any:
    """Whole numbers of a .npy file, or of a text with one a line. Raises InputError for anything else."""
    try:
        if require_file(path).suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, dtype=np.int64, ndmin=1)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path} must be a .npy file or a text with one whole number per caption; {error}") from error


def read_arrays(path: Path, cache: Path | None = None) -> tuple[dict[str, Any], str]:
    """Arrays by name and a fingerprint of their files. cache: folder where large shards are joined; None: in memory."""
    if path.is_dir():
        return _folder(path, cache)
    require_file(path)
    if path.suffix == ".safetensors":
        return dict(read_safetensors(path)), fingerprint(path)
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} must be a whole .npz file; it is no zip archive, or cut off. Write it again")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}, fingerprint(path)
    except ValueError as error:
        raise InputError(f"arrays of {path} must be plain numbers or texts, not pickled objects; {error}") from error
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        raise InputError(f"{path} must be a whole .npz file; {error}. Write it again") from error


def _folder(path: Path, cache: Path | None) -> tuple[dict[str, Any], str]:
    arrays: dict[str, Any] = {}
    used = []
    for name in NAMES:
        files = sorted(path.glob(f"{name}*.npy"))
        indices = [file for file in (path / f"{name}{suffix}" for suffix in _INDICES) if file.is_file()]
        if indices and name != "similarity":
            arrays[name] = _flat(indices[0])
            used.append(indices[0])
        elif files:
            try:
                arrays[name] = _joined(files, cache)
            except (ValueError, OSError, EOFError) as error:
                raise InputError(
                    f"shards {files[0].name}.. of {path} must be .npy arrays of one width; {error}"
                ) from error
            used += files
    table = path / "metadata.parquet"
    if table.is_file():
        try:
            columns = pd.read_parquet(table)
        except (ValueError, OSError) as error:
            raise InputError(f"{table} must be a whole parquet file; {error}") from error
        wanted = [name for name in ("caption_image", "image_id", "caption_id", "caption") if name in columns]
        arrays.update({name: columns[name].to_numpy() for name in wanted})
        used.append(table)
    return arrays, fingerprint_of(*(fingerprint(file) for file in used))


def _joined(files: list[Path], cache: Path | None) -> Any:
    """Rows of all shards, read where they are looked at: of several large ones a joined file is kept in the cache."""
    parts = [np.load(file, mmap_mode="c", allow_pickle=False) for file in files]
    if len(parts) == 1:
        return parts[0]
    shape, kind = (sum(len(part) for part in parts), *parts[0].shape[1:]), np.result_type(*parts)
    if cache is None or np.prod(shape) * kind.itemsize < _JOINED:
        return np.concatenate(parts)
    kept = cache / f"{fingerprint_of('joined', *(fingerprint(file) for file in files))}.npy"
    if not kept.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with write_atomically(kept) as room:
            whole = np.lib.format.open_memmap(room, mode="w+", dtype=kind, shape=shape)
            start = 0
            for part in parts:
                whole[start : start + len(part)] = part
                start += len(part)
            whole.flush()
    return np.load(kept, mmap_mode="c", allow_pickle=False)


def is_folder_of_arrays(path: Path) -> bool:
    """Whether a folder has shards or indices of the images, or of similarities."""
    patterns = ("images*.npy", "similarity*.npy", *(f"images{suffix}" for suffix in _INDICES))
    return any(any(path.glob(pattern)) for pattern in patterns)


def _flat(path: Path) -> npt.NDArray[np.float32]:
    """The vectors of a FAISS flat index, in the order they were added. Raises InputError for another kind."""
    try:
        import faiss
    except ImportError as error:
        raise InputError(f"{path} needs faiss to be read; install lossscope[faiss]") from error
    try:
        index = faiss.read_index(str(path))
    except RuntimeError as error:
        raise InputError(f"{path} must be a whole FAISS index; faiss can not read it. Write it again") from error
    if not isinstance(index, faiss.IndexFlat):
        raise InputError(
            f"{path} must be a flat FAISS index, which keeps its vectors as they are; got {type(index).__name__}"
        )
    vectors: npt.NDArray[np.float32] = index.reconstruct_n(0, index.ntotal)
    return vectors
