"""Find how the start model of a training reads pictures; the recipe's data and the checkpoints keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lossscope.encoders.base import encoder_spec
from lossscope.errors import InputError
from lossscope.io.reading import show_path
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.reading import complete_data
from lossscope.sources.checkpoints.schema import FORMAT

from .recipe import Recipe

_HEAD = 1 << 20  # bytes, in which a checkpoint names its format


def read_start(file: str) -> Checkpoint:
    """Read the checkpoint that a training begins with.

    Raises InputError for what is no checkpoint of lossscope; of another program's file it names `lossscope convert`.
    """
    path = Path(file)
    try:
        return Checkpoint.load(path)
    except InputError as error:
        if not path.exists() or (path.is_file() and _names_our_format(path)):
            raise
        raise InputError(
            f"--init must be a checkpoint of lossscope: {error}. A released file or folder becomes one with: "
            f"lossscope convert {show_path(path)} start.pt"
        ) from None


def _names_our_format(path: Path) -> bool:
    """Whether a file, perhaps a damaged one, begins as a checkpoint of lossscope does."""
    with open(path, "rb") as file:
        return FORMAT.encode() in file.read(_HEAD)


def read_as_authors(recipe: Recipe) -> tuple[Recipe, tuple[str, ...]]:
    """Return the recipe with data that read pictures as the model's authors do, where it does not say, and notices.

    Raises InputError for an `init` or an encoder's folder that cannot be read.
    """
    start = read_start(recipe.init) if recipe.init else None
    data, notices = complete_data(recipe.data, reading_of_start(recipe.encoder, start))
    return replace(recipe, data=data), notices


def reading_of_start(encoder: str, start: Checkpoint | None) -> Mapping[str, str]:
    """Return the reading of the checkpoint that a training begins with, or of the encoder's files."""
    return encoder_spec(encoder).reading() if start is None else start.reading
