"""Does every form of NT-Xent that a user writes equal ntxent, whatever its input, average and library?"""

from __future__ import annotations

import contextvars
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, normalise, pair_mask
from lossscope.core.weights import BatchLoss, both, reduce_weights
from lossscope.engine.sweep import Sweep
from lossscope.engine.weight_fields import weight_field
from lossscope.errors import InputError, SpecError, UnsupportedLoss
from lossscope.live.monitor import LossScope
from lossscope.objectives.counting.units import saturated_weight
from lossscope.objectives.custom.as_objective import as_objective
from lossscope.objectives.custom.embeddings import vectors_with_similarities
from lossscope.registry import build, spec_of
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import verify
from lossscope.training.loop import train
from lossscope.training.recipe import Recipe
from tests.each import each

pytestmark = pytest.mark.usefixtures("typed")  # Python files that specs name

LOSSES = """
import torch, torch.nn.functional as F
from torch import nn

def on_s(S, tau=0.1):
    y = torch.arange(len(S))
    return (F.cross_entropy(S / tau, y) + F.cross_entropy(S.T / tau, y)) / 2

def summed(S, tau: float = 0.1):
    return on_s(S, tau) * len(S)

def per_row(S, tau=0.1):
    return F.cross_entropy(S / tau, torch.arange(len(S)), reduction="none")

def on_embeddings(image_emb, text_emb, tau=0.1):
    return on_s(F.normalize(image_emb, dim=-1) @ F.normalize(text_emb, dim=-1).T, tau)

def unit_already(image_emb, text_emb, tau=0.1):
    return on_s(image_emb @ text_emb.T, tau)

class ClipLoss(nn.Module):
    def __init__(self, cache_labels=False):
        super().__init__()
    def forward(self, image_features, text_features, logit_scale, logit_bias=None, output_dict=False):
        loss = on_s(logit_scale * image_features @ text_features.T, 1.0)
        return {"contrastive_loss": loss} if output_dict else loss

class SigLipLoss(nn.Module):
    def forward(self, image_features, text_features, logit_scale, logit_bias, output_dict=False):
        z = logit_scale * image_features @ text_features.T + logit_bias
        return -F.logsigmoid((2 * torch.eye(len(z), dtype=z.dtype) - 1) * z).sum() / len(z)

class Ranking(nn.Module):
    def __init__(self, model, scale: float = 10.0):
        super().__init__()
        self.model, self.scale = model, scale
    def forward(self, sentence_features, labels):
        a, b = (F.normalize(self.model(f)["sentence_embedding"], dim=-1) for f in sentence_features)
        return on_s(a @ b.T * self.scale, 1.0)

class Hinge(nn.Module):
    def __init__(self, margin, hardest=False):
        super().__init__()
        self.margin, self.hardest = margin, hardest
    def forward(self, scores):
        d, own = scores.diag(), torch.eye(len(scores), dtype=torch.bool)
        a = (self.margin + scores - d[:, None]).clamp(min=0).masked_fill(own, 0)
        b = (self.margin + scores - d[None]).clamp(min=0).masked_fill(own, 0)
        return a.amax(1).sum() + b.amax(0).sum() if self.hardest else a.sum() + b.sum()

hinge = Hinge(0.3)

class Learns(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(2.0))
    def forward(self, S):
        return on_s(self.log_scale.exp() * S, 1.0)

def three(a, b, c): return a.sum()
def no_gradient(S): return torch.zeros(())
def a_matrix(S): return S
def raises(S): raise RuntimeError("boom")
def is_nan(S): return S.sum() * float("nan")
def odd(x, y): return on_s(x @ y.T)
odd.lossscope_takes = "embeddings"
def declared(S): return on_s(S)
declared.lossscope_reduction = "sum"
number = 3
"""
B = 8


@pytest.fixture(name="losses")
def write_losses(tmp_path: Path) -> Path:
    path = tmp_path / "losses.py"
    path.write_text(LOSSES)
    return path


