"""Do the right pairs train a matching score, and are the soft targets of its contrastive loss right?"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch

from lossscope.core.similarity import Mask, group_mask, pair_mask
from lossscope.encoders.layers.image_text_matching import contrastive_loss, sample_pairs, soft_targets

Oracles = Callable[[str], ModuleType]
OWNER = torch.tensor([0, 0, 1, 2, 2])


def test_drawn_pairs_are_positives_and_hard_negatives() -> None:
    match = torch.zeros(4, 6, dtype=torch.bool)
    match[[0, 0, 1, 2, 3, 3], range(6)] = True
    valid = torch.ones_like(match)
    valid[0, 2] = valid[1, 0] = False
    torch.manual_seed(0)
    for _ in range(30):
        pairs = sample_pairs(torch.randn(4, 6), Mask(match, valid))
        assert pairs.label.tolist() == [1] * 6 + [0] * 12
        assert match[pairs.images[:6], pairs.texts[:6]].all()
        far = ~match & valid
        assert far[pairs.images[6:], pairs.texts[6:]].all()
        assert pairs.images[6:12].tolist() == pairs.images[:6].tolist()
        assert pairs.texts[12:].tolist() == pairs.texts[:6].tolist()


def test_hard_negatives_are_drawn_by_their_softmax() -> None:
    match = torch.eye(4, dtype=torch.bool)
    S = torch.tensor([[9.0, 2, 1, 0], [0, 9, 0, 0], [0, 0, 9, 0], [0, 0, 0, 9]])
    torch.manual_seed(0)
    count = torch.zeros(4)
    for _ in range(1500):
        pairs = sample_pairs(S, Mask(match, torch.ones_like(match)))
        count[pairs.texts[4]] += 1
    chance = S[0].softmax(0) + 1e-5
    chance[0] = 0
    assert torch.allclose(count / 1500, chance / chance.sum(), atol=0.05)


def test_a_query_without_negatives_gives_no_pair() -> None:
    match = torch.tensor([[True, True], [False, True]])
    pairs = sample_pairs(torch.zeros(2, 2), Mask(match, torch.ones_like(match)))
    triples = [*zip(pairs.images.tolist(), pairs.texts.tolist(), pairs.label.tolist(), strict=True)]
    assert triples == [(0, 0, 1), (0, 1, 1), (1, 1, 1), (1, 0, 0), (1, 0, 0)]


def test_soft_targets_sum_to_one_and_are_plain_ones_for_single_pairs(oracle: Oracles) -> None:
    several = group_mask(torch.arange(3), OWNER)
    for mask in (several, several.t()):
        assert torch.allclose(soft_targets(mask).sum(1), torch.ones(len(mask.match)))
    assert soft_targets(several)[2].tolist() == [0, 0, 0, 0.5, 0.5]
    alone = pair_mask(torch.arange(5))
    assert torch.equal(soft_targets(alone), torch.eye(5))
    S = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    plain = torch.nn.functional.cross_entropy
    expected = (plain(S / 0.07, torch.arange(5)) + plain(S.T / 0.07, torch.arange(5))) / 2
    assert float(contrastive_loss(S / 0.07, alone)) == pytest.approx(float(expected), rel=1e-5)
    assert float(contrastive_loss(S[:3] / 0.07, several)) == pytest.approx(
        oracle("xvlm").contrast(S[:3], 0.07, several.match)
    )
