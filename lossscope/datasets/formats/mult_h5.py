"""Features of videos in the files of MMT: one HDF5 file for each video."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError, needing
from lossscope.io.files import fingerprint_of, require_file
from lossscope.io.reading import explain_failure, lacks_memory

from .ragged import Floats

T = TypeVar("T")
_STEPS = {"rgb": 0.2, "scene": 1.0, "s3d": 1.0, "vggish": 1.0}  # seconds per feature, where no times are stored
_UNTIMED = frozenset({"rgb", "scene", "face", "ocr", "speech"})  # whose stored times the original does not read
_MAX_RATIO = 1032  # of the bytes before deflate to those after it
_FREE_BYTES = 1 << 16  # of a small data set, which may hold one number at every place
_FEATURES, _TIMES, _CAPTION = "features.", "features_t.", "raw_captions."


@dataclass(frozen=True)
class MultH5:
    """The files `{root}/{v[0]}/{v[1]}/{v[2]}/{v}.h5`; v is the video's id.

    Each file may have `features.{expert}` (T, d), `features_t.{expert}` (T, 2) from and to in seconds, and
    `raw_captions.{i}`, words as bytes. An expert is missing when it is absent, empty, or its first number is NaN.
    As in the original, stored times count for s3d and vggish (and experts it does not have); rgb has five features a
    second, scene one, and face, ocr and speech have no times.
    Raises InputError without h5py.
    Source: Gabeur et al. 2020 (MMT).
    """

    root: Path
    names: tuple[str, ...] = ()  # experts to read; empty: all that any file has

    @functools.cached_property
    def widths(self) -> Mapping[str, int]:
        """Expert -> d, sorted by name, read from files until each expert has been seen."""
        widths: dict[str, int] = {}
        for path in sorted(self.root.glob("?/?/?/*.h5")):
            widths |= _read_file(path, _read_widths)
            if self.names and all(name in widths for name in self.names):
                break
        missing = [name for name in self.names if name not in widths]
        if missing or not widths:
            what = f"no {', '.join(missing)}" if missing else "none"
            raise InputError(f"experts must be in files like {self.root}/v/i/d/video0.h5; got {what}")
        return {name: widths[name] for name in sorted(self.names or widths)}

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(*(f"{name} {width}" for name, width in self.widths.items()))

    def file(self, video: str) -> Path:
        """Return the file of a video."""
        return self.root / "/".join(video[:3]) / f"{video}.h5"

    def has(self, video: str) -> bool:
        """Whether the video has a file."""
        return self.file(video).is_file()

    def take_all(self, video: str) -> Mapping[str, tuple[Floats, Floats]]:
        """Return expert -> (T, d) features and (T,) seconds at their middles; the file is opened once.

        Raises InputError when shapes do not fit or features are not finite.
        """
        path, widths = self.file(video), self.widths
        arrays = _read_file(
            path, lambda file: {e: (_read_array(file, _FEATURES + e), _read_spans(file, e)) for e in widths}
        )
        return {e: self._check(path, e, values, spans) for e, (values, spans) in arrays.items()}

    def _check(self, path: Path, expert: str, values: Floats | None, spans: Floats | None) -> tuple[Floats, Floats]:
        width = self.widths[expert]
        if values is None or not values.size or np.isnan(values.flat[0]):
            return np.zeros((0, width), np.float32), np.zeros(0, np.float32)
        if values.ndim != 2 or values.shape[1] != width or not np.isfinite(values).all():
            raise InputError(f"{_FEATURES}{expert} of {path} must be (T, {width}) finite numbers; got {values.shape}")
        if spans is not None and spans.shape != (len(values), 2):
            raise InputError(f"{_TIMES}{expert} of {path} must be ({len(values)}, 2); got {spans.shape}")
        return values, _middles(len(values), spans, _STEPS.get(expert))

    def captions(self) -> Mapping[str, list[str]]:
        """Return video -> its captions, for all files."""
        paths = sorted(self.root.glob("?/?/?/*.h5"))
        if not paths:
            raise InputError(f"captions must be in files like {self.root}/v/i/d/video0.h5; got none")
        return {path.stem: _read_file(path, _read_captions) for path in paths}


def _middles(count: int, spans: Floats | None, step: float | None) -> Floats:
    """Return seconds (T,) at the middle of each feature; NaN without times and step."""
    if spans is not None:
        return np.asarray(spans.mean(1), dtype=np.float32)
    if step is not None:
        return ((np.arange(count) + 0.5) * step).astype(np.float32)
    return np.full(count, np.nan, dtype=np.float32)


def _read_file(path: Path, read: Callable[[Any], T]) -> T:
    """Open an HDF5 file and return what `read` reads of it. Raises InputError naming the file."""
    with needing("video", "files of MMT need h5py"):
        import h5py
    require_file(path)
    try:
        with h5py.File(path, "r") as file:
            return read(file)
    except InputError as problem:
        raise InputError(f"{path}: {problem}") from None
    except Exception as problem:  # a damaged file can raise anything
        if lacks_memory(problem):
            raise InputError(explain_failure(path, "a whole HDF5 file", problem, "")) from problem
        raise InputError(f"{path} must be a whole HDF5 file; got {problem}: fetch the file again") from None


def _read_array(file: Any, key: str) -> Floats | None:
    return np.asarray(_read_dataset(file, key), dtype=np.float32) if key in file else None


def _read_dataset(file: Any, key: str) -> Any:
    """Return the content of a data set. Raises InputError when it is elsewhere, or more than is stored."""
    import h5py

    dataset = file[key]
    if isinstance(file.get(key, getlink=True), h5py.ExternalLink) or not isinstance(dataset, h5py.Dataset):
        raise InputError(f"{key} must be a data set of this file; it is not")
    if dataset.external or dataset.is_virtual:
        raise InputError(f"{key} must have its numbers in this file; they are in another")
    if dataset.nbytes > _FREE_BYTES + _MAX_RATIO * dataset.id.get_storage_size():
        raise InputError(f"{key} must hold the numbers that it states, {dataset.shape}; it holds fewer")
    return dataset[()]


def _read_spans(file: Any, expert: str) -> Floats | None:
    """Return the stored times of an expert, (T, 2) seconds; None where there are none, or the original ignores them."""
    return None if expert in _UNTIMED else _read_array(file, _TIMES + expert)


def _read_widths(file: Any) -> dict[str, int]:
    arrays = {key.removeprefix(_FEATURES): file[key] for key in file if key.startswith(_FEATURES)}
    return {name: int(array.shape[1]) for name, array in arrays.items() if array.ndim == 2 and array.size}


def _read_captions(file: Any) -> list[str]:
    numbers = sorted(int(key.removeprefix(_CAPTION)) for key in file if key.startswith(_CAPTION))
    return [_join_words(np.asarray(_read_dataset(file, f"{_CAPTION}{i}")), i) for i in numbers]


def _join_words(words: npt.NDArray[Any], number: int) -> str:
    values: Sequence[Any] = words.reshape(-1).tolist()
    if not all(isinstance(word, bytes | str) for word in values):
        raise InputError(f"{_CAPTION}{number} must hold words; got {words.dtype}")
    return " ".join(word.decode("utf-8", "replace") if isinstance(word, bytes) else word for word in values)
