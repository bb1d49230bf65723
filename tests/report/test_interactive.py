"""Is the content of charts JSON of short numbers that is safe inside a script, whatever the labels?"""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.report.interactive import FieldPanel, HeatmapChart, Series, SliderChart, library
from lossscope.visible_text import show_text

LABEL = '</script><b>NT & "Xent" \' </b><!--'
X = (0.01, 0.1, 1.0)


def line(**more: Any) -> Series:
    return Series(**{"label": LABEL, "direction": "i2t", "y": (3.0, 2.0, 1.0), **more})


def chart(*lines: Series, **more: Any) -> SliderChart:
    options: dict[str, Any] = {
        "name": "eps", "caption": "c", "x": X, "panels": {"VSE++ <a>": lines or (line(),)}, "start": 1,
        "x_title": "threshold <ε>", "y_title": "samples", "symbol": "ε",
    }  # fmt: skip
    return SliderChart(**{**options, **more})


def test_the_content_of_a_slider_chart() -> None:
    with_std = line(std=(0.1, math.nan, 0.3), colour="#D55E00", direction="t2i")
    slider = chart(line(), with_std, y_log=True)
    assert json.loads(slider.content()) == {
        "x": [0.01, 0.1, 1.0],
        "names": ["VSE++ <a>"],
        "panels": {
            "VSE++ <a>": [
                {"label": LABEL, "direction": "i2t", "colour": "#0072B2", "y": [3.0, 2.0, 1.0]},
                {
                    "label": LABEL,
                    "direction": "t2i",
                    "colour": "#D55E00",
                    "y": [3.0, 2.0, 1.0],
                    "std": [0.1, None, 0.3],
                },
            ]
        },
        "start": 1,
        "log": True,
        "yLog": True,
        "symbol": "ε",
        "xTitle": "threshold <ε>",
        "yTitle": "samples",
    }
    assert slider.choices == ["VSE++ <a>"]


@given(st.text(max_size=30), st.lists(st.floats(), min_size=3, max_size=3))
@example("", [1.79765e308, -1.79765e308, math.nan])  # once written as Infinity, which is no JSON
def test_any_label_and_number_is_safe_in_a_script(label: str, values: list[float]) -> None:
    text = chart(line(label=label, y=tuple(values))).content()
    assert "<" not in text
    (series,) = json.loads(text, parse_constant=pytest.fail)["panels"]["VSE++ <a>"]
    assert series["label"] == show_text(label)
    for number, value in zip(series["y"], values, strict=True):
        undefined = not math.isfinite(value) or abs(value) > 1.7976e308  # rounding to 5 digits makes it infinite
        assert number is None if undefined else number == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"start": 3}, "must have lines, and start on its scale of 3"),
        ({"start": -1}, "must have lines, and start on its scale of 3"),
        ({"panels": {}}, "must have lines"),
        ({"panels": {"empty": ()}}, "must have lines"),
        ({"panels": {"a": (line(y=(1.0, 2.0)),)}}, "must have 3 values, one for each x"),
        ({"panels": {"a": (line(), line(y=(1.0,) * 4))}}, "must have 3 values, one for each x"),
        ({"panels": {"a": (line(std=(1.0, 2.0)),)}}, "must have 3 values, one for each x"),
    ],
)
def test_an_incomplete_slider_chart_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        chart(**more)


def grid(objective: str = "ntxent", steps: tuple[float, ...] = (-1.0, 0.0, 1.0)) -> pd.DataFrame:
    rows = [
        {"objective": objective, "s_pos": a, "s_neg": b, "w_pos": -(10 * a + b), "w_neg": 10 * a + b}
        for b in steps
        for a in steps
    ]
    return pd.DataFrame(rows)


def test_a_heatmap_has_rows_of_the_negative_and_columns_of_the_positive() -> None:
    cloud = pd.DataFrame({"s_pos": [0.12345], "s_neg": [math.nan]})
    field = HeatmapChart("field", "c", pd.concat([grid(), grid(LABEL).sample(frac=1, random_state=0)]), {LABEL: cloud})
    text = field.content()
    assert "<" not in text
    content = json.loads(text)
    assert content["fields"]["ntxent"]["x"] == content["fields"]["ntxent"]["y"] == [-1.0, 0.0, 1.0]
    assert content["fields"]["ntxent"]["push"] == [[-11.0, -1.0, 9.0], [-10.0, 0.0, 10.0], [-9.0, 1.0, 11.0]]
    assert "pull" not in content["fields"]["ntxent"]  # w_pos is -w_neg here, so that pull is push
    assert content["fields"][LABEL] == content["fields"]["ntxent"]
    assert (content["names"], content["cloudNames"]) == (["ntxent", LABEL], [LABEL])
    assert content["clouds"] == {LABEL: {"x": [0.123], "y": [None]}}
    assert field.choices == ["ntxent", LABEL]


def test_a_pull_that_is_not_the_push_is_kept() -> None:
    frame = grid().assign(w_pos=-2.0)
    fields = json.loads(HeatmapChart("field", "c", frame, {}).content())["fields"]
    assert fields["ntxent"]["pull"] == [[2.0] * 3] * 3 != fields["ntxent"]["push"]


def test_the_second_field_is_the_first_that_differs() -> None:
    same, other = grid("same"), grid("other").assign(w_neg=1.0)
    chart = HeatmapChart("field", "c", pd.concat([grid(), same, other]), {})
    assert chart.panels == (FieldPanel(0, "push"), FieldPanel(2, "push"))
    assert HeatmapChart("field", "c", pd.concat([grid(), same]), {}).panels[1] == FieldPanel(0, "pull")


def test_an_undefined_weight_is_null_at_its_place() -> None:
    frame = grid()
    frame.loc[frame["s_pos"] == 1.0, ["w_pos", "w_neg"]] = math.nan  # a whole column of the grid
    field = json.loads(HeatmapChart("field", "c", frame, {}).content())["fields"]["ntxent"]
    assert field["x"] == [-1.0, 0.0, 1.0]
    assert field["push"] == [[-11.0, -1.0, None], [-10.0, 0.0, None], [-9.0, 1.0, None]]


def test_objectives_with_other_grids_keep_their_own_scales() -> None:
    """A coupled objective runs once per point, so its grid is coarser; the others must keep their scale."""
    frame = pd.concat([grid(), grid("lifted_structure", (-1.0, 1.0))])
    fields = json.loads(HeatmapChart("field", "c", frame, {}).content())["fields"]
    assert (fields["ntxent"]["x"], fields["lifted_structure"]["x"]) == ([-1.0, 0.0, 1.0], [-1.0, 1.0])
    assert [len(fields[name]["push"]) for name in fields] == [3, 2]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (grid().iloc[1:], "must have full grids; that of ntxent has 8 points"),
        (pd.concat([grid(), grid()]), "must have full grids; that of ntxent has 18 points"),
        (grid().iloc[[0, 0, 0, 0, 0, 0, 0, 1, 3]], "must have full grids"),
        (grid()[:0], "must have an objective; got none"),
    ],
)
def test_a_heatmap_needs_full_grids(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        HeatmapChart("field", "c", frame, {})


def test_the_library_is_that_of_the_installed_package() -> None:
    text = library()
    assert "Plotly" in text and len(text) > 1_000_000 and "</script" not in text
