"""The rules for false negatives, against their definitions entry by entry."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.core.masks.base import MaskInputs, hide_negatives
from lossscope.core.similarity import Mask
from lossscope.errors import InputError
from lossscope.registry import build, names


def batch(seed: int = 0, q: int = 6, c: int = 9) -> MaskInputs:
    """Random cosines; query 0 has two positives, query 1 none, and one candidate of query 2 is not valid."""
    random = torch.Generator().manual_seed(seed)
    match = torch.eye(q, c, dtype=torch.bool)
    match[0, 3], match[1, 1] = True, False
    valid = torch.ones(q, c, dtype=torch.bool)
    valid[2, 5] = False
    S, G = (torch.rand(q, c, generator=random) * 2 - 1 for _ in range(2))
    keys = torch.randint(4, (q, c), generator=random)
    related = torch.rand(q, c, generator=random) < 0.3
    return MaskInputs(S, Mask(match, valid), related, keys, G)


def best(row: Tensor, positives: Tensor) -> float:
    return max((float(s) for s, p in zip(row, positives, strict=True) if p), default=float("nan"))


def above(rows: MaskInputs, q: int, c: int) -> bool:
    return float(rows.S[q, c]) > best(rows.S[q], rows.mask.positives[q]) + 0.1


def percent(rows: MaskInputs, q: int, c: int) -> bool:
    positive = best(rows.S[q], rows.mask.positives[q])
    return float(rows.S[q, c]) > positive - 0.05 * abs(positive)


def gist(rows: MaskInputs, q: int, c: int) -> bool:
    assert rows.guide is not None
    return float(rows.guide[q, c]) > best(rows.guide[q], rows.mask.positives[q])


def gist_relative(rows: MaskInputs, q: int, c: int) -> bool:
    assert rows.guide is not None
    positive = best(rows.guide[q], rows.mask.positives[q])
    return float(rows.guide[q, c]) > positive - 0.2 * abs(positive)


def same_item(rows: MaskInputs, q: int, c: int) -> bool:
    assert rows.related is not None
    return bool(rows.related[q, c])


def same_text(rows: MaskInputs, q: int, c: int) -> bool:
    keys = rows.candidate_keys
    assert keys is not None
    return any(int(keys[q, p]) == int(keys[q, c]) for p in rows.mask.positives[q].nonzero()[:, 0])


ORACLES = {
    "above": above,
    "percent": percent,
    "gist": gist,
    "gist:margin=0.2,strategy=relative": gist_relative,
    "same_item": same_item,
    "same_text": same_text,
}


@pytest.mark.parametrize("spec", ORACLES)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_hidden_is_what_the_definition_says(spec: str, seed: int) -> None:
    rows = batch(seed)
    hidden = rows.mask.valid & ~hide_negatives(rows, [build("masks", spec)]).valid
    for q in range(rows.S.shape[0]):
        for c in range(rows.S.shape[1]):
            expected = bool(rows.mask.negatives[q, c]) and ORACLES[spec](rows, q, c)
            assert bool(hidden[q, c]) == expected, (q, c)


def test_every_rule_has_an_oracle() -> None:
    assert {spec.partition(":")[0] for spec in ORACLES} == set(names("masks"))


@pytest.mark.parametrize("name", names("masks"))
def test_positives_stay_and_a_row_without_one_stays_whole(name: str) -> None:
    rows = batch(1)
    mask = hide_negatives(rows, [build("masks", name)])
    assert torch.equal(mask.positives, rows.mask.positives)
    assert name == "same_item" or torch.equal(mask.valid[1], rows.mask.valid[1])


def test_a_negative_positive_moves_the_threshold_down() -> None:
    """share · s₊ would be above s₊ = −0.5, and would hide nothing that is as similar as the positive."""
    mask = Mask(torch.tensor([[True, False, False]]), torch.ones(1, 3, dtype=torch.bool))
    rows = MaskInputs(torch.tensor([[-0.5, -0.51, -0.6]]), mask)
    assert hide_negatives(rows, [build("masks", "percent")]).valid.tolist() == [[True, False, True]]


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("gist", {"guide": None}, "no guide is given. Name its embeddings: --guide SOURCE"),
        ("same_text", {"candidate_keys": None}, "--mask same-text cannot be used: it needs the inputs"),
        ("same_item", {"related": None}, "both sides in one set"),
    ],
)
def test_what_a_rule_needs_must_be_there(name: str, changes: dict[str, Any], says: str) -> None:
    rows = batch()
    given = {"related": rows.related, "candidate_keys": rows.candidate_keys, "guide": rows.guide, **changes}
    with pytest.raises(InputError, match=says):
        hide_negatives(MaskInputs(rows.S, rows.mask, **given), [build("masks", name)])


@pytest.mark.parametrize("spec", ["above:margin=inf", "percent:share=0", "percent:share=1.1", "gist:margin=-1"])
def test_options_out_of_range_are_refused(spec: str) -> None:
    with pytest.raises((InputError, ValueError)):
        build("masks", spec)
