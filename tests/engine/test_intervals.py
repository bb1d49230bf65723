"""Do intervals match loops over items, in tiles, of samples of queries, resumed, and by simulation?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import Relations
from lossscope.engine import result_group, small_batches
from lossscope.engine import sweep as sweep_module
from lossscope.engine.item_sums import QuerySample
from lossscope.engine.sweep import Sweep
from lossscope.engine.sweep_intervals import join_sums, name_of
from lossscope.errors import InputError
from lossscope.io.frames import INTERVAL, Frame
from tests.lengths import thorough
from tests.oracles import two_way

OBJECTIVES = ("triplet:margin=0.2", "ntxent:tau=0.05")


def split(n: int, k: int = 3, hubs: float = 1.5, seed: int = 0, d: int = 16) -> SplitEmbeddings:
    """Return images with k captions each; some images lie near a direction that all share."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.nn.functional.normalize(torch.randn(n, d, generator=generator))
    images[:, 0] += 2 * hubs * torch.rand(n, generator=generator) ** 6
    images = torch.nn.functional.normalize(images)
    owners = np.repeat(np.arange(n), k)
    noise = 0.9 / d**0.5 * torch.randn(n * k, d, generator=generator)
    captions = torch.nn.functional.normalize(images[owners] + noise)
    ids = [[f"{side}{i}" for i in range(size)] for side, size in (("a", n), ("b", n * k))]
    return SplitEmbeddings("drawn", images, captions, None, owners, ids[0], ids[1], "f" * 64)


def row(summary: pd.DataFrame, objective: str, direction: str, statistic: str) -> pd.Series:
    named = summary["objective"].fillna("").str.startswith(objective) if objective else summary["objective"].isna()
    rows = summary[named & (summary["direction"] == direction) & (summary["statistic"] == statistic)]
    assert len(rows) == 1
    return rows.iloc[0]


def batches_of(embedded: SplitEmbeddings, size: int, direction: str) -> list[tuple[Any, list[int], list[int]]]:
    """Return S of each batch, a row a query, the images of its queries, and those of its candidates."""
    assert embedded.images is not None and embedded.captions is not None
    batches = []
    for batch in Sampling("pairs", size).batches(embedded.relations):
        S = (embedded.images[batch.images].double() @ embedded.captions[batch.captions].double().T).numpy()
        owners = embedded.relations.caption_image[batch.captions]
        items = list(map(int, batch.images)), list(map(int, owners))
        batches.append((S, *items) if direction == "i2t" else (S.T, *items[::-1]))
    return batches


@pytest.mark.parametrize(
    ("objective", "statistic", "count"),
    [
        ("triplet", "C_q_all", two_way.active_triplets),
        ("ntxent", "W_pos", two_way.pull),
        ("ntxent", "N_eff", two_way.effective_number),
        ("", "s_neg", two_way.hardest),
    ],
)
@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_it_is_that_of_loops_over_items(
    objective: str, statistic: str, count: Any, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QuerySample, "of", classmethod(lambda cls, *_: cls(1.0, 0)))
    embedded = split(20)
    summary = Sweep(OBJECTIVES, ("cocos", "similarity"), "pairs", 12).run(embedded).summary
    error = two_way.standard_error(batches_of(embedded, 12, direction), count)
    result = row(summary, objective, direction, statistic)
    assert result["method"] == "two-way over 20 images" and result["level"] == 0.95
    assert (result["high"] - result["low"]) / 2 == pytest.approx(stats.t.ppf(0.975, 19) * error, rel=2e-4)
    assert (result["high"] + result["low"]) / 2 == pytest.approx(result["mean"])


