"""What do losses do on a source? One call from Python: embeddings or a checkpoint in, a frame and its tables out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from .core.embedded import SplitEmbeddings
from .core.foreign_arrays import to_tensor
from .core.request import Request
from .core.types import LEVEL
from .core.unit_vectors import unit_rows
from .engine.options import trained_options
from .engine.selection import USUAL_OBJECTIVES, Selection, objective_specs
from .engine.sweep import Sweep
from .errors import InputError
from .io.file_states import watch_mapped_files
from .io.files import fingerprint_of
from .io.trusted_code import require_trusted, trust
from .objectives.custom.as_objective import ObjectiveLike, as_objective
from .registry import spec_of
from .sources.base import from_arrays, load

if TYPE_CHECKING:
    from .tables.base import Table


@dataclass(frozen=True)
class Diagnosis:
    """What several probes report of one source."""

    rows: pd.DataFrame = field(repr=False)  # summary rows: a number per objective, direction, probe and statistic
    batches: pd.DataFrame = field(repr=False)  # a row per batch, columns are statistics
    name: str  # of the source
    notes: tuple[str, ...] = ()  # what was assumed, and which probes are left out and why

    def tables(self) -> list[Table]:
        """Return the rows as tables: to_text(), to_markdown(), to_latex(), to_html(), to_frame()."""
        from .tables import probes

        return probes.build(self.rows)

    def __repr__(self) -> str:
        """Return one line on what there is, and the notes."""
        specs = [str(spec) for spec in self.rows["objective"].dropna().unique()]
        probes = ", ".join(self.rows["probe"].unique())
        content = f"{self.name}: {len(self.rows)} statistics of {probes}; objectives {', '.join(specs) or 'none'}"
        return "\n".join([f"<Diagnosis of {content}>", *(f"note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the tables."""
        from html import escape

        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return notes + "\n".join(table.to_html() for table in self.tables())


def diagnose(
    source: str | Path | SplitEmbeddings | tuple[Any, Any] | Mapping[str, Any],
    probes: str | Sequence[str] = "cheap",
    objectives: ObjectiveLike | Sequence[ObjectiveLike] | None = None,
    *,
    batch_size: int | Literal["all"] | None = 128,
    seed: int = 0,
    interval: float | None = LEVEL,
    **request: Any,
) -> Diagnosis:
    """Run probes on the batches of a source: `diagnose("ckpt.pt").rows`, `diagnose((images, captions)).tables()`.

    Args:
        source: path of a checkpoint, run folder or dump; embeddings already loaded; arrays or tensors (N, d) of images
            and (M, d) of captions; or arrays by name of any two sides or one labelled set, as `sources.from_arrays`
            takes them: {"queries": Q, "documents": D, "positives": pairs}, {"embeddings": X, "labels": y}.
        probes: specs, or `cheap` or `all`, which leave out the probes that cannot work on the source. Weights of
            several objectives are `relative`, those of one in its paper's unit; `cocos:unit=paper` names another.
        objectives: specs, in which ranges are expanded, or functions and modules that compute a loss; None: the one
            that the source was trained with, else the three of the COCOS paper.
        batch_size: pairs or images of a batch; "all" or None: everything in one batch.
        seed: of the batches.
        interval: level of the intervals of means, see docs/intervals.md; None: no intervals.
        request: fields of `core.request.Request`, of a path all, as split="test" (default train) and
            trust_code=True, which imports Python files that a checkpoint names; of arrays `progress`, called with
            (label, done, of), and caption_image: (M,) the image row of each caption; pairs where it is None and M = N.

    Raises:
        InputError: embeddings that do not fit each other or are not finite, and unknown options.
        SpecError: a spec that is none.
    """
    _require_options(request)
    size, seed = _batch_size(batch_size), _whole(seed, "seed")
    words = [probes] if isinstance(probes, str) else list(probes)
    given: Sequence[ObjectiveLike] = [] if objectives is None else _listed(objectives)
    named = (*words, *(objective for objective in given if isinstance(objective, str)), request.get("data"))
    with trust(named, any_file=bool(request.get("trust_code"))), watch_mapped_files():
        embedded = _embedded(source, request)
        selection = Selection.of(words)
        notes = [*embedded.warnings, *embedded.notices]
        if not given and embedded.objective is not None:
            require_trusted([embedded.objective], embedded.name)
        elif not given and selection.needs_objective:
            usual = ", ".join(USUAL_OBJECTIVES)
            notes.append(f"the source does not say what it was trained with: probed under {usual}")
        trained = trained_options(embedded.recipe, embedded.name)
        if trained:
            notes.append(f"batches are as it was trained: {', '.join(f'{k} {v}' for k, v in trained.items())}")
        sweep = Sweep(
            _objectives(given, embedded.objective),
            probes=selection.required,
            batch_size=size,
            seed=seed,
            interval=interval,
            **trained,
        )
        sweep, left_out = selection.fit(sweep, embedded)
        result = sweep.run(embedded, progress=request.get("progress"))
    return Diagnosis(result.summary, result.batches, embedded.name, (*notes, *left_out))


