"""Are value and gradient of a batch with offline candidates those of the quintuplet loss, pair by pair?"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.registry import build
from lossscope.training.quintuplet_loss import weigh

B = 5
MARGIN, ALPHA, BETA = 0.2, 0.3, 1.5


def written_out(S: Tensor, m_off: float) -> Tensor:
    """Return six hinges of each pair (I, T): two online, weighted by off − on, and four offline."""
    total = S.new_zeros(())
    for q in range(B):
        s = S[q, q]
        others = [n for n in range(B) if n != q]
        for online, off in ((S[q, others].max(), S[q, B + q]), (S[others, q].max(), S[B + q, q])):
            total = total + (BETA - (off - online) / ALPHA) * (MARGIN + online - s).relu()
            total = total + (m_off + off - s).relu()
        for x in (S[B + q, B + q], S[2 * B + q, 2 * B + q]):
            total = total + (m_off + x - s).relu()
    return total


@pytest.mark.parametrize("m_off", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_value_and_gradient_are_those_of_the_loss_written_out(seed: int, m_off: float) -> None:
    random = torch.Generator().manual_seed(seed)
    S = (torch.rand(3 * B, 3 * B, generator=random, dtype=torch.float64) * 1.2 - 0.4).requires_grad_()
    expected = written_out(S, m_off)
    (gradient,) = torch.autograd.grad(expected, S)
    aoq = build("objectives", f"aoq:offline_margin={m_off!r}")
    loss = weigh(aoq, S.detach(), pair_mask(torch.arange(B)), "sum", B)
    torch.testing.assert_close(loss.value, expected.detach())
    torch.testing.assert_close(loss.gradient, gradient)


def test_the_weight_turns_negative_once_off_is_alpha_beta_above_on() -> None:
    """Of one query, on 0.3 is inside the margin; off − on above 0.45 makes the loss pull the online negative closer."""
    match = torch.tensor([[True, False, False]])
    for off, sign in ((0.7, 1.0), (0.9, -1.0)):
        S = torch.tensor([[0.4, 0.3, off]], dtype=torch.float64)
        mask = Mask(match, torch.ones_like(match), {"offline": torch.tensor([[0, 0, 1]])})
        values = build("objectives", "aoq:offline_margin=0")(S, mask).values
        assert values is not None
        hinge = 0.1 * (BETA - (off - 0.3) / ALPHA)
        assert float(values) == pytest.approx(hinge + (off - 0.4))
        assert (hinge > 0) == (sign > 0)


def test_same_image_captions_that_take_no_part_are_no_online_negatives() -> None:
    S = torch.rand(3 * B, 3 * B, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    mask = pair_mask(torch.tensor([0, 0, 1, 2, 3]), "mask")
    G = weigh(build("objectives", "aoq"), S, mask, "sum", B).gradient
    assert float(G[0, 1]) == float(G[1, 0]) == 0
    assert G[0, 0] != 0
