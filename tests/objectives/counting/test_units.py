"""Are counts right in every unit of weights: the paper's, shares of the saturated weight, and dL/ds?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import normalise, pair_mask
from lossscope.core.types import WeightUnit
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.checks.trial_batches import random_batch
from lossscope.objectives.counting.units import largest_weight, resolve_unit, saturated_weight, unit_factor
from lossscope.registry import build, names
from tests.each import each

pytestmark = pytest.mark.usefixtures("typed")  # Python files that specs name

LOSSES = """
import torch, torch.nn.functional as F
def rows(S, tau=0.07): return F.cross_entropy(S / tau, torch.arange(len(S)))
def columns(S, tau=0.07): return F.cross_entropy(S.T / tau, torch.arange(len(S)))
def symmetric(S, tau=0.07): return (rows(S, tau) + columns(S, tau)) / 2
def added(S, tau=0.07): return (rows(S, tau) + columns(S, tau)) * len(S)
def hinge(S, margin=0.2):
    worse = (margin + S - S.diag()[:, None]).relu()
    return worse.masked_fill(torch.eye(len(S), dtype=torch.bool), 0).sum() * 3
def flat(S): return torch.sigmoid((S - S.diag()[:, None]) / 0.01).sum()
"""


@pytest.fixture(name="losses")
def file_of_losses(tmp_path: Path) -> str:
    path = tmp_path / "plain.py"
    path.write_text(LOSSES)
    return str(path)


@pytest.fixture(name="embedded", scope="module")
def split() -> SplitEmbeddings:
    random = torch.Generator().manual_seed(0)
    V = normalise(torch.randn(40, 8, generator=random))
    T = normalise(V + 0.7 * torch.randn(40, 8, generator=random))
    ids = [str(row) for row in range(40)]
    return SplitEmbeddings("s", V, T, None, torch.arange(40).numpy(), ids, ids, "f" * 64)


def summary(embedded: SplitEmbeddings, *objectives: str, unit: str = "paper", batch_size: int = 20) -> pd.DataFrame:
    probes = (f"cocos:eps=0.01,unit={unit}", f"weight_mass:eps=0.01,unit={unit}")
    return Sweep(objectives, probes, batch_size=batch_size).run(embedded).summary


def values(rows: pd.DataFrame, objective: str, direction: str, probe: str = "cocos") -> dict[str, float]:
    chosen = rows[
        (rows["objective"].str.contains(objective)) & (rows["direction"] == direction) & (rows["probe"] == probe)
    ]
    return dict(zip(chosen["statistic"], chosen["mean"], strict=True))


@each("name", names("objectives"))
def test_the_scale_of_the_paper_is_what_its_counted_weights_are_divided_by(name: str) -> None:
    objective: Objective = build("objectives", name)
    batch = random_batch(objective, 0)
    if objective.paper_scale is None:
        assert name == "smoothap"
        return
    counted = objective.counted_weights(batch.S, batch.mask)
    W = objective(batch.S, batch.mask).W.abs() * batch.mask.negatives * batch.mask.usable[:, None]
    torch.testing.assert_close(counted.weights[:, 0] * objective.paper_scale, W)


@each(
    "spec, weight",
    [("ntxent:tau=0.07", 1 / 0.07), ("triplet", 1.0), ("triplet-sh", 1.0), ("vlc:gamma=20", 20.0), ("siglip", 5.0)],
)
def test_the_saturated_weight_is_measured(spec: str, weight: float) -> None:
    assert saturated_weight(build("objectives", spec)) == pytest.approx(weight, rel=1e-3)


def test_a_loss_whose_weight_falls_again_has_no_relative_unit(embedded: SplitEmbeddings, losses: str) -> None:
    with pytest.raises(InputError, match=r"smoothap is 0 at s₊ = −1, s₋ = \+1, .* --unit cosine"):
        summary(embedded, "smoothap", unit="relative")
    with pytest.raises(InputError, match="whose weight saturates"):
        summary(embedded, f"{losses}:flat")


@each("batch_size", [20, 15])
def test_a_row_wise_cross_entropy_counts_exactly_as_ntxent(
    embedded: SplitEmbeddings, losses: str, batch_size: int
) -> None:
    rows = summary(embedded, f"{losses}:rows", f"{losses}:columns", "ntxent:tau=0.07", batch_size=batch_size)
    for name, direction, other in (("rows", "i2t", "t2i"), ("columns", "t2i", "i2t")):
        theirs, ours = values(rows, f":{name}", direction), values(rows, "ntxent", direction)
        assert theirs["C_neg"] == ours["C_neg"] > 1
        assert theirs == pytest.approx(ours, rel=1e-5)
        assert not values(rows, f":{name}", other)


def test_both_directions_at_once_are_one_row_of_their_mean_weights(embedded: SplitEmbeddings, losses: str) -> None:
    rows = summary(embedded, f"{losses}:symmetric", f"{losses}:added", "ntxent:tau=0.07")
    for name in (":symmetric", ":added"):
        assert set(rows.loc[rows["objective"].str.contains(name), "direction"]) == {"both"}
        actual = values(rows, name, "both")
        mean = {
            key: (values(rows, "ntxent", "i2t")[key] + values(rows, "ntxent", "t2i")[key]) / 2
            for key in ("W_neg", "W_low", "W_pos")
        }
        assert actual["W_neg"] + actual["W_low"] == pytest.approx(mean["W_neg"] + mean["W_low"], rel=1e-5)
        assert actual["W_pos"] == pytest.approx(mean["W_pos"], rel=1e-5)


def test_units_are_named_in_every_row(embedded: SplitEmbeddings, losses: str) -> None:
    rows = summary(embedded, "ntxent:tau=0.07", f"{losses}:rows")
    units = dict(zip(rows["objective"].str.partition(":")[0], rows["weight_unit"], strict=True))
    assert units["ntxent"] == "paper"
    assert set(rows.loc[rows["objective"].str.contains("plain"), "weight_unit"]) == {"relative"}
    relative = summary(embedded, "ntxent:tau=0.07", f"{losses}:rows", unit="relative")
    assert set(relative["weight_unit"]) == {"relative"}


def test_relative_puts_a_hinge_of_any_factor_on_one_scale(embedded: SplitEmbeddings, losses: str) -> None:
    rows = summary(embedded, f"{losses}:hinge", "triplet", unit="relative")
    theirs, ours = values(rows, "hinge", "i2t", "weight_mass"), values(rows, "triplet", "i2t", "weight_mass")
    assert theirs == pytest.approx(ours)


def test_cosine_is_the_gradient_itself(embedded: SplitEmbeddings) -> None:
    paper, cosine = (summary(embedded, "ntxent:tau=0.07", "smoothap", unit=unit) for unit in ("paper", "cosine"))
    total = [sum(values(rows, "ntxent", "i2t")[name] for name in ("W_neg", "W_low")) for rows in (paper, cosine)]
    assert total[1] == pytest.approx(total[0] / 0.07, rel=1e-6)
    assert values(cosine, "smoothap", "i2t", "weight_mass")["W_neg"] > 0


def test_tiles_count_in_the_unit_as_whole_rows_do(embedded: SplitEmbeddings) -> None:
    objectives = ("ntxent:tau=0.07", "triplet", "vlc")
    dense, tiled = (
        Sweep(objectives, ("cocos:unit=relative",), batch_size=None, engine=engine).run(embedded).summary
        for engine in ("dense", "tiled")
    )
    assert dense["mean"].tolist() == pytest.approx(tiled["mean"].tolist(), rel=1e-3)


def test_a_published_convention_has_no_other_unit(embedded: SplitEmbeddings) -> None:
    with pytest.raises(InputError, match="unit must be paper for the weights of a published convention; got relative"):
        Sweep(("triplet",), ("cocos:unit=relative,convention=released",)).run(embedded)


def test_a_unit_is_resolved_once() -> None:
    ntxent = build("objectives", "ntxent")
    assert resolve_unit(ntxent, "paper") == "paper"
    assert unit_factor(ntxent, "paper") == 1.0
    assert unit_factor(ntxent, "cosine") == 10.0
    assert unit_factor(build("objectives", "smoothap"), "cosine") is None


@each("unit", ["paper", "relative", "cosine"])
def test_no_weight_of_a_softmax_exceeds_its_bound_which_is_reached(unit: WeightUnit) -> None:
    """`cocos` warns of an eps by this bound."""
    bounded = [spec for spec in names("objectives") if largest_weight(build("objectives", spec), unit) is not None]
    assert {"ntxent", "infonce", "npair", "vlc", "dcl", "unified"} <= {*bounded}
    mask = pair_mask(torch.arange(8))
    S = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
    S[0, 1] = 1e3
    for spec in bounded:
        objective = build("objectives", spec)
        factor, bound = unit_factor(objective, unit), largest_weight(objective, unit)
        assert factor is not None and bound is not None
        heaviest = float(objective.counted_weights(S, mask).weights.max()) * factor
        assert 0.999 * bound <= heaviest <= bound * (1 + 1e-6)
    assert largest_weight(build("objectives", "triplet"), "paper") is None
