"""Convert the similarity matrices that VSE-infinity's evaluation saves to the .npz of a similarity dump."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lossscope.errors import InputError
from lossscope.io.files import require_file, write_atomically
from lossscope.io.json_files import expect, member, shorten
from lossscope.io.pickles.unpickler import read_stream

_PER_IMAGE = 5


def convert(source: Path, out: Path) -> tuple[int, int]:
    """Convert `np.save` of {npts, sims} to `similarity` (N, 5N) float32 and `caption_image` (5N,); return (N, 5N).

    Raises InputError when the file is no .npy of one pickled dict, or the matrix is not (npts, 5 npts) and finite.
    Source: Chen et al. 2021.
    """
    content = expect(_read_object(require_file(source)), dict, f"content of {source}")
    sims = member(content, "sims", np.ndarray, str(source))
    npts = member(content, "npts", object, str(source))
    whole = isinstance(npts, int | np.integer) and 0 < npts < 1 << 31
    if not whole or sims.dtype.kind != "f" or sims.shape != (npts, _PER_IMAGE * npts):  # type: ignore[operator]
        form = f"floats, (npts, {_PER_IMAGE} npts)"
        raise InputError(f"sims of {source} must be {form}; got {sims.dtype} {sims.shape} for npts {shorten(npts)}")
    if not np.isfinite(sims).all() or np.abs(sims).max() > np.finfo(np.float32).max:
        raise InputError(f"sims of {source} must be finite in float32; got NaN, infinity or greater numbers")
    owners = np.arange(sims.shape[1], dtype=np.int64) // _PER_IMAGE
    with write_atomically(out) as part, open(part, "wb") as stream:
        np.savez_compressed(stream, similarity=sims.astype(np.float32), caption_image=owners)
    return sims.shape[0], sims.shape[1]


def _read_object(path: Path) -> object:
    """Read the one object of a .npy file of objects, by the restricted unpickler."""
    with open(path, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read_header = (
                np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read_header(file)
        except Exception as problem:  # a damaged header can raise anything
            raise InputError(f"{path} must be a .npy file; got {problem}") from None
        if shape != () or not dtype.hasobject:
            raise InputError(f"{path} must hold one pickled dict, {{npts, sims}}; got an array of {dtype} {shape}")
        array = read_stream(file, path)
    return array.item() if isinstance(array, np.ndarray) and array.shape == () else array
