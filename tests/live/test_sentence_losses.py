"""Do our S and W give the values and gradients of the loss modules of sentence-transformers?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.core.similarity import normalise
from lossscope.core.types import DIRECTIONS
from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.sampled.draw import draw_queries
from lossscope.errors import InputError
from lossscope.live import observed as observed_module
from lossscope.live.monitor import LossScope
from lossscope.live.observed import Observed
from lossscope.live.sentence_losses import record as record_module
from lossscope.live.sentence_losses.base import LossCall
from lossscope.live.sentence_losses.pairs import labels_of_pairs, pair_loss
from lossscope.live.sentence_losses.record import RecordedCalls, SentenceLoss
from lossscope.objectives.base import Objective

library = pytest.importorskip("sentence_transformers")
losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")

from tests.farm import run_ranks  # noqa: E402
from tests.live.tiny_sentences import sentence_model, texts  # noqa: E402 - after the skip

B, WIDTH = 6, 8
ALL_TERMS = ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "scale": {"scale": 5.0},
    "symmetric": {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"},
    "q2q": {"directions": ("query_to_doc", "query_to_query")},
    "d2q": {"directions": ("query_to_doc", "doc_to_query")},
    "gte": {"directions": ALL_TERMS, "scale": 3.0},
    "hard": {"hardness_mode": "hard_negatives", "hardness_strength": 5.0},
    "in_batch": {"hardness_mode": "in_batch_negatives", "hardness_strength": 9.0, "scale": 4.0},
    "all_negatives": {
        "hardness_mode": "all_negatives", "hardness_strength": 3.0, "scale": 4.0,
        "directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction",
    },
    "hard gte": {
        "hardness_mode": "all_negatives", "hardness_strength": 3.0, "scale": 3.0, "directions": ALL_TERMS,
    },
    "dot": {"similarity_fct": lambda a, b: a @ b.T, "scale": 0.3},
}  # fmt: skip


class Given(nn.Module):
    """Stands for a model: returns its input as the embeddings."""

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return features


def columns_of(number: int, seed: int = 0) -> list[Tensor]:
    """Return embeddings of queries, documents and mined negatives that need gradients."""
    random = torch.Generator().manual_seed(seed)
    queries = torch.randn(B, WIDTH, generator=random, dtype=torch.float64)
    others = [queries + torch.randn(B, WIDTH, generator=random, dtype=torch.float64) for _ in range(number - 1)]
    return [x.clone().requires_grad_() for x in (queries, *others)]


def cosines(columns: list[Tensor]) -> Tensor:
    return torch.nn.functional.cosine_similarity(*(column.detach() for column in columns))


def features(columns: list[Tensor]) -> list[dict[str, Tensor]]:
    return [{"sentence_embedding": column} for column in columns]


def observe(loss: nn.Module, columns: list[Tensor], labels: Tensor | None = None) -> tuple[Tensor, list[Observed]]:
    value, observed = SentenceLoss(loss).call(loss, (features(columns), labels), {})
    return value, observed


def rebuild(loss: Any, columns: list[Tensor], joint: bool) -> list[Tensor]:
    """Return S of each direction from the embeddings with their graph: the blocks that a loss names."""
    fct, (Q, P, *rest) = loss.similarity_fct, columns
    D = torch.cat([P, *rest])
    blocks = {
        "query_to_doc": fct(Q, D), "query_to_query": fct(Q, Q), "doc_to_query": fct(P, Q), "doc_to_doc": fct(P, D),
    }  # fmt: skip
    chosen = [blocks[term] for term in ALL_TERMS if term in loss.directions]
    return [torch.cat(chosen, 1)] if joint else chosen


def value_and_weights(observation: Observed) -> list[tuple[Tensor, Tensor]]:
    """Return the mean loss and dL/dS of each direction, by our objective; NaN where it has no value."""
    assert observation.objective is not None and observation.rows is not None
    rows = (
        [observation.rows]
        if len(observation.directions) == 1
        else [observation.rows, observation.second or observation.rows.t()]
    )
    return [_of_rows(observation.objective, direction, len(rows)) for direction in rows]


def _of_rows(objective: Objective, rows: DirectionRows, directions: int) -> tuple[Tensor, Tensor]:
    weights = objective(rows.detach().zero_unless(torch.tensor(True), rows.S.isfinite()).S, rows.mask)
    value = torch.tensor(torch.nan) if weights.values is None else weights.values.sum()
    return value / len(rows.S), weights.W / len(rows.S) / directions


def require_same_gradients(value: Tensor, columns: list[Tensor], S: list[Tensor], W: list[Tensor]) -> None:
    theirs = torch.autograd.grad(value, columns, retain_graph=True)
    finite = [torch.where(s.isfinite(), s, 0.0) for s in S]
    ours = torch.autograd.grad(sum((s * w).sum() for s, w in zip(finite, W, strict=True)), columns)  # type: ignore[arg-type]
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("negatives", [0, 1, 3])
@pytest.mark.parametrize("case", OPTIONS)
def test_a_ranking_loss_has_the_value_and_gradients_of_our_objective(case: str, negatives: int) -> None:
    loss, columns = losses.MultipleNegativesRankingLoss(Given(), **OPTIONS[case]), columns_of(2 + negatives)
    value, (observation,) = observe(loss, columns)
    assert observation.value is not None and torch.equal(observation.value, value.detach())
    (parts) = value_and_weights(observation)
    joint = loss.partition_mode == "joint"
    if loss.hardness_mode is None:
        mean = torch.stack([part for part, _ in parts]).mean()
        torch.testing.assert_close(mean, value.detach(), rtol=1e-6, atol=1e-6)
    require_same_gradients(value, columns, rebuild(loss, columns, joint), [W for _, W in parts])
    assert observation.sides.labels[: len(parts)] == ("q2d", "d2q")[: len(parts)]
    assert len(parts) == (1 if joint or "doc_to_query" not in loss.directions else 2)
    (value * 2).backward()  # the graph of the step is intact


def test_a_ranking_loss_is_ntxent_and_its_rows_are_what_it_compares() -> None:
    loss = losses.MultipleNegativesRankingLoss(Given(), scale=20.0)
    _, (observation,) = observe(loss, columns_of(4))
    assert type(observation.objective).__name__ == "NTXent" and observation.objective.tau == 0.05  # type: ignore[union-attr]
    assert observation.rows is not None and observation.rows.S.shape == (B, 3 * B)
    assert torch.equal(observation.rows.mask.match, torch.eye(B, 3 * B, dtype=torch.bool))
    assert not observation.rows.S.requires_grad


@pytest.mark.parametrize("terms", [("query_to_doc",), ALL_TERMS])
@pytest.mark.parametrize("hardness", [None, "all_negatives"])
def test_the_cached_loss_has_the_same_value_and_gradients(
    terms: tuple[str, ...], hardness: str | None, tmp_path: Path
) -> None:
    model = sentence_model(tmp_path, dropout=0.0)
    options = {"directions": terms, "hardness_mode": hardness, "hardness_strength": 2.0 if hardness else 0.0}
    cached = losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=4, **options)
    batch = [model.preprocess(texts(B, seed)) for seed in range(3)]
    value, observed = SentenceLoss(cached).call(cached, ([dict(x) for x in batch], None), {})
    value.backward()
    theirs = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    (observation,) = observed
    ((mean, W),) = value_and_weights(observation)
    if hardness is None:
        torch.testing.assert_close(mean, value.detach(), rtol=1e-6, atol=1e-6)
    columns = [model(dict(x))["sentence_embedding"] for x in batch]
    (S,) = rebuild(cached.loss, columns, joint=True)
    (S.where(W != 0, 0.0) * W).sum().backward()
    ours = [p.grad for p in model.parameters() if p.grad is not None]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6)


class Guided(nn.Module):
    """Stands for a model with a tokeniser: returns the entry of its input that has its name."""

    def __init__(self, name: str, tokenizer: Any) -> None:
        super().__init__()
        self.name, self.tokenizer, self.max_seq_length = name, tokenizer, 16

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features[self.name]}


def guided_mask(guides: list[Tensor], strategy: str, margin: float, anchors: bool, positives: bool) -> Tensor:
    """Return which candidates stay: those whose guided similarity is at most that of the positive."""
    unit = [normalise(guide) for guide in guides]
    Q, P, *rest = unit
    positive = (Q * P).sum(1, keepdim=True)
    limit = positive - (margin if strategy == "absolute" else margin * positive.abs())
    first = ~(limit < Q @ P.T) | torch.eye(B, dtype=torch.bool)
    blocks = [first]
    blocks += [~(limit < Q @ Q.T)] if anchors else []
    blocks += [~(limit < P @ P.T)] if positives else []
    return torch.cat([*blocks, *(~(limit < Q @ N.T) for N in rest)], 1)


@pytest.mark.parametrize("negatives", [0, 1])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"margin": 0.1},
        {"margin_strategy": "relative", "margin": 0.05, "contrast_anchors": False},
        {"contrast_positives": False, "temperature": 0.1},
    ],
    ids=str,
)
def test_gist_has_the_mask_value_and_gradients_of_its_definition(
    options: dict[str, Any], negatives: int, tmp_path: Path
) -> None:
    tokenizer = sentence_model(tmp_path).tokenizer
    loss = losses.GISTEmbedLoss(Guided("own", tokenizer), Guided("guide", tokenizer), **options)
    columns, guides = columns_of(2 + negatives), columns_of(2 + negatives, seed=1)
    batch = [{"own": a, "guide": b.detach()} for a, b in zip(columns, guides, strict=True)]
    value, observed = SentenceLoss(loss).call(loss, (batch, None), {})
    (observation,) = observed
    assert observation.rows is not None
    strategy, margin = options.get("margin_strategy", "absolute"), options.get("margin", 0.0)
    valid = guided_mask(guides, strategy, margin, loss.contrast_anchors, loss.contrast_positives)
    assert torch.equal(observation.rows.mask.valid, valid)
    assert float(observation.numbers["q2d/masked"]) == pytest.approx(float((~valid).double().mean()))
    assert 0 < float(observation.numbers["q2d/masked"]) < 0.9
    ((mean, W),) = value_and_weights(observation)
    torch.testing.assert_close(mean, value.detach(), rtol=1e-5, atol=1e-5)
    Q, P, *rest = columns
    cos = library.util.cos_sim
    blocks = [cos(Q, P)] + [cos(Q, Q)] * loss.contrast_anchors + [cos(P, P)] * loss.contrast_positives
    S = torch.cat([*blocks, *(cos(Q, N) for N in rest)], 1)
    require_same_gradients(value, columns, [S], [W])


def test_the_cached_gist_loss_sees_what_the_plain_one_sees(tmp_path: Path) -> None:
    model, guide = sentence_model(tmp_path / "a", dropout=0.0), sentence_model(tmp_path / "b", 1, dropout=0.0)
    batch = [model.preprocess(texts(B, seed)) for seed in range(3)]
    seen = []
    for loss in (
        losses.GISTEmbedLoss(model, guide, temperature=0.05),
        losses.CachedGISTEmbedLoss(model, guide, temperature=0.05, mini_batch_size=4),
    ):
        value, observed = SentenceLoss(loss).call(loss, ([dict(x) for x in batch], None), {})
        (observation,) = observed
        assert observation.rows is not None
        torch.testing.assert_close(observation.value, value.detach())
        seen.append(observation.rows)
    assert torch.equal(seen[0].mask.valid, seen[1].mask.valid)
    torch.testing.assert_close(seen[0].S, seen[1].S, rtol=1e-4, atol=1e-5)


PAIRS: Mapping[str, Any] = {
    "CoSENTLoss": {},
    "AnglELoss": {},
    "ContrastiveLoss": {},
    "OnlineContrastiveLoss": {},
    "CosineSimilarityLoss": {},
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_loss_of_pairs_has_similarities_and_weights_of_its_own_gradient(name: str) -> None:
    loss, columns = getattr(losses, name)(Given()), columns_of(2)
    labels = torch.tensor([1, 0, 1, 0, 0, 1])
    value, (observation,) = observe(loss, columns, labels.double() if loss_is_graded(loss) else labels)
    numbers = {key: float(x) for key, x in observation.numbers.items()}
    assert numbers["finite"] == 1 and numbers["pairs/n_pos"] == numbers["pairs/n_neg"] == 3
    if name != "AnglELoss":
        s = cosines(columns)
        assert numbers["pairs/s_pos"] == pytest.approx(float(s[labels == 1].mean()), abs=1e-6)
        assert numbers["pairs/s_neg"] == pytest.approx(float(s[labels == 0].mean()), abs=1e-6)
        W = torch.tensor([numbers["pairs/W_pos"], numbers["pairs/W_neg"]])
        expected = weights_by_differences(loss, columns, labels)
        torch.testing.assert_close(W, expected, rtol=1e-5, atol=1e-7)
    value.backward()


def weights_by_differences(loss: Any, columns: list[Tensor], labels: Tensor) -> Tensor:
    """Return Σ |dL/ds| of positives and negatives by central differences: a partner turns until s changes."""
    u, v = (normalise(column.detach().double()) for column in columns)
    W = torch.zeros(B, dtype=torch.float64)
    step = 1e-4
    for row in range(B):
        values = []
        for change in (step, -step):
            turned = v.clone()
            s = float(u[row] @ v[row]) + change
            rest = normalise((v[row] - (u[row] @ v[row]) * u[row])[None])[0]
            turned[row] = s * u[row] + (1 - s**2) ** 0.5 * rest
            values.append(float(loss(features([u, turned]), labels.double() if loss_is_graded(loss) else labels)))
        W[row] = (values[0] - values[1]) / (2 * step)
    return torch.stack([W[labels == 1].abs().sum(), W[labels == 0].abs().sum()]).float()


def loss_is_graded(loss: Any) -> bool:
    return "Contrastive" not in type(loss).__name__


def test_contrastive_loss_counts_the_pairs_inside_the_margin() -> None:
    loss, columns = losses.ContrastiveLoss(Given(), margin=0.5), columns_of(2)
    labels = torch.zeros(B, dtype=torch.long)
    _, (observation,) = observe(loss, columns, labels)
    s = cosines(columns)
    assert float(observation.numbers["pairs/active_neg"]) == pytest.approx(float((s > 0.5).float().mean()))
    assert torch.isnan(observation.numbers["pairs/s_pos"])


def test_pairs_in_order_is_the_share_of_pairs_that_cosent_wants() -> None:
    columns = columns_of(2)
    labels = torch.tensor([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    _, (observation,) = observe(losses.CoSENTLoss(Given()), columns, labels)
    s = cosines(columns).tolist()
    pairs = [(i, j) for i in range(B) for j in range(i)]
    assert float(observation.numbers["pairs/in_order"]) == pytest.approx(
        sum(s[i] > s[j] for i, j in pairs) / len(pairs)
    )


def test_angle_loss_with_negatives_has_a_label_for_each_similarity() -> None:
    _, (observation,) = observe(losses.AnglELoss(Given()), columns_of(4))
    assert float(observation.numbers["pairs/n_pos"]) == B and float(observation.numbers["pairs/n_neg"]) == 2 * B


@pytest.mark.parametrize("cached", [False, True])
def test_matryoshka_has_each_dimension_under_its_name(cached: bool, tmp_path: Path) -> None:
    model = sentence_model(tmp_path, dropout=0.0)
    kind = losses.CachedMultipleNegativesRankingLoss if cached else losses.MultipleNegativesRankingLoss
    inner = kind(model, **({"mini_batch_size": 4} if cached else {}))
    loss = losses.MatryoshkaLoss(model, inner, [32, 16, 8], [1.0, 0.5, 0.25])
    batch = [model.preprocess(texts(B, seed)) for seed in range(2)]
    value, observed = SentenceLoss(loss).call(loss, ([dict(x) for x in batch], None), {})
    assert [observation.name for observation in observed] == ["dim32", "dim16", "dim8"]
    total = sum(weight * observation.value for observation, weight in zip(observed, (1.0, 0.5, 0.25), strict=True))  # type: ignore[operator, misc]
    torch.testing.assert_close(total, value.detach())
    full = [normalise(model(dict(x))["sentence_embedding"]) for x in batch]
    for observation, width in zip(observed, (32, 16, 8), strict=True):
        assert observation.rows is not None
        short = [normalise(x[:, :width]) for x in full]
        torch.testing.assert_close(observation.rows.S, (short[0] @ short[1].T).detach(), rtol=1e-4, atol=1e-5)
        ((mean, _),) = value_and_weights(observation)
        torch.testing.assert_close(mean, observation.value, rtol=1e-5, atol=1e-5)


def test_a_matryoshka_loss_of_pairs_and_of_a_guide_is_read_in_each_dimension(tmp_path: Path) -> None:
    model = sentence_model(tmp_path, dropout=0.0)
    batch = [model.preprocess(texts(B, seed)) for seed in range(2)]
    for inner, labels in (
        (losses.CoSENTLoss(model), torch.linspace(0, 1, B)),
        (losses.GISTEmbedLoss(model, model), None),
        (losses.CachedGISTEmbedLoss(model, model, mini_batch_size=4), None),
    ):
        loss = losses.MatryoshkaLoss(model, inner, [32, 8])
        _, observed = SentenceLoss(loss).call(loss, ([dict(x) for x in batch], labels), {})
        assert [observation.name for observation in observed] == ["dim32", "dim8"]


def test_rows_of_a_scope_have_the_loss_and_how_far_ours_is_from_it() -> None:
    loss = losses.MultipleNegativesRankingLoss(Given(), **OPTIONS["gte"])
    scope = LossScope(probes=("similarity", "cocos"))
    value, observed = observe(loss, columns_of(3))
    row = scope.record(observed, 1)
    assert row["loss"] == float(value.detach()) and row["loss_gap"] < 1e-6
    assert {name.partition("/")[0] for name in row} == {"finite", "loss", "loss_gap", "q2d"}
    assert scope.frame().shape == (1, len(row) + 1)


def test_an_objective_of_ones_own_looks_at_the_rows_of_queries() -> None:
    loss = losses.MultipleNegativesRankingLoss(Given(), **OPTIONS["gte"])
    columns = columns_of(3)
    _, observed = SentenceLoss(loss, is_objective=False).call(loss, (features(columns), None), {})
    row = LossScope("triplet", probes=("cocos",)).record(observed, 1)
    same = LossScope("triplet", probes=("cocos",)).watch(queries=columns[0], documents=torch.cat(columns[1:]))
    assert same is not None and "loss" not in row
    assert {k: v for k, v in row.items() if k.startswith("q2d")} == pytest.approx(
        {k: v for k, v in same.items() if k.startswith("q2d")}
    )


def test_a_loss_without_similarities_is_refused_and_looked_at_with_an_objective() -> None:
    loss, columns = losses.TripletLoss(Given()), columns_of(3)
    with pytest.raises(InputError, match=r"TripletLoss has no readable weights on similarities.* LossScope\('ntxent"):
        SentenceLoss(loss)
    _, observed = SentenceLoss(loss, is_objective=False).call(loss, (features(columns), None), {})
    row = LossScope("triplet", probes=("similarity",)).record(observed, 1)
    assert row["q2d/s_pos"] == pytest.approx(float(cosines(columns[:2]).mean()), rel=1e-5)


def test_a_version_that_computes_other_similarities_is_named() -> None:
    class Other(losses.MultipleNegativesRankingLoss):  # type: ignore[misc, name-defined]
        def forward(self, sentence_features: Any, labels: Any) -> Tensor:
            return sentence_features[0]["sentence_embedding"].sum()  # type: ignore[no-any-return]

    with pytest.raises(InputError, match="Other must compute query_to_doc; it computed 0 similarities"):
        observe(Other(Given()), columns_of(2))


def test_a_loss_is_called_by_the_names_of_its_parameters_too() -> None:
    columns, labels = columns_of(2), torch.tensor([1, 0, 1, 0, 0, 1])
    for loss in (losses.ContrastiveLoss(Given()), losses.CoSENTLoss(Given())):
        _, (expected,) = SentenceLoss(loss).call(loss, (features(columns), labels.double()), {})
        named = {"labels": labels.double(), "sentence_features": features(columns)}
        _, (observation,) = SentenceLoss(loss).call(loss, (), named)
        assert {key: float(x) for key, x in observation.numbers.items()} == {
            key: float(x) for key, x in expected.numbers.items()
        }


def test_arguments_of_a_similarity_are_taken_by_name() -> None:
    def similarity(a: Tensor, b: Tensor) -> Tensor:
        return a @ b.T

    calls = RecordedCalls(pair_loss(SimpleNamespace(similarity_fct=similarity)), False)
    a, b = torch.zeros(1), torch.ones(1)
    calls.add((), {"b": b, "a": a}, similarity(a[None], b[None]))
    assert calls.calls[0].args[0] is a and calls.calls[0].args[1] is b


def test_a_loss_of_pairs_of_one_column_is_refused() -> None:
    call = LossCall(([torch.zeros(2, 3)],), {}, torch.zeros(()), ())
    with pytest.raises(InputError, match="a loss of pairs must have two columns or more; got 1"):
        labels_of_pairs(call, torch.zeros(2))


def test_a_batch_of_one_pair_has_no_negative_and_raises_nothing() -> None:
    loss = losses.MultipleNegativesRankingLoss(Given())
    columns = [column[:1] for column in columns_of(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, observed = observe(loss, columns)
        row = LossScope().record(observed, 1)
    assert row["finite"] == 1 and row["q2d/skipped"] == 1


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("case", ["plain", "symmetric", "hard"])
def test_of_a_very_large_batch_a_sample_of_the_rows_is_looked_at(
    case: str, cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = sentence_model(tmp_path, dropout=0.0)
    options = dict(OPTIONS[case])
    kind = losses.CachedMultipleNegativesRankingLoss if cached else losses.MultipleNegativesRankingLoss
    loss = kind(model, **options, **({"mini_batch_size": 2} if cached else {}))
    batch = [model.preprocess(texts(B, seed)) for seed in range(3)]
    rows = []
    for most in (10**6, 2 * (2 * B if case != "symmetric" else 3 * B)):
        monkeypatch.setattr(observed_module, "MOST_ENTRIES", most)
        monkeypatch.setattr(record_module, "MOST_ENTRIES", most)
        value, (observation,) = SentenceLoss(loss).call(loss, ([dict(x) for x in batch], None), {})
        rows.append(observation)
        value.backward()
    whole, part = rows
    assert whole.rows is not None and part.rows is not None
    number, directions = len(part.rows.S), len(whole.directions)
    assert number < B and part.value is None and not whole.numbers
    of_each = [number, number if part.second is None else len(part.second.S)]
    query_index = [torch.from_numpy(draw_queries(B, 0, n, 0, way)) for n, way in zip(of_each, DIRECTIONS, strict=True)]
    if cached:  # lossscope does not keep chunks without room
        query_index = [torch.arange(n) for n in of_each]
        assert part.numbers["q2d/rows"] == number and part.drawn_from is None
    else:
        assert part.drawn_from == (B,) * directions
    assert torch.equal(part.rows.S, whole.rows.S[query_index[0]])
    assert torch.equal(part.rows.mask.match, whole.rows.mask.match[query_index[0]])
    for first, second, index in zip(value_and_weights(part), value_and_weights(whole), query_index, strict=False):
        torch.testing.assert_close(first[1] * len(first[1]), second[1][index] * B, rtol=1e-4, atol=1e-6)
    row = LossScope().record([part], 1)
    assert row["q2d/rows"] == number and "loss_gap" not in row
    if part.drawn_from is not None:
        for name in ("C_neg", "C_0", "s_pos_q50"):
            low, value, high = (row[f"q2d/{name}{end}"] for end in ("_low", "", "_high"))
            assert low <= value <= high or math.isnan(low)


def test_probes_that_read_embeddings_get_unit_vectors() -> None:
    columns = columns_of(2)
    _, observed = observe(losses.MultipleNegativesRankingLoss(Given()), columns)
    row = LossScope(probes=("alignment", "uniformity")).record(observed, 1)
    pairs = {"queries": columns[0].float(), "documents": columns[1].float()}
    expected = LossScope("ntxent", ("alignment", "uniformity")).watch(**pairs)
    assert expected is not None and {name: row[name] for name in row if name in expected} == pytest.approx(
        {name: expected[name] for name in row if name in expected}, rel=1e-5
    )
    _, observed = observe(losses.MultipleNegativesRankingLoss(Given(), **OPTIONS["gte"]), columns)
    with pytest.raises(InputError, match="this probe needs embeddings"):
        LossScope(probes=("uniformity",)).record(observed, 1)


def rows_of_rank() -> list[dict[str, float]]:
    """Watch losses in one of two processes that gather each other's embeddings."""
    import torch.distributed as distributed

    rank, rows = distributed.get_rank(), []
    for case in ("plain", "symmetric", "gte", "hard"):
        loss = losses.MultipleNegativesRankingLoss(Given(), gather_across_devices=True, **OPTIONS[case])
        columns = columns_of(3, seed=rank)
        scope = LossScope(probes=("similarity", "cocos", "alignment") if case == "plain" else ("similarity", "cocos"))
        value = scope.wrap(loss)(features(columns), None)
        value.backward()
        rows.append({**scope.history[-1], "value": float(value.detach())})
    return rows


def test_a_process_has_its_own_rows_and_gathered_columns() -> None:
    rows = run_ranks(rows_of_rank, 2)
    both = [torch.cat(parts).detach() for parts in zip(*(columns_of(3, seed) for seed in range(2)), strict=True)]
    whole = LossScope("ntxent:tau=0.05").watch(queries=both[0], documents=both[1], negatives=both[2][:, None])
    assert whole is not None
    for part in range(3):
        assert all(of_rank[part]["loss"] == of_rank[part]["value"] for of_rank in rows)
        assert all(of_rank[part]["loss_gap"] < 1e-6 for of_rank in rows)
    for name in ("q2d/C_neg", "q2d/s_pos", "q2d/s_neg", "q2d/W_neg"):
        assert sum(of_rank[0][name] for of_rank in rows) / 2 == pytest.approx(whole[name], rel=1e-5), name
    for name in ("d2q/C_neg", "d2q/s_pos", "d2q/s_neg"):
        assert sum(of_rank[1][name] for of_rank in rows) / 2 == pytest.approx(whole[name], rel=1e-5), name
