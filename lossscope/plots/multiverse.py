"""Which claimed orderings survive other ways of counting, and which choice overturns them?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from lossscope.errors import InputError
from lossscope.stats.claims import CLAIM, PRINTED
from lossscope.stats.multiverse import (
    DIMENSIONS,
    NEEDED,
    claim_shares,
    level_order,
    level_shares,
    require_universes,
)

from . import labels, naming, style

COLUMNS = NEEDED
_NAME = "multiverse"
_HEADLINE = "In which share of the ways of counting does each claimed ordering hold?"
_WORDS = {"batch": "batch size"}
_GAP, _BAR = 0.5, 3.4  # between dimensions, and length of a bar of 100 %, in cells
_MOST = 60  # claims that one page can hold
_LETTER, _NUMBER = 0.62, 2.05  # widths of a letter of a name and of `100`, in sizes of the smallest text
_LINE, _TALL = 1.75, 2.3  # height of a line with flat and with upright numbers, in the same sizes
_DARK = (0.18, 0.82)  # shares outside are drawn in a dark colour, on which white is more readable


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """In which share of the ways of counting does each claimed ordering hold?

    Rows: claims, a block for each metric; A < B says that A has the lower number, ● that the paper prints it. Columns:
    the levels of each choice. Numbers and colours: per cent of the defined universes at this level in which the claim
    holds, red below half, blue above it; grey: the claim does not depend on this choice, or no universe is defined.
    Bars: per cent of all defined universes.

    Args:
        frame: columns COLUMNS, rows of `lossscope study multiverse --format csv`.
        ax: axes to draw on; None: new ones.
    """
    rows = _valid_rows(frame)
    claims, levels = claim_shares(rows), level_shares(rows)
    columns = _columns(rows)
    blocks = list(claims.groupby(["data", "encoder", "metric"], sort=False, observed=True))
    lines = len(claims) + len(blocks)
    in_new_figure = ax is None
    fig: Any = style.new_figure(style.PAGE) if ax is None else ax.figure
    upright = _needs_upright_numbers(fig.get_figwidth(), claims, columns)
    if ax is None:
        fig.set_figheight(style.small() / 72 * (_TALL if upright else _LINE) * (lines + 7))
        ax = style.set_headline(fig, _HEADLINE).add_subplot()
    shares = {
        (*(row[name] for name in CLAIM), row["dimension"], row["level"]): row["share"]
        for row in levels.to_dict("records")
    }
    ticks: list[tuple[float, str]] = []
    y = 0.0
    for (data, encoder, metric), block in blocks:
        title = _block_title(str(data), str(encoder), str(metric), rows)
        ax.text(-0.5, y, title, va="center_baseline", fontsize=style.small(), fontweight="bold")
        y += 1
        for claim in block.to_dict("records"):
            key = tuple(claim[name] for name in CLAIM)
            for (dimension, level), x in columns.items():
                _draw_cell(ax, x, y, shares.get((*key, dimension, level), math.nan), upright)
            _draw_bar(ax, _right(columns), y, float(claim["share"]))
            ticks.append((y, _claim_text(claim)))
            y += 1
    _label_axes(ax, ticks, columns, lines)
    if in_new_figure:
        naming.legend_below(ax.figure, _handles(), _explained(rows))  # type: ignore[arg-type]
    return ax


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    each = []
    for row in claim_shares(_valid_rows(frame)).to_dict("records"):
        share = "no universe is defined" if math.isnan(row["share"]) else f"{row['share']:.0%} of {row['defined']}"
        decisive = f", most decisive {_WORDS.get(row['decisive'], row['decisive'])}" if row["decisive"] else ""
        each.append(
            f"{row['metric']} of {row['lower']} < {row['higher']} ({row['data']}, {row['encoder']}, {row['origin']}): "
            f"{share}{decisive}"
        )
    return f"{_HEADLINE} {'; '.join(each)}."


def _columns(rows: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return (dimension, level) -> the horizontal position of its cells."""
    positions: dict[tuple[str, str], float] = {}
    x = 0.0
    for dimension in DIMENSIONS:
        order = level_order(rows, dimension)
        for level in order:
            positions[dimension, level] = x
            x += 1
        x += _GAP if order else 0
    return positions


def _needs_upright_numbers(inches: float, claims: pd.DataFrame, columns: dict[tuple[str, str], float]) -> bool:
    """Return whether a cell is too narrow for a flat `100`, beside the names of the claims."""
    letters = max(len(_claim_text(claim)) for claim in claims.to_dict("records"))
    size = style.small() / 72
    cell = (inches - _LETTER * size * letters) / (0.5 + _right(columns) + _BAR)
    return cell < _NUMBER * size


