"""Are splits refused whose columns contradict each other?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.datasets.base import Split, Texts
from lossscope.errors import InputError

OWNERS = np.array([0, 0, 1])


def split_of(**fields: object) -> Split:
    texts = Texts(["a", "b"])
    return Split("val", texts, ["x", "y", "z"], OWNERS, ["0", "1"], ["0", "1", "2"], "f", **fields)  # type: ignore[arg-type]


def test_relations_beside_caption_image_must_say_the_same() -> None:
    """The given relations were replaced without a word."""
    split = split_of()
    assert split_of(relations=split.relations).relations.positives.tolist() == [[0, 0], [0, 1], [1, 2]]
    assert replace(split, name="other").relations.sides.is_image_text
    pairs = np.array([[0, 1], [1, 0], [1, 2]])
    for other in (Relations(2, 3, pairs), Relations(2, 3, split.relations.positives, QUERY_DOCUMENT)):
        with pytest.raises(InputError, match="'val' must have caption_image, or relations; got both, and they differ"):
            split_of(relations=other)
