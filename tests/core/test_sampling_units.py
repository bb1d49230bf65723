"""Which items does a sample draw together?"""

from __future__ import annotations

import numpy as np

from lossscope.core.relations import Relations
from lossscope.core.sampling_units import SamplingUnits
from lossscope.core.sides import Sides
from tests.each import each

QA = Sides("query", "document")


def test_an_image_and_its_captions_are_one_unit() -> None:
    units = SamplingUnits.of(Relations.of_captions(np.array([0, 0, 1, 2, 2]), 3))
    assert units.number == 3 and units.name == "image"
    assert list(units.second) == [units.first[i] for i in (0, 0, 1, 2, 2)]
    assert list(units.joined) == [*units.first, *units.second]


def test_images_with_captions_have_the_units_that_a_search_for_linked_items_finds() -> None:
    """Where each caption has one image the code skips the search; in another order of the pairs it searches."""
    relations = Relations.of_captions(np.array([0, 3, 0, 1, 5, 1]), 7)
    found = SamplingUnits.of(Relations(7, 6, relations.positives[::-1].copy(), relations.sides))
    units = SamplingUnits.of(relations)
    assert units.number == found.number == 7
    assert list(units.joined) == list(found.joined) and units.joined.dtype == found.joined.dtype


def test_queries_that_share_a_document_are_one_unit_and_a_document_of_none_is_its_own() -> None:
    pairs = np.array([[0, 0], [1, 0], [1, 1], [2, 2]])
    units = SamplingUnits.of(Relations(4, 4, pairs, QA))
    assert units.first[0] == units.first[1] == units.second[0] == units.second[1]
    assert units.first[2] == units.second[2] != units.first[0]
    assert units.number == 4  # the two from above, query 3 without a document, and document 3 without a query
    assert len({int(units.first[3]), int(units.second[3]), int(units.first[0]), int(units.first[2])}) == 4


def test_of_one_labelled_set_a_class_is_a_unit() -> None:
    units = SamplingUnits.of(Relations.of_labels(np.array([7, 3, 7, 9])))
    assert units.number == 3 and units.first[0] == units.first[2] and units.name == "class"


@each("relations, why", [
    (Relations.of_captions(np.arange(9), 9), "takes 10 images or more; there are 9"),
    (Relations.of_labels(np.repeat(np.arange(5), 20)), "takes 10 classes or more; there are 5"),
    (
        Relations(30, 30, np.array([[i, j] for i in range(30) for j in (i, (i + 1) % 30)]), QA),
        "one has 100 % of the items: queries",
    ),
    (Relations.of_labels(np.repeat(np.arange(20), [40] + [2] * 19)), "one has 51 % of the items"),
])  # fmt: skip
def test_too_few_units_or_linked_ones_are_refused(relations: Relations, why: str) -> None:
    refusal = SamplingUnits.of(relations).refusal
    assert refusal is not None and why in refusal


def test_enough_units_are_not_refused() -> None:
    assert SamplingUnits.of(Relations.of_captions(np.repeat(np.arange(10), 5), 10)).refusal is None
