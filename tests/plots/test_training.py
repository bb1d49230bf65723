"""Do the lines show loss and rsum, with losses of different objectives on the scale that is stated?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.plots import style, training

SCALES = {"ntxent:tau=0.1": 5.0, "triplet": 400.0}


def _frame(scales=SCALES, sign=1.0):
    parts = []
    for place, (run, scale) in enumerate(scales.items()):
        steps = np.arange(0.25, 3.25, 0.25)
        train = {"epoch": steps, "split": "train", "loss": sign * scale / (1 + steps - 0.25), "rsum": np.nan}
        epochs = np.arange(4.0)
        val = {"epoch": epochs, "split": "val", "loss": np.nan, "rsum": 100 * (place + 1) + epochs}
        parts += [pd.DataFrame(train).assign(run=run), pd.DataFrame(val).assign(run=run)]
    return pd.concat(parts, ignore_index=True).sample(frac=1, random_state=0)


def test_losses_begin_at_one_and_the_legend_states_their_first_values():
    fig = training.draw_many(_frame().sort_values("run"))
    loss, rsum = fig.axes
    for line in loss.lines:
        np.testing.assert_allclose(line.get_ydata(), 1 / (1 + np.asarray(line.get_xdata()) - 0.25))
    assert loss.get_yscale() == "log"
    assert loss.get_ylabel() == "training loss / its first value"
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names == ["ntxent:tau=0.1 (loss from 5)", "triplet (loss from 400)"]
    assert len({line.get_linestyle() for line in rsum.lines}) == 2


def test_rsum_is_of_the_validation_split():
    ax = training.draw(_frame())
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(lines["triplet"].get_xdata(), range(4))
    np.testing.assert_allclose(lines["triplet"].get_ydata(), [200, 201, 202, 203])


def test_a_loss_below_zero_is_linear():
    assert training.draw(_frame(sign=-1), value="loss").get_yscale() == "log"  # shares of a negative first are positive
    frame = _frame()
    frame.loc[frame["epoch"] > 2, "loss"] *= -1
    assert training.draw(frame, value="loss").get_yscale() == "linear"


def test_seeds_of_one_label_have_one_style_and_one_name():
    frame = _frame({"a": 4.0, "b": 6.0, "c": 1.0}).assign(
        label=lambda rows: rows["run"].map({"a": "x", "b": "x", "c": "y"})
    )
    fig = training.draw_many(frame.sort_values("run"))
    styles = {(line.get_color(), line.get_linestyle()) for line in fig.axes[1].lines}
    assert len(fig.axes[1].lines) == 3 and len(styles) == 2
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["x (loss from 4 to 6)", "y (loss from 1)"]


def test_a_run_without_losses_still_has_its_rsum():
    frame = _frame()
    fig = training.draw_many(frame.assign(loss=frame["loss"].where(frame["run"] != "triplet")))
    assert [len(ax.lines) for ax in fig.axes] == [1, 2]


def test_alt_states_the_final_loss_and_the_best_rsum():
    assert "triplet: loss 400 to 107, best rsum 203.0 at epoch 3" in training.alt(_frame())


@pytest.mark.parametrize("context", [style.paper, style.screen])
def test_the_legend_is_inside_the_picture(context):
    with context():
        fig = training.draw_many(_frame())
        fig.draw_without_rendering()
        assert fig.legends[0].get_window_extent().x1 <= fig.bbox.x1


def test_frames_that_do_not_fit():
    frame = _frame()
    with pytest.raises(InputError, match="Add rsum"):
        training.draw_many(frame.drop(columns="rsum"))
    with pytest.raises(InputError, match="value must be loss or rsum; got 'mean'"):
        training.draw(frame, value="mean")
    with pytest.raises(InputError, match="a loss or an rsum; got none"):
        training.draw(frame.assign(loss=np.nan, rsum=np.nan))
