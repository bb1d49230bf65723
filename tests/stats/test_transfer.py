"""Is a count split into what is of the loss and what is of the model? On matrices whose parts are known."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.stats.transfer import effect_shares, transfer
from lossscope.tables import transfer as table
from tests.each import each

LOSSES = ("triplet", "ntxent", "unified")


def summary(counts: np.ndarray, models: int = 1) -> pd.DataFrame:
    """Return summary rows of every loss (rows) on `models` models of every loss (columns)."""
    rows = []
    for (i, loss), (j, trained), model in itertools.product(enumerate(LOSSES), enumerate(LOSSES), range(models)):
        statistic = "C_q_all" if loss == "triplet" else "C_neg"
        rows.append({
            "source": f"{trained}-{model}", "objective": loss, "direction": "i2t", "probe": "cocos",
            "statistic": statistic, "mean": counts[i, j] + model, "low": counts[i, j] - 1, "high": counts[i, j] + 1,
            "level": 0.95, "method": "two-way", "unit": "samples", "weight_unit": "relative", "eps": 0.01,
            "batch_size": 128.0, "sampling": "pairs", "seed": 0,
        })  # fmt: skip
    return pd.DataFrame(rows)


def trained_with(models: int = 1) -> dict[str, str]:
    return {f"{loss}-{model}": loss for loss in LOSSES for model in range(models)}


LOSS, MODEL = np.array([8.0, 2.0, 1.0])[:, None], np.array([1.0, 3.0, 9.0])[None, :]


@each("counts, of_loss, of_model", [(LOSS + 0 * MODEL, 1, 0), (0 * LOSS + MODEL, 0, 1), (LOSS * LOSS.T, 0.5, 0.5)])
def test_shares_are_those_that_made_the_matrix(counts: np.ndarray, of_loss: float, of_model: float) -> None:
    (shares,) = effect_shares(transfer(summary(counts), trained_with())).to_dict("records")
    assert shares["scale"] == "log"
    assert shares["of_loss"] == pytest.approx(of_loss)
    assert shares["of_model"] == pytest.approx(of_model)
    assert shares["of_both"] == pytest.approx(0, abs=1e-12)
    assert shares["on_diagonal"] == pytest.approx(0, abs=1e-12)


def test_a_loss_that_counts_less_at_its_own_optimum_alone_is_neither_of_loss_nor_of_model() -> None:
    counts = np.exp(1 - np.eye(3))
    (shares,) = effect_shares(transfer(summary(counts), trained_with())).to_dict("records")
    assert shares["of_both"] == pytest.approx(1)
    assert shares["on_diagonal"] == pytest.approx(-2 / 3)  # −1, less the means of its row, its column and all


def test_a_matrix_with_zeros_is_compared_as_it_is_and_an_equal_one_has_no_shares() -> None:
    (shares,) = effect_shares(transfer(summary(LOSS - 1 + 0 * MODEL), trained_with())).to_dict("records")
    assert (shares["scale"], shares["of_loss"]) == ("linear", pytest.approx(1))
    (shares,) = effect_shares(transfer(summary(np.ones((3, 3))), trained_with())).to_dict("records")
    assert np.isnan([shares["of_loss"], shares["of_model"], shares["of_both"]]).all()


def test_several_models_of_a_loss_have_their_mean_and_a_t_interval() -> None:
    single, several = (transfer(summary(LOSS * MODEL, n), trained_with(n)) for n in (1, 2))
    assert single["method"].eq("two-way").all()
    assert (single["high"] - single["mean"]).tolist() == pytest.approx([1] * 9)
    assert (several["mean"] - single["mean"]).tolist() == pytest.approx([0.5] * 9)
    assert several["models"].eq(2).all()
    assert (several["high"] - several["mean"]).tolist() == pytest.approx([12.706 * 0.5] * 9, rel=1e-4)


def test_counts_of_all_losses_have_one_name_and_the_table_marks_the_diagonal() -> None:
    frame = transfer(summary(LOSS * MODEL), trained_with(), "train")
    assert frame["statistic"].unique().tolist() == ["C_neg"]
    matrix, shares = table.build(frame)
    assert [[cell.plain().partition(" ")[0] for cell in row[2:]] for row in matrix.rows] == [
        ["8.00*", "24.00", "72.00"], ["2.00", "6.00*", "18.00"], ["1.00", "3.00", "9.00*"]
    ]  # fmt: skip
    assert "split train; batch size 128; pairs, seed 0, eps 0.01, unit relative" in matrix.caption
    assert [cell.plain() for cell in shares.rows[0]] == ["C_neg", "i2t", "48", "52", "0", "+0.00 (log)"]


def test_models_of_one_loss_or_of_an_unknown_one_are_refused() -> None:
    rows = summary(LOSS * MODEL)
    with pytest.raises(InputError, match="two losses or more; got triplet"):
        transfer(rows, dict.fromkeys(trained_with(), "triplet"))
    with pytest.raises(InputError, match="unified-0 does not"):
        transfer(rows, {"triplet-0": "triplet", "ntxent-0": "ntxent"})
