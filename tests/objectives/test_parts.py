"""Are parts of an objective parts of it: in W, in counts, in training, in resuming, and in what they learn?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, group_mask, pair_mask
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.truncation import heaviest, truncate
from lossscope.registry import build, names, spec_of
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.recipe import Recipe
from tests.each import each

WHOLE = [name for name in names("objectives") if not build("objectives", name).traits.is_part]
RECIPE = Recipe(
    data="scenes:train=24,val=8,test=8,size=16", encoder="vsepp:dim=8,words=8,width=4", epochs=2, batch_size=12,
    lr=0.002, warmup=0, min_count=1,
)  # fmt: skip


def batch(objective: Objective, n: int = 9) -> tuple[Tensor, Mask]:
    """Return a batch of pairs, or of images with two captions each."""
    S = 0.2 * torch.randn(n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    if objective.traits.positives == "one":
        return S + 0.3 * torch.eye(n), pair_mask(torch.arange(n))
    items = torch.arange(n)
    return torch.cat([S, 0.9 * S.flip(1) + 0.01], 1), group_mask(items, torch.cat([items, items]))


def part(name: str, of: str, option: str) -> Objective:
    built: Objective = build("objectives", f'{name}:of="{spec_of(build("objectives", of))}",{option}')
    return built


@each("name", WHOLE)
def test_all_negatives_are_the_whole_objective_to_the_bit(name: str) -> None:
    whole = build("objectives", name)
    if whole.traits.needs_embeddings:
        pytest.skip("needs embeddings")
    S, mask = batch(whole)
    everything = part("only_top", name, "k=100")
    assert torch.equal(everything(S, mask).W, whole(S, mask).W)
    ours, theirs = everything.counted_weights(S, mask), whole.counted_weights(S, mask)
    assert torch.equal(ours.weights, theirs.weights)
    assert torch.equal(ours.positive, theirs.positive)
    assert everything(S, mask).values is None


@each("name", WHOLE)
def test_top_and_tail_are_the_whole_and_pull_as_hard_as_they_push(name: str) -> None:
    whole = build("objectives", name)
    if whole.traits.needs_embeddings:
        pytest.skip("needs embeddings")
    S, mask = batch(whole)
    W = whole(S, mask).W
    top, tail = (part(kind, name, "k=3")(S, mask).W for kind in ("only_top", "only_tail"))
    torch.testing.assert_close((top + tail) * mask.negatives, W * mask.negatives)
    assert ((top != 0) & mask.negatives).sum(1).max() <= 3
    for truncated in (top, tail):
        if whole.rows_sum_to_zero:
            assert float(truncated.sum(1).abs().max()) <= 1e-12 * float(W.abs().max())
        else:
            assert torch.equal(truncated[mask.positives], W[mask.positives])


def test_only_above_keeps_what_cocos_counts() -> None:
    whole = build("objectives", "ntxent:tau=0.1")
    S, mask = batch(whole, 30)
    W = part("only_above", "ntxent:tau=0.1", "eps=0.03")(S, mask).W
    assert torch.equal(((W != 0) & mask.negatives).sum(1).double(), whole.counts(S, mask, 0.03).above.double())


def test_several_positives_share_the_pull_in_proportion_to_their_weights() -> None:
    W = torch.tensor([[-3.0, -1.0, 2.0, 1.5, 0.5]], dtype=torch.float64)
    match = torch.tensor([[True, True, False, False, False]])
    mask = Mask(match, torch.ones_like(match))
    kept = heaviest(W, torch.zeros_like(W), mask, 1)
    assert truncate(W, mask, kept, True).tolist() == [[-1.5, -0.5, 2.0, 0.0, 0.0]]
    assert truncate(W, mask, kept, False).tolist() == [[-3.0, -1.0, 2.0, 0.0, 0.0]]


def test_of_equal_weights_the_most_similar_are_kept() -> None:
    """The first columns of a hinge were kept, so that their order decided what a model learnt."""
    S = torch.tensor([[0.9, 0.7, 0.85, 0.8, 0.1]], dtype=torch.float64)
    W = part("only_top", "triplet:margin=0.3", "k=2")(S, Mask(S == 0.9, torch.ones_like(S, dtype=torch.bool))).W
    assert W.tolist() == [[-2.0, 0.0, 1.0, 1.0, 0.0]]


@each("spec, says", [
    ("only_top:k=0", "k must be >= 1; got 0"), ("only_tail:k=0", "k must be >= 1; got 0"),
    ("only_above:eps=-1", "eps must be a number >= 0"), ("only_top:of=nothing", "objective must be one of"),
    ("only_top:of=ntxent:tau=-1", "tau must be > 0"),
])  # fmt: skip
def test_options_that_cannot_be_are_refused(spec: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        build("objectives", spec)


@each("spec", ["only_top:of=triplet,k=2", "only_tail:of=infonce,k=1", "only_above:of=siglip", "only_top:of=meta_spn"])
def test_parts_train_and_resume_to_the_same_bits(spec: str, tmp_path: Path) -> None:
    recipe = replace(RECIPE, objective=spec)
    whole = train(recipe, tmp_path / "whole")
    first = train(replace(recipe, epochs=1), tmp_path / "resumed")
    resumed = resume(first.path, epochs=2)
    for of_whole, of_resumed in ((whole.epoch(2), resumed.epoch(2)), (whole.trajectory, resumed.trajectory)):
        if of_whole.suffix == ".csv":
            assert of_whole.read_bytes() == of_resumed.read_bytes()
            continue
        states = [Checkpoint.load(path).weights for path in (of_whole, of_resumed)]
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert pd.read_csv(whole.trajectory)["loss"].isna().all()  # a part has no value


def test_a_part_learns_the_scale_and_the_network_of_the_whole(tmp_path: Path) -> None:
    scaled = train(replace(RECIPE, objective="only_top:of=infonce,k=2"), tmp_path / "scaled")
    learnt = build("objectives", Checkpoint.load(scaled.epoch(2)).objective)
    assert learnt.whole.tau != 0.07
    netted = train(replace(RECIPE, objective="only_top:of=meta_spn"), tmp_path / "netted").epoch(2)
    probed = build("objectives", str(load(netted, cache=False).objective))
    assert probed.whole.net == netted  # a probe weighs with the network that was learnt
