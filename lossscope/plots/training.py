"""How fast do objectives converge, and does a falling loss mean better retrieval? (Unified loss, Figure 3)"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError
from lossscope.io.scores import as_rsum, score_of

from . import labels, log_axis, naming, style, warmup

COLUMNS = ("run", "epoch", "split", "loss", "rsum")
VALUES = ("loss", "rsum")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
_HEADLINES = {"loss": "{loss} as a share of its first value", "rsum": "Retrieval ({score}) in training"}
_NAME = "training"
_Values = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None, value: str = "rsum") -> Axes:
    """How does the loss, or rsum, change over epochs? A line per run; runs with one label share colour and dashes.

    rsum is that of the validation split if there is one, and so is the loss if every run that has a loss has that; else
    it is the loss of the training steps. The loss is divided by its first value: losses of different objectives are
    different quantities, so only how they fall compares, not where they are. The epochs of a warm-up with another loss
    are shaded; a training loss after it is a line of its own, divided by its own first value. The axis is logarithmic
    where values are above 0 and a decade or more apart. A run whose loss falls fast is not necessarily the better
    model: compare the rsum.

    Args:
        frame: columns COLUMNS, as `Run.curves` returns them, its column `warmup` if there is a warm-up, and `label`;
            the name of the run if there is none.
        ax: axes to draw on; None: new ones.
        value: loss, or rsum, which stands for nDCG@10 where rows have that.
    """
    rows, score = _with_labels(frame), score_of(frame.columns).name
    if value not in VALUES:
        raise InputError(f"value must be loss or rsum; got {value!r}")
    ax = style.axes_or_new(ax, _HEADLINES[value].format(score=score, loss=loss_name(rows)))
    _draw_panel(ax, rows, value, score)
    ax.legend(handles=_handles(rows), loc="best", fontsize=style.small())
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Does a falling loss (left) mean a better rsum (right)? Panels as `draw`.

    Figure 3 of the Unified-loss paper, which has loss and rsum of the validation split.
    """
    rows, score = _with_labels(frame), score_of(frame.columns).name
    fig = style.set_headline(style.new_figure(width=1.9, height=0.85), _together(loss_name(rows), score))
    for index, value in enumerate(VALUES):
        _draw_panel(fig.add_subplot(1, 2, index + 1), rows, value, score)
    naming.legend_below(fig, _handles(rows))
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts, score = [], score_of(frame.columns)
    rows = _with_labels(frame)
    split = _loss_split(rows)
    several = rows.groupby("label", observed=True)["run"].nunique().max() > 1
    for (label, run), line in rows.groupby(["label", "run"], sort=False, observed=True):
        name = f"{labels.in_words(str(label))}, {run}" if several else labels.in_words(str(label))
        text, rsum = f"{name}:{_describe_loss(_line(line, 'loss', split))}", _line(line, "rsum", "val")
        if len(rsum):
            best = rsum.iloc[int(rsum["rsum"].to_numpy().argmax())]
            text += f" best {score.name} {score.number(best['rsum'])} at epoch {best['epoch']:g}"
        parts.append(text)
    return f"{loss_name(rows)} and {score.name} against epochs. " + "; ".join(parts) + "."


def loss_name(frame: pd.DataFrame) -> str:
    """Return which loss is drawn: `Validation loss` if every run that has a loss has that, else `Training loss`."""
    return "Validation loss" if _loss_split(frame) == "val" else "Training loss"


def _loss_split(frame: pd.DataFrame) -> str:
    splits = frame.dropna(subset=["loss"]).groupby("run", observed=True)["split"].unique()
    return "val" if len(splits) and all("val" in of_run for of_run in splits) else "train"


def _together(loss: str, score: str) -> str:
    return f"{loss} and {score}" if loss.startswith("Validation") else f"{loss}, and {score} on the validation split"


def _describe_loss(line: pd.DataFrame) -> str:
    """Return ` loss 5.1 to 3.2,`, of the warm-up and of what follows where there is one."""
    phases = _phases(line) if len(line) else []
    names = (" in the warm-up,", " after it,") if len(phases) > 1 else (",",)
    return "".join(
        f" loss {part['loss'].iloc[0]:.3g} to {part['loss'].iloc[-1]:.3g}{name}"
        for part, name in zip(phases, names, strict=False)
    )


def _draw_panel(ax: Axes, rows: pd.DataFrame, value: str, score: str) -> None:
    styles, drawn = _line_styles(rows), [np.empty(0)]
    warmup.shade(ax, warmup.warmups(rows, "label"))
    split = _loss_split(rows) if value == "loss" else "val"
    for (label, _), of_run in rows.groupby(["label", "run"], sort=False, observed=True):
        line = _line(of_run, value, split)
        for part in _phases(line) if value == "loss" else [line]:
            drawn.append(_draw_line(ax, part, value, str(label), styles[str(label)]))
    numbers = np.concatenate(drawn)
    if value == "loss" and len(numbers) and log_axis.is_wide(float(numbers.min()), float(numbers.max())):
        log_axis.set_log(ax, "y", float(numbers.min()), float(numbers.max()))
    style.set_epochs(ax, rows["epoch"])
    ax.set_ylabel(f"{loss_name(rows).lower()} / its first value" if value == "loss" else score)


def _draw_line(ax: Axes, line: pd.DataFrame, value: str, label: str, look: tuple[str, object]) -> _Values:
    """Draw one phase of a run, a loss as a share of its first value; return the numbers."""
    if line.empty:
        return np.empty(0)
    numbers: _Values = line[value].to_numpy(float) / (line[value].iloc[0] if value == "loss" else 1.0)
    marker = "o" if len(line) < 3 else ""
    ax.plot(line["epoch"], numbers, color=look[0], linestyle=look[1], marker=marker, label=label)
    return numbers


def _line(rows: pd.DataFrame, value: str, split: str) -> pd.DataFrame:
    """Return the points of one run of a split, if it has that split."""
    rows = rows.dropna(subset=[value]).sort_values("epoch")
    of_split = rows[rows["split"] == split]
    return of_split if len(of_split) else rows


def _phases(line: pd.DataFrame) -> list[pd.DataFrame]:
    """Return a line of losses, cut at the end of its warm-up; a validation loss is of one objective throughout."""
    return [line] if set(line["split"]) == {"val"} else warmup.phases(line)


def _line_styles(rows: pd.DataFrame) -> dict[str, tuple[str, object]]:
    """Return the colour and dashes of each label."""
    colours = style.colours(list(map(str, rows["label"].unique())))
    return {label: (colour, _DASHES[index % len(_DASHES)]) for index, (label, colour) in enumerate(colours.items())}


def _handles(rows: pd.DataFrame) -> list[Artist]:
    looks = _line_styles(rows).items()
    lines = [
        Line2D([], [], color=colour, linestyle=dashes, label=labels.label_text(label))  # type: ignore[arg-type]
        for label, (colour, dashes) in looks
    ]
    return [*lines, *warmup.handles(warmup.warmups(rows, "label"), several=len(lines) > 1)]


def _with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with the column `label`. Raises InputError for other columns, or without a loss or an rsum."""
    frame = as_rsum(frame)
    style.require_rows(frame, COLUMNS, _NAME)
    if frame[["loss", "rsum"]].isna().all(axis=None):
        raise InputError(f"frame of {_NAME} must have a loss or an rsum; got none. Read a run with Run.curves")
    names = labels.shortest_names(frame["run"].unique())
    return frame if "label" in frame else frame.assign(label=frame["run"].astype(str).map(names))
