"""Does the search find unified losses themselves, the special cases that the paper names, and its own border?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import normalise
from lossscope.engine.analysis_batches import draw_batches, rows_of_batch
from lossscope.engine.analysis_options import AnalysisBatches
from lossscope.engine.nearest_unified import COLUMNS, nearest_unified
from lossscope.registry import build
from tests.engine.test_gradient_alignment import Silent

OWNER = np.repeat(np.arange(24), 2)
BATCHES = AnalysisBatches(batch_size=16, batches=2)


@pytest.fixture(scope="module")
def embedded() -> SplitEmbeddings:
    random = torch.Generator().manual_seed(0)
    images = normalise(torch.randn(24, 8, generator=random))
    captions = normalise(images[OWNER] + 0.8 * torch.randn(48, 8, generator=random))
    ids = [[str(row) for row in range(n)] for n in (24, 48)]
    return SplitEmbeddings("a.pt", images, captions, None, OWNER, ids[0], ids[1], "f" * 64, split="test")


@pytest.fixture(scope="module")
def rows(embedded: SplitEmbeddings) -> pd.DataFrame:
    specs = ("unified:margin=0.2,gamma=60", "ntxent:tau=0.1", "vlc:gamma=20", "cosface:margin=0.35,scale=30",
             "triplet_sh:margin=0.2", "ncr", "smoothap")  # fmt: skip
    found = nearest_unified(embedded, {spec: build("objectives", spec) for spec in specs}, BATCHES)
    assert list(found.columns) == list(COLUMNS)
    return found.set_index("objective")


@pytest.mark.parametrize(("spec", "margin", "gamma", "scale"), [
    ("unified:margin=0.2,gamma=60", 0.2, 60, 1), ("ntxent:tau=0.1", 0, 10, 10), ("vlc:gamma=20", 0, 20, 20),
    ("cosface:margin=0.35,scale=30", 0.35, 30, 30),
])  # fmt: skip
def test_members_of_the_family_are_found(
    rows: pd.DataFrame, spec: str, margin: float, gamma: float, scale: float
) -> None:
    """Eq. 7: VLC is gamma times unified without a margin."""
    row = rows.loc[spec]
    assert row["residual"] < 1e-6
    assert row["margin"] == pytest.approx(margin, abs=1e-3)
    assert row["gamma"] == pytest.approx(gamma, rel=1e-3) and row["scale"] == pytest.approx(scale, rel=1e-3)
    assert row["border"] == ("margin = 0" if margin == 0 else "")


@pytest.mark.parametrize("spec", ["triplet_sh:margin=0.2", "ncr"])
def test_hinges_on_the_hardest_negative_are_at_the_border_of_gamma(rows: pd.DataFrame, spec: str) -> None:
    """Eq. 6: Triplet-HN is the limit of gamma to infinity, so no gamma reaches it."""
    row = rows.loc[spec]
    assert row["border"] == "gamma = 1000"
    assert row["margin"] == pytest.approx(0.2, abs=0.02) and row["residual"] < 0.1


def test_the_residual_is_what_no_point_of_a_fine_grid_undercuts(embedded: SplitEmbeddings, rows: pd.DataFrame) -> None:
    parts = [part for batch in draw_batches(embedded, BATCHES) for part in rows_of_batch(embedded, batch)]
    W = np.concatenate([part.weights(build("objectives", "smoothap")).flatten() for part in parts])
    residuals = []
    for margin in np.linspace(0, 1, 21):
        for gamma in np.geomspace(1, 1000, 31):
            unified = build("objectives", f"unified:margin={margin},gamma={gamma}")
            U = np.concatenate([part.weights(unified).flatten() for part in parts])
            c = max(W @ U / (U @ U), 0)
            residuals.append(np.square(W - c * U).sum() / np.square(W).sum())
    assert rows.loc["smoothap", "residual"] <= min(residuals) + 1e-9
    assert rows.loc["smoothap", "residual"] == pytest.approx(min(residuals), abs=0.01)


def test_a_loss_without_weights_is_near_to_none(embedded: SplitEmbeddings) -> None:
    (row,) = nearest_unified(embedded, {"silent": Silent()}, BATCHES).to_dict("records")
    assert np.isnan(row["gamma"]) and np.isnan(row["residual"]) and row["border"] == ""
