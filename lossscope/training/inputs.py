"""What a recipe names beside data and encoder, read and held against them before anything is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lossscope.datasets.base import Split
from lossscope.errors import InputError
from lossscope.io.files import require_file
from lossscope.objectives.base import Objective
from lossscope.registry import build

from .offline_candidates import HardCandidates, items_of
from .recipe import Recipe


def objective_of(recipe: Recipe) -> Objective:
    """The objective of a recipe. Raises InputError when it can not be trained so."""
    main: Objective = build("objectives", recipe.objective)
    if "offline" in main.required_info and not recipe.offline:
        raise InputError(
            f"{recipe.objective} needs offline candidates: rank the training split under a trained model with "
            "`lossscope rank CKPT --out FOLDER`, then train with --offline FOLDER (and --init CKPT)"
        )
    if recipe.offline and "offline" not in main.required_info:
        raise InputError(f"--offline is for objectives with offline candidates (aoq); got {recipe.objective}")
    if main.square and recipe.same_image == "mask":
        raise InputError(f"--same-image must be keep for {recipe.objective}, which takes whole batches only; got mask")
    own = getattr(main, "own_parameters", ())
    if own:
        raise InputError(
            f"{recipe.objective} must have no parameters of its own to be trained with; it has {', '.join(own)}, which "
            "would stay as they are. A scale or bias is learnt where the loss takes logit_scale and learn=true"
        )
    return main


def info_of(recipe: Recipe, main: Objective, split: Split) -> dict[str, Tensor]:
    """Columns of the recipe's .npz, one finite number for each training caption. Raises InputError."""
    if not recipe.info:
        return {}
    if recipe.batches().mode != "pairs":
        raise InputError("--info is of pairs; got images sampling. Take --sampling pairs")
    try:
        with np.load(require_file(recipe.info), allow_pickle=False) as file:
            columns = {name: np.asarray(file[name]) for name in file.files}
    except (OSError, ValueError) as error:
        raise InputError(f"{recipe.info} must be an .npz of number columns; {error}") from error
    for name, column in columns.items():
        if name not in main.optional_info:
            known = f"reads {', '.join(main.optional_info)}" if main.optional_info else "reads none"
            raise InputError(
                f"columns of {recipe.info} must be of those that the objective reads; got {name!r}, and "
                f"{recipe.objective} {known}"
            )
        if column.shape != (len(split.captions),) or column.dtype.kind not in "fiu" or not np.isfinite(column).all():
            raise InputError(
                f"{name} of {recipe.info} must be {len(split.captions)} finite numbers, one for each training caption; "
                f"got {column.dtype} {column.shape}"
            )
    return {name: torch.from_numpy(column).float() for name, column in columns.items()}


def offline_of(recipe: Recipe, split: Split) -> HardCandidates | None:
    """The ranking of the recipe. Raises InputError when it is of other items."""
    if not recipe.offline:
        return None
    found = HardCandidates.read(Path(recipe.offline))
    if found.items != items_of(split):
        raise InputError(f"{recipe.offline} must rank the training split of {recipe.data}; it ranks other items")
    return found
