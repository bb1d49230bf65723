"""Which losses are the combinations of GOAL's triplet and pair weights? Measured on the objectives themselves."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.registry import build

from .field_curl import field_curl
from .weight_fields import PAIRS, TRIPLETS

_TAU, _MARGIN, _ALPHA, _BETA, _LAM = 10.0, 0.2, 2.0, 10.0, 0.5  # Figures 2 and 3 of the paper
_BATCH, _SEED = 64, 0


@dataclass(frozen=True)
class _Named:
    """A loss that Table 1 names, and what makes the combination's weights its own."""

    printed: str
    spec: str
    positive: float = 1.0  # factor of the combination's weight of the positive
    negative: float = 1.0  # factor of its weight of the hardest negative
    two: bool = True  # whether the loss sees the positive and the hardest negative alone


_SIG = f"alpha={_ALPHA},beta={_BETA},lam={_LAM}"
_NAMED = {
    ("con", "con"): _Named("Triplet loss", f"triplet_sh:margin={_MARGIN}", two=False),
    ("nca", "con"): _Named("NT-Xent loss", f"ntxent:tau={1 / _TAU}", _TAU, _TAU),
    ("cir", "lin"): _Named(
        "Circle loss", f"circle:gamma={_TAU},margin={0.5**0.5},factors=attached", 2 * _TAU, 2 * _TAU
    ),
    ("con", "sig"): _Named(
        "Binomial deviance", f"binomial_deviance:alpha={_ALPHA},cost={_BETA / _ALPHA},beta={_LAM}", _ALPHA, _BETA
    ),
    ("con", "sig-ms"): _Named("MS loss", f"multi_similarity:{_SIG}", two=False),
}


def goal_losses() -> pd.DataFrame:
    """Return the rows of GOAL's Table 1, one a combination: triplet, pair, printed, loss, difference, curl.

    - printed: the loss that the paper names, or New.
    - loss: the objective that was compared; empty where the paper names none.
    - difference: largest difference of the weights on the positive and the hardest negative, over the queries on which
      the triplet weight is not zero, as a share of the loss's largest weight there; NaN without a loss.
    - curl: largest |∂w₊/∂s₋ - ∂w₋/∂s₊| over similarities in [0.05, 0.95], relative terms 0.1. A gradient of a loss of
      the two similarities has 0; of T_con it is that of the part where T_con is 1.

    Source: Xuan & Chen 2023, Table 1 and section 3.4.
    """
    S = _similarities()
    rows = []
    for pair, triplet in itertools.product(PAIRS, TRIPLETS):
        named = _NAMED.get((triplet, pair))
        rows.append({
            "triplet": triplet, "pair": pair, "printed": named.printed if named else "New",
            "loss": named.spec if named else "", "curl": _curl(triplet, pair),
            "difference": _difference(S, triplet, pair, named) if named else float("nan"),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _similarities() -> Tensor:
    """Return (B, B) similarities between -0.4 and 0.9; some violate the margin."""
    random = torch.rand(_BATCH, _BATCH, dtype=torch.float64, generator=torch.Generator().manual_seed(_SEED))
    return random * 0.8 - 0.4 + 0.5 * torch.eye(_BATCH, dtype=torch.float64)


def _difference(S: Tensor, triplet: str, pair: str, named: _Named) -> float:
    mask = pair_mask(torch.arange(len(S)))
    hardest = S.masked_fill(mask.match, -torch.inf).argmax(1, keepdim=True)
    two = Mask(mask.match, mask.match.scatter(1, hardest, True))
    goal = build("objectives", f"goal:triplet={triplet},pair={pair},tau={_TAU},margin={_MARGIN},{_SIG}")(S, mask).W
    loss = build("objectives", named.spec)(S, two if named.two else mask).W
    both = torch.stack([torch.cat([W.diag()[:, None], W.gather(1, hardest)], 1) for W in (goal, loss)])
    ours, theirs = both[:, both[0].any(1)]
    factors = torch.tensor([named.positive, named.negative], dtype=ours.dtype)
    return float((factors * ours - theirs).abs().max() / theirs.abs().max())


def _curl(triplet: str, pair: str) -> float:
    everywhere = ",variant=released" if triplet == "con" else ""  # T_con is 1, as inside the margin
    goal = build(
        "objectives", f"goal:triplet={triplet},pair={pair},tau={_TAU},{_SIG},m_plus=0.1,m_minus=0.1{everywhere}"
    )
    return field_curl(goal).largest
