"""Does a sample of a batch's queries have the numbers of these queries in the whole batch, and intervals that hold?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lossscope.core.similarity import Mask, normalise
from lossscope.engine.sampled.draw import draw_queries
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.live import batch_statistics, observed
from lossscope.live.monitor import LossScope
from lossscope.live.observed import Observed

from .test_monitor import embedded_of

NTXENT = "ntxent:tau=0.05"
PROBES = ("cocos", "similarity", "recall", "contributors", "weight_mass", "alignment")
B, N = 60, 25


def vectors(seed: int = 0, number: int = B) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    first = normalise(torch.randn(number, 8, generator=generator))
    return first, normalise(first + 0.9 * torch.randn(number, 8, generator=generator))


def statistics(row: Any) -> dict[str, float]:
    """Return the estimates of a row, without interval bounds."""
    return {k: v for k, v in row.items() if not k.endswith(("_low", "_high", "/rows")) or k.endswith("W_low")}


def same(row: Any, other: Any, tolerance: float = 1e-5) -> None:
    assert list(row) == list(other)
    for name, value in other.items():
        assert row[name] == pytest.approx(value, rel=tolerance, abs=tolerance, nan_ok=True), name


def drawn(row: Any, query_index: Tensor, masked: Mask, S: Tensor, label: str, queries: int = B) -> None:
    """Assert that a row has, in one direction, what `watch` gives for the sampled queries alone, sums scaled."""
    alone = LossScope(NTXENT, PROBES).watch(S[query_index], replace(masked.rows(query_index), direction="i2t"))
    assert alone is not None and row[f"{label}/rows"] == len(query_index)
    for name, value in alone.items():
        way, _, statistic = name.partition("/")
        if way == "i2t":
            scaled = value * (queries / len(query_index) if statistic in ("C_0", "skipped", "ties", "C_B") else 1)
            assert row[f"{label}/{statistic}"] == pytest.approx(scaled, rel=1e-5, abs=1e-6), statistic


@pytest.mark.parametrize("objective", [NTXENT, "triplet", "siglip", "smoothap"])
def test_as_many_queries_as_there_are_have_the_row_of_the_whole_batch_and_no_width(objective: str) -> None:
    first, second = vectors()
    whole = LossScope(objective, PROBES).watch(queries=first, documents=second)
    for queries in (B, 10 * B):
        row = LossScope(objective, PROBES, queries=queries).watch(queries=first, documents=second)
        assert row is not None and whole is not None
        same(statistics(row), whole)
        for name, value in whole.items():
            if name != "finite":
                ends = row[f"{name}_low"], row[f"{name}_high"]
                assert ends == pytest.approx((row[name], row[name]), nan_ok=True) or math.isnan(value)
        assert row["q2d/rows"] == row["d2q/rows"] == B


@pytest.mark.parametrize("step", [0, 7])
def test_the_sample_is_that_of_the_step_in_each_direction(step: int) -> None:
    first, second = vectors()
    S, eye = first @ second.T, torch.eye(B, dtype=torch.bool)
    mask = Mask(eye, torch.ones_like(eye))
    rows = [
        LossScope(NTXENT, PROBES, queries=N).watch(images=first, captions=second, step=step),
        LossScope(NTXENT, PROBES, queries=N).watch(S, step=step),
        LossScope(NTXENT, PROBES, queries=N).watch(S, mask, step=step),
        LossScope(NTXENT, PROBES, queries=N).watch(S, S_second=S.T.contiguous(), offset=0, step=step),
    ]
    i2t, t2i = (torch.from_numpy(draw_queries(B, 0, N, step, way)) for way in ("i2t", "t2i"))  # type: ignore[arg-type]
    for row in rows:
        drawn(row, i2t, mask, S, "i2t")
        drawn(row, t2i, mask, S.T, "t2i")
        same(row, rows[0])


def test_the_interval_is_that_of_a_sweep_with_as_many_queries() -> None:
    first, second = vectors(number=300)
    row = LossScope(NTXENT, ("cocos",), queries=100).watch(queries=first, documents=second, step=5)
    split = embedded_of(first, second, torch.arange(300).numpy())
    sweep = Sweep((NTXENT,), ("cocos",), batch_size=None, queries=100, seed=5).run(split).summary
    assert row is not None
    for record in sweep.to_dict("records"):
        name = f"{'q2d' if record['direction'] == 'i2t' else 'd2q'}/{record['statistic']}"
        expected = record["mean"], record["low"], record["high"]
        assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(expected, rel=1e-4, nan_ok=True)


def test_intervals_hold_the_number_of_the_whole_batch() -> None:
    first, second = vectors(number=200)
    whole = LossScope(NTXENT).watch(queries=first, documents=second)
    scope, held, asked = LossScope(NTXENT, queries=60), 0, 0
    for _ in range(60):
        row = scope.watch(queries=first, documents=second)
        assert row is not None and whole is not None
        for name, value in whole.items():
            if name != "finite" and not math.isnan(row[f"{name}_low"]):
                held += row[f"{name}_low"] <= value + 1e-6 and value - 1e-6 <= row[f"{name}_high"]
                asked += 1
    assert asked > 1000 and held / asked > 0.93


def test_mined_negatives_labels_and_masks_are_sampled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_statistics, "_ENTRIES", 5 * B)  # a few rows at a time
    first, second = vectors()
    mined = normalise(torch.randn(B, 2, 8, generator=torch.Generator().manual_seed(9)))
    labels = torch.arange(B) // 3
    match = (torch.arange(B)[:, None] - torch.arange(B)).abs() < 2
    valid = torch.rand(B, B, generator=torch.Generator().manual_seed(3)) < 0.9
    watches: list[tuple[str, dict[str, Any]]] = [
        (NTXENT, {"queries": first, "documents": second, "negatives": mined}),
        (NTXENT, {"queries": first, "documents": torch.cat([second, mined.flatten(0, 1)])}),
        ("supcon", {"embeddings": first, "labels": labels}),
        ("supcon", {"S": first @ first.T, "labels": labels}),
        ("supcon", {"S": first @ second.T, "mask": Mask(match, valid)}),
        (NTXENT, {"S": (first @ second.T)[:20], "offset": 11}),
        (NTXENT, {"images": first.half(), "captions": second.double()}),
    ]
    for objective, given in watches:
        whole = LossScope(objective, PROBES).watch(**given)
        row = LossScope(objective, PROBES, queries=B).watch(**given)
        assert row is not None and whole is not None
        same(statistics(row), whole)
        sample = LossScope(objective, PROBES, queries=15).watch(**given)
        assert sample is not None and list(sample) == list(row)
        assert all(value == 15 for name, value in sample.items() if name.endswith("/rows"))


class LargestTensor(TorchDispatchMode):
    most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.most = max(self.most, result.untyped_storage().nbytes() // result.element_size())
        return result


def test_similarities_of_embeddings_are_never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_statistics, "_ENTRIES", 10 * 500)
    first, second = vectors(number=500)
    with LargestTensor() as largest:
        row = LossScope(NTXENT, PROBES, queries=100).watch(queries=first, documents=second)
    assert row is not None and largest.most <= 20 * 500  # chunks of rows, and columns


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_recorded(bad: float) -> None:
    first, second = vectors()
    second[7, 1] = bad
    row = LossScope(NTXENT, queries=10).watch(queries=first, documents=second)
    assert row is not None and row["finite"] == 0
    assert all(math.isnan(value) for name, value in row.items() if name != "finite")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queries": 1}, "queries must be a whole number of at least 2; got 1"),
        ({"queries": 2.5}, "queries must be a whole number of at least 2; got 2.5"),
        ({"queries": 9, "probes": ("hubness",)}, "hubness has no number of a single query.* Leave it out, or queries"),
        ({"queries": 9, "objective": "lifted_structure"}, "depend on other queries under this loss.* or queries"),
        ({"queries": 9, "objective": None}, "must be given an objective to watch a sample of queries"),
        ({"queries": 9, "doctor": True}, "doctor and recorder look at whole batches"),
        ({"queries": 9, "recorder": 2}, "doctor and recorder look at whole batches"),
    ],
)
def test_options_that_need_whole_batches_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LossScope(**{"objective": NTXENT, **options})


def test_wrong_inputs_have_the_messages_of_whole_batches() -> None:
    first, second = vectors()
    S, match = first @ second.T, torch.eye(B, dtype=torch.bool)
    for given in (
        {},
        {"queries": first},
        {"queries": first, "documents": second[:, :3]},
        {"queries": first, "documents": second[:7]},
        {"queries": first, "documents": second[:7], "images": first},
        {"S": S[0]},
        {"S": S.long()},
        {"S": S[:5]},
        {"S": S[:5], "offset": B},
        {"S": S, "mask": Mask(match[:3], match[:3])},
        {"S": S, "mask": match},
        {"S": S, "mask": Mask(match, match), "offset": 0},
        {"S": S, "queries": first, "documents": second[:7]},
        {"embeddings": first},
        {"embeddings": first, "labels": torch.zeros(3)},
        {"embeddings": first, "labels": torch.zeros(B), "queries": first},
        {"queries": first, "documents": torch.cat([second, second[:7]])},
        {"S": S, "S_second": S.T, "mask": Mask(match, match)},
    ):
        messages = []
        for queries in (None, 9):
            with pytest.raises(InputError) as caught:
                LossScope(NTXENT, queries=queries).watch(**given)  # type: ignore[arg-type]
            messages.append(str(caught.value))
        assert messages[0] == messages[1], given


def test_a_sample_is_of_what_watch_is_given() -> None:
    scope = LossScope(NTXENT, queries=9)
    with pytest.raises(InputError, match="queries samples what you pass to watch"):
        scope.wrap(lambda S: S.sum())
    with pytest.raises(InputError, match="blocks of a ring have all queries"):
        scope.ring(columns=B)


def test_of_a_very_large_batch_of_a_loss_random_rows_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = vectors()
    batch = LossScope(NTXENT)
    whole = Observed(batch_rows(first, second))
    assert whole.limited() is whole
    monkeypatch.setattr(observed, "MOST_ENTRIES", N * B)
    part = whole.limited()
    assert part.drawn_from == (B, B) and part.rows is not None
    query_index = torch.from_numpy(draw_queries(B, 0, N, 0, "i2t"))
    assert torch.equal(part.rows.S, (first @ second.T)[query_index]) and not torch.equal(query_index, torch.arange(N))
    row = batch.record([part], 0)
    sample = LossScope(NTXENT, queries=N).watch(first @ second.T, step=0)
    same(row, sample)
    hubs = LossScope(NTXENT, ("hubness", "cocos")).record([part], 0)
    assert math.isnan(hubs["i2t/hub_max_count_low"]) and hubs["i2t/hub_max_count"] >= 1
    with pytest.raises(InputError, match="depend on other queries under lifted_structure"):
        LossScope("lifted_structure", ("cocos",)).record([part], 0)


def batch_rows(first: Tensor, second: Tensor) -> Any:
    """Return rows of a batch of pairs, as a loss receives them."""
    from lossscope.core.similarity import pair_mask
    from lossscope.engine.direction_rows import DirectionRows

    return DirectionRows(first @ second.T, pair_mask(torch.arange(len(first))))
