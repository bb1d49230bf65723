"""Does a sweep over a sample give each query its numbers of the full sweep, and over all queries that sweep?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.core.similarity import normalise
from lossscope.core.types import Direction
from lossscope.engine import fold
from lossscope.engine.blocks import strips
from lossscope.engine.sampled import runner
from lossscope.engine.sampled.checkpoint import NAME
from lossscope.engine.sampled.draw import draw_queries
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.io.digests import digests_of
from lossscope.io.frames import INTERVAL, Frame
from tests.lengths import thorough

SINGLE = ("ntxent:tau=0.05", "ntxent:tau=0.01", "unified", "vlc", "dcl", "triplet", "triplet_sh")
TILES = (
    "cocos:unit=paper",
    "cocos:eps=0.0001,unit=paper",
    "weight_mass:unit=paper",
    "similarity",
    "recall",
    "alignment",
)
ALL: dict[str, Any] = {"batch_size": None, "engine": "tiled"}
NUMBERS = ("objective", "direction", "probe", "statistic", "eps", "mean")


def split(images: int = 120, captions: int = 3, d: int = 12, seed: int = 0, grid: bool = False) -> SplitEmbeddings:
    """Return captions near their images; on a grid products are exact in any order of their sums, and ties common."""
    generator = torch.Generator().manual_seed(seed)
    owner = np.repeat(np.arange(images), captions)
    v = normalise(torch.randn(images, d, generator=generator))
    t = normalise(v[owner] + 0.5 * torch.randn(len(owner), d, generator=generator))
    if grid:
        v, t = ((x * 8).round() / 8 for x in (v, t))
    ids = [[str(i) for i in range(n)] for n in (images, len(owner))]
    return SplitEmbeddings("made", v, t, None, owner, ids[0], ids[1], "f" * 64)


def documents() -> SplitEmbeddings:
    """Return queries with shared positives or with none, and mined negatives."""
    random, generator = np.random.default_rng(0), torch.Generator().manual_seed(1)
    pairs = np.unique(np.stack([random.integers(0, 50, 80), random.integers(0, 70, 80)], 1), axis=0)
    relations = Relations(50, 70, pairs, QUERY_DOCUMENT, negatives=random.integers(-1, 70, (50, 2)))
    vectors = [normalise(torch.randn(n, 8, generator=generator)) for n in (50, 70)]
    ids = [[str(i) for i in range(n)] for n in (50, 70)]
    return SplitEmbeddings("documents", *vectors, None, None, ids[0], ids[1], "0", relations=relations)


def classes() -> SplitEmbeddings:
    """Return one labelled set."""
    vectors = normalise(torch.randn(60, 8, generator=torch.Generator().manual_seed(2)))
    ids = [str(i) for i in range(60)]
    relations = Relations.of_labels(np.arange(60) % 9)
    return SplitEmbeddings("classes", vectors, vectors, None, None, ids, ids, "0", relations=relations)


SWEEPS: dict[str, tuple[SplitEmbeddings, dict[str, Any]]] = {
    "pairs": (split(), {"objectives": SINGLE, "probes": TILES}),
    "ties": (split(grid=True), {"objectives": SINGLE, "probes": TILES}),
    "without siblings": (split(), {"objectives": ("ntxent", "triplet"), "probes": TILES, "same_image": "mask"}),
    "first captions": (split(), {"objectives": ("ntxent",), "probes": TILES, "captions": "first"}),
    "images": (split(), {"objectives": ("smoothap",), "probes": ("cocos", "recall"), "sampling": "images"}),
    "panels": (
        split(), {"objectives": ("ntxent:tau=0.05", "circle"), "probes": ("tangent", "contributors", "influence")}
    ),
    "panels of images": (
        split(), {"objectives": ("supcon",), "probes": ("cocos", "false_negatives"), "sampling": "images"}
    ),
    "views": (split(40, 1), {"objectives": ("ntxent",), "probes": TILES, "sampling": "views"}),
    "documents": (documents(), {"objectives": ("ntxent",), "probes": TILES}),
    "groups": (
        documents(),
        {"objectives": ("supcon", "smoothap"), "probes": ("cocos:unit=paper", "recall"), "sampling": "groups"},
    ),
    "classes": (classes(), {"objectives": ("supcon",), "probes": ("cocos", "recall")}),
}  # fmt: skip


@pytest.mark.parametrize("name", SWEEPS)
def test_all_queries_are_the_full_sweep_exactly(name: str) -> None:
    """Counts are the same bits; at a small tau sums of weights differ in their last bits, because bands differ."""
    embedded, options = SWEEPS[name]
    full = Sweep(**options, **ALL, interval=None).run(embedded).summary
    sampled = Sweep(**options, batch_size=None, queries=10_000).run(embedded).summary
    is_sum = full["unit"].isin(["weight", "1"]) | (full["statistic"] == "N_eff")
    for chosen, tolerance in ((is_sum, 1e-8), (~is_sum, 0)):
        ours, others = (rows.loc[chosen, list(NUMBERS)] for rows in (sampled, full))
        pd.testing.assert_frame_equal(ours, others, rtol=tolerance, atol=tolerance)
    assert (sampled["low"].equals(sampled["mean"])) and sampled["high"].equals(sampled["mean"])
    assert full[list(INTERVAL)].isna().all(axis=None)


@pytest.mark.parametrize("name", SWEEPS)
def test_each_sampled_query_is_that_of_the_full_sweep(name: str) -> None:
    embedded, options = SWEEPS[name]
    keys = ["objective", "direction", "probe", "eps"]
    full = Sweep(**options, **ALL, per_query=True).run(embedded).queries
    sampled = Sweep(**options, batch_size=None, queries=17, seed=3, per_query=True).run(embedded).queries
    columns = [name for name in full if name not in ("sampling", "seed", "batch")]
    whole, drawn_rows = ([str(key) for key in rows[keys].itertuples(index=False)] for rows in (full, sampled))
    for key, group in sampled.groupby(np.array(drawn_rows)):
        expected = full[np.array(whole) == key].reset_index(drop=True)
        direction: Direction = "i2t" if expected["direction"].iloc[0] in ("i2t", "q2d", "all", "both") else "t2i"
        drawn = draw_queries(len(expected), 0, 17, 3, direction)
        assert len(group) == 17
        pd.testing.assert_frame_equal(
            group[columns].reset_index(drop=True),
            expected.loc[drawn, columns].reset_index(drop=True),
            rtol=2e-5,
            atol=1e-5,
        )


def test_more_entries_than_are_kept_are_counted_in_a_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """With eps 0 every negative counts."""
    embedded, probes = split(400, 1), ("cocos:eps=0,unit=paper",)
    full = Sweep(("ntxent", "smoothap"), probes, sampling="pairs", **ALL).run(embedded).summary
    monkeypatch.setattr(strips, "STRIP", 150)
    sampled = (
        Sweep(("ntxent", "smoothap"), probes, sampling="pairs", batch_size=None, queries=400).run(embedded).summary
    )
    assert sampled["mean"].to_numpy() == pytest.approx(full["mean"].to_numpy(), rel=1e-6)
    assert (sampled.loc[sampled["statistic"] == "C_neg", "mean"] == 399).all()


@pytest.mark.parametrize(("seconds", "jobs"), [(0.0, 1), (1e9, 1), (0.0, 3)])
def test_a_killed_pass_resumes_after_its_last_strip_to_the_bit(
    seconds: float, jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the sweep writes its state often or never: Ctrl-C writes it."""
    monkeypatch.setattr(strips, "STRIP", 40)
    monkeypatch.setattr("lossscope.engine.sampled.checkpoint.EVERY", seconds)
    embedded = split()
    sweep = Sweep(("ntxent:tau=0.01", "triplet", "triplet_sh"), TILES, batch_size=None, queries=50)
    whole = sweep.run(embedded, Frame.open(tmp_path / "whole", {}))
    computed: list[int] = []
    fold_band = fold._Pass._fold_band

    def counting(self: fold._Pass, tasks: Any, band: int, *others: Any) -> Any:
        computed.append(band)
        if len(computed) in (4, 9):
            raise KeyboardInterrupt
        return fold_band(self, tasks, band, *others)

    monkeypatch.setattr(fold._Pass, "_fold_band", counting)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            sweep.run(embedded, Frame.open(tmp_path / "killed", {}), jobs=jobs)
        assert (tmp_path / "killed" / NAME).is_file()
    resumed = sweep.run(embedded, Frame.open(tmp_path / "killed", {}), jobs=jobs)
    assert jobs > 1 or computed == [0, 1, 2, 3, 3, 4, 5, 6, 7, 7, 8, *range(9)]
    assert not (tmp_path / "killed" / NAME).exists()
    pd.testing.assert_frame_equal(resumed.summary, whole.summary, check_exact=True)
    again = sweep.run(embedded, Frame.open(tmp_path / "killed", {}))
    pd.testing.assert_frame_equal(again.summary, whole.summary, check_exact=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 cut off", "must be a whole torch file"),
        ({"schema": "other"}, "must be of the schema lossscope.strips/3"),
        ({"schema": "lossscope.strips/3", "passes": {"a": {}}, "digests": digests_of({"passes": {"a": {}}})}, "done"),
        (
            {"schema": "lossscope.strips/3", "passes": {"a": {}}, "digests": digests_of({"passes": {}})},
            "passes of .* must match the digest",
        ),
    ],
)
def test_a_damaged_state_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    frame = Frame.open(tmp_path / "frame", {})
    if isinstance(content, bytes):
        (tmp_path / "frame" / NAME).write_bytes(content)
    else:
        torch.save(content, tmp_path / "frame" / NAME)
    with pytest.raises(InputError, match=message):
        Sweep(("ntxent",), batch_size=None, queries=20).run(split(), frame)


