"""Numbers of pairs for an objective (--info), as training reads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lossscope.registry import build
from lossscope.training.inputs import read_info
from tests.fuzz.trained import RECIPE

FILES = {"info.npz": "npz"}
CHECKSUMMED = ("info.npz",)
OBJECTIVE = "ncr"


def make(folder: Path) -> None:
    """Write a number for every caption."""
    objective = build("objectives", OBJECTIVE)
    captions = len(build("datasets", RECIPE.data).split("train").captions)
    names = objective.traits.optional_info
    columns: dict[str, Any] = {name: np.linspace(0.1, 0.9, captions).astype("f4") for name in names}
    np.savez(folder / "info.npz", **columns)


def read(folder: Path) -> object:
    """Read the numbers."""
    recipe = replace(RECIPE, objective=OBJECTIVE, info=str(folder / "info.npz"))
    split = build("datasets", RECIPE.data).split("train")
    return read_info(recipe, build("objectives", OBJECTIVE), "pairs", split)