@pytest.fixture(name="batch")
def random_pairs() -> tuple[Tensor, Mask]:
    random = torch.Generator().manual_seed(0)
    images = normalise(torch.randn(B, 16, generator=random, dtype=torch.float64))
    captions = normalise(images + 0.4 * torch.randn(B, 16, generator=random, dtype=torch.float64))
    mask = replace(pair_mask(torch.arange(B)), info={"queries": images, "candidates": captions})
    return images @ captions.T, mask


def training_loss(objective: Any, S: Tensor, mask: Mask) -> BatchLoss:
    return reduce_weights(both(objective, S, mask), objective.traits.directions, objective.traits.reduction, B)


def assert_trains_like(wrapped: Any, expected: Any, batch: tuple[Tensor, Mask], times: float = 1.0) -> None:
    ours, theirs = training_loss(expected, *batch), training_loss(wrapped, *batch)
    assert ours.value is not None and theirs.value is not None
    torch.testing.assert_close(theirs.value, ours.value * times, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(theirs.gradient, ours.gradient * times, rtol=1e-6, atol=1e-9)


@each("name, form, reduction, expected", [
    ("on_s", "S", "mean", "ntxent"),
    ("on_s:tau=0.2", "S", "mean", "ntxent:tau=0.2"),
    ("on_embeddings", "embeddings", "mean", "ntxent"),
    ("unit_already:tau=0.05", "embeddings", "mean", "ntxent:tau=0.05"),
    ("odd", "embeddings", "mean", "ntxent"),
    ("ClipLoss:logit_scale=10", "features", "mean", "ntxent"),
    ("Ranking", "sentences", "mean", "ntxent"),
    ("Hinge:margin=0.3", "S", "sum", "triplet:margin=0.3"),
    ("Hinge:margin=0.3,hardest=true", "S", "sum", "triplet_sh:margin=0.3"),
    ("hinge", "S", "sum", "triplet:margin=0.3"),
    ("SigLipLoss", "features", "mean", "siglip"),
])  # fmt: skip
def test_every_form_of_a_loss_trains_like_the_objective(
    losses: Path, batch: tuple[Tensor, Mask], name: str, form: str, reduction: str, expected: str
) -> None:
    wrapped = build("objectives", f"{losses}:{name}")
    assert (wrapped.call_form, wrapped.traits.reduction, wrapped.traits.directions) == (form, reduction, 0.5)
    assert_trains_like(wrapped, build("objectives", expected), batch)
    assert build("objectives", spec_of(wrapped)) == wrapped


def test_a_summed_loss_trains_with_its_sum(losses: Path, batch: tuple[Tensor, Mask]) -> None:
    wrapped = build("objectives", f"{losses}:summed")
    assert wrapped.traits.reduction == "sum"
    assert_trains_like(wrapped, build("objectives", "ntxent"), batch, times=B)


def test_w_has_the_unit_of_a_sum_over_queries_whether_the_loss_averages_or_not(
    losses: Path, batch: tuple[Tensor, Mask]
) -> None:
    W = [build("objectives", f"{losses}:{name}")(*batch).W for name in ("on_s", "summed")]
    torch.testing.assert_close(*W)
    ours = both(build("objectives", "ntxent"), *batch)
    torch.testing.assert_close(W[0], (ours.i2t.W + ours.t2i.W.T) / 2)


def test_a_loss_per_row_is_one_direction_at_a_time(losses: Path, batch: tuple[Tensor, Mask]) -> None:
    wrapped, ntxent = build("objectives", f"{losses}:per_row"), build("objectives", "ntxent")
    for theirs, ours in zip(both(wrapped, *batch), both(ntxent, *batch), strict=True):
        torch.testing.assert_close(theirs.W, ours.W)
        torch.testing.assert_close(theirs.values, ours.values)
    assert_trains_like(wrapped, ntxent, batch, times=2)


def test_a_declared_reduction_overrides_the_measured_one(losses: Path, batch: tuple[Tensor, Mask]) -> None:
    wrapped = build("objectives", f"{losses}:declared")
    assert (wrapped.traits.reduction, wrapped.averages) == ("sum", True)
    assert_trains_like(wrapped, build("objectives", "ntxent"), batch)


@each("name, expected", [("NTXentLoss:temperature=0.1", "ntxent:tau=0.1")])
def test_a_loss_of_pytorch_metric_learning_works_unchanged(
    tmp_path: Path, batch: tuple[Tensor, Mask], name: str, expected: str
) -> None:
    with warnings.catch_warnings(action="ignore"):  # of what it imports
        pytest.importorskip("pytorch_metric_learning.losses")
    (tmp_path / "pml.py").write_text("from pytorch_metric_learning.losses import *\n")
    wrapped, ours = build("objectives", f"{tmp_path}/pml.py:{name}"), build("objectives", expected)
    assert (wrapped.call_form, wrapped.traits.directions, wrapped.traits.reduction) == ("labels", 1.0, "mean")
    for theirs, mine in zip(both(wrapped, *batch), both(ours, *batch), strict=True):
        torch.testing.assert_close(theirs.W, mine.W, rtol=1e-6, atol=1e-8)


def test_similarities_alone_are_enough_where_unit_vectors_have_them(losses: Path, batch: tuple[Tensor, Mask]) -> None:
    S, mask = batch
    wrapped = build("objectives", f"{losses}:on_embeddings")
    small = S * 0.5
    torch.testing.assert_close(
        wrapped(small, replace(mask, info={})).W,
        build("objectives", f"{losses}:on_s")(small, mask).W,
        rtol=1e-6,
        atol=1e-8,
    )


@each("fill", [1.0, 0.3, 0.0, -1.0])
def test_vectors_are_of_unit_length_and_have_the_similarities(fill: float) -> None:
    S = torch.full((3, 4), fill, dtype=torch.float64)
    a, b = vectors_with_similarities(S)
    torch.testing.assert_close(a @ b.T, S, rtol=0, atol=1e-12)
    assert all(torch.allclose(x.norm(dim=1), torch.ones(len(x), dtype=torch.float64)) for x in (a, b))


def test_similarities_that_no_unit_vectors_have_raise() -> None:
    with pytest.raises(InputError, match="lossscope found no unit vectors"):
        vectors_with_similarities(2 * torch.eye(9) - 1)


@each("name, kind, message", [
    ("three", SpecError, r"must be called as one of f\(S\); .* it takes \(a, b, c\)"),
    (
        "number",
        SpecError,
        "must be a function, a class or an object that computes a loss; got int. It defines on_s, .*, hinge: write",
    ),
    ("onn_s", SpecError, "must define onn_s; it does not. Did you mean on_s"),
    ("Hinge", SpecError, "needs margin"),
    ("on_s:tau=x", SpecError, "must be float; got 'x'"),
    ("no_gradient", InputError, "has no gradient"),
    ("a_matrix", InputError, r"one number, or one per query, \(6,\); got \(6, 6\)"),
    ("raises", InputError, "raised RuntimeError: boom"),
    ("is_nan", InputError, "finite numbers; got nan"),
])  # fmt: skip
def test_what_cannot_be_a_loss_raises(
    losses: Path, batch: tuple[Tensor, Mask], name: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        build("objectives", f"{losses}:{name}")(*batch)


def test_batches_that_are_not_pairs_raise(losses: Path) -> None:
    wrapped = build("objectives", f"{losses}:on_s")
    match = torch.eye(3, 4, dtype=torch.bool)
    with pytest.raises(InputError, match="whole batches of pairs"):
        wrapped(torch.rand(3, 4), Mask(match, torch.ones_like(match)))
    with pytest.raises(InputError, match="whole batches of pairs"):
        wrapped(torch.rand(3, 3), pair_mask(torch.tensor([0, 0, 1]), "mask"))


def test_its_weight_field_is_that_of_the_objective(losses: Path) -> None:
    for name in ("on_s", "on_embeddings"):
        wrapped, ours = (weight_field(spec, points=9) for spec in (f"{losses}:{name}", "ntxent"))
        for column in ("w_pos", "w_neg"):
            assert (wrapped[column] - ours[column]).abs().max() < 1e-8


def test_probes_treat_it_like_any_objective(losses: Path, tiny_checkpoint: Path) -> None:
    embedded = load(tiny_checkpoint, split="val", cache=False)
    specs = (f"{losses}:on_embeddings", f"{losses}:on_s")
    rows = Sweep(objectives=specs, batch_size=16).run(embedded).summary
    by = rows.pivot_table(index=["direction", "statistic"], columns="objective", values="mean", sort=False)
    first, second = (by[column].to_numpy() for column in by)
    assert first == pytest.approx(second, rel=1e-3, nan_ok=True)


def test_training_with_it_is_training_with_the_objective(losses: Path, tmp_path: Path) -> None:
    tiny = Recipe(
        data="scenes:train=30,val=10,test=10,size=16", encoder="vsepp:dim=16,words=8,width=4", epochs=1, batch_size=32
    )
    runs = [
        train(replace(tiny, objective=spec), tmp_path / str(number))
        for number, spec in enumerate((f"{losses}:on_embeddings", "ntxent"))
    ]
    theirs, ours = (pd.read_csv(run.trajectory)["loss"].to_numpy() for run in runs)
    assert theirs == pytest.approx(ours, rel=1e-3)
    with pytest.raises(InputError, match="lossscope imports it only with --trust-code"):
        contextvars.Context().run(verify, runs[0].best)  # where the user typed no option


def test_training_with_a_loss_that_has_parameters_raises(losses: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no parameters of its own for train; it has log_scale"):
        train(Recipe(data="scenes:train=8,val=4,test=4,size=16", objective=f"{losses}:Learns"), tmp_path / "run")


def test_training_with_masked_candidates_raises(losses: Path, tmp_path: Path) -> None:
    tiny = Recipe(data="scenes:train=8,val=4,test=4,size=16", objective=f"{losses}:on_s", same_image="mask")
    with pytest.raises(
        InputError, match=r"--same-image must be keep for .*on_s:tau=0.1, which takes whole batches only"
    ):
        train(tiny, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_scale_is_learnt_with_learn_true(losses: Path) -> None:
    wrapped = build("objectives", f"{losses}:SigLipLoss:learn=true")
    assert wrapped.learnable == {"scale": 10.0, "bias": -10.0}
    assert wrapped.with_learnt({"scale": 3.0, "bias": -1.0}).logit_scale == 3.0
    assert build("objectives", f"{losses}:SigLipLoss").learnable == {}


OTHERS = """
import torch, torch.nn.functional as F

def simclr(z1, z2, tau=0.5):
    z, n = F.normalize(torch.cat([z1, z2]), dim=1), len(z1)
    logits = (z @ z.T / tau).masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
    return F.cross_entropy(logits, torch.arange(2 * n).roll(n))

def views(S, tau=0.5):
    n, own = len(S) // 2, torch.eye(len(S), dtype=torch.bool)
    return F.cross_entropy((S / tau).masked_fill(own, -1e9), torch.arange(len(S)).roll(n))

def all_views(z): return simclr(*z.chunk(2))

def stacked(features): return simclr(*features.unbind(1))

def dropped(image_emb, text_emb): return (F.dropout(image_emb, 0.5) @ text_emb.T).logsumexp(1).mean()

def along_axes(image_emb, text_emb):
    return ((image_emb - text_emb).abs().sum(1) - (image_emb - text_emb.roll(1, 0)).abs().sum(1)).mean()

def rows(S): return F.cross_entropy(S / 0.1, torch.arange(len(S)))
def columns(S): return F.cross_entropy(S.T / 0.1, torch.arange(len(S)))
def both(S): return rows(S) + columns(S)
def pairs(S): return F.binary_cross_entropy_with_logits(9 * S, torch.eye(len(S), dtype=S.dtype), reduction="sum")
def hardest(S):
    own = torch.eye(len(S), dtype=torch.bool)
    worse = lambda x: (0.2 + x - x.diag()[:, None]).relu().masked_fill(own, 0).amax(1).sum()
    return worse(S) + worse(S.T)
def of_shape_one(S): return rows(S)[None]
def of_two_batches(S): return torch.cat([rows(S)[None]] * 2 * len(S))
def over_entries(S):
    own = torch.eye(len(S), dtype=torch.bool)
    return (0.2 + S - S.diag()[:, None]).relu().masked_fill(own, 0).mean()
def euclidean(image_emb, text_emb):
    d = torch.cdist(image_emb, text_emb)
    own = torch.eye(len(d), dtype=torch.bool)
    return d.diag().mean() + (1 - d).relu().masked_fill(own, 0).sum() / len(d)
def writing(S, tau=0.1):
    S /= tau
    return F.cross_entropy(S, torch.arange(len(S)))
def printing(S):
    print("a loss that prints")
    return rows(S)
def in_place(S):
    return (0.2 + S - S.diag()[:, None]).sigmoid().fill_diagonal_(0).sum()
def hinge_rows(S):
    return (0.2 + S - S.diag()[:, None]).relu().masked_fill(torch.eye(len(S), dtype=torch.bool), 0).sum()
"""


@pytest.fixture(name="others", scope="module")
def file_of_others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("others") / "others.py"
    path.write_text(OTHERS)
    return path


@each("name, message", [
    ("simclr", "it also uses similarities of images among themselves, or of captions, as SimCLR over 2N views"),
    ("views", "it does not pull pair i, which is on the diagonal of S"),
    ("dropped", "two calls with one input give two values. Switch off its dropout"),
    ("along_axes", "it changes when all embeddings are rotated together"),
])  # fmt: skip
def test_what_is_no_function_of_the_similarities_of_pairs_is_refused(others: Path, name: str, message: str) -> None:
    wrapped = build("objectives", f"{others}:{name}")
    with pytest.raises(UnsupportedLoss, match=message):
        wrapped(torch.rand(6, 6), pair_mask(torch.arange(6)))


@each("name", ["simclr", "views"])
def test_the_message_of_a_loss_of_views_names_what_measures_it(others: Path, name: str) -> None:
    """Every message refused the loss, and none named a way that works."""
    loss = build("objectives", f"{others}:{name}")
    with pytest.raises(UnsupportedLoss) as error:
        loss(torch.rand(6, 6), pair_mask(torch.arange(6)))
    (line,) = re.findall(r"in Python (watch\(.*\)\))\. ", str(error.value))
    a, b = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
    row = eval(line, {"watch": LossScope(loss).watch, "torch": torch, "a": a, "b": b})
    assert row["all/N_eff"] > 1
    assert "--sampling views" in str(error.value)
    assert "lossscope check --trainer ./FILE.py:step" in str(error.value)


def test_a_loss_of_shape_one_is_one_number(others: Path) -> None:
    S, mask = torch.rand(6, 6), pair_mask(torch.arange(6))
    wrapped, plain = (build("objectives", f"{others}:{name}") for name in ("of_shape_one", "rows"))
    assert torch.equal(wrapped(S, mask).W, plain(S, mask).W)
    with pytest.raises(InputError, match=r"one number, or one per query, \(6,\); got \(12,\)"):
        build("objectives", f"{others}:of_two_batches")(S, mask)


def test_a_loss_may_write_into_its_argument_and_print(others: Path, capsys: pytest.CaptureFixture[str]) -> None:
    S, mask = torch.rand(6, 6, dtype=torch.float64), pair_mask(torch.arange(6))
    before = S.clone()
    weights = [build("objectives", f"{others}:{name}")(S, mask).W for name in ("writing", "rows", "printing")]
    assert torch.allclose(weights[0], weights[1]) and torch.equal(weights[1], weights[2])
    assert torch.equal(S, before)
    captured = capsys.readouterr()
    assert captured.out == "" and "a loss that prints" in captured.err


def test_weights_that_shrink_with_the_batch_or_grow_without_bound_have_no_relative_unit(others: Path) -> None:
    with pytest.raises(InputError, match=r"over_entries averages over all pairs of a batch.* Multiply it by the batch"):
        saturated_weight(build("objectives", f"{others}:over_entries"))
    with pytest.raises(InputError, match=r"euclidean is .* near there and up to"):
        saturated_weight(build("objectives", f"{others}:euclidean"))


@each("reduction", ["pairs", "cells", "none"])
def test_only_sums_and_means_can_be_declared(reduction: str) -> None:
    def loss(S: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(S / 0.1, torch.arange(len(S)))

    loss.lossscope_reduction = reduction  # type: ignore[attr-defined]
    with pytest.raises(SpecError, match="lossscope_reduction must be sum or mean"):
        _ = as_objective(loss).traits.reduction


class Annealed(torch.nn.Module):
    """A cross-entropy whose temperature is a plain attribute, and whose labels are cached."""

    def __init__(self) -> None:
        super().__init__()
        self.tau = 0.07
        self.register_buffer("labels", None)

    def forward(self, S: Tensor) -> Tensor:
        if self.labels is None or len(self.labels) != len(S):
            self.labels = torch.arange(len(S))
        return torch.nn.functional.cross_entropy(S / self.tau, self.labels)


def test_a_module_is_called_as_it_is_now() -> None:
    S, mask, module = torch.rand(6, 6), pair_mask(torch.arange(6)), Annealed()
    objective = as_objective(module)
    first = objective(S, mask).W, saturated_weight(objective)
    module.tau = 0.5
    assert saturated_weight(objective) == pytest.approx(first[1] * 0.14, rel=0.05)
    assert torch.allclose(objective(S, mask).W, as_objective(module)(S, mask).W)
    assert not torch.allclose(objective(S, mask).W, first[0])
    assert module.labels is None  # the trial batches left its cache empty


def test_an_error_of_autograd_is_a_message(others: Path) -> None:
    with pytest.raises(InputError, match="in_place must be differentiable in its input; autograd says: one of the var"):
        build("objectives", f"{others}:in_place")(torch.rand(6, 6), pair_mask(torch.arange(6)))


@each("name", ["all_views", "stacked"])
def test_one_argument_that_is_all_views_is_one_set(others: Path, name: str) -> None:
    a, b = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0))
    views = torch.stack([a, b], 1)
    row = LossScope(build("objectives", f"{others}:{name}")).watch(embeddings=views)
    same = LossScope(build("objectives", f"{others}:simclr")).watch(embeddings=views)
    assert row["all/N_eff"] == pytest.approx(same["all/N_eff"], rel=1e-6)
    with pytest.raises(UnsupportedLoss, match="Take all items as one set"):
        build("objectives", f"{others}:{name}")(torch.rand(6, 6), pair_mask(torch.arange(6)))


@each("name, directions", [
    ("rows", ("i2t",)), ("columns", ("t2i",)), ("both", ("both",)), ("pairs", ("i2t", "t2i")),
    ("hardest", ("both",)), ("hinge_rows", ("i2t",)),
])  # fmt: skip
def test_directions_are_measured(others: Path, name: str, directions: tuple[str, ...]) -> None:
    assert build("objectives", f"{others}:{name}").counted_directions == directions