def test_a_precision_that_is_killed_between_its_samples_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "PILOT", 40)
    sweep = Sweep(("ntxent:tau=0.05",), ("cocos",), batch_size=None, precision_of="C_neg=4%")
    whole, passes = sweep.run(split()), list[int]()

    def killed(*args: Any) -> Any:
        passes.append(len(args[2][0].query_ids))
        if len(passes) == 4:
            raise KeyboardInterrupt
        return fold.fold(*args)

    monkeypatch.setattr(runner, "fold", killed)
    with pytest.raises(KeyboardInterrupt):
        sweep.run(split(), Frame.open(tmp_path / "frame", {}))
    resumed = sweep.run(split(), Frame.open(tmp_path / "frame", {}))
    pd.testing.assert_frame_equal(resumed.summary, whole.summary, check_exact=True)


def test_rows_say_what_was_sampled() -> None:
    rows = Sweep(("ntxent",), ("cocos",), batch_size=None, queries=50).run(split()).summary
    assert set(rows["sampling"]) == {"pairs, 50 of 360 queries, all candidates"}
    by_name = rows[rows["direction"] == "i2t"].set_index("statistic")
    assert by_name.loc["C_neg", "method"] == "sampled queries, t" and by_name.loc["C_neg", "level"] == 0.95
    assert by_name.loc["C_0", "method"] == "sampled queries, hypergeometric"
    assert (rows["low"] <= rows["mean"]).all() and (rows["mean"] <= rows["high"]).all() and rows["std"].isna().all()
    both = Sweep(("smoothap",), ("cocos",), batch_size=None, queries=200).run(split()).summary
    assert set(both["sampling"]) == {"images, 120 of 120 (i2t) and 200 of 360 (t2i) queries, all candidates"}


