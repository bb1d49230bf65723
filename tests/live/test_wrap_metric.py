"""Do losses of pytorch-metric-learning train the same, bit for bit, under `wrap`, and is W their gradient?"""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.core.similarity import Mask, normalise
from lossscope.errors import InputError, UnsupportedLoss
from lossscope.live import metric_losses
from lossscope.live.monitor import LossScope
from lossscope.live.observed import Observed
from lossscope.objectives.custom.as_objective import as_objective
from lossscope.registry import build

pml = pytest.importorskip("pytorch_metric_learning")
losses = pytest.importorskip("pytorch_metric_learning.losses")
miners = pytest.importorskip("pytorch_metric_learning.miners")
distances = pytest.importorskip("pytorch_metric_learning.distances")
reducers = pytest.importorskip("pytorch_metric_learning.reducers")
regularizers = pytest.importorskip("pytorch_metric_learning.regularizers")

N, WIDTH = 12, 6
LABELS = torch.arange(4).repeat_interleave(3)
VIEWS = torch.arange(N // 2).repeat(2)


def embeddings(seed: int = 0, rows: int = N) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(rows, WIDTH, generator=random, dtype=torch.float64).requires_grad_()


class Kept(LossScope):
    """A scope that also keeps the observations."""

    def record(self, observed: Any, step: int) -> Any:
        self.observed: list[Observed] = list(observed)
        return super().record(observed, step)


def observe(loss: Any, *arguments: Any, **options: Any) -> tuple[Tensor, Observed, dict[str, float]]:
    scope = Kept(probes=("similarity", "cocos"))
    value = scope.wrap(loss)(*arguments, **options)
    (observation,) = scope.observed
    return value, observation, dict(scope.history[-1])


def weights(observation: Observed) -> Tensor:
    assert observation.objective is not None and observation.rows is not None
    return observation.objective(observation.rows.S, observation.rows.mask).W


def of_labels(labels: Tensor) -> Mask:
    other = ~torch.eye(len(labels), dtype=torch.bool)
    return Mask((labels[:, None] == labels[None, :]) & other, other)


CASES: Mapping[str, tuple[Callable[[], Any], str, Tensor]] = {
    "SimCLR": (lambda: losses.NTXentLoss(0.1), "ntxent:tau=0.1", VIEWS),
    "supcon": (lambda: losses.SupConLoss(0.1), "supcon:tau=0.1", LABELS),
    "multi-similarity": (
        lambda: losses.MultiSimilarityLoss(2, 50, 0.5), "multi_similarity:alpha=2,beta=50,lam=0.5,mining=false", LABELS
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_w_is_that_of_our_objective_with_the_same_mask(case: str) -> None:
    make, spec, labels = CASES[case]
    value, observation, row = observe(make(), embeddings(), labels)
    assert observation.rows is not None
    mask = of_labels(labels)
    assert torch.equal(observation.rows.mask.match, mask.match) and torch.equal(observation.rows.mask.valid, mask.valid)
    unit = normalise(embeddings().detach())
    torch.testing.assert_close(observation.rows.S, (unit @ unit.T).float(), rtol=1e-5, atol=1e-6)
    ours = build("objectives", spec)((unit @ unit.T), mask)
    torch.testing.assert_close(weights(observation), ours.W.float(), rtol=1e-4, atol=1e-5)
    assert float(ours.values.mean()) == pytest.approx(float(value.detach()), rel=1e-6)
    assert row["finite"] == 1 and "all/C_neg" in row
    assert observation.sides.labels == ("all",)


EVERY: Mapping[str, Callable[[], Any]] = {
    "NTXent": lambda: losses.NTXentLoss(),
    "NTXent Lp": lambda: losses.NTXentLoss(distance=distances.LpDistance()),
    "NTXent squared": lambda: losses.NTXentLoss(distance=distances.LpDistance(power=2)),
    "NTXent dot": lambda: losses.NTXentLoss(5.0, distance=distances.DotProductSimilarity(normalize_embeddings=False)),
    "NTXent SNR": lambda: losses.NTXentLoss(distance=distances.SNRDistance()),
    "NTXent sum": lambda: losses.NTXentLoss(reducer=reducers.SumReducer()),
    "SupCon": lambda: losses.SupConLoss(),
    "MultiSimilarity": lambda: losses.MultiSimilarityLoss(),
    "Triplet": lambda: losses.TripletMarginLoss(0.2),
    "Triplet swap": lambda: losses.TripletMarginLoss(0.2, swap=True, smooth_loss=True),
    "Triplet drawn": lambda: losses.TripletMarginLoss(0.2, triplets_per_anchor=4),
    "Contrastive": lambda: losses.ContrastiveLoss(),
    "Circle": lambda: losses.CircleLoss(),
    "Margin": lambda: losses.MarginLoss(),
    "NCA": lambda: losses.NCALoss(),
    "lifted": lambda: losses.LiftedStructureLoss(),
    "FastAP": lambda: losses.FastAPLoss(),
    "PNP": lambda: losses.PNPLoss(),
}


@pytest.mark.parametrize("name", EVERY)
def test_w_carries_the_whole_gradient_of_a_loss(name: str) -> None:
    """dL/dE is dS/dE' W, divided by the number of rows or triplets over which the loss averages."""
    x, loss = embeddings(), EVERY[name]()
    torch.manual_seed(0)
    value, observation, _ = observe(loss, x, LABELS)
    (theirs,) = torch.autograd.grad(value, x, retain_graph=True)
    assert observation.rows is not None
    of_triplets = name.startswith("Triplet")  # the test below counts its triplets
    W = observation.rows.mask.info["W"].double() / (1 if name == "NTXent sum" else N)
    S = similarity_of(loss.distance, x)
    torch.testing.assert_close(S.detach().float(), observation.rows.S, rtol=1e-4, atol=1e-4)
    other = ~torch.eye(N, dtype=torch.bool)
    (ours,) = torch.autograd.grad((S * W)[other].sum(), x)
    ours = ours * (theirs.norm() / ours.norm()) if of_triplets else ours
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def similarity_of(distance: Any, x: Tensor) -> Tensor:
    """Return S of each distance: the cosine of unit vectors, the product, or minus the distance."""
    if distance.is_inverted or type(distance).__name__ == "LpDistance":
        unit = normalise(x) if distance.normalize_embeddings else x
        return unit @ unit.T
    return -distance(x)


@pytest.mark.parametrize(
    ("loss", "miner"),
    [
        (lambda: losses.MultiSimilarityLoss(), lambda: miners.MultiSimilarityMiner()),
        (lambda: losses.TripletMarginLoss(), lambda: miners.TripletMarginMiner(margin=0.2, type_of_triplets="all")),
        (lambda: losses.ContrastiveLoss(), lambda: miners.PairMarginMiner()),
    ],
    ids=["multi-similarity", "triplet", "contrastive"],
)
def test_a_miner_says_which_pairs_count(loss: Any, miner: Any) -> None:
    x = embeddings()
    mined = miner()(x, LABELS)
    _, observation, row = observe(loss(), x, LABELS, mined)
    assert observation.rows is not None
    a1, p, a2, n = mined if len(mined) == 4 else (mined[0], mined[1], mined[0], mined[2])
    pairs = {tuple(pair) for pair in torch.stack([a1, p], 1).tolist()}
    others = {tuple(pair) for pair in torch.stack([a2, n], 1).tolist()}
    assert {tuple(pair) for pair in observation.rows.mask.positives.nonzero().tolist()} == pairs
    assert {tuple(pair) for pair in observation.rows.mask.negatives.nonzero().tolist()} == others
    assert row["all/mined_pos"] == len(pairs) and row["all/mined_neg"] == len(others)
    assert 0 <= row["all/W_skipped"] <= 1
    assert len(others) < int(of_labels(LABELS).negatives.sum())
    outside = observation.rows.mask.info["W"][~observation.rows.mask.valid]
    assert not outside.any()


def test_references_are_a_side_of_their_own() -> None:
    x, references = embeddings(), embeddings(1, 20)
    others = torch.arange(20) % 4
    value, observation, row = observe(losses.SupConLoss(0.1), x, LABELS, ref_emb=references, ref_labels=others)
    assert observation.rows is not None and observation.rows.S.shape == (N, 20)
    assert torch.equal(observation.rows.mask.match, LABELS[:, None] == others[None, :])
    assert "a2r/C_neg" in row and observation.sides.text == "anchor/reference"
    mask = Mask(LABELS[:, None] == others[None, :], torch.ones(N, 20, dtype=torch.bool))
    unit, unit_references = (normalise(y.detach()) for y in (x, references))
    ours = build("objectives", "supcon:tau=0.1")(unit @ unit_references.T, mask)
    torch.testing.assert_close(weights(observation), ours.W.float(), rtol=1e-4, atol=1e-5)
    assert float(ours.values.mean()) == pytest.approx(float(value.detach()), rel=1e-6)


def test_losses_around_a_loss_are_looked_through() -> None:
    """SelfSupervisedLoss makes SimCLR's 2B x 2B of two views; CrossBatchMemory keeps references of earlier batches."""
    first, second = embeddings(0, 6), embeddings(1, 6)
    _, observation, _ = observe(losses.SelfSupervisedLoss(losses.NTXentLoss(0.1)), first, second)
    assert observation.rows is not None and observation.rows.S.shape == (12, 12)
    assert torch.equal(observation.rows.mask.match, of_labels(torch.arange(6).repeat(2)).match)
    memory = losses.CrossBatchMemory(losses.NTXentLoss(0.1), WIDTH, 32)
    scope = Kept()
    loss = scope.wrap(memory)
    for step in range(2):
        loss(embeddings(step).float(), LABELS)
    rows = scope.observed[0].rows
    assert rows is not None and rows.S.shape == (N, 2 * N)


@pytest.mark.parametrize("name", [*EVERY, "named objective", "accuracy in half"])
def test_training_is_the_same_bit_for_bit(name: str) -> None:
    def train(scope: LossScope | None) -> Tensor:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(WIDTH, 16), nn.Dropout(0.2), nn.Linear(16, WIDTH))
        loss: Any = losses.MultiSimilarityLoss() if name not in EVERY else EVERY[name]()
        miner = miners.MultiSimilarityMiner() if name not in EVERY else None
        loss = loss if scope is None else scope.wrap(loss)
        optimizer = torch.optim.SGD([*net.parameters(), *loss.parameters()], 0.1)
        for step in range(4):
            x = net(embeddings(step).detach().float())
            value = loss(x, LABELS, None if miner is None else miner(x, LABELS))
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        return torch.cat([*(p.detach().flatten() for p in net.parameters()), value.detach()[None], torch.rand(1)])

    scope = LossScope("multi_similarity" if name == "named objective" else None)
    assert torch.equal(train(scope), train(None))
    assert len(scope.history) == 4 and all(row["finite"] == 1 for row in scope.history)


def test_the_wrapper_is_the_loss_in_all_else() -> None:
    inner = losses.MarginLoss(beta=1.0, learn_beta=True)
    scope = LossScope(every=2)
    loss = scope.wrap(inner)
    assert loss.distance is inner.distance and [p.shape for p in loss.parameters()] == [
        p.shape for p in inner.parameters()
    ]
    with pytest.raises(AttributeError):
        _ = loss.nothing
    loss(embeddings(), LABELS)
    loss(embeddings(), LABELS)
    assert len(scope.history) == 1
    with torch.no_grad():
        loss(embeddings(), LABELS)
    loss.eval()
    loss(embeddings(), LABELS)
    assert len(scope.history) == 1 and scope.calls == 2


def test_what_is_written_to_the_wrapper_is_written_to_the_loss() -> None:
    inner = losses.NTXentLoss(temperature=0.5)
    written, direct = LossScope().wrap(inner), LossScope().wrap(losses.NTXentLoss(temperature=0.5))
    anew = LossScope().wrap(losses.NTXentLoss(0.05))
    for watched in (written, direct):
        watched(embeddings(), LABELS)
    written.temperature = 0.05  # a schedule does this
    direct.lossscope_watch.loss.temperature = 0.05
    for watched in (written, direct, anew):
        watched(embeddings(), LABELS)
    assert inner.temperature == 0.05
    expected = anew.lossscope_watch.scope.history[-1]
    for watched in (written, direct):  # both measured the saturated weight again
        numbers = watched.lossscope_watch.scope.history[-1]
        assert {name: numbers[name] for name in expected if name != "step"} == pytest.approx(
            {name: value for name, value in expected.items() if name != "step"}, rel=1e-6
        )
    assert written.lossscope_watch.scope.history[0]["loss"] != pytest.approx(expected["loss"], rel=0.1)


def test_equal_losses_of_the_library_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def count(loss: Any) -> Any:
        measured.append(type(loss).__name__)
        return as_objective(loss)

    class Mine(losses.NTXentLoss):  # type: ignore[misc]
        """A loss with code that its user may change."""

    monkeypatch.setattr(metric_losses, "as_objective", count)
    rows = []
    for make in (losses.NTXentLoss, losses.NTXentLoss, lambda tau: losses.NTXentLoss(tau / 2), Mine, Mine):
        scope = LossScope()
        scope.wrap(make(0.123))(embeddings(), LABELS)
        rows.append(dict(scope.history[-1]))
    assert measured == ["NTXentLoss", "NTXentLoss", "Mine", "Mine"]
    assert rows[0] == rows[1] == rows[3] == rows[4] != rows[2]


def test_a_watched_step_gives_autograd_no_gradients_of_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With grad_outputs torch imports sympy, which made the first call of a process cost a third of a second."""
    given: list[Any] = []
    grad = torch.autograd.grad

    def recorded(outputs: Any, inputs: Any, grad_outputs: Any = None, **options: Any) -> Any:
        given.append(grad_outputs)
        return grad(outputs, inputs, grad_outputs, **options)

    monkeypatch.setattr(torch.autograd, "grad", recorded)
    LossScope().wrap(losses.NTXentLoss())(embeddings(), LABELS)
    assert given
    assert given.count(None) == len(given)


def test_a_memory_of_batches_takes_a_wrapped_loss() -> None:
    inside, around = LossScope(), LossScope()
    of_wrapped = losses.CrossBatchMemory(inside.wrap(losses.NTXentLoss(0.5)), WIDTH, memory_size=4 * N)
    wrapped = around.wrap(losses.CrossBatchMemory(losses.NTXentLoss(0.5), WIDTH, memory_size=4 * N))
    plain = losses.CrossBatchMemory(losses.NTXentLoss(0.5), WIDTH, memory_size=4 * N)
    for seed in range(3):
        values = [loss(embeddings(seed), LABELS) for loss in (of_wrapped, wrapped, plain)]
        assert torch.equal(values[0], values[2])
        assert torch.equal(values[1], values[2])
    assert list(inside.history) == list(around.history)
    assert len(inside.history) == 3


def test_a_wrapped_loss_is_copied_and_pickled() -> None:
    watched = LossScope().wrap(losses.NTXentLoss(0.5))
    for other in (copy.deepcopy(watched), pickle.loads(pickle.dumps(watched))):
        assert type(other) is type(watched)
        other.temperature = 0.1
        other(embeddings(), LABELS)
        assert watched.temperature == 0.5
        assert len(other.lossscope_watch.scope.history) == 1
    assert not watched.lossscope_watch.scope.history


def test_counted_weights_are_shares_of_the_saturated_weight_where_there_is_one() -> None:
    x = embeddings()
    scope = LossScope(probes=("cocos:eps=0.01",))
    scope.wrap(losses.NTXentLoss(0.1))(x, VIEWS)
    ours = LossScope("ntxent:tau=0.1", probes=("cocos:eps=0.01",)).watch(embeddings=x, labels=VIEWS)
    assert ours is not None
    for name in ("all/C_neg", "all/W_neg", "all/W_pos", "all/N_eff"):
        assert scope.history[-1][name] == pytest.approx(ours[name], rel=1e-4), name
    with pytest.raises(InputError, match=r"in the units paper .* and cosine\. Leave unit=relative out"):
        LossScope(probes=("cocos:unit=relative",)).wrap(losses.NTXentLoss(0.1))(x, VIEWS)


def test_a_loss_whose_gradient_is_not_all_of_its_distances_is_refused() -> None:
    loss = losses.NTXentLoss(embedding_regularizer=regularizers.LpRegularizer())
    with pytest.raises(UnsupportedLoss, match="NTXentLoss must depend on embeddings by its distances alone"):
        LossScope().wrap(loss)(embeddings(), LABELS)
    scope = LossScope("supcon:tau=0.07")
    scope.wrap(loss)(embeddings(), LABELS)
    assert "all/C_neg" in scope.history[-1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: losses.P2SGradLoss(WIDTH, 4),
        lambda: losses.AngularLoss(),
    ],
)
def test_losses_of_other_than_distances_are_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(UnsupportedLoss, match="must depend on embeddings by its distances alone"):
        LossScope().wrap(make())(embeddings().float(), LABELS)


def test_a_loss_that_writes_into_its_distances_is_refused_as_its_backward_would_fail() -> None:
    loss, x = losses.DynamicSoftMarginLoss(), embeddings().float()
    arguments = {"embeddings": x[:6], "labels": None, "ref_emb": x[6:12]}
    with pytest.raises(UnsupportedLoss, match="its own backward would fail as well: one of the variables needed for"):
        LossScope().wrap(loss)(**arguments)
    with pytest.raises(RuntimeError, match="one of the variables needed for"):
        loss(**arguments).backward()


def test_an_indices_tuple_that_is_no_miners_is_refused() -> None:
    """ManifoldLoss takes its clusters by this name."""
    with pytest.raises(InputError, match=r"indices_tuple must be the \(a, p, a, n\) pairs .*; got Tensor of another"):
        LossScope("supcon").wrap(losses.ManifoldLoss(WIDTH, 4))(
            embeddings().float(), indices_tuple=torch.zeros(N, dtype=torch.long)
        )


def test_several_losses_at_once_are_refused_and_what_to_write_is_said() -> None:
    with pytest.raises(InputError, match=r"LossScope\('supcon:tau=T'\)\.watch\(embeddings="):
        LossScope().wrap(losses.MultipleLosses([losses.TripletMarginLoss()]))


def test_several_losses_of_cosines_are_watched_as_one() -> None:
    rows = []
    for loss in (losses.MultipleLosses([losses.NTXentLoss(0.5)]), losses.NTXentLoss(0.5)):
        scope = LossScope()
        scope.wrap(loss)(embeddings().requires_grad_(), LABELS).backward()
        rows.append(scope.frame().iloc[0])
    assert rows[0]["all/N_eff"] == pytest.approx(rows[1]["all/N_eff"], rel=1e-5)


def test_each_of_several_losses_can_be_wrapped() -> None:
    scopes = [LossScope(), LossScope()]
    each = [losses.NTXentLoss(0.1), losses.TripletMarginLoss()]
    several = losses.MultipleLosses([scope.wrap(loss) for scope, loss in zip(scopes, each, strict=True)])
    assert torch.equal(several(embeddings(), LABELS), losses.MultipleLosses(each)(embeddings(), LABELS))
    assert [len(scope.history) for scope in scopes] == [1, 1]


def test_a_batch_without_pairs_is_watched() -> None:
    _, _, row = observe(losses.NTXentLoss(), embeddings(), torch.zeros(N, dtype=torch.long))
    assert row["finite"] == 1 and row["all/skipped"] == N
    empty = tuple(torch.zeros(0, dtype=torch.long) for _ in range(3))
    _, observation, row = observe(losses.TripletMarginLoss(), embeddings(), LABELS, empty)
    assert row["all/mined_pos"] == 0 and math.isnan(row["all/W_skipped"])
    assert observation.rows is not None and not observation.rows.mask.info["W"].any()


def test_triplets_are_counted_one_by_one_though_the_loss_is_their_mean() -> None:
    """The mean over hundreds of triplets would put every weight below eps: W is the gradient of their sum."""
    torch.manual_seed(0)
    X = torch.nn.functional.normalize(torch.randn(32, 16), dim=1)
    labels = torch.arange(32) // 4
    scope = LossScope()
    scope.wrap(losses.TripletMarginLoss(margin=0.2))(X.requires_grad_(), labels)
    D = torch.cdist(X.detach(), X.detach())
    same = labels[:, None] == labels[None, :]
    positives = same & ~torch.eye(32, dtype=torch.bool)
    active = (D[:, :, None] - D[:, None, :] + 0.2 > 0) & positives[:, :, None] & ~same[:, None, :]  # (anchor, p, n)
    row = scope.frame().iloc[0]
    assert row["all/C_neg"] == pytest.approx(float(active.any(1).sum(1).float().mean()))
    slope = (1 / D).where(~same, 0.0)  # |dD/ds| of D = √(2 − 2s)
    assert row["all/W_neg"] + row["all/W_low"] == pytest.approx(float((active.sum(1) * slope).sum(1).mean()), rel=1e-4)
