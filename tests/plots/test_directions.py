"""A loss that adds both directions has rows `both`: each picture of counts draws them beside the others."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError
from lossscope.plots import count_recall, directions, eps_curve, weight_mass, what_if

BOTH = directions.NAMES["both"]
LOSSES = (("clip_loss", "both"), ("ntxent:tau=0.07", "i2t"), ("ntxent:tau=0.07", "t2i"))


def legend_of(figure: Figure | Axes) -> list[str]:
    owner = figure if isinstance(figure, Figure) else figure.figure
    legends: list[Any] = [*owner.legends, *(ax.get_legend() for ax in owner.axes if ax.get_legend())]  # type: ignore[union-attr]
    return [text.get_text() for legend in legends for text in legend.get_texts()]


def frame_of(**columns: Any) -> pd.DataFrame:
    rows = [{"label": label, "objective": label, "direction": direction} for label, direction in LOSSES]
    return pd.DataFrame(rows).assign(**columns)


def test_counts_against_recall() -> None:
    frame = frame_of(panel="a", seed=0, count=[30.0, 20.0, 25.0], rsum=[300.0, 310.0, 310.0])
    assert BOTH in legend_of(count_recall.draw_many(frame))


def test_the_curve_over_eps() -> None:
    frame = pd.concat([frame_of(source="a", eps=eps, mean=[3.0, 2.0, 1.0]) for eps in (0.001, 0.01)])
    assert BOTH in legend_of(eps_curve.draw(frame))
    alone = frame[frame["direction"] == "both"]
    assert BOTH in legend_of(eps_curve.draw(alone))


def test_weights_on_negatives() -> None:
    frame = pd.concat([
        frame_of(statistic=name, mean=[value, value / 2, value / 3], seed=0)
        for name, value in (("W_neg", 0.6), ("W_low", 0.1), ("N_eff", 9.0))
    ])  # fmt: skip
    assert BOTH in legend_of(weight_mass.draw_many(frame))
    names = [tick.get_text().replace("\n", " ") for tick in weight_mass.draw(frame).get_yticklabels()]
    assert any(name.startswith("clip_loss, both") for name in names)


def test_other_temperatures() -> None:
    rows = [{"value": tau, "direction": "both", "mean": tau, "std": 0.1} for tau in (0.1, 0.2)]
    assert BOTH in legend_of(what_if.draw_many(pd.DataFrame(rows).assign(statistic="C_neg")))


def test_other_directions_are_refused() -> None:
    with pytest.raises(InputError, match=r"direction must be i2t, t2i, both; got sideways\."):
        directions.require_directions(frame_of(direction="sideways"))
