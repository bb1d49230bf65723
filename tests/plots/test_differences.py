"""Are the marks the differences, their lines the intervals, and units in panels of their own?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lossscope.plots import differences, epoch_counts


def frame():
    shared = {"source": "a.pt", "b_source": "b.pt", "objective": "ntxent:tau=0.1", "b_objective": "ntxent:tau=0.1",
              "direction": "i2t", "probe": "cocos", "mean": 1.0, "b_mean": 2.0, "level": 0.95}  # fmt: skip
    ends = [
        ("C_neg", "samples", 2.0, 1.0, 3.0),
        ("N_eff", "samples", 0.5, -0.5, 1.5),
        ("W_pos", "weight", -1, -2, -0.5),
    ]
    return pd.DataFrame([
        {**shared, "statistic": name, "unit": unit, "difference": mean, "low": low, "high": high}
        for name, unit, mean, low, high in ends
    ])  # fmt: skip


def test_marks_are_differences_and_lines_their_intervals():
    ax = differences.draw(frame().iloc[:2])
    marks = [line for line in ax.lines if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in marks] == [2.0, 0.5]
    ends = [collection.get_segments()[0][:, 0].tolist() for collection in ax.collections]
    assert ends == [[1.0, 3.0], [-0.5, 1.5]]
    assert marks[0].get_color() != marks[1].get_color()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["C_neg i2t", "N_eff i2t"]


def test_units_have_panels_of_their_own():
    assert [ax.get_xlabel() for ax in differences.draw_many(frame()).axes] == ["B − A, samples", "B − A, weight"]
    assert "C_neg 2 (1 to 3)" in differences.alt(frame())


def epochs():
    shared = {"source": "run", "objective": "ntxent", "statistic": "C_neg", "unit": "samples", "level": 0.95}
    return pd.DataFrame([
        {**shared, "direction": direction, "epoch": epoch, "mean": mean, "low": mean - 1, "high": mean + 1}
        for direction, scale in (("i2t", 1), ("t2i", 2)) for epoch, mean in ((2, 3.0 * scale), (1, 5.0 * scale))
    ])  # fmt: skip


def test_lines_are_means_in_the_order_of_epochs_within_their_bands():
    ax = epoch_counts.draw(epochs())
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [5, 3])
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), [10, 6])
    y = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (y.min(), y.max()) == (2, 6)
    assert "C_neg i2t: 5 (4 to 6) after epoch 1, 3 (2 to 4) after epoch 2" in epoch_counts.alt(epochs())


def test_an_interval_without_neighbours_is_drawn_as_an_error_bar():
    rows = epochs()[lambda rows: rows["direction"] == "i2t"]
    rows.loc[rows["epoch"] == 1, ["low", "high"]] = np.nan
    ax = epoch_counts.draw(rows)
    bars = [artist.get_segments() for artist in ax.collections if hasattr(artist, "get_segments")]
    np.testing.assert_array_equal(bars[0][0], [[2, 2], [2, 4]])
    assert "nan" not in epoch_counts.alt(rows)


def test_thresholds_and_losses_have_panels_of_their_own():
    rows = pd.concat([epochs().assign(eps=eps, probe="cocos") for eps in (0.01, 0.1)])
    assert [ax.get_title() for ax in epoch_counts.draw_many(rows).axes] == ["ε = 0.01", "ε = 0.1"]
    assert "C_neg i2t (ε = 0.1): 5" in epoch_counts.alt(rows)
    losses = pd.concat([epochs().assign(objective=name) for name in ("ntxent:tau=0.1", "triplet:margin=0.2")])
    titles = [ax.get_title() for ax in epoch_counts.draw_many(losses).axes]
    assert titles == ["NT-Xent, temperature τ = 0.1", "Triplet, margin 0.2"]


def test_marks_of_several_thresholds_are_named():
    rows = pd.concat([frame().iloc[:1].assign(eps=eps) for eps in (0.01, 0.1)])
    names = [text.get_text() for text in differences.draw(rows).get_yticklabels()]
    assert names == ["C_neg i2t, eps 0.01", "C_neg i2t, eps 0.1"]
