"""How much does an objective weigh a triplet, at every pair of similarities? (GOAL Figure 2)"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import colormaps, patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.figure import Figure

from lossscope.errors import InputError

from . import contours, labels, naming, style

COLUMNS = ("objective", "s_pos", "s_neg", "w_neg")
_LINES = 10  # parts of the range of weights that contour lines divide
_COLOUR = "#D55E00"  # of the margin
_NAME = "triplet_field"
_Grid = npt.NDArray[np.float64]


def draw(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    value: str = "w_neg",
    margin: float | None = None,
    pale: bool = False,
) -> Axes:
    """Which triplets does one objective push? Horizontal: positive similarity. Vertical: negative similarity.

    Bottom right is solved (positive close, negative far), top left is as wrong as possible. Each line joins triplets of
    equal weight, a round number, which some state, in the unit of the colour bar; a field of two values has none, as
    its colours meet in one.
    The dashed line is s_neg = s_pos - margin: triplets above it violate the margin. One panel of GOAL Figure 2.

    Args:
        frame: columns objective (one), s_pos, s_neg and `value`, on a full grid.
        ax: axes to draw on; None: new ones.
        value: column of the colour; a column that is nowhere above 0 is negated.
        margin: of the dashed line; None: no line.
        pale: in greys, as the background of something else.
    """
    x, y, w, label = _grid(frame, value)
    objective = style.single_value(frame, "objective", _NAME)
    ax = style.axes_or_new(ax, _headline(label))
    mesh = _draw_panel(ax, x, y, w, margin, pale=pale)
    bar = ax.figure.colorbar(mesh, ax=ax, label=label)
    bar.outline.set_visible(False)
    ax.set_ylabel("negative similarity $s_-$")
    ax.set_title(style.wrap_words(labels.label_text(objective), 34))
    return ax


def draw_many(
    frame: pd.DataFrame,
    value: str = "w_neg",
    margin: float | Mapping[str, float] | None = None,
    pale: bool = False,
) -> Figure:
    """How do objectives differ in the triplets they push? One panel each, as GOAL Figure 2, and one colour bar.

    Read as `draw`; with several objectives the colour is the weight divided by the panel's largest, which the title
    states, so that shapes compare whatever the scale (temperature) of an objective.

    Args:
        frame: columns objective, s_pos, s_neg and `value`, on a full grid for each objective.
        value: column of the colour, as in `draw`.
        margin: of all panels, or of objectives by name.
        pale: in greys, as the background of something else.
    """
    style.require_rows(frame, ("objective", "s_pos", "s_neg", value), _NAME)
    objectives = list(frame["objective"].unique())
    per_row = style.panels_per_row(len(objectives))
    n_rows = math.ceil(len(objectives) / per_row)
    fig = style.new_figure(width=0.3 + 0.55 * per_row, height=0.08 + 0.9 * n_rows)
    fields = [_grid(frame[frame["objective"] == objective], value) for objective in objectives]
    style.set_headline(fig, _headline(fields[0][3]))
    fig.set_layout_engine("compressed")
    grid = fig.subplots(n_rows, per_row, sharex=True, sharey=True, squeeze=False)
    for ax in grid.flat[len(objectives) :]:
        ax.remove()
    used = list(grid.flat[: len(objectives)])
    several = len(objectives) > 1
    signed = any(np.nanmin(w) < 0 for _, _, w, _ in fields)  # one colour map for all, as there is one bar
    titles = []
    for index, (ax, objective) in enumerate(zip(used, objectives, strict=True)):
        x, y, w, label = fields[index]
        largest = (float(np.nanmax(np.abs(w))) or 1.0) if several else 1.0
        own_margin = margin.get(str(objective)) if isinstance(margin, Mapping) else margin
        mesh = _draw_panel(ax, x, y, w / largest, own_margin, signed, pale)
        name = style.wrap_words(labels.label_text(str(objective)), 22 if several else 30)
        titles.append(f"{name}\nlargest weight {largest:.3g}" if several else name)
        ax.tick_params(labelbottom=index + per_row >= len(objectives))
        ax.set_xlabel("positive similarity $s_+$" if index + per_row >= len(objectives) else "")
        ax.set_ylabel("negative similarity $s_-$" if index % per_row == 0 else "")
    bar = fig.colorbar(mesh, ax=used, label="weight / its largest" if several else label)
    bar.outline.set_visible(False)
    naming.title_panels(fig, titles, per_row)
    return fig


def _headline(label: str) -> str:
    return f"{label[:1].upper()}{label[1:]} of a query with two candidates"


def panels(fig: Figure) -> list[Axes]:
    """Return the panels of `draw_many`, in the order of the objectives, without the colour bar."""
    return [ax for ax in fig.axes if ax.get_label() != "<colorbar>"]


def alt(frame: pd.DataFrame, value: str = "w_neg") -> str:
    """Return a description of the picture for readers who cannot see it."""
    style.require_rows(frame, ("objective", "s_pos", "s_neg", value), _NAME)
    parts = []
    for objective, field in frame.groupby("objective", sort=False, observed=True):
        size = field[value].abs()
        at = field.iloc[int(size.to_numpy().argmax())]
        share = float((size > 0.5 * size.max()).mean())
        parts.append(
            f"{labels.in_words(str(objective))}: largest weight {size.max():.3g} at positive similarity "
            f"{at['s_pos']:.2f} and negative similarity {at['s_neg']:.2f}; {share:.0%} of the plane has more than half "
            "of it"
        )
    return "Heat map of the triplet weight over positive and negative similarity. " + ". ".join(parts) + "."


def _grid(frame: pd.DataFrame, value: str) -> tuple[_Grid, _Grid, _Grid, str]:
    """Return s_pos (n,), s_neg (m,), the weights (m, n), negated if none is above 0, and their name.

    Raises InputError unless the frame has one objective on a full grid.
    """
    style.require_rows(frame, ("objective", "s_pos", "s_neg", value), _NAME)
    style.single_value(frame, "objective", _NAME)
    if frame.duplicated(["objective", "s_pos", "s_neg"]).any():
        raise InputError(f"frame of {_NAME} must hold each (s_pos, s_neg) once; got some twice. Drop the duplicates")
    wide = frame.pivot_table(index="s_neg", columns="s_pos", values=value, dropna=False)
    if wide.size != len(frame) or min(wide.shape) < 2:
        raise InputError(
            f"frame of {_NAME} must be a full grid of s_pos x s_neg, 2 x 2 or more; "
            f"got {len(frame)} rows for {wide.shape[1]} x {wide.shape[0]}. Compute the missing points"
        )
    w = wide.to_numpy(dtype=np.float64)
    sign = -1.0 if np.nanmax(w) <= 0 and np.nanmin(w) < 0 else 1.0
    name = {"w_neg": "weight on the negative", "w_pos": "weight on the positive"}.get(value, value)
    x, y = wide.columns.to_numpy(dtype=np.float64), wide.index.to_numpy(dtype=np.float64)
    return x, y, sign * w, f"minus {name}" if sign < 0 else name


def _draw_panel(
    ax: Axes, x: _Grid, y: _Grid, w: _Grid, margin: float | None, signed: bool = False, pale: bool = False
) -> ScalarMappable:
    largest = float(f"{np.nanmax(np.abs(w)):.3g}") or 1.0  # rounded, so that a tick can stand at the end of the bar
    low = -largest if signed or np.nanmin(w) < 0 else 0.0
    colours = _colour_map(low < 0, pale)
    # an image: of each mesh that is rasterized, a PDF holds the whole figure in memory until it is written
    mesh = ax.pcolorfast(_edges(x), _edges(y), w, cmap=colours, vmin=low, vmax=largest)
    _draw_contours(ax, mesh, (x, y), w, largest)
    if margin is not None:
        _draw_margin(ax, margin, (float(x[0]), float(x[-1])), (float(y[0]), float(y[-1])))
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), aspect="equal", xlabel="positive similarity $s_+$")
    ax.locator_params(nbins=4)
    return mesh


def _edges(centres: _Grid) -> _Grid:
    """Return the ends of the cells around points, (n + 1,): halfway between two, and as far beyond the outer ones."""
    middles = (centres[1:] + centres[:-1]) / 2
    return np.concatenate([[2 * centres[0] - middles[0]], middles, [2 * centres[-1] - middles[-1]]])


def _colour_map(signed: bool, pale: bool) -> Colormap | str:
    """Return a diverging map if signed; else one from 0 up, or if pale greys on the darkest of which lines show."""
    if signed:
        return "PuOr_r"
    return ListedColormap(colormaps["Greys"](np.linspace(0.0, 0.42, 256)), "pale") if pale else "cividis"


def _draw_margin(ax: Axes, margin: float, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Draw the line s_neg = s_pos - margin, and its name along the part of it that is in the panel."""
    ax.axline((0.0, -margin), slope=1, color=_COLOUR, linestyle="--", label=f"margin {margin:g}")
    left, right = max(x[0], y[0] + margin), min(x[1], y[1] + margin)
    if left < right:
        middle = (left + right) / 2
        ax.annotate(
            f"$s_- = s_+$ {'−' if margin >= 0 else '+'} {abs(margin):g}", (middle, middle - margin), (0, 3),
            textcoords="offset points", rotation=45, rotation_mode="anchor", transform_rotates_text=True, ha="center",
            va="bottom", fontsize=style.small(), color="black",
            path_effects=[patheffects.withStroke(linewidth=1.6, foreground="white", alpha=0.55)],
        )  # fmt: skip


def _draw_contours(ax: Axes, mesh: ScalarMappable, axes: tuple[_Grid, _Grid], w: _Grid, largest: float) -> None:
    """Draw lines at round weights, one where the slope is steep, none where there are only two values.

    Args:
        ax: the panel.
        mesh: its field.
        axes: x (n,) and y (m,).
        w: (m, n) weights.
        largest: weight.
    """
    between = float(np.mean((w > 0.1 * largest) & (w < 0.9 * largest)))
    if between == 0:  # two values: a line between them would only follow the steps of the grid
        return
    levels = contours.round_levels(largest, _LINES) if between > 0.06 else [largest / 2]  # steep: ten would be one
    if np.nanmax(w) <= levels[0] or np.nanmin(w) >= levels[-1]:
        return
    labelled = levels[::2] if between > 0.4 else contours.outer_and_middle(levels)
    contours.draw_lines(ax, mesh, axes, w, levels, labelled if between > 0.15 or len(levels) == 1 else labelled[-1:])
