"""Are the arrows of a query, its positive and its negatives the steps of descent on the circle?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.patches import FancyArrowPatch

from lossscope.engine.weight_fields import circle_steps
from lossscope.errors import InputError
from lossscope.plots import circle_steps as picture
from tests.each import each

S = (0.5, 0.75, 0.6, 0.1, -0.2)
SPECS = {spec: spec for spec in ("triplet_sh", "vlc:gamma=5", "unified:gamma=5")}


def _arrows(ax) -> list[FancyArrowPatch]:
    return [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]


@each("spec", SPECS)
def test_steps_are_what_autograd_does_to_normalised_vectors(spec: str) -> None:
    """Autograd propagates minus this step through the normalisation of a vector of length 1."""
    frame = circle_steps({spec: spec}, S)
    points = torch.tensor(frame[["x", "y"]].to_numpy(), requires_grad=True)
    unit = torch.nn.functional.normalize(points, dim=1)
    s = unit[1:] @ unit[0]
    np.testing.assert_allclose(s.detach(), S, atol=1e-12)
    gamma, m = {"vlc:gamma=5": (5, 0.0), "unified:gamma=5": (5, 0.2)}.get(spec, (0, 0.2))
    if gamma:
        value = (gamma * (s[1:] - s[0] + m)).exp().sum().log1p() / (1 if spec.startswith("vlc") else gamma)
    else:
        value = (m + s[1:].max() - s[0]).relu()
    value.backward()
    np.testing.assert_allclose(frame[["dx", "dy"]], -points.grad, atol=1e-12)


def test_triplet_hn_moves_the_hardest_negative_alone_and_the_others_all() -> None:
    """Figure 1 of Li et al. 2022."""
    fig = picture.draw_many(circle_steps(SPECS, S))
    assert [len(_arrows(ax)) for ax in fig.axes] == [3, 6, 6]
    words = picture.alt(circle_steps(SPECS, S))
    assert "Triplet SH: step of the query 1.53" in words and "it moves the negatives at similarity 0.75" in words


def test_length_and_width_are_the_size_of_the_step_and_candidates_keep_their_side() -> None:
    frame = circle_steps({"unified:gamma=5": "unified:gamma=5"}, S)
    size = np.hypot(frame["dx"], frame["dy"]).to_numpy()
    arrows = _arrows(picture.draw(frame))
    ends = np.array([np.subtract(*reversed(arrow._posA_posB)) for arrow in arrows])
    np.testing.assert_allclose(np.hypot(*ends.T) / np.hypot(*ends[0]), size / size[0])
    np.testing.assert_allclose(ends / np.hypot(*ends[0]), frame[["dx", "dy"]] / size[0])
    widths = np.array([arrow.get_linewidth() for arrow in arrows])
    np.testing.assert_allclose(np.diff(widths), np.diff(size / size.max()) * (widths[0] - widths[1])
                               / (size[0] - size[1]) * size.max())  # fmt: skip
    np.testing.assert_allclose((frame[["x", "y"]].to_numpy() * frame[["dx", "dy"]].to_numpy()).sum(1), 0, atol=1e-12)
    assert frame["x"][1] < 0 < frame["x"][2]


@each("similarities", [(0.5,), (0.5, 1.5)])
def test_similarities_that_are_none_are_refused(similarities: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match=r"within -1..1; got .* Write 0.5,0.7,0.2"):
        circle_steps({"triplet": "triplet"}, similarities)


def test_a_range_of_specs_has_a_panel_for_each() -> None:
    frame = circle_steps({"all": "unified:gamma=1..100/3 log"}, S)
    assert isinstance(frame, pd.DataFrame)
    assert frame["objective"].nunique() == len(picture.draw_many(frame).axes) == 3
