"""Interactive charts of the report page, drawn by plotly in the browser: curves with a slider, weight heatmaps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lossscope.errors import InputError
from lossscope.visible_text import show_text

_DIGITS = 5  # significant digits of a number on the page


@dataclass(frozen=True)
class Series:
    """One line of a slider chart."""

    label: str
    direction: str  # i2t, t2i or both
    y: tuple[float, ...]  # a value for every x; NaN: none
    std: tuple[float, ...] | None = None  # its deviation for every x, or None
    colour: str = "#0072B2"  # that of the label in pictures


@dataclass(frozen=True)
class SliderChart:
    """Lines over one scale, a slider along it, and the numbers at its place.

    It needs scripts; a picture of the same belongs beside it. Raises InputError unless every line has a value (and a
    deviation, if any) for every x.
    """

    name: str
    caption: str
    x: tuple[float, ...]  # the scale
    panels: Mapping[str, tuple[Series, ...]]  # choice of the menu -> its lines
    start: int  # first place of the slider, an index of x
    x_title: str
    y_title: str
    symbol: str  # of a value of the scale: "ε"
    label_title: str = "loss"  # heading of the labels
    log: bool = True  # logarithmic scale
    y_log: bool = False  # logarithmic values

    def __post_init__(self) -> None:
        lines = [line for lines in self.panels.values() for line in lines]
        if not lines or not 0 <= self.start < len(self.x):
            raise InputError(f"slider chart {self.name!r} must have lines, and start on its scale of {len(self.x)}")
        if any(len(values) != len(self.x) for line in lines for values in (line.y, line.std) if values is not None):
            raise InputError(f"lines of slider chart {self.name!r} must have {len(self.x)} values, one for each x")

    @property
    def choices(self) -> list[str]:
        """The choices of the menu."""
        return list(self.panels)

    def content(self) -> str:
        """Return the content for the page's script, as JSON."""
        panels = {
            name: [
                {"label": line.label, "direction": line.direction, "colour": line.colour, "y": _short_numbers(line.y)}
                | ({} if line.std is None else {"std": _short_numbers(line.std)})
                for line in lines
            ]
            for name, lines in self.panels.items()
        }
        content: dict[str, Any] = {
            "x": _short_numbers(self.x),
            "names": list(panels),
            "panels": panels,
            "start": self.start,
            "log": self.log,
            "yLog": self.y_log,
            "symbol": self.symbol,
        }
        return _json({**content, "xTitle": self.x_title, "yTitle": self.y_title})


@dataclass(frozen=True)
class FieldPanel:
    """One of two fields side by side."""

    objective: int  # first choice of its menu
    side: str  # first choice of the other: push, on the negative, or pull, on the positive


@dataclass(frozen=True)
class HeatmapChart:
    """Weights over (s₊, s₋), twice, with menus of objectives and sides; the weight under the pointer is shown.

    Raises InputError for a grid with gaps, or without any.
    """

    name: str
    caption: str
    frame: pd.DataFrame  # columns objective, s_pos, s_neg, w_pos, w_neg; a full grid for each objective
    clouds: Mapping[str, pd.DataFrame]  # label -> columns s_pos, s_neg of queries, drawn over the weights

    def __post_init__(self) -> None:
        if self.frame.empty:
            raise InputError(f"heatmap {self.name!r} must have an objective; got none")
        for objective, grid in self.frame.groupby("objective", sort=False, observed=True):
            points = grid["s_pos"].nunique() * grid["s_neg"].nunique()
            if len(grid) != points or grid.duplicated(["s_pos", "s_neg"]).any():
                raise InputError(
                    f"heatmap {self.name!r} must have full grids; that of {objective} has {len(grid)} points"
                )

    @property
    def choices(self) -> list[str]:
        """The objectives."""
        return list(map(str, self.frame["objective"].unique()))

    def _grids(self) -> Iterator[tuple[Any, pd.DataFrame]]:
        return iter(self.frame.groupby("objective", sort=False, observed=True))

    @property
    def panels(self) -> tuple[FieldPanel, FieldPanel]:
        """What the two fields side by side show first: the first loss, and the first other field than its."""
        fields = [group.sort_values(["s_neg", "s_pos"])["w_neg"].to_numpy() for _, group in self._grids()]
        others = (index for index, other in enumerate(fields) if not np.array_equal(other, fields[0], equal_nan=True))
        other = next(others, None)
        return FieldPanel(0, "push"), FieldPanel(0, "pull") if other is None else FieldPanel(other, "push")

    def content(self) -> str:
        """Return the content for the page's script, as JSON."""
        fields = {}
        for objective, grid in self._grids():
            wide = grid.pivot_table(index="s_neg", columns="s_pos", values=["w_pos", "w_neg"], dropna=False)
            pull, push = wide["w_pos"], wide["w_neg"]
            fields[str(objective)] = {
                "x": _short_numbers(push.columns),
                "y": _short_numbers(push.index),
                "push": [_short_numbers(row) for row in push.to_numpy()],
            }
            if not np.array_equal(-pull, push, equal_nan=True):  # else the script shows the push for both
                fields[str(objective)]["pull"] = [_short_numbers(-row) for row in pull.to_numpy()]
        clouds = {
            name: {"x": _short_numbers(c["s_pos"], 3), "y": _short_numbers(c["s_neg"], 3)}
            for name, c in self.clouds.items()
        }
        return _json({"names": list(fields), "fields": fields, "cloudNames": list(clouds), "clouds": clouds})


def library() -> str:
    """Return the script plotly.js of the installed package."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _short_numbers(values: Sequence[float] | Any, digits: int = _DIGITS) -> list[float | None]:
    """Round numbers to some significant digits; None for those that are not finite."""
    rounded = (float(f"{value:.{digits}g}") for value in map(float, values))  # the largest floats are rounded to inf
    return [value if math.isfinite(value) else None for value in rounded]


def _printable(value: Any) -> Any:
    """Return a value of JSON whose texts have control characters as \\xNN."""
    if isinstance(value, str):
        return show_text(value)
    if isinstance(value, Mapping):
        return {show_text(key): _printable(item) for key, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list | tuple) else value


def _json(content: Mapping[str, Any]) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(_printable(content), separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")
