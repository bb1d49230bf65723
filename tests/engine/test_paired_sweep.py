"""Are differences of two sides on the same batches those of their sweeps, with the intervals of an oracle?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.sampling_units import SamplingUnits
from lossscope.engine.changed_queries import changed_queries, per_query_columns
from lossscope.engine.paired_sweep import EQUAL, PairedSweep
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from tests.oracles import paired_difference

KEYS = ["objective", "direction", "probe", "statistic"]


def split(images: int = 40, captions: int = 2, seed: int = 0, name: str = "A", d: int = 8) -> SplitEmbeddings:
    generator = torch.Generator().manual_seed(seed)
    v = torch.nn.functional.normalize(torch.randn(images, d, generator=generator))
    owner = torch.arange(images).repeat_interleave(captions)
    t = torch.nn.functional.normalize(v[owner] + 0.3 * torch.randn(len(owner), d, generator=generator))
    ids = [f"i{n}" for n in range(images)], [f"c{n}" for n in range(len(owner))]
    return SplitEmbeddings(name, v, t, None, owner.numpy(), *ids, "made")


def moved(a: SplitEmbeddings, size: float = 0.1, seed: int = 9) -> SplitEmbeddings:
    """Return the same items under a model that moves captions."""
    assert a.captions is not None
    noise = torch.randn(a.captions.shape, generator=torch.Generator().manual_seed(seed))
    return replace(a, name="B", captions=torch.nn.functional.normalize(a.captions + size * noise))


def sweep(*objectives: str, **options: Any) -> Sweep:
    return Sweep(
        objectives or ("triplet", "ntxent"), **{"probes": ("cocos", "similarity"), "batch_size": 16, **options}
    )


SWEEPS = {
    "pairs": sweep(),
    "images": sweep("smoothap", "supcon", sampling="images", probes=("cocos:unit=paper", "similarity")),
    "one batch": sweep(batch_size=None),
    "tiles": sweep(batch_size=None, engine="tiled"),
    "masked": sweep(same_image="mask", masks=("percent:share=0.95",)),
    "views": sweep("infonce", sampling="views", probes=("cocos",)),
    "other probes": sweep(probes=("tangent", "hubness", "recall")),
}


@pytest.mark.parametrize("setup", SWEEPS.values(), ids=SWEEPS)
def test_a_sweep_against_itself_is_equal_everywhere(setup: Sweep) -> None:
    rows = PairedSweep(setup, setup).run(split(), split()).rows
    assert len(rows)
    assert (rows["method"] == EQUAL).all()
    assert rows["low"].isna().all()
    assert (rows["difference"].dropna() == 0).all()


@pytest.mark.parametrize("setup", SWEEPS.values(), ids=SWEEPS)
def test_a_difference_is_that_of_the_sweeps_bit_for_bit(setup: Sweep) -> None:
    a, b = split(), moved(split())
    rows = PairedSweep(setup, setup).run(a, b).rows
    alone = [setup.run(side).summary for side in (a, b)]
    assert len(rows) == len(alone[0])
    for row, first, second in zip(rows.to_dict("records"), *(x.to_dict("records") for x in alone), strict=True):
        assert [row[key] for key in KEYS[1:]] == [first[key] for key in KEYS[1:]]
        np.testing.assert_array_equal([row["mean"], row["b_mean"]], [first["mean"], second["mean"]])
        np.testing.assert_array_equal(row["difference"], second["mean"] - first["mean"])


@pytest.mark.parametrize("setup", SWEEPS.values(), ids=SWEEPS)
def test_exchanging_the_sides_mirrors_the_intervals(setup: Sweep) -> None:
    a, b = split(), moved(split())
    there, back = PairedSweep(setup, setup).run(a, b).rows, PairedSweep(setup, setup).run(b, a).rows
    np.testing.assert_array_equal(there["difference"], -back["difference"])
    np.testing.assert_allclose(there["low"], -back["high"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there["high"], -back["low"], rtol=1e-9, atol=1e-12)


def test_the_interval_is_that_of_the_oracle() -> None:
    a = split(images=24, captions=2)
    b = moved(a, 0.2)
    setup = sweep("ntxent:tau=0.2", probes=("cocos",), batch_size=6)
    rows = PairedSweep(setup, setup).run(a, b).rows
    units = SamplingUnits.of(a.relations)
    batches = list(setup.plan.batchings[0].sampling.batches(a.relations))
    S = [(x.images @ x.captions.T).double().numpy() for x in (a, b)]  # type: ignore[union-attr]
    sides = {
        "i2t": ([(x.images.tolist(), x.captions.tolist()) for x in batches], S, (units.first, units.second)),
        "t2i": (
            [(x.captions.tolist(), x.images.tolist()) for x in batches], [s.T for s in S], (units.second, units.first),
        ),
    }  # fmt: skip
    for direction, (of_batches, similarities, of_units) in sides.items():
        expected = paired_difference.interval(
            of_batches, (similarities[0], similarities[1]), (of_units[0].tolist(), of_units[1].tolist()), 0.2
        )
        row = rows[(rows["direction"] == direction) & (rows["statistic"] == "W_pos")].iloc[0]
        np.testing.assert_allclose([row["difference"], row["low"], row["high"]], expected, rtol=2e-4)


def test_what_both_sides_have_in_common_is_not_in_the_interval() -> None:
    a = split(images=200)
    b = moved(a, 0.02)
    setup = sweep("ntxent", probes=("cocos",))
    paired = PairedSweep(setup, setup).run(a, b).rows.set_index(["direction", "statistic"])
    alone = setup.run(a).summary.set_index(["direction", "statistic"])
    for key in (("i2t", "W_pos"), ("t2i", "C_neg")):
        width = paired.loc[key, "high"] - paired.loc[key, "low"]
        assert 0 < width < 0.5 * (alone.loc[key, "high"] - alone.loc[key, "low"])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), size=st.floats(0.01, 1.0))
def test_an_interval_holds_its_difference(seed: int, size: float) -> None:
    setup = sweep(seed=seed)
    rows = PairedSweep(setup, setup).run(split(seed=seed), moved(split(seed=seed), size)).rows
    known = rows[rows["low"].notna()]
    assert len(known)
    assert (known["low"] <= known["difference"]).all()
    assert (known["difference"] <= known["high"]).all()
    assert (known["level"] == 0.95).all()


def test_objectives_that_differ_have_the_statistics_of_both() -> None:
    result = PairedSweep(sweep("triplet", probes=("cocos",)), sweep("ntxent", probes=("cocos",))).run(split(), split())
    assert set(result.rows["statistic"]) == {"C_0", "N_eff", "skipped"}
    assert set(result.rows["b_objective"]) == {"ntxent:tau=0.1"}
    assert any("C_q" in text and "only A" in text for text in result.left_out)
    assert any("C_neg" in text and "only B" in text for text in result.left_out)


def test_the_interval_of_a_difference_does_not_depend_on_what_else_is_computed() -> None:
    a, b = split(), moved(split())
    setup = sweep("ntxent", probes=("cocos",))
    alone = PairedSweep(
        replace(setup, probes=("cocos", "contributors")), replace(setup, probes=("cocos", "contributors"))
    )
    expected = PairedSweep(setup, setup).run(a, b).rows
    got = alone.run(a, b).rows
    got = got[got["probe"] == "cocos"]
    np.testing.assert_allclose(got["low"].astype(float), expected["low"].astype(float), rtol=1e-6)


def test_other_items_are_an_error_that_says_what_differs() -> None:
    setup, a = sweep(), split()
    with pytest.raises(InputError, match="40 and 41"):
        PairedSweep(setup, setup).run(a, split(images=41))
    other = replace(a, caption_ids=[*a.caption_ids[:3], "x", *a.caption_ids[4:]])
    with pytest.raises(InputError, match="number 3 is 'c3' and 'x'"):
        PairedSweep(setup, setup).run(a, other)
    with pytest.raises(InputError, match="same order"):
        PairedSweep(setup, setup).run(a, replace(a, image_ids=a.image_ids[::-1]))


def test_objectives_that_take_other_batches_are_an_error() -> None:
    with pytest.raises(InputError, match="the same batches"):
        PairedSweep(sweep("triplet"), sweep("supcon")).run(split(), split())
    with pytest.raises(InputError, match="as many objectives; got 1 and 2"):
        PairedSweep(sweep("triplet"), sweep("triplet", "ntxent"))


def test_the_query_that_was_moved_changed_most() -> None:
    a = split()
    assert a.captions is not None
    captions = a.captions.clone()
    captions[7] = -captions[7]
    setup = sweep("triplet", per_query=True)
    result = PairedSweep(setup, setup).run(a, replace(a, captions=captions))
    assert "count" in per_query_columns(result)
    rows = changed_queries(result, a, "count", 5)
    t2i = rows[rows["direction"] == "t2i"].iloc[0]
    assert t2i["item"] == "c7"
    assert t2i["difference"] == t2i["b"] - t2i["a"] > 0
    assert (rows["difference"].abs().diff().dropna() <= 0).all()
    with pytest.raises(InputError, match="--by must be one of"):
        changed_queries(result, a, "nothing", 5)


def test_differences_without_an_interval_say_why() -> None:
    coupled = sweep("goal:triplet=cir,pair=sig-ms", probes=("cocos",))
    a = split()
    reason = PairedSweep(coupled, coupled).run(a, moved(a)).without_interval
    assert reason is not None and "means over queries" in reason
    few = split(images=9)
    reason = PairedSweep(sweep(batch_size=8), sweep(batch_size=8)).run(few, moved(few)).without_interval
    assert reason == "an interval takes 10 images or more; there are 9"


def test_queries_that_changed_are_of_one_probe() -> None:
    """One query had the mean of the numbers of two probes."""
    probes = ("cocos", "cocos:unit=cosine")
    setup = sweep("ntxent", probes=probes, per_query=True)
    other = sweep("ntxent:tau=0.05", probes=probes, per_query=True)
    a = split()
    rows = changed_queries(PairedSweep(setup, other).run(a, a), a, "count", 10_000)
    assert rows["weight_unit"].nunique() == 2
    assert (rows["b"] - rows["a"] == rows["difference"]).all()


def test_two_objectives_are_counted_in_one_unit() -> None:
    a = split()
    rows = PairedSweep(sweep("ntxent:tau=0.05"), sweep("supcon:tau=0.05", sampling="pairs")).run(a, a).rows
    counted = rows[rows["probe"] == "cocos"]
    assert set(counted["weight_unit"]) == {"relative"}
    np.testing.assert_allclose(counted["difference"], 0, atol=1e-6)  # one function, in the units of two papers
    differences = PairedSweep(sweep("ntxent:tau=0.05"), sweep("ntxent:tau=0.1")).run(a, a).rows
    assert set(differences["weight_unit"].dropna()) == {"paper"}
