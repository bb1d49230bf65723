"""Do losses pull the same way? Cosines of their gradients, a matrix for each space; pairs with intervals if few."""

from __future__ import annotations

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from ._intervals import bracketed, percents
from .base import Table
from .cells import DASH, Cell

REQUIRED = (
    "source", "split", "space", "layer", "a", "b", "cosine", "low", "high", "level", "batches", "counted", "undefined",
    "a_order", "b_order", "a_cluster", "b_cluster", "cut", "direction", "batch_size", "seed", "sampling",
)  # fmt: skip
TOTAL = "total"
SPACES = {"similarities": "rows of W = dL/dS", "queries": "tangent gradients of queries", "parameters": "dL/dθ"}
_FEW = 6  # losses whose pairs are a table with intervals
_UNITS = {"similarities": "queries", "queries": "queries", "parameters": "batches"}
_READ = (
    "cosine: mean over the queries of a batch (parameters: of its summed loss), then over batches, with a t-interval "
    "over batches; where a gradient is 0 there is none",
    "cluster: average linkage on 1 − cosine, joined at a mean cosine of at least {cut:g}",
)


def build(frame: pd.DataFrame) -> list[Table]:
    """Return a matrix for each space; for few losses a table of pairs with intervals; the layers of a model.

    Args:
        frame: result of `lossscope.engine.gradient_alignment.gradient_alignment`.

    Raises:
        InputError: columns or rows are missing.
    """
    require_columns(frame, REQUIRED, "rows of alignment")
    if frame.empty:
        raise InputError("table alignment must have rows; got none. Run `lossscope analyse alignment`")
    spaces = [space for space in SPACES if (frame["space"] == space).any()]
    parts = {
        space: frame[(frame["space"] == space) & frame["layer"].astype(object).fillna("").isin(["", TOTAL])]
        for space in spaces
    }
    few = frame["a"].nunique() <= _FEW
    tables = [_pairs(space, rows) if few else _matrix(space, rows) for space, rows in parts.items()]
    layers = frame[(frame["space"] == "parameters") & (frame["layer"] != TOTAL)]
    return [*tables, *([_layers(layers)] if len(layers) and frame["a"].nunique() > 1 else [])]


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a, a_order, a_cluster and undefined of each loss, in the order of leaves; those without one last."""
    return rows[rows["a"] == rows["b"]].sort_values("a_order", na_position="last", kind="stable")


def _matrix(space: str, rows: pd.DataFrame) -> Table:
    losses = _ordered(rows)
    names = list(map(str, losses["a"]))
    pairs = zip(rows["a"], rows["b"], rows["cosine"], strict=True)
    values = {key: cosine for a, b, cosine in pairs for key in ((a, b), (b, a))}
    body = []
    for number, row in enumerate(losses.to_dict("records"), 1):
        cells = (Cell(mean=100 * values[row["a"], other], digits=0) for other in names)
        body.append((Cell(text=f"{number} {row['a']}"), Cell(text=_whole(row["a_cluster"])), *cells))
    columns = (("", "loss"), ("", "cluster"), *(("", str(number)) for number in range(1, len(names) + 1)))
    widest = ((rows["high"] - rows["low"]) / 2).max()
    level = percents(rows["level"])
    width = f"The widest {level} interval of a pair is ± {100 * widest:.1f}" if pd.notna(widest) else "No intervals"
    caption = f"Cosines of {SPACES[space]}, in hundredths: {_context(rows)}. {width}; --format csv has all."
    return Table(f"alignment_{space}", caption, columns, tuple(body), _notes(rows, losses), _legend(rows))


def _pairs(space: str, rows: pd.DataFrame) -> Table:
    losses = _ordered(rows)
    level, units = percents(rows["level"]), _UNITS[space]
    apart = rows[rows["a"] != rows["b"]].sort_values("cosine", ascending=False, kind="stable")
    apart = apart if len(apart) else rows
    body = tuple(
        (
            Cell(text=str(row["a"])), Cell(text=str(row["b"])), Cell(mean=row["cosine"], digits=3),
            Cell(text=bracketed(row["low"], row["high"], 3)), Cell(text=f"{row['undefined']:g} of {row['counted']:g}"),
            Cell(text="yes" if row["a_cluster"] == row["b_cluster"] else "no"),
        )
        for row in apart.to_dict("records")
    )  # fmt: skip
    columns = ("a", "b", "cosine", f"{level} interval", f"{units} without", "one cluster")
    caption = f"Cosines of {SPACES[space]}: {_context(rows)}."
    headers = tuple(("", name) for name in columns)
    return Table(f"alignment_{space}", caption, headers, body, _notes(rows, losses), _legend(rows))


def _layers(rows: pd.DataFrame) -> Table:
    """Return the cosines of the least aligned pair, and of all pairs on average, of each layer."""
    level, body = percents(rows["level"]), []
    apart = rows[rows["a"] != rows["b"]]
    for layer, of_layer in apart.groupby("layer", sort=False, observed=True):
        known = of_layer.dropna(subset=["cosine"])
        if known.empty:
            body.append((Cell(text=str(layer)), Cell(), Cell(text=DASH), Cell(), Cell(text=DASH)))
            continue
        least = known.iloc[int(known["cosine"].argmin())]
        body.append((
            Cell(text=str(layer)), Cell(mean=float(known["cosine"].mean()), digits=3),
            Cell(text=f"{least['a']}, {least['b']}"), Cell(mean=float(least["cosine"]), digits=3),
            Cell(text=bracketed(least["low"], least["high"], 3)),
        ))  # fmt: skip
    columns = ("layer", "mean of all pairs", "least aligned pair", "its cosine", f"{level} interval")
    return Table(
        "alignment_layers", f"Cosines of dL/dθ by layer: {_context(rows)}.", tuple(("", name) for name in columns),
        tuple(body),
    )  # fmt: skip


def _context(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    split = f", split {row['split']}" if pd.notna(row["split"]) else ""
    batches = int(rows["batches"].max())
    return (
        f"source {row['source']}{split}; direction {row['direction']}; {batches} full batch{'es' * (batches != 1)} of "
        f"{row['batch_size']:g} ({row['sampling']}), seed {row['seed']:g}"
    )


def _notes(rows: pd.DataFrame, losses: pd.DataFrame) -> tuple[str, ...]:
    row, units = rows.iloc[0], _UNITS[str(rows["space"].iloc[0])]
    counted = int(row["counted"])
    silent = [f"{loss['a']} {loss['undefined']:g}" for loss in losses.to_dict("records") if loss["undefined"]]
    zero = f"Gradient 0, of {counted:,} {units}: {', '.join(silent)}." if silent else ""
    unclear = [str(loss["a"]) for loss in losses.to_dict("records") if pd.isna(loss["a_cluster"])]
    left_out = f"In no cluster, as some of its cosines are unknown: {', '.join(unclear)}." if unclear else ""
    one_batch = "No interval: a single batch has no deviation." if int(rows["batches"].max()) < 2 else ""
    return tuple(text for text in (zero, left_out, one_batch) if text)


def _legend(rows: pd.DataFrame) -> tuple[str, ...]:
    return tuple(line.format(cut=rows["cut"].iloc[0]) for line in _READ)


def _whole(number: float) -> str:
    return DASH if pd.isna(number) else f"{number:.0f}"
