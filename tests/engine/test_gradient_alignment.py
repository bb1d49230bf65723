"""Are cosines of gradients those of plain loops, 1 for equal losses, 0 and -1 for losses that were built so?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.request import Request
from lossscope.core.similarity import Mask, normalise
from lossscope.engine.analysis_batches import draw_batches, rows_of_batch
from lossscope.engine.analysis_options import AlignmentOptions, AnalysisBatches
from lossscope.engine.fitting_objectives import fitting_objectives
from lossscope.engine.gradient_alignment import (
    COLUMNS,
    cluster_losses,
    gradient_alignment,
    missing_spaces,
)
from lossscope.errors import InputError, OptionError
from lossscope.objectives.base import Gradient, Objective
from lossscope.registry import build
from lossscope.sources.base import read_source
from tests.each import each

N, K = 20, 2
OWNER = np.repeat(np.arange(N), K)
SMALL = AnalysisBatches(batch_size=8)


@pytest.fixture(scope="module")
def embedded() -> SplitEmbeddings:
    random = torch.Generator().manual_seed(0)
    images = normalise(torch.randn(N, 8, generator=random))
    captions = normalise(images[OWNER] + 0.5 * torch.randn(N * K, 8, generator=random))
    ids = [[str(row) for row in range(n)] for n in (N, N * K)]
    return SplitEmbeddings("a.pt", images, captions, None, OWNER, ids[0], ids[1], "f" * 64, split="test")


@dataclass(frozen=True)
class Opposite(Gradient):
    """Minus W of triplet_sh, times a factor."""

    __lossscope_name__: ClassVar[str] = "opposite"
    factor: float = 3.0

    def weights(self, S: Tensor, mask: Mask) -> Tensor:
        return -self.factor * build("objectives", "triplet_sh")(S, mask).W


@dataclass(frozen=True)
class Easiest(Gradient):
    """1 on the easiest negative alone: never on an entry to which triplet_sh gives weight."""

    __lossscope_name__: ClassVar[str] = "easiest"

    def weights(self, S: Tensor, mask: Mask) -> Tensor:
        easiest = S.masked_fill(mask.non_negatives, torch.inf).argmin(1, keepdim=True)
        return torch.zeros_like(S).scatter(1, easiest, 1.0)


@dataclass(frozen=True)
class Silent(Gradient):
    """No weight at all."""

    __lossscope_name__: ClassVar[str] = "silent"

    def weights(self, S: Tensor, mask: Mask) -> Tensor:
        return torch.zeros_like(S)


def align(embedded: SplitEmbeddings, objectives: Sequence[Any], **options: Any) -> pd.DataFrame:
    built = {str(o): build("objectives", o) if isinstance(o, str) else o for o in objectives}
    return gradient_alignment(embedded, built, AlignmentOptions(SMALL, **options))


def cosine(rows: pd.DataFrame, space: str, layer: str = "") -> float:
    chosen = rows[(rows["space"] == space) & (rows["layer"] == layer) & (rows["a"] != rows["b"])]
    return float(chosen["cosine"].item())


@each("a, b", [
    ("vlc:gamma=10", "ntxent:tau=0.1"), ("vlc:gamma=20", "unified:gamma=20,margin=0"), ("ncr", "triplet_sh"),
    ("dcl:tau=0.1", "dcl:tau=0.1"), ("supcon:tau=0.1", "ntxent:tau=0.1"),
])  # fmt: skip
def test_equal_losses_and_losses_that_a_factor_makes_equal_have_a_cosine_of_1(
    embedded: SplitEmbeddings, a: str, b: str
) -> None:
    built: dict[str, Objective] = {"a": build("objectives", a), "b": build("objectives", b)}
    rows = gradient_alignment(embedded, built, AlignmentOptions(SMALL))
    assert list(rows.columns) == list(COLUMNS)
    np.testing.assert_allclose(rows["cosine"], 1, rtol=0, atol=1e-12)
    assert rows["a_cluster"].unique().tolist() == [1.0]


def test_a_loss_that_undoes_another_has_minus_1_and_no_shared_cluster(embedded: SplitEmbeddings) -> None:
    rows = align(embedded, ["triplet_sh", Opposite()], cut=0.5)
    for space in ("similarities", "queries"):
        assert cosine(rows, space) == pytest.approx(-1, abs=1e-12)
    assert set(rows["a_cluster"]) == {1.0, 2.0}


def test_losses_with_weights_on_different_candidates_are_orthogonal_in_s_alone(embedded: SplitEmbeddings) -> None:
    rows = align(embedded, ["triplet_sh", Easiest()])
    assert cosine(rows, "similarities") == 0
    assert abs(cosine(rows, "queries")) > 0.01


def test_a_loss_without_weights_has_no_cosine_and_no_cluster_and_its_queries_are_counted(
    embedded: SplitEmbeddings,
) -> None:
    rows = align(embedded, ["ntxent", Silent(), "vlc"])
    with_silent = rows[(rows["a"] == str(Silent())) | (rows["b"] == str(Silent()))]
    assert with_silent["cosine"].isna().all() and with_silent[["low", "high"]].isna().all(axis=None)
    assert (with_silent["undefined"] == with_silent["counted"]).all() and set(rows["counted"]) == {80}
    assert rows.loc[rows["a"] == str(Silent()), ["a_order", "a_cluster"]].isna().all(axis=None)
    assert rows.loc[rows["a"] == "vlc", "a_cluster"].notna().all()


@each("direction", ["both", "i2t", "t2i"])
def test_cosines_are_those_of_plain_loops_with_a_t_interval_over_batches(
    embedded: SplitEmbeddings, direction: str
) -> None:
    names = ("triplet_sh:margin=0.3", "ntxent:tau=0.2")
    rows = align(embedded, names, direction=direction)
    a, b = (build("objectives", name) for name in names)
    means: dict[str, list[float]] = {"similarities": [], "queries": []}
    undefined = 0
    for batch in draw_batches(embedded, SMALL):
        found: dict[str, list[float]] = {"similarities": [], "queries": []}
        for label, of_direction in zip(("i2t", "t2i"), rows_of_batch(embedded, batch), strict=True):
            if direction not in ("both", label):
                continue
            assert of_direction.queries is not None and of_direction.candidates is not None
            w_a, w_b = (of_direction.weights(objective).double() for objective in (a, b))
            for q, v in enumerate(of_direction.queries.double()):
                pairs = {"similarities": (w_a[q], w_b[q])}
                v = v / v.norm()
                tangents = []
                for w in (w_a[q], w_b[q]):
                    g = sum(w[c] * of_direction.candidates[0, c].double() for c in range(len(w)))
                    tangents.append(g - (g @ v) * v)
                pairs["queries"] = (tangents[0], tangents[1])
                for space, (x, y) in pairs.items():
                    if float(x.norm()) > 1e-12 and float(y.norm()) > 1e-12:
                        found[space].append(float(x @ y / x.norm() / y.norm()))
                    elif space == "similarities":
                        undefined += 1
        for space, values in found.items():
            means[space].append(float(np.mean(values)))
    for space, values in means.items():
        row = rows[(rows["space"] == space) & (rows["a"] != rows["b"])].iloc[0]
        assert row["cosine"] == pytest.approx(np.mean(values), abs=1e-9)
        ends = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        np.testing.assert_allclose(row[["low", "high"]].astype(float), np.clip(ends, -1, 1), atol=1e-9)
        assert row["batches"] == len(values) == 5
    assert undefined == rows[(rows["space"] == "similarities") & (rows["a"] != rows["b"])]["undefined"].item() > 0


def test_parameters_have_the_gradient_of_the_training_loss_of_both_directions(tiny_run: Path) -> None:
    """Expected: a backward pass of the loss itself, 0.5 (mean i2t + mean t2i) for NT-Xent, sums for Triplet SH."""
    source = read_source(tiny_run / "best.pt", Request(cache=False))
    names = ("ntxent", "triplet_sh")
    batches = AnalysisBatches(batch_size=16, batches=1)
    rows = gradient_alignment(source, {name: build("objectives", name) for name in names}, AlignmentOptions(batches))
    (batch,) = draw_batches(source, batches)
    gradients: Any = source.layer_gradients
    model, captions = gradients.model_and_captions
    model.eval()
    images = model.encode_images(torch.as_tensor(captions.split.images.take(batch.images)))
    S = model.score(images, model.encode_texts(*captions.take(batch.captions, torch.device("cpu"))))
    positive, negatives = S.diag(), S.masked_fill(torch.eye(len(S), dtype=torch.bool), -2)
    hinges = [(0.2 - positive + negatives.amax(side)).relu().sum() for side in (1, 0)]
    softmax = [torch.nn.functional.cross_entropy(s / 0.1, torch.arange(len(S))) for s in (S, S.T)]
    vectors = []
    for loss in (0.5 * sum(softmax), sum(hinges)):
        of_loss = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True, allow_unused=True)
        vectors.append(torch.cat([g.flatten() for g in of_loss if g is not None]).double())
    expected = float(vectors[0] @ vectors[1] / vectors[0].norm() / vectors[1].norm())
    assert cosine(rows, "parameters", "total") == pytest.approx(expected, abs=1e-5)
    assert rows.loc[rows["space"] == "parameters", "layer"].nunique() > 2
    assert rows["low"].isna().all()  # a single batch


def test_layers_add_up_to_all_parameters_and_equal_losses_agree_in_each(tiny_run: Path) -> None:
    source = read_source(tiny_run / "best.pt", Request(cache=False))
    built = {"a": build("objectives", "vlc:gamma=10"), "b": build("objectives", "ntxent:tau=0.1")}
    rows = gradient_alignment(source, built, AlignmentOptions(AnalysisBatches(batch_size=16, batches=2)))
    np.testing.assert_allclose(rows.loc[rows["space"] == "parameters", "cosine"], 1, atol=1e-6)
    assert missing_spaces(source) == []


def test_similarities_alone_have_one_space_and_the_reasons_of_the_others(embedded: SplitEmbeddings) -> None:
    assert embedded.images is not None and embedded.captions is not None
    S = embedded.images @ embedded.captions.T
    only = replace(embedded, images=None, captions=None, similarity=S)
    rows = align(only, ["ntxent", "triplet"])
    assert set(rows["space"]) == {"similarities"}
    assert len(missing_spaces(only)) == 2 and "embeddings" in missing_spaces(only)[0]
    of_vectors = align(embedded, ["ntxent", "triplet"])
    assert cosine(rows, "similarities") == pytest.approx(cosine(of_vectors, "similarities"), abs=1e-6)


def test_clusters_follow_the_blocks_of_a_matrix_and_unknown_losses_are_in_none() -> None:
    cosines = np.full((5, 5), 0.1)
    for block in ((0, 3), (1, 2)):
        cosines[np.ix_(block, block)] = 0.95
    np.fill_diagonal(cosines, 1.0)
    cosines[4], cosines[:, 4] = math.nan, math.nan
    order, cluster = cluster_losses(cosines, 0.9)
    assert cluster[0] == cluster[3] != cluster[1] == cluster[2]
    assert math.isnan(cluster[4]) and math.isnan(order[4])
    assert abs(order[0] - order[3]) == 1 and abs(order[1] - order[2]) == 1
    assert len(set(cluster_losses(cosines, 0.05)[1][:4])) == 1


def test_every_objective_runs_or_is_named_with_a_reason(embedded: SplitEmbeddings) -> None:
    from lossscope.registry import names

    fitting = fitting_objectives(embedded, ["all"], SMALL)
    assert set(fitting.objectives) | set(fitting.left_out) == {
        name for name in names("objectives") if not build("objectives", name).traits.is_part
    }
    assert "ncr runs without the labels that its training estimates" in fitting.notes
    beside = fitting_objectives(embedded, ["all", "triplet-sh"], SMALL)
    assert "triplet-sh" in beside.objectives and "triplet_sh" not in beside.objectives
    assert list(fitting_objectives(embedded, ["ntxent:tau=0.1..0.2/2"], SMALL).objectives) == [
        "ntxent:tau=0.1", "ntxent:tau=0.2"
    ]  # fmt: skip


def test_what_cannot_be_is_refused(embedded: SplitEmbeddings) -> None:
    with pytest.raises(InputError, match="must have an objective"):
        gradient_alignment(embedded, {})
    with pytest.raises(OptionError, match="--cut must be from"):
        AlignmentOptions(cut=2.0)
    with pytest.raises(OptionError, match="--batches must be at least 1"):
        AnalysisBatches(batches=0)


def test_a_batch_that_is_not_full_is_left_out_unless_it_is_the_only_one(embedded: SplitEmbeddings) -> None:
    assert [len(batch.images) for batch in draw_batches(embedded, AnalysisBatches(batch_size=16))] == [16, 16]
    assert [len(batch.images) for batch in draw_batches(embedded, AnalysisBatches(batch_size=64))] == [40]
    assert [len(batch.images) for batch in draw_batches(embedded, AnalysisBatches(batch_size=None))] == [40]
