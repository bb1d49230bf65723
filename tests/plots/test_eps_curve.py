"""Does each line of C(eps) show the data of the frame, and do lines look different?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from lossscope.plots import eps_curve, style
from tests.each import each

WORDS = {"triplet:margin=0.2": "Triplet, margin 0.2", "ntxent:tau=0.1": "NT-Xent, temperature τ = 0.1"}
EPS = 10.0 ** np.arange(-8, 3)


def _frame(*objectives, directions=("i2t", "t2i"), source="run.pt"):
    parts = []
    for number, objective in enumerate(objectives):
        for turn, direction in enumerate(directions):
            count = 100 / (1 + (EPS / 1e-4 * (1 + number)) ** 2) - turn * (EPS < 1e-6)
            part = {"source": source, "objective": objective, "direction": direction, "eps": EPS, "mean": count}
            parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def _lines(ax):
    return [line for line in ax.lines if len(line.get_xdata()) == len(EPS)]


def test_lines_are_the_data():
    frame = _frame("triplet:margin=0.2", "ntxent:tau=0.1")
    ax = eps_curve.draw(frame.sample(frac=1, random_state=0))
    lines = {line.get_label(): line for line in _lines(ax)}
    assert set(lines) == {f"{o} {d}" for o in WORDS.values() for d in ("i2t", "t2i")}
    for (objective, direction), rows in frame.groupby(["objective", "direction"]):
        line = lines[f"{WORDS[objective]} {direction}"]
        np.testing.assert_allclose(line.get_xdata(), rows["eps"])
        np.testing.assert_allclose(line.get_ydata(), rows["mean"])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "symlog")


def test_colours_show_the_objective_and_dashes_the_direction():
    ax = eps_curve.draw(_frame("triplet", "ntxent"))
    styles = {line.get_label(): (to_hex(line.get_color()).upper(), line.get_linestyle()) for line in _lines(ax)}
    assert styles["Triplet i2t"] == (style.COLOURS["triplet"], "-")
    assert styles["NT-Xent t2i"] == (style.COLOURS["ntxent"], "--")
    names = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert names == ["Triplet", "NT-Xent", "image to text", "text to image"]


def test_one_direction_needs_no_legend_of_dashes():
    ax = eps_curve.draw(_frame("triplet", directions=("i2t",)))
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["Triplet"]


def test_many_values_of_one_objective_have_a_sequence_of_colours():
    ax = eps_curve.draw(_frame(*(f"ntxent:tau={k / 100}" for k in range(1, 13)), directions=("i2t",)))
    shades = [line.get_color() for line in _lines(ax)]
    assert len(set(shades)) == 12
    light = [sum(int(shade[k : k + 2], 16) for k in (1, 3, 5)) for shade in shades]
    assert light == sorted(light)


def test_of_very_many_lines_some_are_named():
    specs = [f"ntxent:tau={k}" for k in range(1, 42)]
    ax = eps_curve.draw(_frame(*specs, directions=("i2t",)))
    names = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert len(_lines(ax)) == 41
    ends = "NT-Xent, temperature τ = 1", "NT-Xent, temperature τ = 41"
    assert (names[0], names[-1], len(names)) == (*ends, 10)


def test_sources_are_distinguished_by_label():
    frame = pd.concat([_frame("triplet", source=f"runs/{name}/checkpoints/best.pt") for name in "ab"])
    labels = {line.get_label() for line in _lines(eps_curve.draw(frame))}
    assert labels == {f"Triplet, {name} {direction}" for name in "ab" for direction in ("i2t", "t2i")}


def test_the_threshold_of_the_paper_is_marked_and_seen():
    ax = eps_curve.draw(_frame("triplet"), at=0.001)
    (mark,) = (line for line in ax.lines if len(line.get_xdata()) == 2)
    assert list(mark.get_xdata()) == [0.001, 0.001]
    assert [text.get_text() for text in ax.texts] == ["ε = 0.001"]
    low, high = eps_curve.draw(_frame("triplet"), at=50).get_xlim()
    assert low < 1e-4 and high > 50


def test_a_flat_line_can_be_drawn():
    frame = _frame("triplet").assign(mean=1.0)
    low, high = eps_curve.draw(frame).get_xlim()
    assert low < 0.01 < high


@pytest.mark.usefixtures("fitted")
def test_the_legend_is_inside_the_picture(tmp_path):
    with style.screen():
        ax = eps_curve.draw(_frame("unified:margin=0.2,gamma=60", "triplet"))
        ax.figure.draw_without_rendering()
        box = ax.figure.legends[0].get_window_extent()
        assert box.x1 <= ax.figure.bbox.x1 and box.y1 <= ax.get_window_extent().y0
        assert style.save(ax.figure, tmp_path / "curve.png").stat().st_size > 1000


def test_alt_states_the_counts_at_the_threshold():
    text = eps_curve.alt(_frame("triplet", directions=("i2t",)))
    assert text == "Samples per query with a weight above eps, against eps. Triplet i2t: 0.01 at 0.01."


@each("flat", [False, True])
def test_an_eps_of_zero_is_not_marked_on_the_logarithmic_axis(flat):
    frame = _frame("triplet").assign(mean=1.0) if flat else _frame("triplet")
    ax = eps_curve.draw(frame, at=0.0)
    assert not ax.texts and len(ax.lines) == len(_lines(ax)) == 2
    low, high = ax.get_xlim()
    assert 0 < low < 1e-4 < high
