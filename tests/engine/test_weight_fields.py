"""Do fields and curves come from the objective itself, and equal the printed formulas?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from lossscope.engine.weight_fields import (
    PAIRS,
    fields,
    goal_specs,
    objective_curves,
    pair_curves,
    weight_field,
    weights_at,
    weights_of,
)
from lossscope.errors import InputError
from lossscope.registry import build, names

Array = npt.NDArray[np.float64]
TAU, MARGIN, ALPHA, BETA, LAMBDA, M = 10.0, 0.2, 2.0, 10.0, 0.5, 0.1
T: dict[str, Callable[[Array, Array], Array]] = {
    "con": lambda p, n: (MARGIN - p + n > 0).astype(float),
    "nca": lambda p, n: 1 / (1 + np.exp(TAU * (p - n))),
    "cir": lambda p, n: 1 / (1 + np.exp(TAU * (p * (2 - p) - n**2))),
}
POSITIVE: dict[str, Callable[[Array], Array]] = {
    "con": np.ones_like,
    "lin": lambda s: 1 - s,
    "sig": lambda s: 1 / (1 + np.exp(ALPHA * (s - LAMBDA))),
    "lin-ms": lambda s: (1 - M) * (1 - s),
    "sig-ms": lambda s: 1 / (M + np.exp(ALPHA * (s - LAMBDA))),
}
NEGATIVE: dict[str, Callable[[Array], Array]] = {
    "con": np.ones_like,
    "lin": lambda s: s,
    "sig": lambda s: 1 / (1 + np.exp(-BETA * (s - LAMBDA))),
    "lin-ms": lambda s: (1 + M) * s,
    "sig-ms": lambda s: 1 / (M + np.exp(-BETA * (s - LAMBDA))),
}


def columns(frame: pd.DataFrame, *names: str) -> list[Array]:
    return [frame[name].to_numpy(dtype=float) for name in names]


@pytest.mark.parametrize("triplet", T)
def test_the_field_of_goal_with_constant_pairs_is_its_triplet_weight(triplet: str) -> None:
    p, n, w_pos, w_neg = columns(weight_field(f"goal:triplet={triplet}"), "s_pos", "s_neg", "w_pos", "w_neg")
    np.testing.assert_allclose(w_neg, T[triplet](p, n), rtol=0, atol=1e-12)
    np.testing.assert_allclose(w_pos, -T[triplet](p, n), rtol=0, atol=1e-12)


@pytest.mark.parametrize("triplet", T)
@pytest.mark.parametrize("pair", PAIRS)
def test_a_field_is_triplet_weight_times_pair_weight(triplet: str, pair: str) -> None:
    relative = f",m_plus={M},m_minus={M}" if pair.endswith("-ms") else ""
    field = weight_field(f"goal:triplet={triplet},pair={pair}{relative}", 0, 1, 21)
    p, n, w_pos, w_neg = columns(field, "s_pos", "s_neg", "w_pos", "w_neg")
    np.testing.assert_allclose(w_neg, T[triplet](p, n) * NEGATIVE[pair](n), rtol=0, atol=1e-12)
    np.testing.assert_allclose(w_pos, -T[triplet](p, n) * POSITIVE[pair](p), rtol=0, atol=1e-12)


def test_a_field_covers_the_square_once() -> None:
    field = weight_field("triplet", -0.5, 0.5, 11)
    assert list(field.columns) == ["s_pos", "s_neg", "w_pos", "w_neg", "objective"]
    assert len(field) == 121 == len(field[["s_pos", "s_neg"]].drop_duplicates())
    assert (field["s_pos"].min(), field["s_neg"].max()) == (-0.5, 0.5)
    assert set(field["objective"]) == {"triplet:margin=0.2"}
    assert len(weight_field("triplet")) == 201**2


@pytest.mark.parametrize("name", names("objectives"))
def test_any_objective_has_a_field_and_curves(name: str) -> None:
    field, curves = weight_field(name, points=9), objective_curves(name, points=9)
    assert np.isfinite(np.stack(columns(field, "w_pos", "w_neg"))).all()
    assert field["w_pos"].max() <= 0
    assert set(curves["side"]) == {"positive", "negative"}
    assert name == "ssp" or (curves["weight"] >= 0).all()  # SSP's polynomial pulls easy negatives


def test_an_objective_can_be_given_as_an_object() -> None:
    pd.testing.assert_frame_equal(weight_field(build("objectives", "vlc"), points=5), weight_field("vlc", points=5))


@pytest.mark.parametrize("draw", [weight_field, objective_curves])
def test_a_coupled_objective_is_refused_until_its_terms_are_given(draw: Callable[..., pd.DataFrame]) -> None:
    for spec in ("goal:pair=sig-ms", "goal:pair=lin-ms,m_plus=0.1"):
        with pytest.raises(InputError, match=r"depend on the rest of the batch.*m_plus=0.1,m_minus=0.1"):
            draw(spec)
    assert len(draw("goal:pair=sig-ms,m_plus=0.1,m_minus=0.1", points=5))


@pytest.mark.parametrize("pair", PAIRS)
def test_pair_curves_are_the_printed_formulas_at_the_parameters_of_the_paper(pair: str) -> None:
    curves = pair_curves()
    for side, formula in (("positive", POSITIVE[pair]), ("negative", NEGATIVE[pair])):
        s, weight = columns(curves[(curves["label"] == pair) & (curves["side"] == side)], "s", "weight")
        assert (len(s), s[0], s[-1]) == (201, 0, 1)
        np.testing.assert_allclose(weight, formula(s), rtol=0, atol=1e-12)


def test_linear_weights_of_negatives_below_0_are_signed() -> None:
    for curves in (pair_curves(["lin"], low=-1.0, points=5), objective_curves("goal:pair=lin,margin=2", points=5)):
        s, weight = columns(curves[curves["side"] == "negative"], "s", "weight")
        assert weight.tolist() == s.tolist() == [-1, -0.5, 0, 0.5, 1]


def test_pair_curves_take_options_and_relative_terms() -> None:
    curves = pair_curves(["sig-ms"], ",alpha=5", m=0.3, points=3)
    s, weight = columns(curves[curves["side"] == "positive"], "s", "weight")
    np.testing.assert_allclose(weight, 1 / (0.3 + np.exp(5 * (s - LAMBDA))))


def test_curves_of_an_objective_fix_the_other_similarity_in_the_middle() -> None:
    curves = objective_curves("ntxent:tau=0.5", -1, 1, 5)
    s, weight = columns(curves[curves["side"] == "positive"], "s", "weight")
    np.testing.assert_allclose(weight, 2 / (1 + np.exp(2 * s)))
    assert set(curves["label"]) == {"ntxent:tau=0.5 (other 0)"}


def test_curves_can_fix_the_other_similarity_at_that_of_data() -> None:
    curves = objective_curves("ntxent:tau=0.5", -1, 1, 5, other=(0.8, 0.6))
    for side, weight in (
        ("positive", lambda s: 1 / (1 + np.exp(2 * (s - 0.6)))),
        ("negative", lambda s: 1 / (1 + np.exp(2 * (0.8 - s)))),
    ):
        s, actual = columns(curves[curves["side"] == side], "s", "weight")
        np.testing.assert_allclose(actual, 2 * weight(s))
    assert set(curves["label"]) == {"ntxent:tau=0.5 (other: s₋ 0.60, s₊ 0.80)"}


@pytest.mark.parametrize(("low", "high", "points"), [(0.5, 0.5, 9), (0.5, -0.5, 9), (-2, 1, 9), (0, 1.5, 9), (0, 1, 1)])
def test_an_empty_range_raises(low: float, high: float, points: int) -> None:
    with pytest.raises(InputError, match=r"within -1..1 with at least 2 points"):
        weight_field("triplet", low, high, points)


@pytest.mark.parametrize("pair", ["lin-ms", "sig-ms"])
def test_a_full_field_of_given_relative_terms_needs_no_queries_by_queries_matrix(pair: str) -> None:
    """201 x 201 points are 40,401 queries; a matrix of all against all would need 13 GB, and the code once built it."""
    frame = weight_field(f"goal:triplet=cir,pair={pair},m_plus=0.1,m_minus=0.1")
    assert len(frame) == 201 * 201
    assert np.isfinite(frame["w_neg"]).all()


def test_the_specs_of_figure_2_are_its_parameters() -> None:
    assert goal_specs() == {
        "T con, margin 0.2": "goal:triplet=con,pair=con,tau=10.0,margin=0.2",
        "T nca, tau 10": "goal:triplet=nca,pair=con,tau=10.0,margin=0.2",
        "T cir, tau 10": "goal:triplet=cir,pair=con,tau=10.0,margin=0.2",
    }


def test_specs_of_pairs_state_their_relative_terms() -> None:
    specs = goal_specs(["nca"], ["lin", "sig-ms"], {"tau": 5.0}, m=0.3)
    assert list(specs) == ["T nca, tau 5, P lin", "T nca, tau 5, P sig-ms"]
    assert specs["T nca, tau 5, P sig-ms"].endswith("margin=0.2,m_plus=0.3,m_minus=0.3")
    assert "m_plus" not in specs["T nca, tau 5, P lin"]


def test_fields_have_their_titles_and_ranges_are_expanded() -> None:
    frame = fields({"mine": "triplet", "range": "ntxent:tau=0.1..0.2/2"}, points=3)
    assert list(frame["objective"].unique()) == ["mine", "ntxent:tau=0.1", "ntxent:tau=0.2"]
    assert len(frame) == 27


def points_of(number: int = 50) -> pd.DataFrame:
    s_pos, s_neg = np.random.default_rng(0).uniform(-1, 1, (2, number))
    return pd.DataFrame({"source": "a.pt", "s_pos": s_pos, "s_neg": s_neg})


def test_weights_at_points_are_the_printed_formulas() -> None:
    points = points_of()
    weights = weights_at("goal:triplet=cir,pair=sig", points)
    p, n, w_pos, w_neg = columns(weights, "s_pos", "s_neg", "w_pos", "w_neg")
    np.testing.assert_array_equal(p, points["s_pos"])
    np.testing.assert_allclose(w_pos, -T["cir"](p, n) * POSITIVE["sig"](p), rtol=0, atol=1e-12)
    np.testing.assert_allclose(w_neg, T["cir"](p, n) * NEGATIVE["sig"](n), rtol=0, atol=1e-12)
    assert set(weights["source"]) == {"a.pt"}


@pytest.mark.parametrize("name", names("objectives"))
def test_weights_at_the_points_of_a_field_are_the_field(name: str) -> None:
    field = weight_field(name, points=5)
    weights = weights_at(name, field[["s_pos", "s_neg"]])
    pd.testing.assert_frame_equal(weights[field.columns], field)


@pytest.mark.usefixtures("typed")
def test_weights_of_a_loss_that_is_called_once_a_point_are_of_a_sample(tmp_path: Path) -> None:
    """All rows would need one call each; the sample is evenly spaced, with the first and the last row."""
    loss = tmp_path / "mine.py"
    loss.write_text(
        "import torch\n\n\ndef loss(similarity: torch.Tensor) -> torch.Tensor:\n"
        "    return torch.nn.functional.cross_entropy(10 * similarity, torch.arange(len(similarity)))\n"
    )
    points = points_of(25)
    weights = weights_at(f"{loss}:loss", points, limit=7)
    np.testing.assert_array_equal(weights["s_pos"], points["s_pos"].iloc[[0, 4, 8, 12, 16, 20, 24]])
    assert (weights["w_pos"] <= 0).all() and (weights["w_neg"] >= 0).all()
    assert len(weights_at("ntxent", points, limit=7)) == 25


def test_weights_of_a_path_are_at_its_ends() -> None:
    path = pd.concat([points_of(10).assign(epoch=float(epoch)) for epoch in (1, 2, 3)])
    weights = weights_of({"mine": "triplet", "range": "ntxent:tau=0.1..0.2/2"}, path)
    assert list(weights["source"].unique()) == ["a.pt, epoch 1", "a.pt, epoch 3"]
    assert weights.groupby("objective", sort=False).size().to_dict() == {
        "mine": 20, "ntxent:tau=0.1": 20, "ntxent:tau=0.2": 20
    }  # fmt: skip
    assert list(weights_of({"mine": "triplet"}, points_of(4).assign(epoch=np.nan))["source"].unique()) == ["a.pt"]


@pytest.mark.parametrize("options", [{"points": "5"}, {"points": 5.5}, {"low": "0"}])
def test_points_and_ends_of_another_type_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="low and high must be numbers and points a whole number; got"):
        weight_field("ntxent", **options)


def test_no_points_are_not_the_usual_number_of_points() -> None:
    with pytest.raises(InputError, match="at least 2 points"):
        weight_field("ntxent", points=0)
