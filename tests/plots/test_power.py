"""Are the marks the smallest differences, their bars the interval, and kinds of n in panels of their own?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lossscope.plots import power, style


def frame(over=("seeds", "images")):
    numbers = {"seeds": (3, 5, 10), "images": (200, 5000)}
    rows = [
        {"data": "scenes", "encoder": "VSE++", "system": system, "baseline": "Triplet", "statistic": "rsum",
         "direction": "both", "over": unit, "n": n, "mdd": scale / np.sqrt(n), "mdd_low": 0.5 * scale / np.sqrt(n),
         "mdd_high": 3 * scale / np.sqrt(n), "level": 0.95, "power": 0.8, "alpha": 0.05}
        for unit in over for system, scale in (("NT-Xent", 30.0), ("VLC", 60.0)) for n in numbers[unit]
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_marks_are_the_smallest_differences_in_order_and_bars_their_intervals():
    ax = power.draw(frame(("seeds",)).sample(frac=1, random_state=0))
    first, second = ax.lines[:2]
    np.testing.assert_allclose(sorted([first.get_ydata()[0], second.get_ydata()[0]]), np.array([30, 60]) / 3**0.5)
    for line, bars in zip((first, second), ax.collections, strict=True):
        assert (np.diff(line.get_xdata()) > 0).all() and (np.diff(line.get_ydata()) < 0).all()
        np.testing.assert_allclose(line.get_xdata() / [3, 5, 10], line.get_xdata()[0] / 3)
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        np.testing.assert_allclose(ends, np.outer(line.get_ydata(), [0.5, 3.0]))
        np.testing.assert_allclose([segment[0, 0] for segment in bars.get_segments()], line.get_xdata())
    apart = second.get_xdata() / first.get_xdata()
    assert ((apart > 1.01) & (apart < 1.2) | (apart < 0.99) & (apart > 0.8)).all()


def test_axes_are_logarithmic_with_ticks_at_the_numbers():
    ax = power.draw(frame(("images",)))
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    ax.figure.draw_without_rendering()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["200", "5000"]
    low, high = ax.get_ylim()
    assert low < 15 / 5000**0.5 and high > 180 / 200**0.5
    assert ax.get_xlabel() == "number of images" and ax.get_ylabel() == "difference of rsum"


def test_seeds_and_images_are_panels_and_pairs_keep_their_colours():
    fig = power.draw_many(frame())
    seeds, images = fig.axes
    assert (seeds.get_title(), images.get_title()) == ("seeds: VSE++, scenes", "images: VSE++, scenes")
    assert [line.get_color() for line in seeds.lines] == [line.get_color() for line in images.lines]
    assert len({line.get_color() for line in seeds.lines}) == 2
    texts = [text.get_text() for text in fig.legends[0].get_texts()]
    assert texts == ["NT-Xent against Triplet", "VLC against Triplet", "95 % interval"]
    assert style.headline(fig) == "Smallest difference that n seeds or images can show"


def test_a_difference_that_was_asked_about_is_a_line():
    fig = power.draw_many(frame().assign(difference=7.0))
    for ax in fig.axes:
        assert list(ax.lines[-1].get_ydata()) == [7.0, 7.0] and ax.get_ylim()[0] < 7 < ax.get_ylim()[1]
    assert "difference asked about: 7" in [text.get_text() for text in fig.legends[0].get_texts()]


def test_pairs_without_a_spread_are_left_out():
    rows = frame(("seeds",))
    rows.loc[rows["system"] == "VLC", ["mdd", "mdd_low", "mdd_high"]] = np.nan
    assert len(power.draw(rows).lines) == 1


def test_alt_states_both_ends():
    text = power.alt(frame())
    assert text.startswith("Smallest difference that n seeds or images can show. ")
    assert "rsum, NT-Xent against Triplet: 17.3 (8.66 to 52) with 3 seeds, 9.49 (4.74 to 28.5) with 10 seeds" in text
