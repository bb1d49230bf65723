"""Read the sources and data of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lossscope.core.embedded import SplitEmbeddings
from lossscope.datasets.base import Dataset
from lossscope.datasets.lint.targets import data_spec, is_rows
from lossscope.errors import InputError
from lossscope.io.run_folder import epoch_of
from lossscope.io.shipped import require_source
from lossscope.registry import build
from lossscope.sources.base import read_source

from ..parts.material import Material
from .join_splits import join_sources, join_splits
from .options import AuditOptions


@dataclass(frozen=True, eq=False)
class Inputs:
    """The sources and items of an audit."""

    sources: tuple[SplitEmbeddings, ...]
    epochs: tuple[int | None, ...]  # of each source
    material: Material
    notices: tuple[str, ...] = ()  # of the data, where no source has read them


def with_rows(
    targets: Sequence[Path | str], options: AuditOptions, is_split_typed: bool = False
) -> tuple[list[Path], AuditOptions]:
    """Return the sources among the targets, and options with the rows among the targets as data.

    The audit takes a whole file of rows, unless the user typed a split.

    Args:
        targets: sources, and at most one file, folder or data set of rows.
        options: of the audit.
        is_split_typed: whether the user named the split.

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
    spec = data_spec(rows[0])
    source = replace(options.source, data=spec)
    if not is_split_typed and "all" in build("datasets", spec).splits():
        source = replace(source, split="all")
    return sources, replace(options, source=source)


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
    wanted = tuple(splits or (options.source.split,))
    read = [[_load(path, options, split) for split in wanted] for path in paths]
    sources = tuple(join_sources(parts) for parts in read)
    spec = options.source.data or next(
        (str(source.recipe["data"]) for source in sources if source.recipe.get("data")), None
    )
    dataset: Dataset | None = None if spec is None else build("datasets", spec)
    loaded = [] if dataset is None else [dataset.split(name) for name in wanted]
    split = join_splits(loaded) if loaded else None
    training = None
    if dataset is not None and wanted != ("train",) and "train" in dataset.splits():
        training = dataset.split("train")
    material = Material.of(sources, split, training, options.top, options.source.progress)
    known = {notice for source in sources for notice in source.notices}
    notices = dict.fromkeys(notice for part in loaded for notice in part.notices if notice not in known)
    return Inputs(sources, tuple(epoch_of(Path(path)) for path in paths), material, tuple(notices))


def split_names(paths: Sequence[Path | str], options: AuditOptions) -> tuple[str, ...]:
    """Return the names of all splits of the data, the split of the options first."""
    spec = options.source.data
    if spec is None:
        recipes = (_load(path, options, options.source.split).recipe for path in paths)
        spec = next((str(recipe["data"]) for recipe in recipes if recipe.get("data")), None)
    if spec is None:
        return (options.source.split,)
    names = build("datasets", spec).splits()
    return (options.source.split, *(name for name in names if name != options.source.split))


def _load(path: Path | str, options: AuditOptions, split: str) -> SplitEmbeddings:
    return read_source(path, replace(options.source, split=split))