def test_a_total_of_the_sample_stands_for_all_queries() -> None:
    embedded = split()
    full = Sweep(("triplet",), **ALL).run(embedded).summary.set_index(["direction", "statistic"])["mean"]
    sampled = (
        Sweep(("triplet",), batch_size=None, queries=200).run(embedded).summary.set_index(["direction", "statistic"])
    )
    for statistic in ("C_B", "C_0", "skipped"):
        for direction in ("i2t", "t2i"):
            row = sampled.loc[direction, statistic]
            assert row["low"] <= full[direction, statistic] <= row["high"]


@pytest.mark.parametrize(
    ("samples", "least", "most", "close"),
    [(50, 0.84, 1.0, 0.45), *thorough((200, 0.90, 0.995, 0.25))],
)
def test_the_interval_holds_and_errors_fall_with_the_square_root(
    samples: int, least: float, most: float, close: float
) -> None:
    """For samples of each size; studies/intervals/sampled_queries.py has more sizes and statistics."""
    embedded = split(150, 2, seed=4)
    full = Sweep(("ntxent:tau=0.05",), **ALL).run(embedded).summary
    errors = {}
    for n in (60, 240):
        runs = [
            Sweep(("ntxent:tau=0.05",), batch_size=None, queries=n, seed=seed).run(embedded).summary
            for seed in range(samples)
        ]
        for index in full.index[full["statistic"].isin(["C_neg", "W_neg"])]:
            truth, estimates = full.loc[index, "mean"], [run.loc[index] for run in runs]
            held = np.mean([row["low"] <= truth <= row["high"] for row in estimates])
            assert least <= held <= most  # 95 % ± three standard errors
            errors[n, index] = np.sqrt(np.mean([(row["mean"] - truth) ** 2 for row in estimates]) / (1 / n - 1 / 300))
    for n, index in errors:
        assert errors[n, index] == pytest.approx(errors[60, index], rel=close)


