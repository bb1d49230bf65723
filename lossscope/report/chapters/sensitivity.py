"""How much does retrieval depend on a hyper-parameter of the loss? Where a study varies one, the others fixed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from lossscope.io.scores import score_rows
from lossscope.plots import sensitivity
from lossscope.spec import Spec, parse_finite

from ..sections import Picture, Section
from .base import ReportData, fold, over_seeds, panel

ORDER = 35
_MIN_VALUES = 3  # of a curve
_TEXT = (
    "One value of one hyper-parameter is changed at a time. Horizontal lines are the other losses of the study at "
    "their own settings."
)
_CAPTION = "{score} on the test split against a hyper-parameter."


def build(data: ReportData) -> Sequence[Section]:
    """Return a picture for each model and loss that has three values or more of one field."""
    rows, score = score_rows(data.results.rows), data.score.name
    rows = rows.assign(panel=panel(rows), score=rows["mean"], name=rows["spec"].map(lambda spec: Spec.parse(spec).name))
    items = []
    for number, ((model, name), group) in enumerate(rows.groupby(["panel", "name"], sort=False), 1):
        varied = pd.DataFrame(_varied_rows(group)).rename(columns={"score": score})
        if varied.empty:
            continue
        others = rows[(rows["panel"] == model) & (rows["name"] != name)]
        reference = pd.DataFrame({"label": others["objective_label"], score: others["score"]}) if len(others) else None
        figure = sensitivity.draw_many(varied, reference)
        caption = f"{name}, {model}. {_CAPTION.format(score=score)} {over_seeds(group, 'Marks and bars: mean')}"
        items.append(
            Picture(f"sensitivity-{number}", caption, sensitivity.alt(varied, reference), figure, "sensitivity", varied)
        )
    return [Section("How much a hyper-parameter matters", _TEXT, *fold(items))] if items else []


def _varied_rows(rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Yield a row per run and field with enough values while all other fields have their most common value."""
    values = pd.DataFrame([Spec.parse(spec).values for spec in rows["spec"]])
    if values.empty:  # losses without hyper-parameters
        return
    usual = values.mode().iloc[0]
    for field in values:
        fixed = values.drop(columns=field).eq(usual.drop(field)).all(axis=1).to_numpy()
        texts = values[field].astype(str)[fixed]
        if texts.nunique() < _MIN_VALUES or not texts.map(_is_number).all():
            continue
        for text, run in zip(texts, rows[fixed].to_dict("records"), strict=True):
            yield {"parameter": str(field), "value": parse_finite(text), "seed": run["seed"], "score": run["score"]}


def _is_number(text: str) -> bool:
    try:
        parse_finite(text)
    except ValueError:
        return False
    return True
