"""Does each planted fault fail the check meant for it, and do correct objectives pass?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

from lossscope.errors import InputError, SpecError, UnsupportedLoss
from lossscope.objectives.checks import spawn
from lossscope.objectives.checks.finite_differences import check_finite_differences
from lossscope.objectives.checks.labels import check_labels
from lossscope.objectives.checks.suite import Verdict, check
from lossscope.objectives.checks.trial_batches import add_easy_queries, random_batch
from lossscope.objectives.custom.as_objective import as_objective
from lossscope.registry import build, names
from tests.each import each

pytestmark = pytest.mark.usefixtures("typed")  # Python files that specs name

PLANTED = """
import os
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from lossscope.core.stop_gradient import stop_gradient
from lossscope.objectives.base import LossObjective, positive_of


@dataclass(frozen=True)
class Detached(LossObjective):
    tau: float = 0.1
    keep: bool = False

    def values(self, S, mask):
        weights = (S / self.tau).masked_fill(~mask.negatives, -torch.inf).softmax(1)
        weights = stop_gradient(weights) if self.keep else weights.detach()
        return (weights * S).sum(1) - positive_of(S, mask)[:, 0]


def violations(S, mask):
    return (0.5 - positive_of(S, mask) + S).relu().masked_fill(~mask.negatives, 0)


@dataclass(frozen=True)
class WrongAxis(LossObjective):
    def values(self, S, mask):
        return violations(S, mask).mean(0)


@dataclass(frozen=True)
class Columns(LossObjective):
    def values(self, S, mask):
        p = (S / 0.1).masked_fill(~mask.valid, -torch.inf).log_softmax(0)
        return -p.gather(1, mask.first_positive)[:, 0]


@dataclass(frozen=True)
class Standardised(LossObjective):
    def values(self, S, mask):
        n = mask.valid.sum(1, keepdim=True)
        mean = (S * mask.valid).sum(1, keepdim=True) / n
        std = (((S - mean) * mask.valid).square().sum(1, keepdim=True) / n).sqrt()
        return F.softplus((mean - positive_of(S, mask)) / std)[:, 0]


@dataclass(frozen=True)
class Averaged(LossObjective):
    def values(self, S, mask):
        return violations(S, mask).sum(1) / len(S)


@dataclass(frozen=True)
class Scalar(LossObjective):
    def values(self, S, mask):
        return violations(S, mask).sum(1).mean()


@dataclass(frozen=True)
class Unmasked(LossObjective):
    def values(self, S, mask):
        return (0.5 - positive_of(S, mask) + S).relu().sum(1)


@dataclass(frozen=True)
class LastOfEquals(LossObjective):
    def values(self, S, mask):
        others = S.masked_fill(~mask.negatives, -torch.inf).flip(1)
        hardest = others.gather(1, others.detach().argmax(1, keepdim=True))
        return (0.5 - positive_of(S, mask) + hardest).relu()[:, 0]


@dataclass(frozen=True)
class Unequal(LossObjective):
    @property
    def rows_sum_to_zero(self):
        return True

    def values(self, S, mask):
        return violations(S, mask).sum(1) - 0.1 * positive_of(S, mask)[:, 0]


@dataclass(frozen=True)
class Alone(LossObjective):
    @property
    def coupled(self):
        return True

    def values(self, S, mask):
        return violations(S, mask).sum(1)


@dataclass(frozen=True)
class Kinked(LossObjective):
    def values(self, S, mask):
        return (S - stop_gradient(S)).relu().masked_fill(~mask.negatives, 0).sum(1)


@dataclass(frozen=True)
class Coarse(LossObjective):
    def values(self, S, mask):
        short = S.bfloat16() if S.dtype == torch.float32 else S
        return violations(short, mask).square().sum(1).to(S.dtype)


@dataclass(frozen=True)
class Broken(LossObjective):
    def values(self, S, mask):
        return S.no_such_thing()


