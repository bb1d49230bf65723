"""Sources and data of an audit, read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.datasets.base import Dataset, Split
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.base import load

from ..parts.material import Material
from .options import AuditOptions


@dataclass(frozen=True, eq=False)
class Inputs:
    """What an audit is of."""

    sources: tuple[SplitEmbeddings, ...]
    epochs: tuple[int | None, ...]  # of each source
    material: Material


def read_inputs(paths: Sequence[Path | str], options: AuditOptions, splits: Sequence[str] | None = None) -> Inputs:
    """Read sources and data.

    Args:
        paths: of sources; none: texts alone.
        options: of the audit.
        splits: of the data, taken together as one; None: the one of the options.

    Raises:
        InputError: neither sources nor data, or sources of different items.
    """
    if not paths and options.data is None:
        raise InputError("an audit needs a SOURCE, or data with texts: --data SPEC")
    wanted = tuple(splits or (options.split,))
    read = [[_load(path, options, split) for split in wanted] for path in paths]
    sources = tuple(joined_sources(parts) for parts in read)
    spec = options.data or next((str(one.recipe["data"]) for one in sources if one.recipe.get("data")), None)
    dataset: Dataset | None = None if spec is None else build("datasets", spec)
    split = None if dataset is None else joined_splits([dataset.split(name) for name in wanted])
    training = None
    if dataset is not None and wanted != ("train",) and "train" in dataset.splits():
        training = dataset.split("train")
    material = Material.of(sources, split, training, options.top, options.progress)
    return Inputs(sources, tuple(epoch_of(path, one) for path, one in zip(paths, sources, strict=True)), material)


def split_names(paths: Sequence[Path | str], options: AuditOptions) -> tuple[str, ...]:
    """Return the names of all splits of the data, the one of the options first."""
    spec = options.data
    if spec is None:
        recipes = (_load(path, options, options.split).recipe for path in paths)
        spec = next((str(one["data"]) for one in recipes if one.get("data")), None)
    if spec is None:
        return (options.split,)
    names = build("datasets", spec).splits()
    return (options.split, *(name for name in names if name != options.split))


def epoch_of(path: Path | str, source: SplitEmbeddings) -> int | None:
    """Return the epoch of a checkpoint `epoch-NN.pt`; None of others."""
    stem = Path(path).stem
    number = stem.removeprefix("epoch-")
    return int(number) if stem.startswith("epoch-") and number.isdigit() else None


def joined_splits(splits: Sequence[Split]) -> Split:
    """Return several splits as one, the items of the first of them in front.

    Raises InputError where two of them share an id.
    """
    if len(splits) == 1:
        return splits[0]
    relations = _joined_relations([one.relations for one in splits])
    first, second = ([one for part in splits for one in getattr(part, name)] for name in ("image_ids", "caption_ids"))
    _require_unique(first, second)
    owners = relations.caption_image if relations.has_owners and relations.sides.is_image_text else None
    captions = [text for part in splits for text in part.captions]
    return Split(
        "+".join(one.name for one in splits), _JoinedItems([one.images for one in splits]), captions, owners, first,
        second, "+".join(one.fingerprint for one in splits), relations=relations if owners is None else None,  # type: ignore[arg-type]
    )  # fmt: skip
