"""Are the cells of the map means of bins by the largest weight of their loss, blank without queries?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from matplotlib.axes import Axes

from lossscope.plots import vanishing_map


def _cells(ax: Axes) -> npt.NDArray[np.float64]:
    values = np.ma.asarray(ax.collections[0].get_array())
    return np.asarray(values.filled(np.nan), dtype=np.float64).reshape(round(ax.get_ylim()[0] - ax.get_ylim()[1]), -1)


def _frame(s: list[float], weight: list[float], objective: str = "triplet_sh", epoch: float = np.nan) -> pd.DataFrame:
    tangent = np.array(weight) * np.sqrt(1 - np.array(s) ** 2)
    rows = pd.DataFrame({"similarity": s, "weight": weight, "tangent": tangent})
    return rows.assign(objective=objective, epoch=epoch, source="runs/a/best.pt")


def test_a_violating_query_of_triplet_sh_has_the_sine_in_its_bin_and_all_other_bins_are_blank() -> None:
    cells = _cells(vanishing_map.draw(_frame([0.62], [1.0])))
    known = ~np.isnan(cells)
    assert known.sum(1).tolist() == [1, 1]  # the limit, and the loss
    np.testing.assert_allclose(cells[known], np.sqrt(1 - 0.62**2))
    assert known[0].tolist() == [True, *[False] * 7]  # bins of 0.05 from 0.60 to 1


def test_cells_are_means_of_plain_loops_by_the_largest_weight_of_all_epochs() -> None:
    rng = np.random.default_rng(0)
    s = rng.uniform(0.3, 1, 200).tolist()
    first, second = _frame(s, rng.uniform(0, 2, 200).tolist(), epoch=1.0), _frame(s, [5.0] * 200, epoch=2.0)
    fig = vanishing_map.draw_many(pd.concat([first, second]))
    cells = _cells(fig.axes[0])
    edges = [1 - 0.05 * k for k in range(cells.shape[1], -1, -1)]
    for column, (low, high) in enumerate(pairwise(edges)):
        inside = [t / 5 for x, t in zip(first["similarity"], first["tangent"], strict=True) if low <= x < high]
        assert cells[1, column] == pytest.approx(np.mean(inside))
    assert np.nanmax(_cells(fig.axes[1])[1] - _cells(fig.axes[1])[0]) < 1e-12  # no loss exceeds the limit


def test_losses_stand_by_their_strength_with_the_share_of_queries_without_weight() -> None:
    weak = _frame([0.5, 0.7, 0.9, 0.9], [4.0, 0.0, 0.0, 0.0], "ntxent")
    ax = vanishing_map.draw(pd.concat([weak, _frame([0.5, 0.7, 0.9, 0.9], [1.0, 1.0, 1.0, 0.0])]))
    assert [label.get_text() for label in ax.get_yticklabels()[1:]] == ["Triplet SH", "NT-Xent"]
    assert [text.get_text() for text in ax.texts[2:]] == ["25 %", "75 %"]


def test_a_loss_without_any_weight_turns_nothing() -> None:
    cells = _cells(vanishing_map.draw(_frame([0.5, 0.6], [0.0, 0.0])))
    assert np.nansum(cells[1]) == 0


def test_the_first_a_middle_and_the_last_epoch_have_panels() -> None:
    frame = pd.concat([_frame([0.5], [1.0], epoch=float(epoch)) for epoch in range(1, 8)])
    fig = vanishing_map.draw_many(frame)
    assert [ax.get_title() for ax in fig.axes[:3]] == [f"epoch {n}: 1 query" for n in (1, 4, 7)]
    assert "after epoch 7: Triplet SH 0.87 (0% without weight)" in vanishing_map.alt(frame)
