"""Are the shares of universes those of plain counting, and is the choice that overturns a claim found?"""

from __future__ import annotations

import io
import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.io.csv_tables import format_csv
from lossscope.stats.claims import CLAIM
from lossscope.stats.multiverse import DIMENSIONS, claim_shares, level_order, level_shares

LEVELS = {
    "convention": ("text", "corrected"), "unit": ("paper", "relative"), "eps": (0.1, 0.01, 0.001),
    "batch": (2.0, 0.5), "epoch": ("last", "first"), "seed": (10, 9),
}  # fmt: skip


def universes(holds, lower="A", **more) -> pd.DataFrame:
    """Return a row for each universe; `holds` takes it and returns whether the claim holds, or None."""
    found = [dict(zip(LEVELS, values, strict=True)) for values in product(*LEVELS.values())]
    constant = {"data": "scenes", "encoder": "VSE++", "metric": "i2t_count", "lower": lower, "higher": "B",
                "origin": "ours", "stated_lower": 1.0, "stated_higher": 2.0, **more}  # fmt: skip
    return pd.DataFrame([{**constant, **universe, "holds": holds(universe)} for universe in found])


def of_level(levels: pd.DataFrame, dimension: str) -> dict[str, float]:
    rows = levels[levels["dimension"] == dimension]
    return dict(zip(rows["level"], rows["share"], strict=True))


def test_a_sign_that_flips_at_an_eps_makes_eps_decisive() -> None:
    rows = universes(lambda universe: universe["eps"] < 0.05)
    (claim,) = claim_shares(rows).to_dict("records")
    assert (claim["universes"], claim["defined"], claim["holds"]) == (96, 96, 64)
    assert claim["share"] == pytest.approx(2 / 3) and (claim["decisive"], claim["flips"]) == ("eps", 1.0)
    levels = level_shares(rows)
    assert of_level(levels, "eps") == {"0.001": 1.0, "0.01": 1.0, "0.1": 0.0}
    assert set(of_level(levels, "seed").values()) == {2 / 3}


def test_a_claim_that_holds_everywhere_has_no_decisive_choice() -> None:
    (claim,) = claim_shares(universes(lambda _: True)).to_dict("records")
    assert (claim["share"], claim["decisive"], claim["flips"], claim["undefined"]) == (1.0, "", 0.0, 0)


def test_undefined_universes_are_counted_and_in_no_share() -> None:
    rows = universes(lambda universe: None if universe["unit"] == "relative" else universe["seed"] == 9)
    (claim,) = claim_shares(rows).to_dict("records")
    assert (claim["defined"], claim["undefined"], claim["holds"], claim["share"]) == (48, 48, 24, 0.5)
    assert claim["decisive"] == "seed"
    shares = of_level(level_shares(rows), "unit")
    assert shares["paper"] == 0.5 and math.isnan(shares["relative"])
    (none,) = claim_shares(universes(lambda _: None)).to_dict("records")
    assert none["defined"] == 0 and math.isnan(none["share"]) and none["decisive"] == ""


def test_ties_do_not_hold_and_are_counted() -> None:
    rows = universes(lambda universe: universe["eps"] < 0.05)
    (claim,) = claim_shares(rows.assign(difference=np.where(rows["eps"] > 0.05, 0.0, 1.0))).to_dict("records")
    assert (claim["ties"], claim["defined"] - claim["holds"]) == (32, 32)


def test_shares_are_those_of_plain_loops() -> None:
    random = np.random.default_rng(0)
    rows = pd.concat([
        universes(lambda _: [True, False, None][random.integers(3)], lower) for lower in ("A", "C")
    ])  # fmt: skip
    levels, claims = level_shares(rows), claim_shares(rows).set_index("lower")
    for lower in ("A", "C"):
        records = rows[rows["lower"] == lower].to_dict("records")
        flips = {}
        for name in DIMENSIONS:
            by_level: dict[object, list[bool]] = {}
            by_set: dict[object, list[bool]] = {}
            for row in records:
                if row["holds"] is not None:
                    by_level.setdefault(row[name], []).append(row["holds"])
                    by_set.setdefault(tuple(row[other] for other in DIMENSIONS if other != name), []).append(
                        row["holds"]
                    )
            found = levels[(levels["lower"] == lower) & (levels["dimension"] == name)]
            assert sorted(found["share"]) == pytest.approx(sorted(sum(v) / len(v) for v in by_level.values()))
            sets = [values for values in by_set.values() if len(values) > 1]
            flips[name] = sum(len(set(values)) == 2 for values in sets) / len(sets)
        assert claims.loc[lower, "decisive"] == max(flips, key=lambda name: flips[name])
        assert claims.loc[lower, "flips"] == pytest.approx(max(flips.values()))


def test_a_convention_that_counts_in_a_unit_alone_is_compared_in_that_unit() -> None:
    """Over all units, released would seem decisive: it has no universe in the units in which the claim fails."""
    rows = universes(lambda universe: universe["unit"] == "paper")
    rows = rows[(rows["convention"] == "corrected") | (rows["unit"] == "paper")]
    (claim,) = claim_shares(rows).to_dict("records")
    assert of_level(level_shares(rows), "convention") == {"corrected": 0.5, "text": 1.0}
    assert (claim["decisive"], claim["flips"]) == ("unit", 1.0)


def test_levels_have_their_order() -> None:
    rows = universes(lambda _: True)
    assert {name: level_order(rows, name) for name in DIMENSIONS} == {
        "convention": ["corrected", "text"], "unit": ["paper", "relative"], "eps": ["0.001", "0.01", "0.1"],
        "batch": ["×0.5", "×2"], "epoch": ["first", "last"], "seed": ["9", "10"],
    }  # fmt: skip
    assert level_order(rows.assign(epoch=["10", "2"] * 48), "epoch") == ["2", "10"]


def test_a_choice_without_effect_has_no_levels() -> None:
    rows = universes(lambda _: True).drop_duplicates(["epoch", "seed"])
    rows = rows.assign(convention=None, unit=None, eps=np.nan, batch=np.nan)
    assert set(level_shares(rows)["dimension"]) == {"epoch", "seed"}


def test_rows_of_a_csv_file_have_the_same_shares() -> None:
    rows = universes(lambda universe: None if universe["seed"] == 9 else universe["eps"] < 0.05)
    again = pd.read_csv(io.StringIO(format_csv(rows)))
    pd.testing.assert_frame_equal(claim_shares(rows), claim_shares(again))
    pd.testing.assert_frame_equal(level_shares(rows), level_shares(again))


def test_rows_that_do_not_fit_are_refused() -> None:
    rows = universes(lambda _: True)
    with pytest.raises(InputError, match="Add holds"):
        claim_shares(rows.drop(columns="holds"))
    with pytest.raises(InputError, match=r"true, false or empty; got '0\.5'"):
        claim_shares(rows.assign(holds=0.5))
    with pytest.raises(InputError, match="each claim and universe once"):
        level_shares(pd.concat([rows, rows.iloc[:1]]))
    with pytest.raises(InputError, match="a universe or more; got none"):
        claim_shares(rows.iloc[:0])
    assert list(claim_shares(rows)[list(CLAIM)].iloc[0]) == ["scenes", "VSE++", "i2t_count", "A", "B", "ours"]
