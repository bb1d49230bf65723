"""How close is the gradient with the k heaviest negatives to the whole gradient?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.probes.fidelity import GRID, Fidelity
from lossscope.registry import build
from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]
OBJECTIVES = ["ntxent", "triplet", "triplet_sh", "siglip", "goal:pair=sig", "smoothap:tau=0.3"]


def of_similarities(*rows: list[float]) -> lab.Batches:
    """Return a batch whose query i has the similarities of row i, its positive first."""
    S = torch.tensor([rows], dtype=torch.float64)
    q, c = S.shape[1:]
    match = torch.zeros(1, q, c, dtype=torch.bool)
    match[:, :, 0] = True
    vectors = torch.eye(c, dtype=torch.float64)[None]
    return lab.Batches(S, vectors, match, torch.ones_like(match))


@each("of", ["similarities", "embeddings"], "objective", OBJECTIVES, "seed", range(2))
def test_every_number_equals_the_oracle(of: str, objective: str, seed: int, oracle: Oracle) -> None:
    loops = oracle("probes_fidelity")
    batches = lab.random_batches(seed, q=8, c=12, many=objective.startswith("smoothap"))
    actual = lab.columns(lab.run(f"fidelity:of={of},share=0.9,curve=true", batches, objective))
    rows, loss = batches.rows(), build("objectives", objective)
    W, counted = lab_weights(batches, objective), loss.counted_weights
    weights = torch.cat([counted(b.rows().S, b.rows().mask).weights.amax(1) for b in batches.single_batches()])
    for q in range(len(W)):
        if rows.mask.skipped[q]:
            continue
        w, s, negative = W[q].tolist(), rows.S[q].tolist(), rows.mask.negatives[q].tolist()
        vectors = (
            ()
            if of == "similarities"
            else (batches.queries.flatten(0, 1)[q].numpy(), batches.candidates[q // 8].numpy())
        )
        expected = loops.cosines(w, s, rows.mask.positives[q].tolist(), negative, loss.rows_sum_to_zero, *vectors)
        k = loops.stays_from(expected, 0.9)
        of_k = {shown: expected[min(shown, len(expected) - 1)] for shown in GRID}
        got = {name: float(actual[name][q]) for name in ("k", "cos1", "cos5", "cos20", "no_weight")}
        wanted = {"k": k, "cos1": of_k[1], "cos5": of_k[5], "cos20": of_k[20], "no_weight": float(np.isnan(k))}
        assert got == pytest.approx(wanted, rel=1e-7, abs=1e-7, nan_ok=True)
        assert actual["curve"][q] == pytest.approx([of_k[k] for k in GRID], rel=1e-7, abs=1e-7, nan_ok=True)
        eps = float(weights[q, loops.by_weight(w, s, negative)[int(k) - 1]]) if k > 0 else np.nan
        assert float(actual["eps"][q]) == pytest.approx(eps, rel=1e-9, nan_ok=True)


def lab_weights(batches: lab.Batches, objective: str) -> Tensor:
    """W of all batches, each computed alone."""
    parts = [batch.rows() for batch in batches.single_batches()]
    return torch.cat([build("objectives", objective)(rows.S, rows.mask).W for rows in parts])


def test_the_hardest_negative_alone_makes_the_gradient_of_triplet_sh() -> None:
    for of in ("similarities", "embeddings"):
        actual = lab.columns(lab.run(f"fidelity:of={of}", lab.random_batches(gaps=False), "triplet_sh:margin=2"))
        assert actual["k"].tolist() == [1] * 18
        assert actual["cos1"] == pytest.approx([1] * 18)


@each("m", [1, 2, 7, 40])
def test_equal_violations_have_the_closed_form(m: int) -> None:
    """A row of W is (−m, 1, ..., 1), its truncation (−k, 1 k times, 0, ...)."""
    batch = of_similarities([0.5, *[0.4] * m, *[-1.0] * 3])
    actual = lab.columns(lab.run("fidelity:curve=true", batch, "triplet:margin=0.2"))
    k = np.minimum(GRID, m)
    np.testing.assert_allclose(actual["curve"][0], (m * k + k) / np.sqrt((m * m + m) * (k * k + k)), rtol=1e-12)
    of_all = [(m * k + k) / np.sqrt((m * m + m) * (k * k + k)) for k in range(1, m + 1)]
    assert actual["k"][0] == 1 + sum(cosine < 0.95 for cosine in of_all)
    assert actual["eps"][0] == 1


def test_ntxent_at_a_small_temperature_has_one_negative_and_at_a_large_one_all() -> None:
    batch = of_similarities([0.2, 0.9, 0.5, 0.3, 0.1])
    sharp, flat = (lab.columns(lab.run("fidelity", batch, f"ntxent:tau={tau}")) for tau in (0.01, 1000))
    assert (sharp["k"][0], sharp["cos1"][0]) == (1, pytest.approx(1))
    assert flat["cos1"][0] == pytest.approx((4 + 1) / np.sqrt((16 + 4) * 2), rel=1e-3)  # weights are equal


def test_eps_is_the_threshold_at_which_cocos_counts_k() -> None:
    batches = lab.random_batches(q=8, c=12, gaps=False)
    actual = lab.columns(lab.run("fidelity", batches, "ntxent"))
    for q, (k, eps) in enumerate(zip(actual["k"], actual["eps"], strict=True)):
        below, at = (
            lab.columns(lab.run(f"cocos:eps={x!r}", batches, "ntxent"))["count"][q]
            for x in (float(eps) * (1 - 1e-9), float(eps) * (1 + 1e-9))
        )
        assert (below, at) == (k, k - 1)


def test_a_negative_at_the_positive_turns_nothing_and_the_cosine_is_0() -> None:
    """The heaviest negative is a copy of the positive, so only the second one turns the query."""
    x, y, z = torch.eye(3, dtype=torch.float64)
    batch = replace(
        of_similarities([0, 0, 0]), queries=x[None, None], candidates=torch.stack([(x + y) / 2**0.5] * 2 + [z])[None]
    )
    actual = lab.columns(lab.run("fidelity:of=embeddings", batch, "ntxent:tau=0.5"))
    assert (actual["cos1"][0], actual["k"][0]) == (0, 2)


def test_a_cosine_that_falls_again_does_not_count_as_reached() -> None:
    """The first negative alone points nearer to the whole gradient than the first two, which a third balances."""
    v, a, b, p = torch.eye(4, dtype=torch.float64)
    candidates = torch.stack([0.1 * v, v + 0.02 * a + 0.01 * b, 0.99 * v - 1.0 * b, 0.98 * v + 1.0 * b + 0 * p])
    batch = replace(of_similarities([0, 0, 0, 0]), queries=v[None, None], candidates=candidates[None])
    result = lab.run("fidelity:of=embeddings,share=0.5,curve=true", batch, "ntxent:tau=0.5")
    curve = lab.columns(result)["curve"][0]
    assert curve[0] > 0.5 > curve[1] and curve[2] == 1
    assert lab.columns(result)["k"][0] == 3


def test_a_query_without_weight_is_left_out_and_counted() -> None:
    batch = of_similarities([0.9, 0.1, 0.2], [0.5, 0.6, 0.0])
    result = lab.run("fidelity:curve=true", batch, "triplet:margin=0.2")
    assert np.isnan(lab.columns(result)["k"]).tolist() == [True, False]
    actual = lab.statistics(result)
    assert (actual["k95"][0], actual["no_weight"][0]) == (1, 0.5)
    assert actual["curve"][0].tolist() == [1] * len(GRID)


def test_positives_that_keep_their_weight_may_need_no_negative() -> None:
    batch = of_similarities([-0.5, -0.9, -0.9])
    actual = lab.columns(lab.run("fidelity", batch, "siglip"))
    assert actual["k"][0] == 0 and np.isnan(actual["eps"][0])


@dataclass(frozen=True)
class Linear:
    """Gradients of a model whose S is linear in its parameters: each parameter is an entry of S times a factor."""

    factor: float = 2.0

    def __call__(self, G: Tensor) -> Mapping[str, Tensor]:
        return {name: vector.norm() for name, vector in self.vectors(G).items()}

    def vectors(self, G: Tensor) -> Mapping[str, Tensor]:
        return {"image.fc": self.factor * G[:, :3].flatten(), "text.fc": self.factor * G[:, 3:].flatten()}


def with_model(batch: lab.Batches) -> Any:
    return replace(batch.rows(), gradients=Linear())


@each("objective", OBJECTIVES)
def test_parameters_that_are_the_entries_of_s_give_the_cosine_of_all_rows(objective: str, oracle: Oracle) -> None:
    loops = oracle("probes_fidelity")
    batch = lab.random_batches(k=1, q=8, c=12, many=objective.startswith("smoothap"))
    rows, loss = with_model(batch), build("objectives", objective)
    W = loss(rows.S, rows.mask).W.tolist()
    similarities, positives, negatives = rows.S.tolist(), rows.mask.positives.tolist(), rows.mask.negatives.tolist()
    masks = list(zip(W, similarities, positives, negatives, strict=True))
    whole = [x for row in W for x in row]
    most = max(sum(bool(x) and n for x, n in zip(w, negative, strict=True)) for w, _, _, negative in masks)

    def of_k(k: int) -> float:
        kept = [x for row in masks for x in loops.truncated(*row, k, loss.rows_sum_to_zero)]
        return float(loops.cosine(kept, whole))

    expected = {k: of_k(k) for k in sorted({0, *(k for k in GRID if k < most), most})}
    actual = lab.columns(lab.run("fidelity:of=parameters,share=0.9,curve=true", rows, objective))
    assert actual["curve"][0] == pytest.approx([expected[min(k, most)] for k in GRID])
    assert actual["k"].tolist() == [min(k for k in expected if all(expected[j] >= 0.9 for j in expected if j >= k))]


def test_a_batch_without_a_gradient_has_no_number() -> None:
    rows = replace(with_model(lab.random_batches(k=1, q=6, c=6, gaps=False)), S=torch.eye(6, dtype=torch.float64))
    actual = lab.measure("fidelity:of=parameters,curve=true", rows, "triplet")
    assert all(np.isnan(values).all() for values in actual.values())


def test_what_a_source_lacks_is_named() -> None:
    batch = lab.random_batches(k=1, q=6, c=6)
    with pytest.raises(InputError, match="of=parameters needs the model itself"):
        lab.measure("fidelity:of=parameters", batch)
    with pytest.raises(InputError, match="needs a batch in one piece"):
        lab.run_in_panels("fidelity:of=parameters", with_model(batch), [4, 2])
    with pytest.raises(InputError, match="needs embeddings"):
        lab.measure("fidelity:of=embeddings", replace(batch.rows(), queries=None, candidates=None))


@each("kind", lab.DEGENERATE, "objective", OBJECTIVES, "of", ["similarities", "embeddings"])
def test_degenerate_batches_give_no_infinity(objective: str, kind: str, of: str) -> None:
    actual = lab.measure(f"fidelity:of={of},curve=true", lab.degenerate(kind), objective)
    assert not any(np.isinf(values).any() for values in actual.values())
    if "all skipped" in kind:
        assert all(np.isnan(values).all() for values in actual.values())


def test_names_of_statistics_state_the_share() -> None:
    names = [s.name for s in Fidelity(share=0.995).statistics(None)]
    assert names == ["k99.5", "k99.5_q50", "k99.5_q90", "eps99.5", "cos1", "cos5", "cos20", "no_weight"]
    assert [s.name for s in Fidelity(of="parameters").statistics(None)] == ["k95", "cos1", "cos5", "cos20"]


@each("options, message", [
    ({"share": 1.0}, r"share must be a number between 0 and 1, as 0.95; got 1.0"),
    ({"share": float("nan")}, "share must be a number between 0 and 1, as 0.95; got nan"),
    ({"of": "rows"}, "of must be similarities, embeddings or parameters; got 'rows'"),
])  # fmt: skip
def test_invalid_options_raise_before_any_work(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Fidelity(**options)
