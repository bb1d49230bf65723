"""Is the utility of one step that of a step computed by hand, and does the model stay as it is?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from lossscope.encoders.base import encoder_spec
from lossscope.errors import InputError, OptionError
from lossscope.registry import build
from lossscope.sources.checkpoints.captions import CaptionBatcher, with_tokens
from lossscope.training.held_out import held_out_metrics, mean_margin
from lossscope.training.one_step_utility import COLUMNS, StepBatching, one_step_utility, with_learnt_values
from lossscope.training.parameter_step import norm_of, one_step, trained_parameters
from lossscope.training.stepped_model import SteppedModel, open_stepped_model
from lossscope.training.utility_options import UtilityOptions
from tests.each import each
from tests.training.stepped_toys import FEATURES, regions, separated, stepped

ALL = UtilityOptions(step=0.01, batches=2, batch_size=24)  # a batch is the whole split, in any order


def forward(parameters: list[Tensor], captions: CaptionBatcher) -> tuple[Tensor, Tensor]:
    """Return v (N, d) and t (M, d) of a toy, in float64, caption by caption."""
    A, E = parameters
    x = torch.from_numpy(captions.split.images.take(np.arange(len(captions.split.images)))).double()
    v = x @ A.T
    t = torch.stack([sum((E[word] for word in ids), torch.zeros(E.shape[1])) for ids in captions.ids])
    return v / v.norm(dim=1, keepdim=True), t / t.norm(dim=1, keepdim=True)


def ntxent(S: Tensor, margin: float = 0.0) -> Tensor:
    rows = range(len(S))
    return -sum((S[i] / 0.1).log_softmax(0)[i] + (S[:, i] / 0.1).log_softmax(0)[i] for i in rows)  # type: ignore[return-value]


def hinge(S: Tensor) -> Tensor:
    total = S.new_zeros(())
    for i in range(len(S)):
        for j in range(len(S)):
            if i != j:
                total = total + (0.2 + S[i, j] - S[i, i]).relu() + (0.2 + S[j, i] - S[i, i]).relu()
    return total


def metrics(v: Tensor, t: Tensor, owner: Any) -> dict[tuple[str, str], float]:
    """Return every metric by plain loops."""
    values: dict[tuple[str, str], float] = {}
    relevant = {"i2t": [[c for c in range(len(t)) if owner[c] == i] for i in range(len(v))]}
    relevant["t2i"] = [[int(owner[c])] for c in range(len(t))]
    rsum = 0.0
    for direction, S in (("i2t", v @ t.T), ("t2i", t @ v.T)):
        margins, firsts, gains = [], [], []
        for scores, positives in zip(S.tolist(), relevant[direction], strict=True):
            negatives = [score for c, score in enumerate(scores) if c not in positives]
            margins.append(max(scores[c] for c in positives) - max(negatives))
            ranks = sorted(range(len(scores)), key=lambda c: -scores[c])
            positions = sorted(ranks.index(c) for c in positives)
            firsts.append(positions[0])
            ideal = sum(1 / math.log2(r + 2) for r in range(len(positives)))
            gains.append(sum(1 / math.log2(r + 2) for r in positions) / ideal)
        values[direction, "margin"], values[direction, "nDCG"] = float(np.mean(margins)), float(np.mean(gains))
        values[direction, "R@1"] = 100 * float(np.mean([first < 1 for first in firsts]))
        rsum += sum(100 * float(np.mean([first < k for first in firsts])) for k in (1, 5, 10))
    for name in ("margin", "R@1", "nDCG"):
        values["both", name] = (values["i2t", name] + values["t2i", name]) / 2
    return values | {("both", "rsum"): rsum}


def by_hand(toy: SteppedModel, loss: Callable[[Tensor], Tensor], step: float) -> tuple[Any, Any]:
    """Return the metrics before and after a step, without any code of training."""
    model: Any = toy.model
    parameters = [x.detach().double().requires_grad_() for x in (model.images.weight, model.words.weight)]
    v, t = forward(parameters, toy.train)
    gradients = torch.autograd.grad(loss(v[toy.train.split.relations.caption_image] @ t.T), parameters)
    theta = math.sqrt(sum(float(x.detach().double().square().sum()) for x in (*parameters, model.unused)))
    norm = math.sqrt(sum(float(g.detach().square().sum()) for g in gradients))
    moved = [(x - step * theta / norm * g).detach() for x, g in zip(parameters, gradients, strict=True)]
    owner = toy.held_out.split.relations.caption_image
    return metrics(*forward([x.detach() for x in parameters], toy.held_out), owner), metrics(
        *forward(moved, toy.held_out), owner
    )


def changes(rows: pd.DataFrame, objective: int = 0) -> Any:
    names = rows["objective"].unique()
    return rows[rows["objective"] == names[objective]]["change"].to_numpy()


@each("spec, loss", [("ntxent:tau=0.1", ntxent), ("triplet:margin=0.2", hinge)], "seed", [0, 1])
def test_a_step_changes_the_held_out_split_as_a_step_by_hand(spec: str, loss: Any, seed: int) -> None:
    toy = stepped(seed)
    rows = one_step_utility(toy, [spec], ALL)
    before, after = by_hand(toy, loss, 0.01)
    assert tuple(rows.columns) == COLUMNS and len(rows) == 2 * len(before)
    for row in rows.to_dict("records"):
        key = row["direction"], row["metric"]
        assert row["before"] == pytest.approx(before[key], abs=1e-6), key
        assert row["change"] == pytest.approx(after[key] - before[key], abs=3e-6), key
    assert rows["change"].abs().max() > 1e-3


def test_a_short_step_lowers_the_loss_by_its_length_times_the_norms() -> None:
    """L(θ − h |θ| g / |g|) − L(θ) = −h |θ| |g| to first order."""
    toy, h = stepped(), 1e-5
    model: Any = toy.model.double()
    parameters = trained_parameters(model)

    def loss() -> Tensor:
        v, t = forward([model.images.weight, model.words.weight], toy.train)
        return ntxent(v[toy.train.split.relations.caption_image] @ t.T)

    start = loss()
    gradient = torch.autograd.grad(start, parameters, allow_unused=True)
    assert gradient[[name for name, _ in model.named_parameters()].index("unused")] is None
    with one_step(parameters, gradient, h):
        change = float((loss() - start).detach())
    assert change == pytest.approx(-h * norm_of(parameters) * norm_of(gradient), rel=1e-3)
    assert torch.equal(loss(), start)


@each("training", [False, True])
def test_the_model_has_its_bits_back(training: bool) -> None:
    toy = stepped()
    toy.model.train(training)
    before = {name: value.clone() for name, value in toy.model.state_dict().items()}
    one_step_utility(toy, ["ntxent", "triplet"], ALL)
    assert toy.model.training == training and all(p.grad is None for p in toy.model.parameters())
    assert before.keys() == toy.model.state_dict().keys() and "kept" in before
    assert all(torch.equal(value, before[name]) for name, value in toy.model.state_dict().items())


@each("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_step_is_taken_back(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    toy = stepped()
    before = [p.detach().clone() for p in toy.model.parameters()]
    calls: list[bool] = []

    def interrupt(model: Any, captions: Any) -> Any:
        calls.append(all(map(torch.equal, model.parameters(), before)))
        if len(calls) > 1:  # the first is before any step
            raise error
        return held_out_metrics(model, captions)

    monkeypatch.setattr("lossscope.training.one_step_utility.held_out_metrics", interrupt)
    with pytest.raises(error):
        one_step_utility(toy, ["ntxent"], ALL)
    assert calls == [True, False]
    assert all(map(torch.equal, toy.model.parameters(), before))


def test_losses_of_one_function_have_equal_numbers() -> None:
    rows = one_step_utility(stepped(), ["ntxent:tau=0.1", "infonce:tau=0.1,learn=false"], ALL)
    np.testing.assert_allclose(changes(rows, 0), changes(rows, 1), rtol=0, atol=1e-6)
    assert np.abs(changes(rows, 0)).max() > 1e-3


def my_loss(S: Tensor, margin: float = 0.2) -> Tensor:
    return (S - S.diagonal()[:, None] + margin).relu().sum(1) - margin


def my_scaled_loss(S: Tensor, margin: float = 0.2) -> Tensor:
    return 7 * my_loss(S, margin)


def test_a_factor_on_the_loss_changes_no_utility_and_no_count() -> None:
    rows = one_step_utility(stepped(), ["triplet:margin=0.2", my_loss, my_scaled_loss], replace(ALL, unit="relative"))
    for number in (1, 2):
        np.testing.assert_allclose(changes(rows, 0), changes(rows, number), rtol=0, atol=1e-6)
    by_loss = rows.groupby("objective", sort=False)[["gradient_norm", "counted"]].mean().to_numpy()
    assert by_loss[2, 0] == pytest.approx(7 * by_loss[1, 0], rel=1e-4)
    assert len(set(by_loss[:, 1].round(6))) == 1 and by_loss[0, 1] > 0


def test_without_a_gradient_nothing_changes_and_ratios_are_nan() -> None:
    toy = separated()
    rows = one_step_utility(toy, ["triplet:margin=0.2", "ntxent:tau=0.1"], replace(ALL, batch_size=6))
    hinge_rows = rows[rows["objective"] == "triplet:margin=0.2"]
    assert hinge_rows["no_gradient"].all() and (hinge_rows["gradient_norm"] == 0).all()
    assert (hinge_rows["change"] == 0).all() and (hinge_rows["after"] == hinge_rows["before"]).all()
    assert (hinge_rows["counted"] == 0).all() and (hinge_rows["queries_with_weight"] == 0).all()
    assert hinge_rows[["per_counted", "per_query"]].isna().all(axis=None)
    other = rows[rows["objective"] == "ntxent:tau=0.1"]
    assert not other["no_gradient"].any() and (other["queries_with_weight"] == 12).all()


def test_half_a_short_step_changes_the_margin_by_half() -> None:
    rows = one_step_utility(stepped(), ["ntxent"], replace(ALL, step=1e-3, batches=4))
    margins = rows[(rows["metric"] == "margin") & (rows["direction"] == "both")]
    assert margins["half_change"].isna().tolist() == [False, False, False, True]
    halved = margins[:3]
    np.testing.assert_allclose(halved["change"] / halved["half_change"], 2, rtol=0.02)


def test_counts_are_those_of_the_batch_by_plain_loops() -> None:
    toy = stepped()
    rows = one_step_utility(toy, ["triplet:margin=0.2"], ALL)
    model: Any = toy.model
    v, t = forward([model.images.weight.detach().double(), model.words.weight.detach().double()], toy.train)
    S = v[toy.train.split.relations.caption_image] @ t.T
    per_query: list[int] = []
    for of_direction in (S, S.T):
        for i in range(24):
            per_query.append(sum(float(0.2 + of_direction[i, j] - of_direction[i, i]) > 0 for j in range(24) if j != i))
    assert rows["counted"].unique().tolist() == pytest.approx([np.mean(per_query)])
    assert rows["queries_with_weight"].unique().tolist() == [np.count_nonzero(per_query)]
    assert rows["queries"].unique().tolist() == [48]
    np.testing.assert_allclose(rows["per_counted"], rows["change"] / np.mean(per_query))
    np.testing.assert_allclose(rows["per_query"], rows["change"] / np.count_nonzero(per_query))


def test_all_losses_have_the_same_batches_and_batches_differ() -> None:
    options = UtilityOptions(step=0.01, batches=7, batch_size=6)  # of 4 batches a pass
    alone = one_step_utility(stepped(), ["triplet"], options)
    beside = one_step_utility(stepped(), ["ntxent", "triplet"], options)
    np.testing.assert_array_equal(changes(beside, 1), changes(alone, 0))
    margins = alone[(alone["metric"] == "margin") & (alone["direction"] == "both")]
    assert margins["change"].nunique() == 7


def test_batches_are_made_as_in_the_training() -> None:
    """Rules for false negatives of the recipe leave out what `same_image = mask` leaves out."""
    losses = [build("objectives", "triplet")]
    batching = StepBatching.of(losses, UtilityOptions(), stepped(recipe={"batch_size": 6, "mask": "same_item"}))
    assert (batching.sampling.batch_size, batching.label) == (6, "pairs, mask same_item")
    assert StepBatching.of(losses, UtilityOptions(batch_size=8), stepped()).sampling.batch_size == 8
    assert StepBatching.of(losses, UtilityOptions(), stepped()).sampling.batch_size == 128
    kept = one_step_utility(stepped(), ["triplet"], ALL)
    by_rule = one_step_utility(stepped(recipe={"mask": "same_item"}), ["triplet"], ALL)
    masked = one_step_utility(stepped(recipe={"same_image": "mask"}), ["triplet"], ALL)
    np.testing.assert_array_equal(changes(by_rule), changes(masked))
    assert np.abs(changes(by_rule) - changes(kept)).max() > 1e-5


def test_losses_of_many_positives_have_batches_of_images() -> None:
    rows = one_step_utility(stepped(), ["supcon"], replace(ALL, batch_size=6))
    assert set(rows["sampling"]) == {"images"} and set(rows["queries"]) == {6 + 12}
    both = one_step_utility(stepped(), ["supcon", "triplet"], replace(ALL, batch_size=6))
    assert set(both["sampling"]) == {"pairs"}


@each("spec", ["dcl", "smoothap", "siglip", "npair", "cmpm", "rsp", "arcface", "goal", "multi_similarity", "vlc"])
def test_every_kind_of_loss_takes_a_step(spec: str) -> None:
    rows = one_step_utility(stepped(), [spec], replace(ALL, batches=1, batch_size=8))
    assert np.isfinite(rows["change"]).all() and (rows["gradient_norm"] > 0).all()


def test_models_that_score_pairs_take_a_step() -> None:
    toy = regions()
    before = {name: value.clone() for name, value in toy.model.state_dict().items()}
    rows = one_step_utility(toy, ["ntxent", "triplet"], UtilityOptions(batches=1, batch_size=6, step=1e-3))
    assert (changes(rows) != 0).any() and np.isfinite(rows["change"]).all()
    assert all(torch.equal(value, before[name]) for name, value in toy.model.state_dict().items())
    needing = [name for name in ("proxy_anchor", "npair", "rsp", "ssp") if _needs_embeddings(name)]
    for name in needing:
        with pytest.raises(InputError, match="the model scores pairs and has none"):
            one_step_utility(toy, [name], ALL)


def _needs_embeddings(name: str) -> bool:
    return bool(build("objectives", name).traits.needs_embeddings)


def test_texts_on_both_sides_have_their_own_directions() -> None:
    data, spec = build("datasets", "passages:train=40,val=12,test=12"), encoder_spec("biencoder:dim=8,words=8")
    train = data.split("train")
    words = spec.build_tokeniser([*train.images.texts, *train.captions], 1)
    model = spec.build((), len(words))
    parts = [CaptionBatcher(with_tokens(part, words), words) for part in (train, data.split("val"))]
    rows = one_step_utility(SteppedModel(model, *parts), ["triplet"], UtilityOptions(batches=1, batch_size=16))
    assert set(rows["direction"]) == {"q2d", "d2q", "both"} and set(rows["metric"]) == {"margin", "R@1", "nDCG"}
    assert "queries" in rows["held_out_items"].iloc[0] and "documents" in rows["held_out_items"].iloc[0]


def test_a_margin_is_a_mean_over_queries_with_a_positive_and_a_scored_negative() -> None:
    relations = stepped(captions=1).held_out.split.relations  # 7 images, 7 captions
    S = torch.zeros(7, 7)
    S[0, 0], S[0, 3] = 0.9, 0.4
    S[1] = torch.nan
    S[1, 1] = 0.5  # no scored negative
    S[2, 2], S[2, 5], S[2, 6] = 0.1, torch.nan, 0.3
    assert mean_margin(S, relations) == pytest.approx((0.5 - 0.2 + 4 * 0) / 6)
    assert math.isnan(mean_margin(torch.full((7, 7), torch.nan), relations))


def test_the_bare_name_of_the_trained_loss_has_its_learnt_scale() -> None:
    trained = "infonce:tau=0.02,learn=true,scale_max=100.0"
    assert with_learnt_values(("infonce", "infonce:tau=0.1"), trained) == (trained, "infonce:tau=0.1")
    assert with_learnt_values(("ntxent",), "ntxent:tau=0.5") == ("ntxent",)
    assert with_learnt_values(("infonce",), None) == ("infonce",)
    assert with_learnt_values(("infonce",), "./no_such_file.py:MyLoss") == ("infonce",)


@each("objectives, options, message", [
    ((), ALL, "objectives must be one or more; got none"),
    (("triplet", "triplet:margin=0.2"), ALL, "objectives must be different; got triplet:margin=0.2, triplet"),
    (("aoq",), ALL, "must read a batch alone; aoq also needs offline information"),
    (("triplet",), replace(ALL, batch_size=25), "it has fewer items than --batch-size 25"),
    (("triplet",), replace(ALL, sampling="images"), "--sampling must be pairs or single for triplet.*; got images"),
    (("no_such_loss",), ALL, "no_such_loss"),
])  # fmt: skip
def test_what_cannot_take_a_step_is_refused(objectives: Any, options: UtilityOptions, message: str) -> None:
    with pytest.raises(InputError, match=message):
        one_step_utility(stepped(), objectives, options)


def test_a_training_split_is_no_held_out_split(tiny_checkpoint: Any) -> None:
    toy = stepped()
    with pytest.raises(InputError, match=r"no step and no training sees.*; got train, the training split"):
        SteppedModel(toy.model, toy.held_out, toy.train)
    with pytest.raises(InputError, match="got val, the split of the steps"):
        SteppedModel(toy.model, toy.held_out, toy.held_out)
    same = CaptionBatcher(replace(toy.train.split, name="val"), toy.train.tokeniser)
    with pytest.raises(InputError, match="'train' and 'val' must have different items; they are the same"):
        SteppedModel(toy.model, toy.train, same)
    with pytest.raises(InputError, match="got train, the training split"):
        open_stepped_model(tiny_checkpoint, held_out="train")


def test_a_checkpoint_is_opened_with_both_splits_and_not_encoded(
    tiny_checkpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the split was encoded")

    monkeypatch.setattr("lossscope.sources.checkpoints.embed.embed", refuse)
    opened = open_stepped_model(tiny_checkpoint)
    assert (opened.train.split.name, opened.held_out.split.name) == ("train", "val")
    assert opened.recipe["batch_size"] == 32 and str(opened.objective).startswith("ntxent")
    assert opened.held_out_items == "20 images, 100 captions"


def test_a_dump_has_no_model_that_takes_a_step(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    file = tmp_path / "dump.npz"
    np.savez(file, images=rng.normal(size=(6, FEATURES)), captions=rng.normal(size=(6, FEATURES)),
             caption_image=np.arange(6))  # fmt: skip
    with pytest.raises(InputError, match="must be a checkpoint, whose model takes the step"):
        open_stepped_model(file)


def test_gradients_without_a_direction_are_refused() -> None:
    parameters = trained_parameters(stepped().model)
    for gradient in ([torch.zeros_like(p) for p in parameters], [torch.full_like(p, torch.nan) for p in parameters]):
        with (
            pytest.raises(InputError, match="must have a norm above 0 that is finite"),
            one_step(parameters, gradient, 0.1),
        ):
            pass
    frozen = stepped().model.requires_grad_(False)
    with pytest.raises(InputError, match="must have trained parameters"):
        trained_parameters(frozen)


@each("options, message", [
    ({"step": 0}, "--step must be a share above 0 and below 1"), ({"step": 1.0}, "--step"),
    ({"eps": -1}, "--eps must be a finite number"), ({"batches": 0}, "--batches must be at least 1"),
    ({"batch_size": 1}, "--batch-size must be at least 2"), ({"interval": 1.0}, "--interval must be a level"),
])  # fmt: skip
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        UtilityOptions(**options)