@dataclass(frozen=True)
class Stranger:
    tau: float = 0.1


def clip(images, captions):
    print("a loss that prints")
    S = images @ captions.T / 0.1
    targets = torch.arange(len(S))
    return (F.cross_entropy(S, targets) + F.cross_entropy(S.T, targets)) / 2


def many():
    return dist.is_initialized() and dist.get_world_size() > 1


def gather(x):
    if not many():
        return x
    parts = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    parts[dist.get_rank()] = x
    return torch.cat(parts)


def lossy(images, captions):
    return clip(gather(images), gather(captions))


def grouped(images, captions):
    dist.barrier()
    return lossy(images, captions)


def cut(images, captions):
    return lossy(images.detach(), captions.detach()) if many() else clip(images, captions)


def whole(images, captions):
    from lossscope.objectives.checks.spawn import gather_with_gradients
    return clip(*(gather_with_gradients(x) if many() else x for x in (images, captions)))


def own_rows(images, captions, total=False):
    every = gather(captions)
    targets = torch.arange(len(images)) + len(images) * (dist.get_rank() if many() else 0)
    return F.cross_entropy(images @ every.T / 0.1, targets, reduction="sum" if total else "mean")


def own_sum(images, captions):
    from lossscope.objectives.checks.spawn import gather_with_gradients
    every = gather_with_gradients(captions) if many() else captions
    targets = torch.arange(len(images)) + len(images) * (dist.get_rank() if many() else 0)
    return F.cross_entropy(images @ every.T / 0.1, targets, reduction="sum")


class Placed(torch.nn.Module):
    def __init__(self, rank: int = 0, world_size: int = 1):
        super().__init__()
        self.rank, self.world_size = rank, world_size

    def forward(self, images, captions):
        assert (self.rank, self.world_size) == ((dist.get_rank(), dist.get_world_size()) if many() else (0, 1))
        return whole(images, captions) if self.world_size > 1 else clip(images, captions)


def uniform(images, captions):
    return clip(images, captions) + (2 * images @ images.T).exp().mean()


def each_itself(images, captions):
    targets = torch.arange(len(images))
    return F.cross_entropy(images @ images.T / 0.1, targets) + F.cross_entropy(captions @ captions.T / 0.1, targets)


def images_alone(images, captions):
    return F.cross_entropy(images @ images.T / 0.1, torch.arange(len(images)))


def over_the_batch(images, captions):
    return clip(F.normalize(images, dim=0), F.normalize(captions, dim=0))


def decorrelated(images, captions):
    first, second = ((x - x.mean(0)) / x.std(0) for x in (images, captions))
    return (first.T @ second / len(images) - torch.eye(images.shape[1])).square().sum()


def shifted(S):
    negatives = S[~torch.eye(len(S), dtype=torch.bool)].reshape(len(S), -1) / 0.1
    shift = negatives.detach().amax(1)
    return (shift - S.diagonal() / 0.1).mean() + (negatives - shift[:-1]).logsumexp(1).mean()


def rounded(S):
    return F.cross_entropy(S.float() / 0.1, torch.arange(len(S)))


class Divided:
    def __call__(self, embeddings, labels, indices_tuple=None, ref_emb=None, ref_labels=None):
        others, of_others = (embeddings, labels) if ref_emb is None else (ref_emb, ref_labels)
        S, positives = embeddings @ others.T / 0.1, labels[:, None] == of_others
        if ref_emb is None:
            own = torch.eye(len(S), dtype=torch.bool)
            S, positives = S.masked_fill(own, -1e9), positives & ~own
        return self.reduced(S.log_softmax(1), positives)

    def reduced(self, log_p, positives):
        return -((log_p * positives).sum(1) / positives.sum(1)).mean()


class Selected(Divided):
    def reduced(self, log_p, positives):
        return torch.where(positives.any(1), -(log_p.exp() * positives).sum(1).log(), 0.0).mean()


