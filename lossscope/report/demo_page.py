"""The page of the demo: its frames, and what a reader should see in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lossscope.plots import counts, pair_curves, style, trajectory, triplet_field
from lossscope.tables import cocos_smoothap, cocos_softmax, cocos_triplet, recall_beside_counts, retrieval

from .page import Picture, Section, write_page

TITLE = "What four losses do to the same model"


@dataclass(frozen=True)
class Story:
    """Everything the page shows.

    rows: summary rows of `recall` and `cocos`. triplet_weights, loss_weights: weight fields. pair_weights: curves.
    trajectories: one row per run and epoch. plateau: the sentence on the run with ambiguous captions.
    """

    rows: pd.DataFrame
    triplet_weights: pd.DataFrame
    pair_weights: pd.DataFrame
    loss_weights: pd.DataFrame
    trajectories: pd.DataFrame
    plateau: str
    provenance: Mapping[str, str]


def page(out: Path, story: Story) -> Path:
    """Write the folder and return its index.html."""
    with style.screen():
        sections = [_counting(story.rows), _diagrams(story), _trajectories(story)]
        return write_page(out, TITLE, _lead(story.rows), sections, story.provenance)


def _counting(rows: pd.DataFrame) -> Section:
    corrected = rows[(rows["probe"] != "cocos") | (rows["convention"] == "corrected")]
    beside = corrected[corrected["statistic"].isin(["C_q_all", "C_neg"])]
    rsum = rows[rows["statistic"] == "rsum"].set_index("source")["mean"]
    columns = {"label": beside["source"], "direction": beside["direction"], "count": beside["mean"]}
    frame = pd.DataFrame({**columns, "rsum": beside["source"].map(rsum)})
    items = (
        recall_beside_counts.build(corrected),
        Picture("counts", _COUNTS_CAPTION, counts.alt(frame), counts.draw(frame).figure),
        retrieval.build(rows),
        cocos_triplet.build(rows),
        cocos_softmax.build(corrected),
        cocos_smoothap.build(rows),
    )
    return Section("Which samples carry the gradient", _COUNTING, items)


def _diagrams(story: Story) -> Section:
    figure2, figure3, losses = story.triplet_weights, story.pair_weights, story.loss_weights
    items = (
        Picture("triplet_weights", _FIGURE2, triplet_field.alt(figure2), triplet_field.draw_many(figure2)),
        Picture("pair_weights", _FIGURE3, pair_curves.alt(figure3), pair_curves.draw_many(figure3)),
        Picture("loss_weights", _FIELDS, triplet_field.alt(losses), triplet_field.draw_many(losses)),
    )
    return Section("How hard each loss pushes", _DIAGRAMS, items)


def _trajectories(story: Story) -> Section:
    frame = story.trajectories
    picture = Picture("trajectories", _FIGURE4, trajectory.alt(frame), trajectory.draw_many(frame))
    return Section("How the similarities moved", f"{_TRAJECTORIES}\n\n{story.plateau}", (picture,))


def _lead(rows: pd.DataFrame) -> str:
    rsum = rows[rows["statistic"] == "rsum"].sort_values("mean", ascending=False)
    order = ", ".join(f"{row['source']} {row['mean']:.1f}" for row in rsum.to_dict("records"))
    return (
        f"One model was trained {len(rsum)} times on rendered scenes, with another loss each time, and frozen at its "
        f"best epoch. Sum of recalls on the test images (of 600): {order}. Below: how many samples of a batch carry "
        "the gradient of a query for each of them, how strongly each loss pushes, and how the similarities moved."
    )


_COUNTING = """\
A candidate counts when the weight that the loss gives it, in the scale of the loss's own paper, is above eps. The
layout follows Tables 1 to 4 of the COCOS paper (Bleeker & de Rijke, 2022).

Rows marked "released" repeat the counters of that paper's released code, of which two are wrong for caption queries;
rows marked "corrected" count per query. The difference is not in the model but in the counter."""
_COUNTS_CAPTION = "Negatives that count per query (mean over all queries) against the sum of recalls."
_DIAGRAMS = """\
Every field is the loss itself, called on queries with one positive and one negative candidate; no formula is drawn.
Right is a similar positive, up is a similar negative; each panel is divided by its largest weight."""
_FIGURE2 = "Triplet weights of GOAL, margin 0.2 and tau 10 (Figure 2 of Xuan & Chen, 2023)."
_FIGURE3 = "Pair weights of GOAL, alpha 2, beta 10, lambda 0.5, relative terms 0.1 (Figure 3 of Xuan & Chen, 2023)."
_FIELDS = "The weight on the negative: losses trained here and the unified loss, at their default parameters."
_TRAJECTORIES = """\
Positive and hardest-negative similarity on the validation split after each epoch, median with 10 to 90 % bands, as in
Figure 4 of the unified-loss paper (Li et al., 2022). Two lines that run together are a collapse: no query can be told
from another."""
_FIGURE4 = "Similarities, loss and rsum against epochs, one panel per run."
