"""Is the doctor right on data unlike those of its thresholds: weak models, groups, wide directions, collapses?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lossscope
from lossscope.core.relations import Relations
from lossscope.doctor.parts.alignment import choose_pairs
from tests.lengths import thorough
from tests.planted.base import Floats, unit


def findings(first: Floats, second: Floats, **arrays: Any) -> tuple[list[str], str]:
    """Return the alarms of a dump of pairs, and the whole output."""
    sides = {"queries": first.astype(np.float32), "documents": second.astype(np.float32)}
    found = lossscope.doctor({**sides, **arrays}, cache=False, batch_size=64)
    return [finding.id for finding in found.findings if finding.is_alarm], repr(found)


def in_groups(n: int, d: int, groups: int, noise: float, seed: int) -> tuple[Floats, Floats, Floats]:
    """Return both sides of a model that separates topics well and items less well, and each pair's topic."""
    rng = np.random.default_rng([seed, n, d])
    group = rng.integers(0, groups, n)
    z = rng.normal(size=(groups, d))[group] + rng.normal(size=(n, d))
    return unit(z + noise * rng.normal(size=z.shape)), unit(z + noise * rng.normal(size=z.shape)), group


def shuffled(rows: Floats, group: Floats, seed: int) -> Floats:
    """Return the rows, shuffled within their groups."""
    rng, order = np.random.default_rng(seed), np.arange(len(rows))
    for value in np.unique(group):
        order[group == value] = rng.permutation(order[group == value])
    return rows[order]


KINDS_OF_GROUPS = [(400, 64, 30, 1.3), (800, 128, 40, 1.8), (1500, 48, 100, 0.9), (600, 300, 25, 2.2)]


@pytest.mark.parametrize(("n", "d", "groups", "noise"), KINDS_OF_GROUPS)
def test_pairs_shuffled_within_groups_are_found_in_models_that_miss_many(
    n: int, d: int, groups: int, noise: float
) -> None:
    first, second, group = in_groups(n, d, groups, noise, 0)
    alarms, said = findings(first, shuffled(second, group, 1))
    assert alarms == ["order-lost"], said
    assert findings(first, second)[0] == []


@pytest.mark.parametrize(("n", "d", "groups", "noise"), KINDS_OF_GROUPS)
def test_vectors_that_know_no_more_than_the_group_have_no_lost_order(n: int, d: int, groups: int, noise: float) -> None:
    rng = np.random.default_rng([n, d])
    centres = rng.normal(size=(groups, d))[rng.integers(0, groups, n)]
    sides = [unit(centres + (1 + noise) * rng.normal(size=(n, d))) for _ in range(2)]
    assert "order-lost" not in findings(sides[0], sides[1])[0]


@pytest.mark.parametrize("copies", [6, 12])
def test_copies_of_documents_under_other_ids_are_no_lost_order(copies: int) -> None:
    """Each passage appears several times, each time with another question; the first copy wins each ranking."""
    rng = np.random.default_rng(copies)
    passage = np.arange(960) // copies
    z = rng.normal(size=(960 // copies, 64))[passage]
    alarms, said = findings(unit(z + 1.2 * rng.normal(size=z.shape)), unit(z))
    assert alarms == ["duplicates"], said


@pytest.mark.parametrize(
    ("n", "d", "decay"), [(600, 64, 1.0), (500, 32, 0.7), *thorough((1500, 128, 1.5), (2000, 256, 1.0))]
)
def test_sides_that_share_wide_directions_alone_are_not_misaligned(n: int, d: int, decay: float) -> None:
    """Nothing links the pairs, and both sides spread over the same few directions: the model learnt nothing."""
    rng = np.random.default_rng([n, d])
    widths = np.arange(1, d + 1.0) ** -decay
    alarms, said = findings(*(unit(widths * rng.normal(size=(n, d))) for _ in range(2)))
    assert alarms == ["no-learning"], said


@pytest.mark.parametrize(("n", "d", "wide"), [(600, 64, 2), (1000, 128, 4), *thorough((1500, 300, 3))])
def test_wide_directions_are_found_where_they_bring_recall_down_to_chance(n: int, d: int, wide: int) -> None:
    rng = np.random.default_rng([n, d, wide])
    z, other = rng.normal(size=(n, d)), 40 * np.sqrt(d) * rng.normal(size=(2, n, wide))
    sides = [np.concatenate([z + 0.6 * rng.normal(size=z.shape), other[side]], 1) for side in (0, 1)]
    alarms, said = findings(unit(sides[0]), unit(sides[1]))
    assert alarms == ["anisotropy"], said


@pytest.mark.parametrize(("first", "second"), [(0.88, 0.96), (0.8, 0.93)])
def test_two_sides_that_nearly_collapsed_are_no_dead_tower(first: float, second: float) -> None:
    """Both have a wide cone, one side a wider one: neither is constant."""
    rng = np.random.default_rng(0)
    centre = unit(rng.normal(size=(1, 96)))
    sides = [
        unit(np.sqrt(cosine) * centre + np.sqrt((1 - cosine) / 96) * rng.normal(size=(600, 96)))
        for cosine in (first, second)
    ]
    alarms, said = findings(sides[0], sides[1])
    assert alarms == ["no-learning"], said


@pytest.mark.parametrize("noise", [5.0, 6.0])
def test_a_collapse_that_leaves_a_rest_of_order_is_one(noise: float) -> None:
    """Cosines of 0.98 and the recall of guessing, although positives rank slightly above half of the others."""
    rng = np.random.default_rng(1)
    centre, z = unit(rng.normal(size=(1, 96))), rng.normal(size=(500, 96)) * np.arange(1, 97.0) ** -0.7
    scale = np.sqrt(np.square(z).sum(1).mean())
    rest = [z + noise * scale / 96**0.5 * rng.normal(size=z.shape) for _ in range(2)]
    sides = [unit(centre + 0.14 * x / np.linalg.norm(x, axis=1, keepdims=True)) for x in rest]
    alarms, said = findings(sides[0], sides[1])
    assert alarms == ["complete-collapse"], said


def test_users_that_bought_one_item_give_pairs_of_their_other_items() -> None:
    """All users bought item 0 and five others; the sample has each item and each user once."""
    rng = np.random.default_rng(0)
    bought = [np.concatenate([[0], rng.choice(np.arange(1, 400), 5, replace=False)]) for _ in range(300)]
    pairs = np.stack([np.repeat(np.arange(300), 6), np.concatenate(bought)], 1)
    first, second = choose_pairs(Relations(300, 400, pairs))
    assert len(first) > 250
    assert len(np.unique(first)) == len(first) == len(np.unique(second))
    assert {*zip(first.tolist(), second.tolist(), strict=True)} <= {*map(tuple, pairs.tolist())}


def test_a_side_of_equal_rows_with_several_positives_a_query_is_examined() -> None:
    """One of each copy leaves a single item, which has no recall: the doctor does not try the cure."""
    rng = np.random.default_rng(0)
    pairs = np.stack([np.repeat(np.arange(200), 3), np.arange(600) % 150], 1)
    alarms, said = findings(unit(rng.normal(size=(200, 32))), unit(np.ones((150, 32))), positives=pairs)
    assert alarms[0] == "dead-tower", said