class LeftOut(Divided):
    def reduced(self, log_p, positives):
        n = positives.sum(1)
        return -((log_p * positives).sum(1) / n.clamp(min=1)).sum() / (n > 0).sum().clamp(min=1)


class Hardest(Divided):
    def reduced(self, log_p, positives):
        return torch.stack([-row[positive].max() for row, positive in zip(log_p, positives)]).mean()


class TwoSets(LeftOut):
    def __call__(self, embeddings, labels, indices_tuple=None, ref_emb=None, ref_labels=None):
        if ref_emb is None:
            raise ValueError("two sets only")
        return super().__call__(embeddings, labels, indices_tuple, ref_emb, ref_labels)


def averaging(S):
    return (0.5 - S.diagonal()[:, None] + S).relu().sum() / len(S)


def falling(images, captions):
    if many() and dist.get_rank() == 1:
        raise ValueError("rank 1 has no luck")
    return lossy(images, captions)


def killed(images, captions):
    if many() and dist.get_rank() == 1:
        os.kill(os.getpid(), 9)
    return lossy(images, captions)


def dying(images, captions):
    if many() and dist.get_rank() == 1:
        os._exit(7)
    return lossy(images, captions)


def waiting(images, captions):
    if many() and dist.get_rank() == 1:
        time.sleep(600)
    return lossy(images, captions)
"""


@pytest.fixture(autouse=True)
def _planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    monkeypatch.chdir(tmp_path)


def failed(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return name -> evidence of the failed verdicts, the first of each name."""
    failures: dict[str, str] = {}
    for verdict in verdicts:
        if verdict.outcome == "fail":
            failures.setdefault(verdict.name, verdict.evidence)
    return failures


def verdict_of(name: str, verdicts: Iterable[Verdict]) -> Verdict:
    return next(verdict for verdict in verdicts if verdict.name == name)


@each("name", names("objectives"))
def test_every_objective_passes(name: str) -> None:
    verdicts = check(name, processes=1)
    assert failed(verdicts) == {}
    assert len(verdicts) >= 15
    assert all(verdict.evidence for verdict in verdicts)


@each("seed", range(1, 4), "spec", ["smoothap", "unified", "goal:triplet=cir,pair=lin-ms", "ntxent:tau=0.01"])
def test_other_seeds_pass(spec: str, seed: int) -> None:
    assert failed(check(spec, processes=1, seed=seed)) == {}


def test_a_hidden_detach_fails_finite_differences() -> None:
    failures = failed(check("./planted.py:Detached", processes=1))
    assert set(failures) == {"finite differences"}
    text = failures["finite differences"]
    assert "expected" in text
    assert "detach()" in text
    assert "of 110 entries are off" in text


def test_a_declared_constant_passes_and_is_noted() -> None:
    verdicts = check("./planted.py:Detached:keep=true", processes=1)
    assert failed(verdicts) == {}
    assert verdict_of("constants", verdicts).outcome == "note"


def test_a_mean_over_the_wrong_axis_fails_rows() -> None:
    verdicts = check("./planted.py:WrongAxis", processes=1)
    failures = failed(verdicts)
    assert set(failures) == {"rows"}
    assert "moves the value of query" in failures["rows"]
    assert "6 queries and 9 candidates give values of shape (9,)" in failures["rows"]
    assert "wrong axis" in failures["rows"]
    assert verdict_of("scale", verdicts) == Verdict("scale", "skipped", "not measured while rows fails")


def test_a_softmax_over_the_wrong_axis_fails_rows() -> None:
    failures = failed(check("./planted.py:Columns", processes=1))
    assert set(failures) == {"rows"}
    assert "moves the W of query" in failures["rows"]


def test_nan_at_equal_similarities_fails_edge_cases() -> None:
    verdicts = check("./planted.py:Standardised", processes=1)
    assert set(failed(verdicts)) == {"edge cases"}
    text = [verdict.evidence for verdict in verdicts if verdict.name == "edge cases"]
    assert len(text) == 5
    assert all("64 of 64 entries of W are not finite (the first is nan" in evidence for evidence in text)
    assert [evidence.partition(":")[0] for evidence in text[:2]] == ["all similarities -1", "all similarities 0"]


