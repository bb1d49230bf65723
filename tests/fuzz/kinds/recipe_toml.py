"""A recipe (--config), and what it names, each built."""

from __future__ import annotations

from pathlib import Path

from lossscope.training.components import resolve
from lossscope.training.recipe_files import read_recipe, write_recipe
from tests.tiny import RECIPE

FILES = {"recipe.toml": "toml"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write every choice of a short training."""
    write_recipe(RECIPE, folder / "recipe.toml")


def read(folder: Path) -> object:
    """Read it as `train --config` does."""
    return resolve(read_recipe(folder / "recipe.toml")).recipe
