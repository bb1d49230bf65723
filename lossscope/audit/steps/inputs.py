"""Read the sources and data of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lossscope.core.choices import WHOLE
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.item_ids import named_ids
from lossscope.datasets.base import Dataset, Split
from lossscope.datasets.lint.targets import data_spec, is_rows
from lossscope.errors import InputError
from lossscope.io.run_folder import epoch_of
from lossscope.io.shipped import require_source
from lossscope.registry import build
from lossscope.sources.base import read_source

from ..parts.material import Material, take_ids
from .join_splits import join_sources, join_splits
from .options import AuditOptions


@dataclass(frozen=True, eq=False)
class Inputs:
    """The sources and items of an audit."""

    sources: tuple[SplitEmbeddings, ...]
    epochs: tuple[int | None, ...]  # of each source
    material: Material
    notices: tuple[str, ...] = ()  # of the data, where no source has read them

    @property
    def named_ids(self) -> list[tuple[str, Sequence[str]]]:
        """The name of each side, and the ids of its items."""
        material = self.material
        return named_ids(material.relations.sides, material.image_ids, material.caption_ids)


def with_rows(targets: Sequence[Path | str], options: AuditOptions) -> tuple[list[Path], AuditOptions]:
    """Return the sources among the targets, and options with the rows among the targets as data.

    Args:
        targets: sources, and at most one file, folder or data set of rows.
        options: of the audit.

    Raises:
        InputError: rows twice, or beside --data; a missing source.
    """
    rows = [str(target) for target in targets if is_rows(str(target))]
    sources = [require_source(target) for target in targets if str(target) not in rows]
    if not rows:
        return sources, options
    if len(rows) > 1 or options.source.data is not None:
        other = rows[1] if len(rows) > 1 else f"--data {options.source.data}"
        raise InputError(f"an audit must be of one data set; got {rows[0]} and {other}. Leave one of them out")
    return sources, replace(options, source=replace(options.source, data=data_spec(rows[0])))


def read_inputs(paths: Sequence[Path | str], options: AuditOptions, splits: Sequence[str] | None = None) -> Inputs:
    """Read sources and data.

    Args:
        paths: of sources; none: texts alone.
        options: of the audit.
        splits: of the data, joined; None: the split of the options.

    Raises:
        InputError: neither sources nor data, or sources of different items.
    """
    if not paths and options.source.data is None:
        raise InputError("an audit needs a SOURCE, a file of rows, or data with texts: --data SPEC")
    read = [[_load(path, options, split) for split in splits or (options.source.split,)] for path in paths]
    sources = tuple(join_sources(parts) for parts in read)
    spec = options.source.data or next(
        (str(source.recipe["data"]) for source in sources if source.recipe.get("data")), None
    )
    dataset: Dataset | None = None if spec is None else build("datasets", spec)
    wanted = tuple(splits or _split_of(dataset, sources, options))
    loaded = [] if dataset is None else [dataset.split(name) for name in wanted]
    split = join_splits(loaded) if loaded else None
    training = None
    if dataset is not None and not {"train", WHOLE}.intersection(wanted) and "train" in dataset.splits():
        training = dataset.split("train")
    first: Split | SplitEmbeddings = sources[0] if split is None else split
    taken = [(source, ()) if source.pair_scorer is not None else take_ids(source, first) for source in sources]
    sources = tuple(source for source, _ in taken)
    material = Material.of(sources, split, training, options.top, options.source.progress)
    known = {notice for source in sources for notice in source.notices}
    notices = dict.fromkeys(notice for part in loaded for notice in part.notices if notice not in known)
    matched = dict.fromkeys(notice for _, of_source in taken for notice in of_source)
    return Inputs(sources, tuple(epoch_of(Path(path)) for path in paths), material, (*notices, *matched))


def split_names(paths: Sequence[Path | str], options: AuditOptions) -> tuple[str, ...]:
    """Return the names of all splits of the data, the split of the options first."""
    spec = options.source.data
    sources = tuple(_load(path, options, options.source.split) for path in paths)
    if spec is None:
        spec = next((str(source.recipe["data"]) for source in sources if source.recipe.get("data")), None)
    dataset: Dataset | None = None if spec is None else build("datasets", spec)
    first = _split_of(dataset, sources, options)
    if dataset is None or first == (WHOLE,):
        return first
    return (*first, *(name for name in dataset.splits() if name not in (*first, WHOLE)))


def _split_of(dataset: Dataset | None, sources: Sequence[SplitEmbeddings], options: AuditOptions) -> tuple[str]:
    """Return the name of the split that the sources are of, or that the request reads of the data."""
    of_sources = next((source.split for source in sources if source.split is not None), None)
    return (of_sources or options.source.split_of(dataset),)


def _load(path: Path | str, options: AuditOptions, split: str | None) -> SplitEmbeddings:
    return read_source(path, replace(options.source, split=split))
