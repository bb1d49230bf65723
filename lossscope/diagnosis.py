"""What do losses do on a source? One call from Python: embeddings or a checkpoint in, a frame and its tables out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from .core.embedded import SplitEmbeddings, unit_rows
from .core.types import Progress
from .engine.plan import Sweep
from .engine.selection import Selection
from .errors import InputError
from .io.files import fingerprint_of
from .registry import build, expand, require_trusted, spec_of
from .sources.base import load

if TYPE_CHECKING:
    from .tables.base import Table

USUAL = ("triplet", "triplet-sh", "ntxent")


@dataclass(frozen=True)
class Diagnosis:
    """Answers of several probes about one source.

    rows: summary rows, a number per objective, direction, probe and statistic. batches: wide rows, one per batch.
    notes: what was taken for granted, and which probes could not look.
    """

    rows: pd.DataFrame = field(repr=False)
    batches: pd.DataFrame = field(repr=False)
    name: str
    notes: tuple[str, ...] = ()

    def tables(self) -> list[Table]:
        """The rows as tables: to_text(), to_markdown(), to_latex(), to_html(), to_frame()."""
        from .tables import probes

        return probes.build(self.rows)

    def __repr__(self) -> str:
        """What there is, in a line, and the notes."""
        specs = [str(spec) for spec in self.rows["objective"].dropna().unique()]
        probes = ", ".join(self.rows["probe"].unique())
        told = f"{self.name}: {len(self.rows)} statistics of {probes}; objectives {', '.join(specs) or 'none'}"
        return "\n".join([f"<Diagnosis of {told}>", *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """How a notebook shows it: its tables."""
        from html import escape

        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return notes + "\n".join(table.to_html() for table in self.tables())


def diagnose(
    source: str | Path | SplitEmbeddings | tuple[Any, Any],
    probes: str | Sequence[str] = "cheap",
    objectives: str | Sequence[str] | None = None,
    *,
    caption_image: Any = None,
    batch_size: int | None = 128,
    seed: int = 0,
    trust_code: bool = False,
    progress: Progress | None = None,
    **request: Any,
) -> Diagnosis:
    """What probes find in the batches of a source: `diagnose("ckpt.pt").rows`, `diagnose((images, captions))`.

    source: path of a checkpoint, run folder or dump; embeddings already loaded; or arrays or tensors (N, d) and (M, d),
    caption j of image caption_image[j] (M,), of pairs where it is not given and M = N. probes: specs, `cheap` or
    `all`, which leave out those that can not look at the source. objectives: specs, ranges written out; None takes the
    one that the source was trained with, else the three of the COCOS paper. batch_size: pairs or images, None for all.
    request: fields of sources.base.Request, as split="test" (default train), of a path.
    Raises InputError for embeddings that do not fit or are not finite, SpecError for specs that are none.
    """
    embedded = _embedded(source, caption_image, {"trust_code": trust_code, "progress": progress, **request})
    selection = Selection.of([probes] if isinstance(probes, str) else list(probes))
    given = [objectives] if isinstance(objectives, str) else objectives
    if given is None and embedded.objective is not None:
        require_trusted(embedded.objective, trust_code)
    chosen = given or ([embedded.objective] if embedded.objective else USUAL)
    notes = list(embedded.notices)
    if given is None and embedded.objective is None and selection.needs_objective:
        notes.append(f"the source does not say what it was trained with: looked at through {', '.join(USUAL)}")
    specs = dict.fromkeys(spec_of(build("objectives", one)) for spec in chosen for one in expand("objectives", spec))
    sweep = Sweep(tuple(specs), probes=selection.named, batch_size=batch_size, seed=seed)
    sweep, left = selection.fitting(sweep, embedded)
    rows, batches = sweep.run(embedded, progress=progress)
    return Diagnosis(rows, batches, embedded.name, (*notes, *left))


def _embedded(source: Any, caption_image: Any, request: dict[str, Any]) -> SplitEmbeddings:
    if isinstance(source, str | Path):
        if caption_image is not None:
            request["caption_image"] = Path(caption_image)
        return load(source, **request)
    beside = {name for name in request if name not in ("trust_code", "progress")}
    if beside:
        raise InputError(f"{', '.join(sorted(beside))} must be left out unless source is a path; it is not")
    if isinstance(source, SplitEmbeddings):
        return source
    if not isinstance(source, tuple | list) or len(source) != 2:
        got = type(source).__name__
        raise InputError(f"source must be a path, loaded embeddings or (images, captions); got {got}")
    return _of_arrays(_floats(source[0], "images"), _floats(source[1], "captions"), caption_image)


def _of_arrays(images: Tensor, captions: Tensor, caption_image: Any) -> SplitEmbeddings:
    """Rows of unit length, and a notice where they were made so."""
    if images.shape[1] != captions.shape[1]:
        raise InputError(
            f"images and captions must have one width; got {tuple(images.shape)} and {tuple(captions.shape)}"
        )
    if caption_image is None and len(images) != len(captions):
        got = f"{len(captions)} captions for {len(images)} images"
        raise InputError(
            f"caption_image must be given, the image row of each caption, unless they are pairs; got {got}"
        )
    owner = np.arange(len(captions)) if caption_image is None else np.asarray(caption_image)
    if owner.shape != (len(captions),) or owner.dtype.kind not in "iu":
        got = f"{owner.shape} of {owner.dtype}"
        raise InputError(f"caption_image must be {len(captions)} integers, the image row of each caption; got {got}")
    wide = torch.promote_types(images.dtype, captions.dtype)
    (images, first), (captions, second) = unit_rows(images.to(wide), "images"), unit_rows(captions.to(wide), "captions")
    bytes_of = (x.cpu().numpy().tobytes() for x in (images, captions))
    return SplitEmbeddings(
        "arrays", images, captions, None, owner.astype(np.int64), [str(i) for i in range(len(images))],
        [str(i) for i in range(len(captions))], fingerprint_of(*bytes_of, owner.tobytes()),
        notices=tuple(told for told in (first, second) if told),
    )  # fmt: skip


def _floats(x: Any, what: str) -> Tensor:
    found = x.detach() if isinstance(x, Tensor) else torch.from_numpy(np.array(x))
    if found.ndim != 2 or not found.is_floating_point():
        raise InputError(f"{what} must be a matrix (items, width) of floats; got {tuple(found.shape)} of {found.dtype}")
    return found
