"""Are T, P₊ and P₋ found where a field is a product, and is the rest what least squares leaves?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.engine.analysis_options import FactorOptions
from lossscope.engine.field_curl import field_curl
from lossscope.engine.weight_factors import (
    CELL_COLUMNS,
    SUMMARY_COLUMNS,
    explained_by_difference,
    factor_field,
    weight_factors,
)
from lossscope.errors import InputError, OptionError
from lossscope.objectives.base import LossObjective, positive_of
from lossscope.registry import build
from tests.each import each

SMALL = FactorOptions(low=0.0, high=1.0, points=24)
N = 12
S = np.linspace(0.05, 0.95, N)
S_NEG, S_POS = (grid.ravel() for grid in np.meshgrid(S, S, indexing="ij"))


@dataclass(frozen=True)
class Entangled(LossObjective):
    """l_q = log(1 + e^{2 (s₋ − s₊)} + e^{s₋}): pull / push is no product of functions of s₊ and s₋."""

    __lossscope_name__: ClassVar[str] = "entangled"

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        negative = S.masked_fill(mask.non_negatives, -torch.inf).amax(1)
        return (1 + (2 * (negative - positive_of(S, mask)[:, 0])).exp() + negative.exp()).log()


@each("triplet", ["con", "nca", "cir"], "pair", ["con", "lin", "sig", "lin-ms", "sig-ms"])
def test_combinations_of_goal_are_the_products_that_they_are_made_of(triplet: str, pair: str) -> None:
    relative = ",m_plus=0.1,m_minus=0.1" if pair.endswith("-ms") else ""
    rows, cells = weight_factors(build("objectives", f"goal:triplet={triplet},pair={pair}{relative}"), "a", SMALL)
    assert rows["factorises"].item(), rows.to_dict("records")
    assert list(rows.columns) == list(SUMMARY_COLUMNS) and list(cells.columns) == list(CELL_COLUMNS)
    if pair != "lin":
        return
    known = cells.dropna(subset=["positive"]).drop_duplicates("s_pos")
    ratio = known["positive"] / (1 - known["s_pos"]).where(known["s_pos"] < 1)
    np.testing.assert_allclose(ratio.dropna(), ratio.dropna().iloc[0], rtol=1e-9)
    assert np.log(known["positive"]).mean() == pytest.approx(0, abs=1e-9)


def test_a_planted_product_is_found_with_its_balance_and_its_zeros() -> None:
    rng = np.random.default_rng(0)
    T, P_pos, P_neg = rng.uniform(0.1, 1, (N, N)), rng.uniform(0.5, 2, N), rng.uniform(0.5, 2, N)
    P_pos, P_neg = P_pos / np.exp(np.log(P_pos).mean()), P_neg / np.exp(np.log(P_neg).mean())
    factors = factor_field(4.0 * T * P_pos, T * P_neg[:, None])
    assert factors.factorises and factors.balance == pytest.approx(4)
    np.testing.assert_allclose(factors.positive, P_pos)
    np.testing.assert_allclose(factors.negative, P_neg)
    np.testing.assert_allclose(factors.triplet, 2 * T)  # the balance is shared by both sides
    T[:, :4] = 0.0
    silent = factor_field(T * P_pos, T * P_neg[:, None])
    assert silent.factorises and (silent.fitted, silent.one_zero) == (N * (N - 4), 0)
    np.testing.assert_allclose(silent.triplet[:, :4], 0.0)


def test_a_single_zero_is_explained_by_a_pair_weight_of_0_alone() -> None:
    pull, push = np.ones((N, N)), np.ones((N, N))
    push[:3] = 0.0  # whatever s₊ is: P₋ is 0 at these s₋
    explained = factor_field(pull, push)
    assert explained.factorises and (explained.one_zero, explained.not_factorisable) == (3 * N, 0)
    push[5, 5] = 0.0
    pull[7, 2] = -1.0  # pushes a positive that is pulled at every other s₋
    planted = factor_field(pull, push)
    assert not planted.factorises
    assert (planted.one_zero, planted.not_factorisable) == (3 * N + 1, 2)


def test_what_is_no_product_leaves_what_plain_least_squares_leaves() -> None:
    rows, cells = weight_factors(Entangled(), "a", SMALL)
    e = {"D": np.exp(2 * (cells["s_neg"] - cells["s_pos"])), "n": np.exp(cells["s_neg"])}
    ratio = np.log(2 * e["D"] / (2 * e["D"] + e["n"]))
    lines = [np.eye(24)[cells[name].rank(method="dense").astype(int) - 1] for name in ("s_pos", "s_neg")]
    design = np.hstack(lines)
    left = ratio - design @ np.linalg.lstsq(design, ratio, rcond=None)[0]
    np.testing.assert_allclose(cells["residual"], left, atol=1e-10)
    assert not rows["factorises"].item()
    assert rows["rms"].item() == pytest.approx(np.sqrt(np.mean(left**2)))
    assert rows["largest"].item() == pytest.approx(left.abs().max())
    assert rows["unexplained"].item() == pytest.approx(np.mean(left**2) / np.var(ratio))


@each("spec, share", [("ntxent", 1.0), ("triplet_sh", 1.0), ("unified:gamma=5", 1.0), ("goal:triplet=nca", 1.0)])
def test_t_of_losses_of_a_difference_depends_on_it_alone(spec: str, share: float) -> None:
    rows, _ = weight_factors(build("objectives", spec), spec, SMALL)
    assert rows["T_by_D"].item() == pytest.approx(share, abs=1e-9)


def test_t_that_depends_on_more_than_the_difference_is_explained_in_part() -> None:
    rows, _ = weight_factors(build("objectives", "goal:triplet=cir"), "a", SMALL)
    assert 0.1 < rows["T_by_D"].item() < 0.99
    assert math.isnan(weight_factors(build("objectives", "contrastive"), "a", SMALL)[0]["T_by_D"].item())
    assert explained_by_difference(np.add.outer(S, S)) == pytest.approx(0, abs=1e-9)


@each(
    "spec",
    ["ntxent", "vlc", "ssp", "circle:factors=attached", "triplet_sh", "contrastive", "goal:triplet=cir,pair=lin"],
)
def test_gradients_of_losses_have_no_curl(spec: str) -> None:
    assert field_curl(build("objectives", spec)).relative < 1e-6


@each("spec", ["circle:gamma=10", "goal:triplet=nca,pair=lin", "goal:triplet=cir,pair=sig"])
def test_weights_with_held_factors_and_products_of_no_loss_have_a_curl(spec: str) -> None:
    assert field_curl(build("objectives", spec)).relative > 0.05


def test_the_curl_is_that_of_the_formula() -> None:
    """goal nca, lin: w₊ = −T (1 − s₊), w₋ = T s₋, T' = tau T (1 − T): curl = −T' (1 − s₊) + T' s₋."""
    T = 1 / (1 + np.exp(-10 * (S_NEG - S_POS)))
    slope = 10 * T * (1 - T)
    expected = np.abs(slope * (S_NEG - (1 - S_POS))).max()
    found = field_curl(build("objectives", "goal:triplet=nca,pair=lin"), S[0], S[-1], N)
    assert found.largest == pytest.approx(expected, rel=1e-6)


def test_points_at_a_jump_are_left_out_and_counted() -> None:
    """The hinge jumps at s₋ = s₊ − 0.25, which the diagonal points of this grid are at."""
    found = field_curl(build("objectives", "triplet_sh:margin=0.25"), -0.5, 0.5, 9)
    assert (found.largest, found.points, found.kinks) == (0.0, 81, 7)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(OptionError, match="--low must be below --high"):
        FactorOptions(low=0.5, high=0.5)
    with pytest.raises(InputError, match="relative terms"):
        weight_factors(build("objectives", "goal:pair=lin-ms"), "a", SMALL)
