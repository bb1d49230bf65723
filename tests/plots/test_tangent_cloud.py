"""Are points at |W| sin θ of the hardest negative, under the envelope, in the colours of their epochs?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.plots import tangent_cloud


def _frame(weight: float = 1.0, epochs: tuple[float, ...] = (1.0, 2.0), objective: str = "triplet_sh") -> pd.DataFrame:
    s = np.linspace(-0.2, 1.0, 50)
    parts = [
        pd.DataFrame({"similarity": s, "weight": weight, "tangent": weight * np.sqrt(1 - s**2)}).assign(epoch=epoch)
        for epoch in epochs
    ]
    return pd.concat(parts).assign(objective=objective, source="runs/a/best.pt")


def test_points_are_where_the_rows_are_an_epoch_a_colour() -> None:
    frame = _frame()
    ax = tangent_cloud.draw(frame)
    clouds = {item.get_label(): item for item in ax.collections}
    assert set(clouds) == {"epoch 1", "epoch 2"}
    assert clouds["epoch 1"].get_facecolor().tolist() != clouds["epoch 2"].get_facecolor().tolist()
    of_first = frame[frame["epoch"] == 1]
    np.testing.assert_array_equal(clouds["epoch 1"].get_offsets(), of_first[["similarity", "tangent"]])
    medians = [line.get_xydata()[0].tolist() for line in ax.lines if line.get_marker() == "s"]
    assert medians == [[of_first["similarity"].median(), of_first["tangent"].median()]] * 2


def test_the_envelope_is_the_largest_weight_times_the_sine() -> None:
    frame = pd.concat([_frame(), _frame(objective="vlc", weight=30.0)])
    fig = tangent_cloud.draw_many(frame)
    for ax, largest in zip(fig.axes, (1.0, 30.0), strict=True):
        (envelope,) = (line for line in ax.lines if line.get_label() == "envelope")
        s, height = envelope.get_data()
        np.testing.assert_allclose(height, largest * np.sqrt(1 - s**2))
        assert (s[0], height[0]) == (1.0, 0.0) and s[-1] == pytest.approx(-0.2)
        assert f"largest weight {largest:g}" in ax.get_title()


def test_a_source_without_epochs_and_several_sources() -> None:
    single = _frame(epochs=(np.nan,))
    fig = tangent_cloud.draw_many(pd.concat([single, single.assign(source="runs/b/best.pt")]))
    assert len(fig.axes) == 2
    assert "Triplet SH on a: median" in tangent_cloud.alt(pd.concat([single, single.assign(source="runs/b/best.pt")]))