def _right(columns: dict[tuple[str, str], float]) -> float:
    return max(columns.values()) + 0.5 + _GAP


def _draw_cell(ax: Axes, x: float, y: float, share: float, upright: bool) -> None:
    box = (x - 0.5, y - 0.5), 1, 1
    if math.isnan(share):
        ax.add_patch(Rectangle(*box, facecolor="0.93", edgecolor="white", linewidth=0.6))
        return
    ax.add_patch(Rectangle(*box, facecolor=colormaps["RdBu"](share), edgecolor="white", linewidth=0.6))
    colour = "black" if _DARK[0] <= share <= _DARK[1] else "white"
    ax.text(
        x, y, f"{100 * share:.0f}", ha="center", va="center" if upright else "center_baseline",
        color=colour, fontsize=style.small(), rotation=90 if upright else 0,
    )  # fmt: skip


def _draw_bar(ax: Axes, x: float, y: float, share: float) -> None:
    ax.add_patch(Rectangle((x, y - 0.36), _BAR, 0.72, facecolor="0.93", edgecolor="none"))
    if math.isnan(share):
        ax.text(x + _BAR / 2, y, "none", ha="center", va="center_baseline", fontsize=style.small())
        return
    ax.add_patch(Rectangle((x, y - 0.36), _BAR * share, 0.72, facecolor=style.PALETTE[0], edgecolor="none"))
    inside = share > 0.5
    ax.text(
        x + _BAR * share + (-0.12 if inside else 0.12), y, f"{100 * share:.0f}", ha="right" if inside else "left",
        va="center_baseline", fontsize=style.small(), color="white" if inside else "black",
    )  # fmt: skip


def _label_axes(ax: Axes, ticks: list[tuple[float, str]], columns: dict[tuple[str, str], float], lines: int) -> None:
    right = _right(columns)
    ax.set_xlim(-0.5, right + _BAR)
    ax.set_ylim(lines - 0.5, -0.5)
    ax.set_yticks([y for y, _ in ticks], [text for _, text in ticks])
    ax.set_xticks(list(columns.values()), [labels.plain_text(level) for _, level in columns], rotation=90)
    ax.tick_params(length=0, labelsize=style.small())
    ax.xaxis.tick_top()
    for dimension in dict.fromkeys(name for name, _ in columns):
        of_dimension = [x for (name, _), x in columns.items() if name == dimension]
        ax.text(
            (min(of_dimension) + max(of_dimension)) / 2, lines - 0.3, _WORDS.get(dimension, dimension), ha="center",
            va="top", fontsize=style.small(),
        )  # fmt: skip
    ax.text(right + _BAR / 2, lines - 0.3, "all (%)", ha="center", va="top", fontsize=style.small())
    for spine in ax.spines.values():
        spine.set_visible(False)


def _block_title(data: str, encoder: str, metric: str, rows: pd.DataFrame) -> str:
    where = [text for text, name in ((data, "data"), (encoder, "encoder")) if rows[name].nunique() > 1]
    return labels.plain_text(", ".join([metric.replace("_", " "), *where]))


def _claim_text(claim: Mapping[Any, Any]) -> str:
    mark = "● " if claim["origin"] == PRINTED else ""
    return mark + labels.plain_text(f"{claim['lower']} < {claim['higher']}")


def _handles() -> list[Patch]:
    scale = colormaps["RdBu"]
    return [
        Patch(facecolor=scale(0.05), label="holds in no universe"),
        Patch(facecolor=scale(0.95), label="holds in all"),
        Patch(facecolor="0.93", label="no such choice, or undefined"),
    ]


def _explained(rows: pd.DataFrame) -> str:
    undefined = int(rows["holds"].isna().sum())
    size = f"{len(rows):,} comparisons of a claim in a universe, {undefined:,} undefined and in no share"
    return f"● printed by the paper, others ours. {size}. Universes are choices, not samples: no p-value follows."


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `holds` as numbers. Raises InputError for other columns, no rows, or too many claims."""
    style.require_rows(frame, COLUMNS, _NAME)
    rows = require_universes(frame)
    claims = len(rows[list(CLAIM)].drop_duplicates())
    if claims > _MOST:
        raise InputError(
            f"frame of {_NAME} must have at most {_MOST} claims; got {claims}. Choose with --only, --metric or "
            "--claims printed"
        )
    return rows
