"""Do sides name themselves and the directions between them?"""

from __future__ import annotations

import pytest

from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.errors import InputError
from tests.each import each


@each("text, labels, words", [
    ("image/caption", ("i2t", "t2i"), ("image to text", "text to image")),
    ("query/document", ("q2d", "d2q"), ("query to document", "document to query")),
    ("user,item", ("u2i", "i2u"), ("user to item", "item to user")),
    ("view 1/view 2", ("a2b", "b2a"), ("view 1 to view 2", "view 2 to view 1")),
    ("anchor/answer", ("a2b", "b2a"), ("anchor to answer", "answer to anchor")),
    ("product", ("all",), ("product to product",)),
])  # fmt: skip
def test_directions_are_the_initials(text: str, labels: tuple[str, ...], words: tuple[str, ...]) -> None:
    sides = Sides.parse(text)
    assert sides.labels == labels
    assert tuple(map(sides.words, labels)) == words
    assert Sides.parse(sides.text) == sides


def test_queries_and_candidates_of_a_direction() -> None:
    sides = Sides("query", "document")
    assert (sides.query("d2q"), sides.candidate("d2q")) == ("document", "query")
    assert (sides.query("q2d"), sides.candidate("q2d")) == ("query", "document")
    assert (Sides("item", None).query("all"), Sides("item", None).candidate("all")) == ("item", "item")
    assert IMAGE_TEXT.label("both") == "both"


@each("text", ["", "a/", "query/document/answer", "same/Same", "2/3", "x" * 41, "a\x1b/b"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="sides must"):
        Sides.parse(text)
