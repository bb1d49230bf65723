"""What moves on the report page, drawn by plotly in the browser: curves with a slider, weight fields to point at."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lossscope.errors import InputError

_DIGITS = 5  # significant ones of a number on the page


@dataclass(frozen=True)
class Series:
    """One line of a dial: y (and its deviation, where there is one) at every x. colour, dash: as the pictures have."""

    label: str
    direction: str
    y: tuple[float, ...]
    std: tuple[float, ...] | None = None
    colour: str = "#0072B2"


@dataclass(frozen=True)
class SliderChart:
    """Lines over one scale, a slider along it, and the numbers where it stands.

    panels: what a menu chooses from -> its lines. start: where the slider stands first, an index of x. symbol: what a
    value of the scale is called, "ε". It is there only where scripts run; a picture of the same belongs beside it.
    Raises InputError unless every line has a value, and a deviation if any, for every x.
    """

    name: str
    caption: str
    x: tuple[float, ...]
    panels: Mapping[str, tuple[Series, ...]]
    start: int
    x_title: str
    y_title: str
    symbol: str
    log: bool = True
    y_log: bool = False

    def __post_init__(self) -> None:
        lines = [line for lines in self.panels.values() for line in lines]
        if not lines or not 0 <= self.start < len(self.x):
            raise InputError(f"dial {self.name!r} must have lines, and start on its scale of {len(self.x)}")
        if any(len(values) != len(self.x) for line in lines for values in (line.y, line.std) if values is not None):
            raise InputError(f"lines of the dial {self.name!r} must have {len(self.x)} values, one for each x")

    @property
    def choices(self) -> list[str]:
        """What the menu offers."""
        return list(self.panels)

    def content(self) -> str:
        """For the page's script, as JSON."""
        panels = {
            name: [
                {"label": line.label, "direction": line.direction, "colour": line.colour, "y": _told(line.y)}
                | ({} if line.std is None else {"std": _told(line.std)})
                for line in lines
            ]
            for name, lines in self.panels.items()
        }
        whole: dict[str, Any] = {
            "x": _told(self.x),
            "names": list(panels),
            "panels": panels,
            "start": self.start,
            "log": self.log,
            "yLog": self.y_log,
            "symbol": self.symbol,
        }
        return _json({**whole, "xTitle": self.x_title, "yTitle": self.y_title})


@dataclass(frozen=True)
class HeatmapChart:
    """Weights over (s₊, s₋): a menu of objectives, one of sides; pointing at a place tells the weight there.

    frame: columns objective, s_pos, s_neg, w_pos, w_neg, of each objective on a full grid of its own. clouds: label ->
    columns s_pos, s_neg of queries to lay over it. Raises InputError for a grid with holes, or none.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    clouds: Mapping[str, pd.DataFrame]

    def __post_init__(self) -> None:
        if self.frame.empty:
            raise InputError(f"field {self.name!r} must have an objective; got none")
        for objective, own in self.frame.groupby("objective", sort=False, observed=True):
            places = own["s_pos"].nunique() * own["s_neg"].nunique()
            if len(own) != places or own.duplicated(["s_pos", "s_neg"]).any():
                raise InputError(
                    f"field {self.name!r} must have a full grid; that of {objective} has {len(own)} points"
                )

    @property
    def choices(self) -> list[str]:
        """The objectives."""
        return list(map(str, self.frame["objective"].unique()))

    def content(self) -> str:
        """For the page's script, as JSON."""
        fields = {}
        for objective, own in self.frame.groupby("objective", sort=False, observed=True):
            wide = own.pivot_table(index="s_neg", columns="s_pos", values=["w_pos", "w_neg"], dropna=False)
            pull, push = wide["w_pos"], wide["w_neg"]
            fields[str(objective)] = {
                "x": _told(push.columns),
                "y": _told(push.index),
                "pull": [_told(-row) for row in pull.to_numpy()],
                "push": [_told(row) for row in push.to_numpy()],
            }
        clouds = {name: {"x": _told(c["s_pos"], 3), "y": _told(c["s_neg"], 3)} for name, c in self.clouds.items()}
        return _json({"names": list(fields), "fields": fields, "cloudNames": list(clouds), "clouds": clouds})


def library() -> str:
    """The script of plotly.js, of the installed package."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _told(values: Sequence[float] | Any, digits: int = _DIGITS) -> list[float | None]:
    """Short numbers; None where there is none."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in map(float, values)]


def _json(content: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")
