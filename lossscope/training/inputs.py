"""Read the files that a recipe names beside its data, and check them before the run writes anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lossscope.core.known_pairs import KnownPairs, audited_file
from lossscope.core.masks.base import NegativeMask
from lossscope.datasets.base import Split
from lossscope.errors import InputError
from lossscope.io.arrays import read_npz
from lossscope.io.files import fingerprint, fingerprint_of, require_file
from lossscope.io.plugin_fingerprints import plugin_fingerprints
from lossscope.io.reading import naming
from lossscope.objectives.base import Objective

from .offline_candidates import HardCandidates, items_of
from .recipe import Recipe


def read_info(recipe: Recipe, objective: Objective, mode: str, split: Split) -> dict[str, Tensor]:
    """Read the numbers of --info, (M,) float32 by name.

    Args:
        recipe: names the file.
        objective: states the names that it takes.
        mode: how batches are made; the numbers belong to pairs.
        split: of M captions, each with a number.

    Raises:
        InputError: a file that is no .npz of such columns, or columns that the objective does not take.
    """
    if not recipe.info:
        return {}
    if mode != "pairs":
        raise InputError("--info is for pairs; got images sampling. Take --sampling pairs")
    file = require_file(recipe.info)
    with naming(file, "an .npz of number columns"):
        columns = read_npz(file)
    names = objective.traits.optional_info
    for name, column in columns.items():
        if name not in names:
            takes = f"takes {', '.join(names)}" if names else "takes none"
            raise InputError(
                f"columns of {recipe.info} must be of those that the objective takes; got {name!r}, and "
                f"{recipe.objective} {takes}"
            )
        if column.shape != (len(split.captions),) or column.dtype.kind not in "fiu" or not np.isfinite(column).all():
            raise InputError(
                f"{name} of {recipe.info} must be {len(split.captions)} finite numbers, one for each training caption; "
                f"got {column.dtype} {column.shape}"
            )
    return {name: torch.from_numpy(column.astype(np.float32)) for name, column in columns.items()}


def read_candidates(recipe: Recipe, split: Split) -> HardCandidates | None:
    """Read the folder of --offline, if the recipe names any. Raises InputError if it ranks other items."""
    if not recipe.offline:
        return None
    candidates = HardCandidates.read(Path(recipe.offline))
    if candidates.items != items_of(split):
        raise InputError(f"{recipe.offline} must rank the training split of {recipe.data}; it ranks other items")
    return candidates


def fingerprints_of(
    recipe: Recipe, candidates: HardCandidates | None, rules: Sequence[NegativeMask] = ()
) -> Mapping[str, str]:
    """Return the fingerprints of the files that the recipe and its rules name, by the name of the choice."""
    files = {name: fingerprint(Path(path)) for name in ("init", "info") if (path := getattr(recipe, name))}
    code = {name: "".join(plugin_fingerprints([getattr(recipe, name)]).values()) for name in ("objective", "encoder")}
    files |= {name: value for name, value in code.items() if value}
    masks = _pair_files(rules)
    files |= {"mask": fingerprint_of(*(fingerprint(audited_file(path)) for path in masks))} if masks else {}
    return files | ({"offline": candidates.fingerprint} if candidates else {})


def require_known_pairs(rules: Sequence[NegativeMask], split: Split) -> None:
    """Raise InputError if a rule's pairs cannot be read, or have other items or texts than the split."""
    for known in (getattr(rule, "known", None) for rule in rules if rule.needs == "items"):
        if isinstance(known, KnownPairs):
            known.require_items(split.image_ids, split.caption_ids, split.texts_by_id)


def _pair_files(rules: Sequence[NegativeMask]) -> list[Path]:
    """Return the files of pairs that the rules read."""
    files = (getattr(rule, "file", None) for rule in rules if rule.needs == "items")
    return [file for file in files if isinstance(file, Path)]
