"""Do the lines show loss and rsum, with losses of different objectives on the stated scale?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lossscope.plots import training
from tests.each import each

SCALES = {"ntxent:tau=0.1": 5.0, "triplet": 400.0}


def _frame(scales=SCALES, sign=1.0, fall=1.0):
    parts = []
    for number, (run, scale) in enumerate(scales.items()):
        steps = np.arange(0.25, 3.25, 0.25)
        train = {"epoch": steps, "split": "train", "loss": sign * scale / (1 + fall * (steps - 0.25)), "rsum": np.nan}
        epochs = np.arange(4.0)
        val = {"epoch": epochs, "split": "val", "loss": np.nan, "rsum": 100 * (number + 1) + epochs}
        parts += [pd.DataFrame(train).assign(run=run), pd.DataFrame(val).assign(run=run)]
    return pd.concat(parts, ignore_index=True).sample(frac=1, random_state=0)


def test_losses_begin_at_one_and_the_legend_has_names_alone():
    fig = training.draw_many(_frame().sort_values("run"))
    loss, rsum = fig.axes
    for line in loss.lines:
        np.testing.assert_allclose(line.get_ydata(), 1 / (1 + np.asarray(line.get_xdata()) - 0.25))
    assert loss.get_ylabel() == "training loss / its first value"
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names == ["NT-Xent, temperature τ = 0.1", "Triplet"]
    assert len({line.get_linestyle() for line in rsum.lines}) == 2


def test_rsum_is_of_the_validation_split():
    ax = training.draw(_frame())
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(lines["triplet"].get_xdata(), range(4))
    np.testing.assert_allclose(lines["triplet"].get_ydata(), [200, 201, 202, 203])


def _axis_numbers(ax):
    """Return the numbers of the vertical axis within its limits."""
    ax.figure.draw_without_rendering()
    low, high = ax.get_ylim()
    return [tick for tick in ax.yaxis.get_major_ticks() if tick.label1.get_text() and low <= tick.get_loc() <= high]


@each("fall, scale", [(0.4, "linear"), (1.0, "linear"), (3.2, "linear"), (3.3, "log"), (99, "log")])
def test_the_loss_is_logarithmic_from_a_decade_on_and_has_several_numbers(fall, scale):
    """A loss that fell to 0.7 of its first value had a logarithmic axis with the number 1 alone."""
    for ax in (training.draw(_frame(fall=fall), value="loss"), training.draw_many(_frame(fall=fall)).axes[0]):
        assert ax.get_yscale() == scale
        assert len(_axis_numbers(ax)) >= 2


def test_a_loss_below_zero_is_linear():
    assert training.draw(_frame(sign=-1, fall=5), value="loss").get_yscale() == "log"  # shares of a negative first
    frame = _frame(fall=5)
    frame.loc[frame["epoch"] > 2, "loss"] *= -1
    assert training.draw(frame, value="loss").get_yscale() == "linear"


def test_seeds_of_one_label_have_one_style_and_one_name():
    frame = _frame({"a": 4.0, "b": 6.0, "c": 1.0}).assign(
        label=lambda rows: rows["run"].map({"a": "x", "b": "x", "c": "y"})
    )
    fig = training.draw_many(frame.sort_values("run"))
    styles = {(line.get_color(), line.get_linestyle()) for line in fig.axes[1].lines}
    assert len(fig.axes[1].lines) == 3 and len(styles) == 2
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["x", "y"]


def test_a_run_without_losses_still_has_its_rsum():
    frame = _frame()
    fig = training.draw_many(frame.assign(loss=frame["loss"].where(frame["run"] != "triplet")))
    assert [len(ax.lines) for ax in fig.axes] == [1, 2]


def test_alt_states_the_final_loss_and_the_best_rsum():
    assert "Triplet: loss 400 to 107, best rsum 203.0 at epoch 3" in training.alt(_frame())


def _warmed_up():
    """Return two runs of triplet_sh whose first two epochs train with the summed triplet loss, and one of ntxent."""
    frame = _frame({"triplet_sh": 400.0, "triplet_sh:margin=0.3": 500.0, "ntxent": 5.0})
    first = frame["run"].str.startswith("triplet_sh") & (frame["epoch"] > 0) & (frame["epoch"] <= 2)
    frame.loc[frame["run"].str.startswith("triplet_sh") & (frame["epoch"] > 2), "loss"] /= 100
    return frame.assign(warmup=np.where(first, "triplet", None)).sort_values("run")


def test_the_warmup_is_shaded_and_named_in_the_legend():
    fig = training.draw_many(_warmed_up())
    for ax in fig.axes:
        (span,) = ax.patches
        assert (span.get_x(), span.get_x() + span.get_width()) == (0, 2)
    names = [text.get_text().replace("\n", " ") for text in fig.legends[0].get_texts()]
    assert names[-1] == "warm-up of Triplet SH, Triplet SH, margin 0.3: summed triplet loss"
    assert len(names) == 4


def test_the_loss_after_the_warmup_is_a_line_of_its_own():
    """One line over both phases fell a hundredfold at the end of the warm-up."""
    loss = training.draw_many(_warmed_up()).axes[0]
    lines = [line for line in loss.lines if line.get_label() == "triplet_sh"]
    assert [(min(line.get_xdata()), max(line.get_xdata())) for line in lines] == [(0.25, 2.0), (2.25, 3.0)]
    assert all(line.get_ydata()[0] == 1 and line.get_ydata()[-1] > 0.3 for line in lines)
    assert len([line for line in loss.lines if line.get_label() == "ntxent"]) == 1


def test_alt_states_the_loss_of_both_phases():
    assert "Triplet SH: loss 400 to 145 in the warm-up, loss 1.33 to 1.07 after it, best" in training.alt(_warmed_up())


def test_every_epoch_has_a_tick_from_the_first():
    for ax in training.draw_many(_frame()).axes:
        assert list(ax.get_xticks()) == [0, 1, 2, 3]
    later = _frame()
    later = later[later["epoch"] >= 1]
    assert list(training.draw(later).get_xticks()) == [1, 2, 3]


def test_runs_are_named_by_what_distinguishes_their_paths():
    frame = _frame({f"/somewhere/runs/scenes--vse--{loss}--seed0/run": 1.0 for loss in ("triplet-sh", "nt-xent")})
    names = {text.get_text() for text in training.draw_many(frame).legends[0].get_texts()}
    assert names == {"Triplet SH", "NT-Xent"}


def _validated(**changes):
    """Return the frame of `_warmed_up` with validation losses, of the run's own loss in the warm-up too."""
    frame = _warmed_up()
    is_val = frame["split"] == "val"
    return frame.assign(loss=frame["loss"].where(~is_val, 8.0 / (1 + frame["epoch"])), **changes)


def test_a_validation_loss_that_every_run_has_takes_the_place_of_the_training_loss():
    """As in Figure 3 (a) of the paper; it is one quantity, so that a warm-up does not cut it."""
    fig = training.draw_many(_validated())
    loss = fig.axes[0]
    assert loss.get_ylabel() == "validation loss / its first value"
    for line in loss.lines[-3:]:
        np.testing.assert_allclose(line.get_xdata(), range(4))
        np.testing.assert_allclose(line.get_ydata(), [1, 1 / 2, 1 / 3, 1 / 4])
    assert training.alt(_validated()).startswith("Validation loss and rsum against epochs. ")
    assert "Triplet SH: loss 8 to 2, best" in training.alt(_validated())


def test_runs_of_which_some_have_no_validation_loss_are_compared_by_the_training_loss():
    frame = _validated()
    older = frame.assign(loss=frame["loss"].where((frame["split"] == "train") | (frame["run"] != "ntxent")))
    assert training.draw_many(older).axes[0].get_ylabel() == "training loss / its first value"
    assert training.loss_name(older) == "Training loss"
    alone = older.assign(loss=older["loss"].where(older["run"] != "ntxent"))  # a run without any loss
    assert training.loss_name(alone) == "Validation loss"
