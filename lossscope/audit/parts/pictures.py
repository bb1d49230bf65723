"""The pictures of the first side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lossscope.core.facts import Missing
from lossscope.datasets.base import Images, Texts

from .material import Material


@dataclass(frozen=True)
class Pictures:
    """N pictures of three colours."""

    images: Images

    @classmethod
    def of(cls, material: Material) -> Pictures:
        """Take the pictures of the data. Raises Missing if they have none."""
        split = material.split
        shape: Any = () if split is None or isinstance(split.images, Texts) else split.images.shape
        if split is None or not (isinstance(shape, tuple) and len(shape) == 3 and shape[0] == 3):
            raise Missing("it has no pictures; name the data with --data")
        return cls(split.images)
