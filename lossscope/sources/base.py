"""What a source is: a file or folder that yields the embeddings, or the similarities, of images and captions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.foreign_arrays import to_tensor
from lossscope.core.request import Request
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.locations import url_of
from lossscope.io.reading import show_path
from lossscope.io.shipped import require_source
from lossscope.io.trusted_code import trust
from lossscope.registry import load as load_class
from lossscope.registry import names


@runtime_checkable
class StatesObjective(Protocol):
    """A source that says what it was trained with before its model is run."""

    def trained_with(self, request: Request) -> str | None:
        """Return the spec of the objective; None where it is not known."""
        ...


@runtime_checkable
class Source(Protocol):
    """A frozen dataclass with the field `path`."""

    @classmethod
    def accepts(cls, path: Path) -> bool:
        """Whether the file or folder looks like this kind of source; must be quick and never raise."""
        ...

    def read(self, request: Request) -> SplitEmbeddings:
        """Return the embeddings. Raises InputError when the content is not of this kind."""
        ...


def find_source(path: Path | str) -> Any:
    """Return the source at a path. Raises InputError when nothing is there, or no kind of source accepts it."""
    path = require_source(path)
    kinds = []
    for name in names("sources"):  # those behind the one that accepts it are not imported
        kinds.append(load_class("sources", name))
        if kinds[-1].accepts(path):
            return kinds[-1](path)
    from ._how_to_convert import how_to_convert

    if hint := how_to_convert(path, path.is_file() and any(kind.accepts(path.parent) for kind in kinds)):
        raise InputError(f"{path} must be embeddings of two sides (.npz) or a model; {hint}")
    accepted = "; ".join((kind.__doc__ or "").splitlines()[0] for kind in kinds)
    raise InputError(f"{path} must be one of: {accepted}")


def from_arrays(arrays: Mapping[str, Any], sides: str | None = None, raw: bool = False) -> SplitEmbeddings:
    """Return what a dump with these arrays would be: `from_arrays({"queries": Q, "documents": D, "positives": pairs})`.

    Args:
        arrays: by name, as `lossscope.sources.dump.Dump` has them, of numpy or torch.
        sides: names of the sides, `user/item`, or one of a labelled set; None: what the arrays are named after.
        raw: leave rows as they are, see `Request`.

    Raises:
        InputError: arrays that do not fit each other.
    """
    from ._any_sides import read_any_sides
    from ._dump_arrays import numpy_of
    from ._relations import declared_sides

    given = {
        name: array.detach().cpu() if hasattr(array, "detach") else _array(array)
        for name, array in arrays.items()
        if array is not None
    }
    names, where = declared_sides(given, sides, Path("arrays")), Path("arrays")
    if names is None:
        raise InputError(f"arrays must be of two sides, or of one labelled set; got {', '.join(given)}")
    parts = (
        part
        for name, array in sorted(given.items())
        for part in (name, str(array.dtype), str(tuple(array.shape)), np.ascontiguousarray(numpy_of(array)).tobytes())
    )
    return read_any_sides(given, names, where, fingerprint_of("arrays", names.text, *parts), raw)


def _array(array: Any) -> Any:
    """Return an array of numpy; what has only `__dlpack__` as a tensor."""
    if hasattr(array, "__dlpack__") and not isinstance(array, np.ndarray):
        return to_tensor(array, "arrays").cpu()
    return np.asarray(array)


def trained_objective(path: Path | str, request: Request) -> str | None:
    """Return the objective that a source says it was trained with, without running its model; None where it says none.

    Raises InputError when no source is there.
    """
    if url_of(path) is not None:
        return None
    with trust(any_file=request.trust_code):
        source = find_source(path)
        return source.trained_with(request) if isinstance(source, StatesObjective) else None


def _read_url(url: str, request: Request) -> SplitEmbeddings:
    """Return the split of a folder of shards behind a URL. Raises InputError where all would have to be read."""
    from ._shards import read_shards

    if not request.sharded:
        raise InputError(
            f"{show_path(url)} must be a path here; of a URL, sweeps over a sample of queries read .npy shards: "
            "--queries N. Copy it to a local folder"
        )
    return read_shards(url, request.caption_image, request.sides)


def load(path: Path | str, **options: Any) -> SplitEmbeddings:
    """Return the embeddings of a source: `load("ckpt.pt", split="val")`; options are the fields of Request."""
    known = [item.name for item in fields(Request)]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"options of a source must be of {', '.join(known)}; got {name!r}{hint}")
    return read_source(path, Request(**options))


def read_source(path: Path | str, request: Request) -> SplitEmbeddings:
    """Return the embeddings of a source.

    Raises:
        InputError: no source is there, or it cannot be read as the request asks for.
    """
    if (url := url_of(path)) is not None:
        return _read_url(url, request)
    with trust(any_file=request.trust_code):
        embedded: SplitEmbeddings = find_source(path).read(request)
    if request.mode != embedded.mode:
        raise InputError(f"{show_path(path)} must have a model with a train mode; its numbers never change")
    return embedded
