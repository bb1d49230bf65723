"""Is a frame that a picture cannot show refused, with the missing column or the expected values?"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.plots import (
    alignment,
    by_rank,
    circle_steps,
    count_recall,
    differences,
    direction_field,
    epoch_counts,
    eps_curve,
    fidelity,
    hubness,
    multiverse,
    overlay,
    pair_cloud,
    pair_curves,
    power,
    sensitivity,
    tangent,
    tangent_cloud,
    training,
    trajectory,
    transfer,
    triplet_field,
    utility,
    vanishing_map,
    weight_factors,
    weight_field,
    weight_mass,
    what_if,
)
from tests.each import each
from tests.plots.frames import FRAMES

Draw = Callable[[pd.DataFrame], Any]
NAN = float("nan")
SIDEWAYS = "direction must be i2t, t2i, both, or .*; got sideways"


def twice(frame: pd.DataFrame, **changed: Any) -> pd.DataFrame:
    """Return all rows, and all of them again with other values."""
    return pd.concat([frame, frame.assign(**changed)])


@each("picture, column", [
    (alignment, "cosine"), (by_rank, "x"), (circle_steps, "dx"), (count_recall, "panel"), (direction_field, "w_pos"),
    (eps_curve, "mean"), (fidelity, "statistic"), (hubness, "count"), (multiverse, "holds"), (overlay, "s_neg"),
    (pair_cloud, "w_neg"), (pair_curves, "weight"), (power, "mdd_low"), (sensitivity, "seed"), (tangent, "value"),
    (tangent_cloud, "weight"), (training, "rsum"), (trajectory, "neg_q90"), (transfer, "trained_with"),
    (triplet_field, "s_neg"), (utility, "counted_low"), (vanishing_map, "tangent"), (weight_factors, "residual"),
    (weight_field, "w_pos"), (weight_mass, "mean"), (what_if, "std"),
])  # fmt: skip
def test_a_column_that_is_missing_is_named(picture: ModuleType, column: str) -> None:
    single, many = FRAMES[picture]()
    for draw, frame in ((picture.draw, single), (getattr(picture, "draw_many", picture.draw), many)):
        with pytest.raises(InputError, match=f"Add {column}"):
            draw(frame.drop(columns=column))


# picture, its function, a change of its frame, and the message
@each("picture, name, change, message", [
    (by_rank, "draw_many", lambda f: f.assign(mean=0.0), "a weight above 0; got none"),
    (by_rank, "draw", lambda f: f.assign(direction="sideways"), SIDEWAYS),
    (alignment, "draw", lambda f: twice(f, space="parameters"), "one space"),
    (alignment, "draw_many", lambda f: f.iloc[1:], "each pair of losses once"),
    (alignment, "draw_many", lambda f: f.assign(space="text"), "space of alignment must be one of"),
    (alignment, "draw", lambda f: f.assign(cosine=2.0), "cosine of alignment must be in -1..1"),
    (circle_steps, "draw", lambda f: f.assign(role="image"), "role must be one of query, positive, negative"),
    (circle_steps, "draw", lambda f: f.assign(x=2.0), "of length 1"),
    (circle_steps, "draw", lambda f: twice(f, objective="b"), "one objective"),
    (count_recall, "draw_many", lambda f: f.assign(direction="sideways"), SIDEWAYS),
    (count_recall, "draw_many", twice, "got some twice"),
    (count_recall, "draw_many", lambda f: f.assign(rsum=NAN), "both count and rsum; got none"),
    (differences, "draw", lambda f: f.assign(low=NAN), "may be equal"),
    (direction_field, "draw", lambda f: f.iloc[1:], "each point of an s_pos x s_neg grid"),
    (direction_field, "draw", lambda f: f.assign(w_neg=NAN), "must be finite"),
    (direction_field, "draw", lambda f: twice(f, objective="b"), "one objective"),
    (epoch_counts, "draw", twice, "each epoch once"),
    (eps_curve, "draw", lambda f: f.assign(direction="sideways"), SIDEWAYS),
    (eps_curve, "draw", lambda f: f.assign(mean=NAN), "The probe skipped every query"),
    (fidelity, "draw", lambda f: f.assign(mean=NAN), "a cosine at a k; got none. The probe skipped every query"),
    (fidelity, "draw", lambda f: f[f["statistic"] != "curve"], "a cosine at a k; got none"),
    (fidelity, "draw", lambda f: f.assign(direction="sideways"), SIDEWAYS),
    (hubness, "draw", lambda f: f.assign(count=[1, -1, 0]), "numbers >= 0"),
    (hubness, "draw", lambda f: f.assign(count=0), "a must have a chosen candidate"),
    (overlay, "draw", lambda f: f.assign(s_pos=NAN), "must be finite"),
    (overlay, "draw", lambda f: twice(f.assign(epoch=1.0), epoch=2.0),
     "one epoch of each source; got several. Use overlay.draw_path"),
    (overlay, "draw_path", lambda f: f, "two epochs or more; got 0"),
    (overlay, "draw_path", lambda f: twice(f, source="b"), "one source"),
    (pair_cloud, "draw", lambda f: twice(f, source="b"), "one source"),
    (pair_cloud, "draw_many", lambda f: f.assign(w_pos=NAN), "must be finite"),
    (pair_curves, "draw", lambda f: f.assign(side="left"), "side must be positive or negative; got left"),
    (multiverse, "draw", twice, "each claim and universe once"),
    (multiverse, "draw", lambda f: f.assign(holds="perhaps"), "true, false or empty; got 'perhaps'"),
    (multiverse, "draw", lambda f: pd.concat([f.assign(data=f"scenes {k}") for k in range(31)]),
     "at most 60 claims; got 62"),
    (power, "draw", lambda f: twice(f, over="images"), "one over; got seeds, images"),
    (power, "draw_many", lambda f: f.assign(mdd=NAN), "must have a smallest difference; got none"),
    (power, "draw_many", twice, "each pair and n once"),
    (sensitivity, "draw", lambda f: twice(f, parameter="gamma"), "one parameter"),
    (sensitivity, "draw_many", twice, "got some twice"),
    (sensitivity, "draw_many", lambda f: f.assign(rsum=NAN), "known rsum; got none"),
    (tangent, "draw", lambda f: f.assign(value=NAN), "known norm; got none"),
    (tangent, "draw", lambda f: f.assign(value=-1.0), "numbers >= 0"),
    (tangent, "draw", lambda f: twice(f, label="b"), "one label"),
    (tangent_cloud, "draw", lambda f: f.assign(tangent=-1.0), "weights and norms >= 0"),
    (tangent_cloud, "draw_many", lambda f: f.assign(similarity=2.0), "similarities in -1..1"),
    (tangent_cloud, "draw", lambda f: twice(f, source="b"), "one source"),
    (training, "draw", lambda f: f.assign(loss=NAN, rsum=NAN), "a loss or an rsum; got none"),
    (trajectory, "draw", lambda f: twice(f, run="b"), "draw_many"),
    (triplet_field, "draw", lambda f: f.iloc[:0], "at least one row"),
    (triplet_field, "draw", lambda f: f.iloc[1:], "full grid"),
    (triplet_field, "draw", twice, "each"),
    (triplet_field, "draw", lambda f: twice(f, objective="b"), "draw_many"),
    (transfer, "draw", lambda f: twice(f, statistic="N_eff"), "one statistic; got C_neg, N_eff"),
    (transfer, "draw_many", twice, "some twice"),
    (utility, "draw", lambda f: twice(f, metric="nDCG"), "one metric; got margin, nDCG"),
    (utility, "draw_many", twice, "each source, objective and metric once"),
    (utility, "draw_many", lambda f: f.assign(change=NAN), "known change of the direction both; got none"),
    (vanishing_map, "draw", lambda f: twice(f, epoch=2.0), "one epoch"),
    (vanishing_map, "draw_many", lambda f: f.assign(similarity=2.0), "similarities in -1..1"),
    (weight_factors, "draw", lambda f: f.iloc[1:], "each point of an s_pos x s_neg grid"),
    (weight_factors, "draw", lambda f: twice(f, objective="b"), "one objective"),
    (weight_factors, "draw_many", lambda f: f.assign(triplet=-1.0), "triplet of weight_factors must be at least 0"),
    (weight_field, "draw", lambda f: f.iloc[1:], "each point of an s_pos x s_neg grid"),
    (weight_field, "draw", twice, "each point of an s_pos x s_neg grid"),
    (weight_field, "draw", lambda f: f[f["s_neg"] == 1], "each point of an s_pos x s_neg grid"),
    (weight_field, "draw", lambda f: f.assign(w_neg=NAN), "must be finite"),
    (weight_field, "draw", lambda f: twice(f, objective="b"), "one objective; got .*, b"),
    (weight_mass, "draw", lambda f: f.assign(direction="sideways"), SIDEWAYS),
    (weight_mass, "draw", lambda f: f.assign(statistic="C_0"), "Run the probe weight_mass"),
    (weight_mass, "draw_many", twice, "got some twice"),
    (what_if, "draw", lambda f: twice(f, statistic="W_neg"), "one statistic"),
    (what_if, "draw_many", twice, "got some twice"),
    (what_if, "draw_many", lambda f: f.assign(direction="sideways"), SIDEWAYS),
    (what_if, "draw_many", lambda f: f.assign(mean=NAN), "known mean; got none"),
])  # fmt: skip
def test_rows_that_do_not_fit_are_refused(picture: ModuleType, name: str, change: Draw, message: str) -> None:
    frame = FRAMES[picture]()[name == "draw_many"]
    with pytest.raises(InputError, match=message):
        getattr(picture, name)(change(frame))


def test_several_panels_are_left_to_draw_many() -> None:
    with pytest.raises(InputError, match="one panel; got VSE"):
        count_recall.draw(FRAMES[count_recall]()[1])


def test_options_that_do_not_fit_are_refused() -> None:
    frame = FRAMES[sensitivity]()[0]
    with pytest.raises(InputError, match="sensitivity, reference must have the columns label, rsum"):
        sensitivity.draw(frame, reference=pd.DataFrame({"label": ["a"]}))
    with pytest.raises(InputError, match=r"panel must be one of candidate_weight, .*; got 'mean'"):
        by_rank.draw(FRAMES[by_rank]()[0], panel="mean")
    with pytest.raises(InputError, match="side must be positive or negative; got 'left'"):
        pair_cloud.draw(FRAMES[pair_cloud]()[0], side="left")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="value must be loss or rsum; got 'mean'"):
        training.draw(FRAMES[training]()[0], value="mean")  # type: ignore[arg-type]