@each("name", ["lossy", "grouped"])
def test_a_gather_that_loses_gradients_fails_processes(name: str) -> None:
    failures = failed(check(f"./planted.py:{name}", processes=2))
    assert set(failures) == {"processes"}
    assert "gather loses gradients: 1/2 of the gradient arrives on 2 processes" in failures["processes"]


@each("name, where, text", [
    ("Averaged", "scale", "it averages over the queries: with 8 easy queries more W of the first 8 is 0.5 times"),
    ("Scalar", "shapes", "values must be (8,), one loss per query; got ()"),
    ("Unmasked", "padding", "3 more candidates that are not valid change W and values by"),
    ("LastOfEquals", "ties", "those of row 0 have 0, 0, 0, 0, 0, 1, neither one weight nor all on the first"),
    ("Unequal", "row sums", "it claims `rows_sum_to_zero`, but rows of W sum to at most"),
    ("Coarse", "float32", "of the largest from those of the same rounded S in float64, more than 0.0001"),
    ("Broken", "shapes", "'Tensor' object has no attribute 'no_such_thing' (planted.py, line"),
])  # fmt: skip
def test_each_fault_fails_its_check(name: str, where: str, text: str) -> None:
    failures = failed(check(f"./planted.py:{name}", processes=1))
    assert list(failures) == [where]
    assert text in failures[where]


def test_a_loss_that_also_uses_similarities_of_one_side_is_refused_instead_of_failed() -> None:
    with pytest.raises(UnsupportedLoss, match="also uses similarities of images among themselves"):
        check("./planted.py:uniform", processes=1)


@each("name, text", [
    ("each_itself", "compares each view with itself and never with the other, and costs 0.483"),
    ("images_alone", "compares each view with itself"),
    ("over_the_batch", "images and captions are normalised along the wrong axis, each dimension over the batch"),
])  # fmt: skip
def test_a_mistake_that_leaves_no_similarities_of_pairs_is_a_failure(name: str, text: str) -> None:
    (said,) = check(f"./planted.py:{name}", processes=1)
    assert (said.name, said.outcome) == ("similarities", "fail")
    assert text in said.evidence


def test_a_loss_of_dimensions_is_refused_and_not_taken_for_a_wrong_axis() -> None:
    with pytest.raises(UnsupportedLoss, match="rotated together"):
        check("./planted.py:decorrelated", processes=1)


def test_what_is_taken_along_the_wrong_axis_fails_the_order_of_pairs_and_rounding_has_no_such_advice() -> None:
    assert "keepdim=True" in failed(check("./planted.py:shifted", processes=1))["order of pairs"]
    assert "keepdim" not in failed(check("./planted.py:rounded", processes=1)).get("order of pairs", "")


@each("name, text", [
    ("Divided", "one query has no positive: ./planted.py:Divided must return finite numbers; got nan"),
    ("Selected", "the value is finite and its gradient is not"),
])  # fmt: skip
def test_a_loss_with_labels_is_tried_where_a_query_has_no_positive(name: str, text: str) -> None:
    failures = failed(check(f"./planted.py:{name}", processes=1))
    assert list(failures) == ["queries without a positive"]
    assert text in failures["queries without a positive"]
    assert "one item of a set" in failures["queries without a positive"]
    assert "loss[n > 0].mean()" in failures["queries without a positive"]


@each("name, sets", [("LeftOut", True), ("TwoSets", False)])
def test_a_loss_with_labels_that_leaves_such_queries_out_passes(name: str, sets: bool) -> None:
    verdicts = check(f"./planted.py:{name}", processes=1)
    assert failed(verdicts) == {}
    said = verdict_of("queries without a positive", verdicts)
    assert said.outcome == "pass"
    assert ("one item of a set" in said.evidence) == sets


