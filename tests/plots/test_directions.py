"""Does each picture of counts draw rows `both`, of a loss that adds both directions, beside the others?"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.core.sides import Sides
from lossscope.errors import InputError
from lossscope.plots import count_recall, directions, eps_curve, weight_mass, what_if
from tests.each import each

BOTH = "both directions, in one gradient"
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
    with pytest.raises(InputError, match=r"direction must be i2t, t2i, both, or .*; got sideways\."):
        directions.require_directions(frame_of(direction="sideways"))


@each("labels", [("i2t", "q2d"), ("i2t", "t2i", "d2i"), ("2d",), ("qq2d",)])
def test_directions_of_several_sides_are_refused(labels: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="direction must be i2t, t2i, both, or those of other sides"):
        directions.require_directions(pd.DataFrame({"direction": labels}))


@each("labels, sides, names", [
    (("q2d", "d2q"), None, ["query to document", "document to query"]),
    (("u2i", "i2u"), "user/item", ["user to item", "item to user"]),
    (("a2b", "b2a"), "view 1/view 2", ["view 1 to view 2", "view 2 to view 1"]),
    (("all",), "product", ["product to product"]),
    (("x2y", "y2x"), None, ["x2y", "y2x"]),
    (("t2i", "i2t"), None, ["image to text", "text to image"]),
])  # fmt: skip
def test_directions_are_named_after_the_sides(labels: tuple[str, ...], sides: str | None, names: list[str]) -> None:
    frame = pd.DataFrame({"direction": labels, **({"sides": sides} if sides else {})})
    directions.require_directions(frame)
    looks = directions.styles(frame)
    assert [look.name for look in looks.values()] == names
    assert len({look.marker for look in looks.values()}) == len(labels)
    with directions.named_after(None if sides is None else Sides.parse(sides)):
        inside = directions.styles(frame[["direction"]])
    assert [look.name for look in inside.values()] == names