def test_a_precision_takes_as_many_queries_as_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "PILOT", 40)
    embedded, options = split(), {"probes": ("cocos",), "batch_size": None}
    rows = Sweep(("ntxent:tau=0.05",), precision_of="C_neg=4%", **options).run(embedded).summary
    counts = rows[rows["statistic"] == "C_neg"]
    assert (((counts["high"] - counts["low"]) / 2) <= 0.04 * counts["mean"]).all()
    n = int(counts["sampling"].iloc[0].split()[1])
    assert 40 < n < 360
    same = Sweep(("ntxent:tau=0.05",), queries=n, **options).run(embedded).summary
    assert same["mean"].to_numpy() == pytest.approx(rows["mean"].to_numpy(), rel=1e-6)  # the pilot's queries count
    whole = Sweep(("ntxent:tau=0.05",), precision_of="C_neg=0.01%", **options).run(embedded).summary
    assert set(whole["sampling"]) == {"pairs, 360 of 360 queries, all candidates"}
    pilot = Sweep(("ntxent:tau=0.05",), precision_of="C_neg=90%", **options).run(embedded).summary
    assert set(pilot["sampling"]) == {"pairs, 40 of 360 queries, all candidates"}


def test_a_mean_without_an_interval_is_named() -> None:
    """One caption in thirty is far from its image: few queries have a count."""
    generator, ids = torch.Generator().manual_seed(0), [str(i) for i in range(300)]
    v = normalise(torch.randn(300, 32, generator=generator))
    far = torch.where(torch.arange(300) % 30 == 0, 1.5, 0.25)[:, None]
    t = normalise(v + far * torch.randn(300, 32, generator=generator) / 32**0.5)
    embedded = SplitEmbeddings("rare", v, t, None, np.arange(300), ids, ids, "0")
    sweep = Sweep(("triplet",), ("cocos",), batch_size=None, queries=250)
    result = sweep.run(embedded)
    counts = result.summary[result.summary["statistic"] == "C_q_all"]
    assert counts["low"].isna().all() and (counts["mean"] > 0).all()
    text = result.without_interval
    assert text is not None and "C_q_all" in text and "fewer than 50 another" in text and "C_0" not in text
    similarities = Sweep(("ntxent:tau=0.05",), ("similarity",), batch_size=None, queries=120)
    assert similarities.run(split()).without_interval is None


def test_a_precision_is_that_of_the_level_of_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "PILOT", 40)
    sampled = {}
    for level in (0.5, 0.95, 0.999):
        sweep = Sweep(("ntxent:tau=0.05",), ("cocos",), batch_size=None, precision_of="C_neg=8%", interval=level)
        rows = sweep.run(split()).summary
        counts = rows[rows["statistic"] == "C_neg"]
        assert (((counts["high"] - counts["low"]) / 2) <= 0.08 * counts["mean"]).all()
        sampled[level] = int(counts["sampling"].iloc[0].split()[1])
    assert sampled[0.5] < sampled[0.95] < sampled[0.999]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 64}, "needs --batch-size all"),
        ({"queries": 1}, "--queries must be at least 2; got 1"),
        ({"precision_of": "C_neg=1%"}, "give one"),
        ({"queries": None, "precision_of": "C_neg"}, "must be a statistic and a share"),
        ({"queries": None, "precision_of": "C_neg=-1%"}, "must be a statistic and a share"),
        ({"queries": None, "precision_of": "C_nag=1%"}, "must name a statistic of this sweep; got C_nag"),
        (
            {"queries": None, "precision_of": "curve=5%", "objectives": ("triplet",), "probes": ("cocos:curve=true",)},
            "must name a statistic of this sweep; got curve",
        ),
        ({"queries": None, "precision_of": "skipped=1%"}, r"a statistic that varies and is not 0\. .* skipped of"),
        ({"probes": ("hubness",)}, "hubness has no number of a single query"),
        ({"probes": ("tangent:of=candidate",)}, "has no number of a single query"),
        ({"objectives": ("lifted_structure",)}, "depend on other queries under this loss"),
        ({"probes": ("cocos:convention=released",)}, "depend on other queries under this convention"),
        ({"masks": ("same-item",)}, "needs no --mask"),
        ({"negatives": "own"}, "needs --negatives batch or none"),
    ],
)
def test_what_a_sample_cannot_give_is_refused(
    options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "PILOT", 40)
    given = {"objectives": ("ntxent",), "batch_size": None, "queries": 20, **options}
    with pytest.raises(InputError, match=message):
        Sweep(**given).run(split())