def test_an_error_for_such_queries_is_noted() -> None:
    verdicts = check("./planted.py:Hardest", processes=1)
    assert failed(verdicts) == {}
    said = verdict_of("queries without a positive", verdicts)
    assert said.outcome == "note" and "where one query has no positive it raised" in said.evidence


@each("loss", ["NTXentLoss", "SupConLoss", "TripletMarginLoss", "ContrastiveLoss", "MultiSimilarityLoss", "CircleLoss"])
def test_losses_of_pytorch_metric_learning_are_finite_for_such_queries(loss: str) -> None:
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    (said,) = check_labels(as_objective(getattr(losses, loss)()), 0)
    assert said.outcome == "pass", said.evidence


def test_a_coupling_that_is_claimed_but_absent_is_noted() -> None:
    verdicts = check("./planted.py:Alone", processes=1)
    assert failed(verdicts) == {}
    assert verdict_of("rows", verdicts).outcome == "note"
    assert verdict_of("rows", check("goal:pair=sig-ms", processes=1)).evidence.startswith("coupled, as it claims")


def test_any_w_between_the_slopes_of_a_kink_passes() -> None:
    (verdict,) = (
        v for v in check_finite_differences(build("objectives", "./planted.py:Kinked"), 0) if v.name != "constants"
    )
    assert verdict.outcome == "pass"
    assert "there is a kink" in verdict.evidence


def test_a_stated_gradient_has_no_values_to_compare_with() -> None:
    assert verdict_of("finite differences", check("goal", processes=1)).outcome == "note"


@each("name, kind", [("clip", "averages"), ("averaging", "averages"), ("own_rows", "averages")])
def test_a_user_function_passes_and_its_reduction_is_reported(name: str, kind: str) -> None:
    verdicts = check(f"./planted.py:{name}", processes=1)
    assert failed(verdicts) == {}
    assert verdict_of("scale", verdicts).outcome == "note"
    assert verdict_of("scale", verdicts).evidence.startswith(f"the loss {kind} over the batch")
    assert verdict_of("ties", verdicts).outcome == "skipped"


@each("total", [True, False])
def test_the_reduction_of_a_function_is_measured(total: bool) -> None:
    text = verdict_of("scale", check(f"./planted.py:own_rows:total={str(total).lower()}", processes=1)).evidence
    assert text.startswith(f"the loss {'sums' if total else 'averages'} over the batch")


@each("spec", ["ntxent", "triplet_sh", "smoothap", "goal:pair=sig-ms"])
def test_two_processes_train_as_one_does(spec: str) -> None:
    verdicts = check(spec, processes=2)
    assert failed(verdicts) == {}
    assert verdict_of("processes", verdicts).outcome == "pass"


def test_three_processes_train_as_one_does() -> None:
    assert verdict_of("processes", check("ntxent", processes=3)).evidence.startswith(
        "the gradient on 3 processes is that on one"
    )


@each("name", ["whole", "Placed"])
def test_a_gather_with_gradients_passes(name: str) -> None:
    verdicts = check(f"./planted.py:{name}", processes=2)
    assert failed(verdicts) == {}
    assert verdict_of("processes", verdicts).outcome == "pass"


def test_a_loss_that_does_not_gather_is_noted_and_checked_with_a_gather() -> None:
    verdicts = check("./planted.py:clip", processes=2)
    assert failed(verdicts) == {}
    assert verdict_of("processes", verdicts).outcome == "note"
    assert "candidates of that process only" in verdict_of("processes", verdicts).evidence
    assert verdict_of("processes, gathered", verdicts).outcome == "pass"


def test_a_sum_over_own_rows_is_noted() -> None:
    verdict = verdict_of("processes", check("./planted.py:own_sum", processes=2))
    assert verdict.outcome == "note"
    assert verdict.evidence.startswith("it adds up its own rows, so gradients averaged over 2 processes are 1/2 of")


