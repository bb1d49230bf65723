"""Does a picture write names of others letter by letter: dollars, backslashes, control characters, underscores?"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.text import Text

from lossscope.plots import count_recall, hubness, labels, style, training, trajectory, triplet_field, weight_mass
from lossscope.plots import pair_curves as curves
from tests.each import each
from tests.hostile_names import CONTROLS, HOSTILE, IN_FRAMES

Names = tuple[str, ...]


def _hubs(names: Names) -> pd.DataFrame:
    rows = [(label, "i2t", candidate, 1) for label in (*names, "other") for candidate in range(4)]
    return pd.DataFrame(rows, columns=["label", "direction", "candidate", "count"])


def _counts(names: Names) -> pd.DataFrame:
    rows = [(label, name, "i2t", 0, 3.0, 300.0) for name in names for label in (name, "other")]
    return pd.DataFrame(rows, columns=list(count_recall.COLUMNS))


def _epochs(names: Names) -> pd.DataFrame:
    rows = [
        {"run": run, "label": run, "epoch": float(epoch), "split": "val", "loss": 2.0, "rsum": 10.0 * epoch}
        | {f"{side}_{part}": 0.1 * epoch for side in ("pos", "neg") for part in trajectory.PARTS}
        | {"warmup": run if epoch == 1 else None}
        for run in (*names, "other")
        for epoch in range(1, 4)
    ]
    return pd.DataFrame(rows)


def _mass(names: Names) -> pd.DataFrame:
    parts = {"W_neg": 0.5, "W_low": 0.2, "N_eff": 7.0}
    rows = [(label, "i2t", part, mean) for label in (*names, "other") for part, mean in parts.items()]
    return pd.DataFrame(rows, columns=["label", "direction", "statistic", "mean"])


def _field(names: Names) -> pd.DataFrame:
    rows = [(name, x / 2, y / 2, (x - y) / 2) for name in names for x in range(3) for y in range(3)]
    return pd.DataFrame(rows, columns=["objective", "s_pos", "s_neg", "w_neg"])


def _pairs(names: Names) -> pd.DataFrame:
    rows = [(label, "positive", s, s * k) for k, label in enumerate((*names, "other"), 1) for s in (0.0, 0.5, 1.0)]
    return pd.DataFrame(rows, columns=list(curves.COLUMNS))


PICTURES = {
    hubness: _hubs, count_recall: _counts, training: _epochs, trajectory: _epochs, weight_mass: _mass,
    triplet_field: _field, curves: _pairs,
}  # fmt: skip


@each("picture", PICTURES, "names", [IN_FRAMES[:8], IN_FRAMES[8:]])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_picture_is_drawn_with_any_name(picture: Any, names: Names, tmp_path: Path) -> None:
    """matplotlib read `$x_{$` in a name as a broken formula and raised a traceback."""
    frame = PICTURES[picture](names)
    with style.screen(), mpl.rc_context({"figure.dpi": 20, "savefig.dpi": 20}), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*excluded from the legend")
        drawn = getattr(picture, "draw_many", picture.draw)(frame)
        figure = getattr(drawn, "figure", drawn)
        figure.set_layout_engine("none")  # positions take most of the time
        style.save(figure, tmp_path / "a.svg", picture.alt(frame))
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert not set("".join(texts)) - {"\n"} & set(CONTROLS)
    assert any("other" in text for text in texts) or picture is triplet_field


@each("name", HOSTILE)
def test_no_part_of_a_name_is_a_formula(name: str) -> None:
    text = Text(0, 0, labels.label_text(name))
    assert not any(text._preprocess_math(line)[1] for line in text.get_text().split("\n"))  # type: ignore[attr-defined]


def test_dollars_of_a_name_are_shown() -> None:
    shown, is_formula = Text(0, 0, "")._preprocess_math(labels.plain_text("$5 or $6"))  # type: ignore[attr-defined]
    assert (shown, bool(is_formula)) == ("$5 or $6", False)


def test_a_name_with_an_underscore_before_it_is_in_the_legend() -> None:
    """matplotlib leaves such labels out of legends."""
    assert not labels.label_text("_hidden").startswith("_") and labels.label_text("_hidden").endswith("_hidden")
