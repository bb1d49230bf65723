"""How does a loss move a query, its positive and each negative on the circle? (Unified loss, Figure 1)"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch

from lossscope.errors import InputError

from . import labels, naming, style

COLUMNS = ("objective", "role", "similarity", "x", "y", "dx", "dy")
ROLES = {"query": ("#D55E00", "o"), "positive": ("#009E73", "s"), "negative": ("#0072B2", "^")}
STILL = 1e-3  # of the largest step: smaller ones have no arrow
_LONGEST = 0.75  # length of the largest step, in radii
_EDGE = 1.3  # radii from the centre to the edge of a panel
_NAMES = 0.8  # radii from the centre to the similarity of a vector
_FURTHER, _CLOSE = 0.27, 0.22  # radii that it is further in if its vector is closer to the one before than this angle
_HEADLINE = "Where a step of descent moves a query, its positive and its negatives on the circle"
_NAME = "circle_steps"


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Which vectors does one loss move, in which direction, and how strongly?

    Vectors are points of the unit circle, with the similarity to the query, at the top, beside each. An arrow is minus
    the part of the gradient of this vector that is tangential to the circle: what is left after normalising. Its length
    and width are proportional to its size, as a share of the largest one, which the title states; a vector without an
    arrow has less than a thousandth. A loss that has arrows on one negative alone learns from that one alone. One panel
    of Figure 1 of the Unified-loss paper.

    Args:
        frame: columns COLUMNS, of one objective.
        ax: axes to draw on; None: new ones.
    """
    objective = style.single_value(_check(frame), "objective", _NAME)
    ax = style.axes_or_new(ax, _HEADLINE)
    _draw_panel(ax, frame)
    ax.set_title(_title(objective, frame, 34))
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """How do losses differ in the vectors they move? A panel each, as `draw`, on the same vectors.

    Args:
        frame: columns COLUMNS.
    """
    panels = {str(name): rows for name, rows in _check(frame).groupby("objective", sort=False, observed=True)}
    per_row = style.panels_per_row(len(panels))
    n_rows = math.ceil(len(panels) / per_row)
    fig = style.set_headline(style.new_figure(0.25 + 0.6 * per_row, 1.0 * n_rows), _HEADLINE)
    fig.set_layout_engine("compressed")
    for index, rows in enumerate(panels.values()):
        _draw_panel(fig.add_subplot(n_rows, per_row, index + 1), rows)
    naming.title_panels(fig, [_title(name, rows, 22) for name, rows in panels.items()], per_row)
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="", label=role)
        for role, (colour, marker) in ROLES.items()
    ]
    naming.legend_below(fig, handles, "Numbers: similarity to the query")
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for objective, rows in _check(frame).groupby("objective", sort=False, observed=True):
        size = _sizes(rows)
        moved = rows[(rows["role"] == "negative") & (size > STILL * size.max())]
        which = ", ".join(f"{value:g}" for value in moved["similarity"])
        of_role = size.groupby(rows["role"], sort=False).max()
        parts.append(
            f"{labels.in_words(str(objective))}: step of the query {of_role.get('query', 0.0):.3g}, of the positive "
            f"{of_role.get('positive', 0.0):.3g}, of negatives up to {of_role.get('negative', 0.0):.3g}; it moves "
            + (f"the negatives at similarity {which}" if len(moved) else "no negative")
        )
    return "Steps of descent of a query, its positive and its negatives on the circle. " + ". ".join(parts) + "."


def _draw_panel(ax: Axes, frame: pd.DataFrame) -> None:
    size = _sizes(frame)
    largest = float(size.max()) or 1.0
    text = style.small()
    ax.add_patch(Circle((0, 0), 1, fill=False, edgecolor="0.6", linewidth=0.8))
    points = frame[["x", "y", "dx", "dy"]].to_numpy(dtype=np.float64)
    for role, (x, y, dx, dy), share in zip(frame["role"], points, size / largest, strict=True):
        colour, marker = ROLES[str(role)]
        ax.plot([0, x], [0, y], color="0.85", linewidth=0.8, zorder=1)
        ax.plot(x, y, marker=marker, color=colour, markersize=0.5 * text, markeredgecolor="white", zorder=4)
        if share > STILL:
            step = _LONGEST / largest
            ax.add_patch(
                FancyArrowPatch(
                    (x, y),
                    (x + step * dx, y + step * dy),
                    color=colour,
                    zorder=3,
                    arrowstyle="-|>",
                    mutation_scale=text * (0.35 + 0.75 * share),
                    linewidth=0.4 + 2.2 * share,
                    shrinkA=0,
                    shrinkB=0,
                    joinstyle="miter",
                    capstyle="butt",
                )
            )
    ax.set(xlim=(-_EDGE, _EDGE), ylim=(-_EDGE, _EDGE), aspect="equal")
    ax.set_axis_off()
    _write_similarities(ax, frame)


def _write_similarities(ax: Axes, frame: pd.DataFrame) -> None:
    """Write the similarity beside each candidate, further in if it is close to the one before."""
    candidates = frame[frame["role"] != "query"]
    angles = np.arctan2(candidates["y"].to_numpy(np.float64), candidates["x"].to_numpy(np.float64))
    before, radius = math.inf, _NAMES
    for index in np.argsort(angles):
        close = abs(angles[index] - before) < _CLOSE and radius == _NAMES
        before, radius = float(angles[index]), _NAMES - _FURTHER * close
        x, y = radius * math.cos(before), radius * math.sin(before)
        name = f"{candidates['similarity'].iloc[index]:g}".replace("-", "−")
        ax.text(
            x, y, name, ha="center", va="center", fontsize=style.small(), zorder=5,
            path_effects=[patheffects.withStroke(linewidth=2.5, foreground="white")],
        )  # fmt: skip


def _title(objective: str, rows: pd.DataFrame, width: int) -> str:
    name = style.wrap_words(labels.label_text(objective), width)
    return f"{name}\nlargest step {float(_sizes(rows).max()):.3g}"


def _sizes(rows: pd.DataFrame) -> pd.Series[float]:
    return pd.Series(np.hypot(rows["dx"].to_numpy(float), rows["dy"].to_numpy(float)), rows.index)


def _check(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame. Raises InputError unless it has all columns, known roles and finite numbers on the circle."""
    style.require_rows(frame, COLUMNS, _NAME)
    others = sorted(set(map(str, frame["role"])) - set(ROLES))
    if others:
        raise InputError(
            f"role must be one of {', '.join(ROLES)}; got {', '.join(others)}. Rename the values of `role`"
        )
    numbers = frame[list(COLUMNS[2:])].to_numpy(dtype=np.float64)
    if not np.isfinite(numbers).all() or not np.allclose(np.hypot(numbers[:, 1], numbers[:, 2]), 1, atol=1e-6):
        raise InputError(
            f"vectors of {_NAME} must be finite and of length 1, x^2 + y^2 = 1; got others. Divide them by their length"
        )
    return frame
