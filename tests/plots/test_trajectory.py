"""Do the panels show the similarities, loss and rsum of each run?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.plots import trajectory
from tests.each import each


def _frame(runs=("a", "b"), epochs=4, loss=1.0):
    rows = []
    for number, run in enumerate(runs):
        for epoch in range(epochs):
            for split in ("train", "val"):
                is_val = split == "val"
                row = {"run": run, "epoch": float(epoch), "split": split, "loss": loss * (number + 1) / (epoch + 1)}
                row["rsum"] = 100.0 * (number + 1) + epoch if is_val else np.nan
                for side, level in (("pos", 0.8), ("neg", 0.4)):
                    values = dict(zip(trajectory.PARTS, (level, level - 0.2, level + 0.01, level + 0.1), strict=True))
                    row |= {f"{side}_{part}": value if is_val else np.nan for part, value in values.items()}
                rows.append(row)
    return pd.DataFrame(rows)


def test_medians_and_bands_of_the_validation_split():
    ax = trajectory.draw(_frame(("a",)))
    pos, neg = ax.lines
    np.testing.assert_allclose(pos.get_xdata(), range(4))
    np.testing.assert_allclose(pos.get_ydata(), 0.81)
    np.testing.assert_allclose(neg.get_ydata(), 0.41)
    band = ax.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((0.6, 0.9))


def test_without_quantiles_the_mean_is_drawn():
    frame = _frame(("a",))
    frame[["pos_q10", "pos_q50", "pos_q90"]] = np.nan
    np.testing.assert_allclose(trajectory.draw(frame).lines[0].get_ydata(), 0.8)


def test_many_share_axes_but_not_the_loss():
    first, loss_a, second, loss_b, rsum = trajectory.draw_many(_frame()).axes
    assert first.get_ylim() == second.get_ylim()
    assert (first.get_xlabel(), loss_a.get_xlabel(), rsum.get_xlabel()) == ("", "epoch", "epoch")
    assert loss_a.get_yscale() == "linear"  # its values, 1 to 1/4, are less than a decade apart
    assert loss_a.get_ylim() != loss_b.get_ylim()
    assert [line.get_label() for line in rsum.lines] == ["a", "b"]
    np.testing.assert_allclose(rsum.lines[1].get_ydata(), [200, 201, 202, 203])


@each("epochs, scale", [(9, "linear"), (10, "log"), (400, "log")])
def test_the_loss_is_logarithmic_from_a_decade_on_and_has_several_numbers(epochs, scale):
    fig = trajectory.draw_many(_frame(("a",), epochs=epochs))
    fig.draw_without_rendering()
    loss = fig.axes[1]
    low, high = loss.get_ylim()
    assert loss.get_yscale() == scale
    numbered = [
        tick for tick in loss.yaxis.get_major_ticks() if tick.label1.get_text() and low <= tick.get_loc() <= high
    ]
    assert len(numbered) >= 2


def test_panels_of_similarities_alone_share_axes():
    fig = trajectory.draw_panels(_frame(("a", "b", "c", "d")))
    assert [ax.get_title() for ax in fig.axes] == ["a", "b", "c", "d"]
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in fig.axes}) == 1
    for ax in fig.axes:
        np.testing.assert_allclose(ax.lines[0].get_ydata(), 0.81)
        np.testing.assert_allclose(ax.lines[1].get_ydata(), 0.41)
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["positive", "hardest negative"]


def _warmed_up():
    frame = _frame(("a", "b"))
    first = (frame["run"] == "b") & frame["epoch"].isin([1, 2])
    return frame.assign(warmup=np.where(first, "triplet", None))


def test_the_warmup_is_shaded_in_the_panels_of_its_run():
    fig = trajectory.draw_many(_warmed_up())
    first, loss_a, second, loss_b, rsum = fig.axes
    assert [len(ax.patches) for ax in (first, loss_a, second, loss_b, rsum)] == [0, 0, 1, 1, 0]
    for ax in (second, loss_b):
        assert ax.patches[0].get_x() + ax.patches[0].get_width() == 2
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names == ["positive", "hardest negative", "warm-up of b: summed triplet loss"]
    panels = trajectory.draw_panels(_warmed_up())
    assert [len(ax.patches) for ax in panels.axes] == [0, 1]


def test_the_loss_is_cut_at_the_end_of_the_warmup():
    loss = trajectory.draw_many(_warmed_up()).axes[3]
    warmups = [line for line in loss.lines if line.get_color() == "0.25" and line.get_linestyle() == "--"]
    assert sorted(list(line.get_xdata()) for line in warmups) == [[0, 3], [1, 2]]


def test_one_run_names_its_warmup():
    frame = _warmed_up()
    fig = trajectory.draw(frame[frame["run"] == "b"]).figure
    assert [text.get_text() for text in fig.legends[0].get_texts()][-1] == "warm-up: summed triplet loss"


def test_every_epoch_has_a_tick_and_a_long_run_whole_ones():
    assert list(trajectory.draw(_frame(("a",))).get_xticks()) == [0, 1, 2, 3]
    ticks = trajectory.draw(_frame(("a",), epochs=40)).get_xticks()
    assert len(ticks) < 12 and all(float(tick).is_integer() for tick in ticks)


def test_a_loss_that_is_not_positive_is_linear():
    axes = trajectory.draw_many(_frame(("a",), loss=-1.0)).axes
    assert axes[1].get_yscale() == "linear"


@each("runs", [1, 7])
def test_any_number_of_runs_and_unknown_values(runs):
    frame = _frame([f"run{k}" for k in range(runs)], epochs=1)
    frame[["loss", "rsum"]] = np.nan
    assert len(trajectory.draw_many(frame).axes) == 2 * runs + 1


def test_alt_states_the_last_similarities_and_the_best_rsum():
    assert "a: at epoch 3 positives 0.80, hardest negatives 0.40, best rsum 103.0" in trajectory.alt(_frame())


def test_the_validation_loss_is_not_cut_at_the_end_of_the_warmup():
    loss = trajectory.draw_many(_warmed_up()).axes[3]
    (val,) = [line for line in loss.lines if line.get_label() == "val"]
    np.testing.assert_allclose(val.get_xdata(), range(4))
