"""What the page's script is given: is it JSON of short numbers that can stand inside a script, whatever labels say?"""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.report.interactive import HeatmapChart, Series, SliderChart, library

LABEL = '</script><b>NT & "Xent" \' </b><!--'
X = (0.01, 0.1, 1.0)


def line(**more: Any) -> Series:
    return Series(**{"label": LABEL, "direction": "i2t", "y": (3.0, 2.0, 1.0), **more})


def dial(*lines: Series, **more: Any) -> SliderChart:
    given: dict[str, Any] = {
        "name": "eps", "caption": "c", "x": X, "panels": {"VSE++ <a>": lines or (line(),)}, "start": 1,
        "x_title": "threshold <ε>", "y_title": "samples", "symbol": "ε",
    }  # fmt: skip
    return SliderChart(**{**given, **more})


def test_a_dial_says_everything_the_script_needs() -> None:
    spread = line(std=(0.1, math.nan, 0.3), colour="#D55E00", direction="t2i")
    made = dial(line(), spread, y_log=True)
    found = json.loads(made.content())
    assert found == {
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
    assert made.choices == ["VSE++ <a>"]


@given(st.text(max_size=30), st.lists(st.floats(), min_size=3, max_size=3))
def test_any_label_and_number_can_stand_in_a_script(label: str, values: list[float]) -> None:
    text = dial(line(label=label, y=tuple(values))).content()
    assert "<" not in text
    (found,) = json.loads(text, parse_constant=pytest.fail)["panels"]["VSE++ <a>"]
    assert found["label"] == label
    for told, value in zip(found["y"], values, strict=True):
        assert told is None if not math.isfinite(value) else told == pytest.approx(value, rel=1e-4)


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
def test_a_dial_that_is_not_whole_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        dial(**more)


def grid(objective: str = "ntxent", steps: tuple[float, ...] = (-1.0, 0.0, 1.0)) -> pd.DataFrame:
    rows = [
        {"objective": objective, "s_pos": a, "s_neg": b, "w_pos": -(10 * a + b), "w_neg": 10 * a + b}
        for b in steps
        for a in steps
    ]
    return pd.DataFrame(rows)


def test_a_field_is_rows_of_the_negative_and_columns_of_the_positive() -> None:
    cloud = pd.DataFrame({"s_pos": [0.12345], "s_neg": [math.nan]})
    field = HeatmapChart("field", "c", pd.concat([grid(), grid(LABEL).sample(frac=1, random_state=0)]), {LABEL: cloud})
    text = field.content()
    assert "<" not in text
    found = json.loads(text)
    assert found["fields"]["ntxent"]["x"] == found["fields"]["ntxent"]["y"] == [-1.0, 0.0, 1.0]
    assert found["fields"]["ntxent"]["push"] == [[-11.0, -1.0, 9.0], [-10.0, 0.0, 10.0], [-9.0, 1.0, 11.0]]
    assert found["fields"]["ntxent"]["pull"] == found["fields"]["ntxent"]["push"]  # w_pos is -w_neg here, told as pull
    assert found["fields"][LABEL] == found["fields"]["ntxent"]
    assert (found["names"], found["cloudNames"]) == (["ntxent", LABEL], [LABEL])
    assert found["clouds"] == {LABEL: {"x": [0.123], "y": [None]}}
    assert field.choices == ["ntxent", LABEL]


def test_a_weight_that_is_not_defined_is_a_hole_at_its_place() -> None:
    frame = grid()
    frame.loc[frame["s_pos"] == 1.0, ["w_pos", "w_neg"]] = math.nan  # a whole column of the grid
    found = json.loads(HeatmapChart("field", "c", frame, {}).content())["fields"]["ntxent"]
    assert found["x"] == [-1.0, 0.0, 1.0]
    assert found["push"] == [[-11.0, -1.0, None], [-10.0, 0.0, None], [-9.0, 1.0, None]]


def test_objectives_of_other_grids_keep_their_own_places() -> None:
    """A coupled objective is called once a point, so that its grid is coarser: it must not lend others its scale."""
    frame = pd.concat([grid(), grid("lifted_structure", (-1.0, 1.0))])
    found = json.loads(HeatmapChart("field", "c", frame, {}).content())["fields"]
    assert (found["ntxent"]["x"], found["lifted_structure"]["x"]) == ([-1.0, 0.0, 1.0], [-1.0, 1.0])
    assert [len(found[name]["push"]) for name in found] == [3, 2]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (grid().iloc[1:], "must have a full grid; that of ntxent has 8 points"),
        (pd.concat([grid(), grid()]), "must have a full grid; that of ntxent has 18 points"),
        (grid().iloc[[0, 0, 0, 0, 0, 0, 0, 1, 3]], "must have a full grid"),
        (grid()[:0], "must have an objective; got none"),
    ],
)
def test_a_field_must_be_full_grids(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        HeatmapChart("field", "c", frame, {})


def test_the_library_is_that_of_the_installed_package() -> None:
    text = library()
    assert "Plotly" in text and len(text) > 1_000_000 and "</script" not in text
