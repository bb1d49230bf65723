"""Vectors of single texts in the cache folder: shards of rows, written while a model encodes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lossscope.core.types import Rows
from lossscope.io.files import fingerprint_of
from lossscope.io.reading import show_path
from lossscope.io.vector_cache import cache_folder, cache_limit, read_entry, remove_entry, write_entry
from lossscope.io.versions import installed_version

_SHARD = 1 << 25  # bytes of vectors after which a shard is written
_PATIENCE = 20.0  # seconds after which one is written, however small: what a killed process loses
_KEY = 32  # bytes of the key of a row

CachedRows = tuple[Rows, Tensor, Tensor]  # (n,) numbers of texts, their vectors (n, d), (n,) whether a text was cut


@dataclass(frozen=True)
class RowCache:
    """The cached vectors of texts by one model."""

    model: str  # digest of all that its numbers depend on
    name: str  # of the model in lists
    kind: str
    folder: Path | None = None  # of its shards; None: nothing is kept

    def key(self, role: str, text: str) -> bytes:
        """Return the key of a text.

        Args:
            role: in which the model reads it, such as a query: its prompt.
            text: without the prompt.
        """
        return bytes.fromhex(fingerprint_of(self.model, role, text))

    def read(self, wanted: Mapping[bytes, int]) -> Iterator[CachedRows]:
        """Yield the rows of each shard that are wanted and were not in an earlier one.

        Args:
            wanted: key -> number of a text.
        """
        left = dict(wanted)
        for path in sorted(self.folder.glob("*.safetensors")) if self.folder is not None else ():
            if not left:
                return
            if not _has_any(path, left):
                continue  # and is not read: a few texts of a large collection
            shard = read_entry(path)
            if shard is None:
                continue
            if not _is_shard(shard):
                remove_entry(path)
                continue
            found = {key: row for row, key in enumerate(_bytes_of(shard["keys"])) if key in left}
            numbers = np.array([left.pop(key) for key in found], dtype=np.int64)
            rows = torch.tensor(list(found.values()), dtype=torch.int64)
            yield numbers, shard["vectors"][rows], shard["cut"][rows].bool()

    @contextlib.contextmanager
    def writer(self) -> Iterator[RowWriter]:
        """Yield what keeps rows; at the end, and where an error or Ctrl-C ends the work, all of them are written."""
        writer = RowWriter(self)
        try:
            yield writer
        finally:
            writer.flush()


def open_row_cache(
    path: Path, kind: str, files: Mapping[str, str], stated: Sequence[str], packages: Sequence[str], cache: bool
) -> RowCache:
    """Return the rows of a folder's model in the cache.

    Args:
        path: of the folder.
        kind: of the model, for lists.
        files: name -> fingerprint of each file that its numbers depend on.
        stated: options that its numbers depend on.
        packages: that run it, beside torch and transformers.
        cache: whether rows are read and kept.
    """
    if cache:
        cache_limit()  # which may be no size: an error before the work
    numbers_of = ("lossscope", "torch", "transformers", "tokenizers", *packages)
    parts = [f"{package} {installed_version(package)}" for package in numbers_of]
    parts += [text for file in files.items() for text in file]
    model = fingerprint_of("rows of texts", kind, *parts, *stated)
    return RowCache(model, show_path(path), kind, cache_folder() / model if cache else None)


@dataclass
class RowWriter:
    """Rows that wait to be written as a shard."""

    cache: RowCache
    keys: list[bytes] = field(default_factory=list)
    vectors: list[Tensor] = field(default_factory=list)
    cut: list[Tensor] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    def add(self, keys: Sequence[bytes], vectors: Tensor, cut: Tensor) -> None:
        """Keep rows; those that are not finite are left out.

        Args:
            keys: n.
            vectors: (n, d), float32.
            cut: (n,) whether a text was cut.
        """
        if self.cache.folder is None:
            return
        good = vectors.isfinite().all(1)
        self.keys += [key for key, keeps in zip(keys, good.tolist(), strict=True) if keeps]
        self.vectors.append(vectors[good])
        self.cut.append(cut[good])
        size = len(self.keys) * vectors.shape[1] * vectors.element_size()
        if size >= _SHARD or time.monotonic() - self.begun >= _PATIENCE:
            self.flush()

    def flush(self) -> None:
        """Write what waits as a shard."""
        keys, vectors, cut = self.keys, self.vectors, self.cut
        self.keys, self.vectors, self.cut, self.begun = [], [], [], time.monotonic()
        if not keys or self.cache.folder is None:
            return
        rows = torch.frombuffer(bytearray(b"".join(keys)), dtype=torch.uint8).reshape(len(keys), _KEY)
        tensors = {"keys": rows, "vectors": torch.cat(vectors), "cut": torch.cat(cut).to(torch.uint8)}
        path = self.cache.folder / f"{fingerprint_of(*keys)}.safetensors"
        write_entry(path, tensors, self.cache.name, self.cache.kind)


def _has_any(path: Path, wanted: Mapping[bytes, int]) -> bool:
    """Whether a shard seems to have a wanted row; of a damaged one True, so that it is read and removed."""
    import safetensors

    try:
        with safetensors.safe_open(path, "pt") as file:
            return any(key in wanted for key in _bytes_of(file.get_tensor("keys")))
    except Exception:  # damaged, removed meanwhile, of another program
        return True


def _bytes_of(keys: Tensor) -> list[bytes]:
    content = keys.numpy().tobytes()
    return [content[start : start + _KEY] for start in range(0, len(content), _KEY)]


def _is_shard(tensors: Mapping[str, Tensor]) -> bool:
    """Whether tensors are the keys of rows, vectors and cuts, as many of each."""
    if set(tensors) != {"keys", "vectors", "cut"}:
        return False
    keys, vectors, cut = tensors["keys"], tensors["vectors"], tensors["cut"]
    if (keys.dtype, vectors.dtype, cut.dtype) != (torch.uint8, torch.float32, torch.uint8):
        return False
    return vectors.dim() == 2 and keys.shape == (len(vectors), _KEY) and cut.shape == (len(vectors),)