def _require_options(request: Mapping[str, Any]) -> None:
    """Raise InputError for an option that neither `diagnose` nor a source has, with the one that may be meant."""
    named = [name for name in signature(diagnose).parameters if name != "request"]
    known = list(dict.fromkeys([*named, *(item.name for item in fields(Request))]))
    for name in request:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"options of diagnose must be of {', '.join(known)}; got {name!r}{hint}")


def _batch_size(value: Any) -> int | None:
    """Return None for `all`, as the command line calls it. Raises InputError for what is no whole number."""
    return None if value is None or value == "all" else _whole(value, "batch_size", 'or "all"')


def _whole(value: Any, name: str, more: str = "") -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{name} must be a whole number{f' {more}' if more else ''}; got {value!r}")
    return int(value)


def _listed(objectives: Any) -> Sequence[ObjectiveLike]:
    return objectives if isinstance(objectives, list | tuple) else [objectives]


def _objectives(given: Sequence[ObjectiveLike], trained_with: str | None) -> tuple[ObjectiveLike, ...]:
    """Return the specs of those given, ranges expanded, and losses as they are."""
    if not given:
        return objective_specs(None, trained_with)
    chosen: dict[str, ObjectiveLike] = {}
    for item in given:
        expanded = objective_specs([item], None) if isinstance(item, str) else (as_objective(item),)
        for objective in expanded:
            name = objective if isinstance(objective, str) else spec_of(objective)
            if chosen.setdefault(name, objective) is not objective and not isinstance(objective, str):
                raise InputError(
                    f"objectives must have different names; got {name} twice. Give each function or class a __name__ "
                    "of its own, or diagnose them one by one"
                )
    return tuple(chosen.values())


def _embedded(source: Any, request: Mapping[str, Any]) -> SplitEmbeddings:
    caption_image = request.get("caption_image")
    if isinstance(source, str | Path):
        return load(source, **{**request, "caption_image": None if caption_image is None else Path(caption_image)})
    for_paths = {name for name in request if name not in ("trust_code", "progress", "caption_image")}
    if for_paths:
        raise InputError(f"{', '.join(sorted(for_paths))} must be left out unless source is a path; it is not")
    if isinstance(source, SplitEmbeddings):
        return source
    if isinstance(source, Mapping):
        return from_arrays(source)
    if not isinstance(source, tuple | list) or len(source) != 2:
        got = type(source).__name__
        raise InputError(f"source must be a path, loaded embeddings, (images, captions) or arrays by name; got {got}")
    return _of_arrays(_floats(source[0], "images"), _floats(source[1], "captions"), caption_image)


def _of_arrays(images: Tensor, captions: Tensor, caption_image: Any) -> SplitEmbeddings:
    """Rows of unit length, and a notice where they had to be normalised."""
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
        notices=tuple(notice for notice in (first, second) if notice),
    )  # fmt: skip


def _floats(x: Any, what: str) -> Tensor:
    matrix = to_tensor(np.array(x) if isinstance(x, np.ndarray) else x, what).detach()
    if matrix.ndim != 2 or not matrix.is_floating_point():
        got = f"{tuple(matrix.shape)} of {matrix.dtype}"
        raise InputError(f"{what} must be a matrix (items, width) of floats; got {got}")
    return matrix
