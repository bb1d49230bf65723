"""Pickles of CE and MMT for MSR-VTT -> the sets of arrays and the lists that the reader of msrvtt takes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.files import write_text
from lossscope.io.json_files import expect
from lossscope.io.pickles.unpickler import read_pickle

from ..formats.ragged import Writing, write_ragged
from .text_checks import shown, sound

Kind = Literal["expert", "words", "captions", "chosen"]
Progress = Callable[[int, int], None]
_Array = npt.NDArray[Any]
_MOST = 1 << 31
_GREATEST = float(np.finfo(np.float32).max)  # as the sets of arrays are written


def convert(kind: Kind, source: Path, out: Path, progress: Progress | None = None) -> int:
    """One pickle of `kind` to `out`, told in the function of that name; how many entries were written."""
    found = expect(read_pickle(source), dict, str(source))
    if not found:
        raise InputError(f"{source} must hold something for each video; got an empty dict")
    if kind == "expert":
        return expert(found, source, out, progress)
    if kind == "words":
        return words(found, source, out, progress)
    return captions(found, source, out) if kind == "captions" else chosen(found, source, out)


def expert(found: Mapping[Any, Any], source: Path, out: Path, progress: Progress | None = None) -> int:
    """Video -> (T, d) or (d,) features, or NaN where missing -> the set of arrays with the stem `out`."""
    arrays = {_name(key, source): _frames(value, f"{key!r} of {source}") for key, value in found.items()}
    return _store(arrays, source, out, progress)


def words(found: Mapping[Any, Any], source: Path, out: Path, progress: Progress | None = None) -> int:
    """Video -> list of (W, d) vectors of words, one a caption -> the set `out` with names `VIDEO#K`."""
    arrays = {}
    for key, rows in found.items():
        where = f"{key!r} of {source}"
        for k, row in enumerate(rows if isinstance(rows, list | tuple) else expect(rows, list, where)):
            arrays[f"{_name(key, source)}#{k}"] = _frames(row, f"caption {k} of {where}")
    return _store(arrays, source, out, progress)


def captions(found: Mapping[Any, Any], source: Path, out: Path) -> int:
    """raw-captions.pkl: video -> captions, texts or lists of words -> a json in the form of videodatainfo."""
    sentences: list[dict[str, Any]] = []
    for key, rows in found.items():
        for k, row in enumerate(expect(rows, list, f"{key!r} of {source}")):
            text = _sentence(row, f"caption {k} of {key!r} in {source}")
            sentences.append({"video_id": _name(key, source), "sen_id": len(sentences), "caption": text})
    write_text(out, json.dumps({"sentences": sentences}) + "\n")
    return len(sentences)


def chosen(found: Mapping[Any, Any], source: Path, out: Path) -> int:
    """jsfusion_val_caption_idx.pkl: video -> number of the one caption it is tested with -> a json of the same."""
    numbers = {}
    for key, value in found.items():
        one = value[0] if isinstance(value, list | tuple) and len(value) == 1 else value
        if isinstance(one, bool) or not isinstance(one, int | np.integer) or not 0 <= one < _MOST:
            raise InputError(f"{key!r} of {source} must be the number of a caption; got {shown(value)}")
        numbers[_name(key, source)] = int(one)
    write_text(out, json.dumps(numbers, indent=0) + "\n")
    return len(numbers)


def _store(arrays: Mapping[str, _Array], source: Path, out: Path, progress: Progress | None) -> int:
    widths = {value.shape[1]: name for name, value in arrays.items() if len(value)}
    if len(widths) != 1:
        got = " and ".join(f"{width} ({name})" for width, name in list(widths.items())[:2]) or "nothing but NaN"
        raise InputError(f"features of {source} must be of one width; got {got}")
    width = next(iter(widths))
    lengths = {name: len(value) for name, value in arrays.items()}
    write_ragged(out, Writing(lengths, width, lambda name: arrays[name].reshape(-1, width)), progress)
    return len(arrays)


def _frames(value: object, where: str) -> _Array:
    """(T, d), with T = 0 for NaN, nothing, and arrays that begin with NaN."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return np.zeros((0, 0), np.float32)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or value.ndim not in (1, 2):
        got = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        raise InputError(f"{where} must be an array (T, d) or (d,), or NaN; got {got}")
    if not value.size or np.isnan(value.flat[0]):
        return np.zeros((0, 0), np.float32)
    rows = value.reshape(-1, value.shape[-1])
    if not np.isfinite(rows).all() or np.abs(rows).max() > _GREATEST:
        wanted = "finite and of 32 bits, or begin with NaN where missing"
        raise InputError(f"{where} must be {wanted}; got NaN, infinity or a greater number")
    return rows


def _name(key: object, source: Path) -> str:
    if not isinstance(key, str) or not key:
        raise InputError(f"videos of {source} must be named by texts; got {shown(key)}")
    return sound(key, f"a video of {source}")


def _sentence(row: object, where: str) -> str:
    pieces = row if isinstance(row, list | tuple) else [row]
    said = [piece.decode("utf-8", "replace") if isinstance(piece, bytes) else piece for piece in pieces]
    return " ".join(sound(piece, where) for piece in said)
