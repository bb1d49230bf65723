"""Find how the start model of a training reads pictures; the recipe's data and the checkpoints keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lossscope.encoders.base import encoder_spec
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.reading import complete_data

from .recipe import Recipe


def read_as_authors(recipe: Recipe) -> tuple[Recipe, tuple[str, ...]]:
    """Return the recipe with data that read pictures as the model's authors do, where it does not say, and notices.

    Raises InputError for an `init` or an encoder's folder that cannot be read.
    """
    start = Checkpoint.load(recipe.init) if recipe.init else None
    data, notices = complete_data(recipe.data, reading_of_start(recipe.encoder, start))
    return replace(recipe, data=data), notices


def reading_of_start(encoder: str, start: Checkpoint | None) -> Mapping[str, str]:
    """Return the reading of the checkpoint that a training begins with, or of the encoder's files."""
    return encoder_spec(encoder).reading() if start is None else start.reading