@pytest.mark.parametrize(("statistic", "level"), [("s_neg_q50", 0.5), ("s_neg_q90", 0.9)])
def test_a_candidate_moves_a_quantile_where_a_query_crosses_it(
    statistic: str, level: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A density around the quantile, times the shift of each number, made intervals half as wide again."""
    monkeypatch.setattr(QuerySample, "of", classmethod(lambda cls, *_: cls(1.0, 0)))
    embedded = split(60)
    result = row(Sweep(OBJECTIVES, ("similarity",), "pairs", 12).run(embedded).summary, "", "t2i", statistic)
    batches = batches_of(embedded, 12, "t2i")
    y = np.array([[two_way.hardest(S[q, q], np.delete(S[q], q)) for q in range(12)] for S, _, _ in batches])
    ordered, n = np.sort(y, axis=None), y.size
    at = [round((level + shift * 0.4 * n ** (-1 / 3)) * (n - 1)) for shift in (-1, 0, 1)]
    below, quantile, above = (ordered[min(max(index, 0), n - 1)] for index in at)
    scale = (above - below) / ((min(at[2], n - 1) - at[0]) / n)

    def beyond(positive: float, negatives: Sequence[float]) -> float:
        return scale * float(two_way.hardest(positive, negatives) > quantile + 1e-9)

    means = scale * (y > quantile + 1e-9).mean(1)
    quantiles = np.sort(y, axis=1)[:, round(level * 11)]
    squares = [float((144 * (x - x.mean()) ** 2).sum()) for x in (means, quantiles)]
    error = two_way.standard_error(batches, beyond, *squares)
    assert result["mean"] == pytest.approx(quantiles.mean(), rel=1e-5)
    assert (result["high"] - result["low"]) / 2 == pytest.approx(stats.t.ppf(0.975, 59) * error, rel=0.02)


@pytest.mark.parametrize("batch_size", [None, 40])
def test_tiles_give_the_intervals_of_whole_batches(batch_size: int | None) -> None:
    embedded = split(80)
    specs = ("triplet", "triplet_sh", "ntxent:tau=0.05", "smoothap:tau=0.05")
    dense, tiled = (
        Sweep(specs, ("cocos:unit=paper", "similarity", "recall"), "pairs", batch_size, engine=engine)
        .run(embedded)
        .summary
        for engine in ("dense", "tiled")
    )
    assert dense["low"].notna().mean() > 0.7 and (dense["low"].notna() == tiled["low"].notna()).all()
    width = (dense["high"] - dense["low"]).dropna()
    for end in ("low", "high"):
        assert ((dense[end] - tiled[end]).abs().dropna() < 1e-3 * width).all()


def test_the_numbers_of_several_stacks_are_kept_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks share one memory, and the sweep adds up their numbers only after the last stack."""
    monkeypatch.setattr(small_batches, "STACK_ENTRIES", 3 * 16 * 16)
    kept = {}
    monkeypatch.setattr(sweep_module, "join_sums", lambda parts: kept.update(join_sums(parts)) or kept)
    rows = (
        Sweep((*OBJECTIVES, "smoothap:tau=0.05"), ("cocos:unit=paper", "recall"), "pairs", 16).run(split(120)).summary
    )
    rows = rows[rows["statistic"] != "medr"]  # no smooth function of means
    names = [name_of(record, record["statistic"]) for record in rows.to_dict("records")]
    assert set(names) == set(kept)
    for name, mean in zip(names, rows["mean"], strict=True):
        assert kept[name].mean == pytest.approx(mean, rel=1e-5, abs=1e-9), name


def test_a_share_of_the_queries_gives_about_the_same_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = split(400)
    widths = []
    for share in (1.0, 0.2):
        monkeypatch.setattr(QuerySample, "of", classmethod(lambda cls, *_, share=share: cls(share, 0)))
        summary = Sweep(OBJECTIVES, ("cocos",), "pairs", 32).run(embedded).summary
        widths.append((summary["high"] - summary["low"]).to_numpy())
    ratio = widths[1] / widths[0]
    assert np.nanmin(ratio) > 0.7 and np.nanmax(ratio) < 2 and abs(np.nanmean(ratio) - 1) < 0.1


def test_the_sample_is_a_function_of_seed_batch_and_row() -> None:
    sample = QuerySample(0.3, 5)
    whole = sample.draw(0, 8, 50, True)
    parts = [sample.draw(first, 4, 50, True) + 50 * first for first in (0, 4)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert 0.2 < len(whole) / 400 < 0.4
    assert not np.array_equal(whole, sample.draw(0, 8, 50, False))
    assert not np.array_equal(whole, QuerySample(0.3, 6).draw(0, 8, 50, True))
    assert np.array_equal(QuerySample(1.0, 0).draw(3, 2, 5, True), np.arange(10))


def test_no_interval_without_a_level_and_none_of_few_images() -> None:
    assert Sweep(OBJECTIVES, interval=None).run(split(40)).summary[list(INTERVAL)].isna().all(axis=None)
    assert Sweep(OBJECTIVES).run(split(9)).summary[list(INTERVAL)].isna().all(axis=None)
    with pytest.raises(InputError, match="interval must be a level between 0 and 1"):
        _ = Sweep(OBJECTIVES, interval=95.0).plan


def test_a_level_is_that_of_the_rows() -> None:
    wide, narrow = (Sweep(("triplet",), interval=level).run(split(60)).summary for level in (0.99, 0.5))
    assert set(wide["level"].dropna()) == {0.99}
    both = wide["high"].notna()
    assert ((wide["high"] - wide["low"])[both] > 2 * (narrow["high"] - narrow["low"])[both]).all()


def test_counts_are_never_below_zero() -> None:
    rows = Sweep(("triplet:margin=0.01",), ("cocos",), "pairs", 8).run(split(30, hubs=0.0)).summary
    assert (rows["low"].dropna() >= 0).all()


def test_a_resumed_frame_has_the_intervals_of_one_run(tmp_path: Path) -> None:
    embedded, sweep = split(60), Sweep(OBJECTIVES, ("cocos", "similarity"), "pairs", 16, part=3)
    whole = sweep.run(embedded).summary
    frame = Frame.open(tmp_path / "frame", {})
    stops = iter(range(100))

    def stop(label: str, done: int, of: int) -> None:
        if next(stops) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.run(embedded, frame, stop)
    pd.testing.assert_frame_equal(sweep.run(embedded, frame).summary, whole)
    assert frame.has_items()


def test_a_frame_of_an_earlier_version_is_finished_without_intervals(tmp_path: Path) -> None:
    embedded, sweep = split(60), Sweep(("triplet",), ("cocos",), "pairs", 16, part=3)
    frame = Frame.open(tmp_path / "frame", {})
    Sweep(("triplet",), ("cocos",), "pairs", 16, part=3, interval=None).run(embedded, frame)
    assert not frame.has_items()
    assert sweep.run(embedded, frame).summary[list(INTERVAL)].isna().all(axis=None)


@pytest.mark.parametrize("spec", ["siglip", "multi_similarity", "circle"])
def test_effects_of_a_loss_without_a_rule_are_measured_by_leaving_candidates_out(spec: str) -> None:
    rows = Sweep((spec,), ("cocos", "contributors"), "pairs", 16).run(split(30)).summary
    differs = ~rows["statistic"].isin(["C_0", "skipped", "queries"])  # these may be 0 for all
    assert rows.loc[differs, "low"].notna().mean() > 0.8, rows.loc[rows["low"].isna(), "statistic"].tolist()


def test_measured_effects_are_those_that_a_rule_states(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded, sweep = split(30), Sweep(("triplet", "triplet_sh"), ("cocos", "similarity", "recall"), "pairs", 16)
    stated = sweep.run(embedded).summary
    monkeypatch.setattr(result_group, "HasEffects", type("Nothing", (), {}))
    measured = sweep.run(embedded).summary
    columns = ["low", "high"]
    pd.testing.assert_frame_equal(stated[columns], measured[columns], rtol=1e-6, atol=1e-6)


def test_a_coupled_objective_and_a_probe_of_batches_have_no_interval() -> None:
    rows = Sweep(("goal:triplet=cir,pair=sig-ms",), ("cocos", "uniformity"), "pairs", 16).run(split(30)).summary
    assert rows["low"].isna().all()


def test_a_labelled_set_has_intervals_over_its_classes() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = np.repeat(np.arange(20), 6)
    x = torch.nn.functional.normalize(
        torch.randn(20, 8, generator=generator)[labels] + torch.randn(120, 8, generator=generator)
    )
    ids = [str(i) for i in range(120)]
    embedded = SplitEmbeddings("set", x, x, None, None, ids, ids, "f" * 64, relations=Relations.of_labels(labels))
    rows = Sweep(("smoothap:tau=0.05",), ("cocos",), batch_size=40).run(embedded).summary
    assert set(rows["method"].dropna()) == {"two-way over 20 classes"}


@pytest.mark.parametrize("hubs", [*thorough(0.0), 1.5])
@pytest.mark.parametrize(
    ("splits", "least", "narrow", "wide"),
    [(50, 0.85, 0.75, 1.6), *thorough((150, 0.89, 0.85, 1.4))],
)
def test_intervals_hold(hubs: float, splits: int, least: float, narrow: float, wide: float) -> None:
    """Many splits: the shares are within the range of 95 %; intervals over batches alone fail where there are hubs."""
    parts = [
        Sweep(OBJECTIVES, ("cocos",), "pairs", 32).run(split(300, hubs=hubs, seed=seed)).summary
        for seed in range(splits)
    ]
    rows = pd.concat(parts)
    for objective, statistic in (("triplet", "C_q"), ("ntxent", "C_neg"), ("ntxent", "W_neg"), ("ntxent", "N_eff")):
        chosen = rows[rows["objective"].str.startswith(objective) & (rows["statistic"] == statistic)]
        chosen = chosen[chosen["direction"] == "t2i"]
        truth = chosen["mean"].mean()
        holds = ((chosen["low"] <= truth) & (truth <= chosen["high"])).mean()
        width = (chosen["high"] - chosen["low"]).mean() / (2 * 1.96 * chosen["mean"].std())
        assert holds >= least and narrow < width < wide, (statistic, holds, width)
        if hubs and statistic == "C_neg":
            of_batches = ((chosen["mean"] - truth).abs() <= 1.96 * chosen["std"] / np.sqrt(chosen["n"])).mean()
            assert of_batches < 0.85