@each("name, text", [
    ("cut", "its gather loses gradients: none arrives"),
    ("own_rows", "on 2 processes the gradient has 0."),
    ("falling", "it raised ValueError: rank 1 has no luck"),
    ("dying", "rank 1 ended with exit code 7"),
    ("killed", "rank 1 was killed from outside (SIGKILL), as when memory runs out: try again"),
])  # fmt: skip
def test_an_error_on_a_rank_is_a_verdict(name: str, text: str) -> None:
    failures = failed(check(f"./planted.py:{name}", processes=2))
    assert set(failures) == {"processes"}
    assert text in failures["processes"]


def test_processes_that_wait_for_ever_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn, "TIMEOUT", 3.0)
    failures = failed(check("./planted.py:waiting", processes=2))
    assert failures == {"processes": "no result after 3 s: one may wait for what another never sends"}


def test_no_process_group_is_left_behind() -> None:
    check("./planted.py:grouped", processes=1)
    assert not torch.distributed.is_initialized()


SINGLE = """
import torch
import torch.nn.functional as F

def logits(x, y, tau=0.07):
    return F.normalize(x.float(), dim=1) @ F.normalize(y.float(), dim=1).T / tau

def healthy(x, y):
    S = logits(x, y)
    return (F.cross_entropy(S, torch.arange(len(S))) + F.cross_entropy(S.T, torch.arange(len(S)))) / 2

def cold(x, y):
    return F.cross_entropy(logits(x, y, 0.02), torch.arange(len(x)))

def hinge(S):
    above = (S.float() - S.float().diagonal()[:, None] + 0.2).clamp(min=0)
    return above.masked_fill(torch.eye(len(S), dtype=torch.bool), 0).amax(1).mean()

def detached(x, y):
    S = logits(x, y)
    return F.cross_entropy(S, torch.arange(len(S))) + 0.1 * (S.detach() * S).mean()

def placed(x, y):
    S = logits(x, y)
    return F.cross_entropy(S, torch.arange(len(S))) + 0.01 * S[0].mean()

hinge.lossscope_takes = "S"
"""


@each("name, faults", [
    ("healthy", set()), ("cold", set()), ("hinge", set()), ("detached", {"finite differences"}),
    ("placed", {"order of pairs"}),
])  # fmt: skip
def test_a_loss_that_casts_to_float32_is_measured_as_float32_can(name: str, faults: set[str]) -> None:
    Path("single.py").write_text(SINGLE, encoding="utf-8")
    assert {*failed(check(f"./single.py:{name}", processes=1))} == faults


def test_what_cannot_be_checked_raises() -> None:
    with pytest.raises(InputError, match="Stranger is no objective: it must inherit LossObjective or Gradient"):
        check("./planted.py:Stranger", processes=1)
    with pytest.raises(InputError, match="processes must be at least 1; got 0"):
        check("ntxent", processes=0)
    with pytest.raises(SpecError, match="did you mean 'ntxent'"):
        check("ntxnt")
    with pytest.raises(InputError, match="tau must be > 0"):
        check("ntxent:tau=0")


def test_trial_batches_have_their_properties() -> None:
    for name in ("ntxent", "smoothap"):
        objective = build("objectives", name)
        batch = random_batch(objective, 0)
        assert batch.mask.all_usable
        assert (batch.mask.first_row_with_two_positives is None) == (objective.traits.positives == "one")
        more = add_easy_queries(batch, 5)
        assert more.S.shape == (13, 13)
        assert not more.mask.valid[:8, 8:].any()
        assert more.S[8:][more.mask.match[8:]].tolist() == [1.0] * 5
    square = random_batch(build("objectives", "./planted.py:clip"), 0)
    change = square.with_step(2, 5, 1e-6).S - square.S
    expected = torch.zeros(8, 8, dtype=torch.float64)
    expected[2, 5] = 1e-6
    torch.testing.assert_close(change, expected, rtol=0, atol=1e-10)
