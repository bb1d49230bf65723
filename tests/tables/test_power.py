"""Does the table of power have a line per pair with its evidence, seeds and images apart?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.stats.options import PlanOptions, Resampling
from lossscope.stats.pilot import plan
from lossscope.tables import power
from lossscope.tables.cells import DASH
from tests.stats.test_compare import run, runs
from tests.stats.test_other_sides import runs as runs_of_texts


def rows(frame: pd.DataFrame | None = None, *metrics: str, **options: object) -> pd.DataFrame:
    given = runs("a", "b", "c", images=40) if frame is None else frame
    return plan(given, metrics or None, None, PlanOptions(**options), Resampling(resamples=199))


def test_seeds_and_images_have_tables_of_their_own() -> None:
    frame = rows(images=(1000,))
    seeds, images = power.build(frame)
    assert (seeds.name, images.name) == ("power_seeds", "power_images")
    numbers = seeds.to_frame()
    assert [name for name in numbers if "smallest" in name] == [
        f"smallest difference {n} seeds" for n in (3, 5, 10, 20)
    ]  # fmt: skip
    ten_seeds = frame[(frame["over"] == "seeds") & (frame["n"] == 10)]
    np.testing.assert_array_equal(numbers["smallest difference 10 seeds"], ten_seeds["mdd"])
    assert numbers[["system", "baseline"]].to_numpy().tolist() == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert numbers["P(A > B)"].tolist() == ten_seeds["p_better"].tolist()
    assert numbers["CI of P(A > B)"][0] == "[0.29, 1.00]"
    other = images.to_frame()
    assert "smallest difference 1000 images" in other and "P(A > B)" not in other
    assert other["pilot images"].tolist() == [40.0] * 3


def test_what_was_asked_about_has_its_numbers_and_their_interval() -> None:
    frame = rows(difference=5.0)
    (cell, *_) = power.build(frame)[0].to_frame()["for a difference of 5 seeds needed"]
    row = frame.iloc[0]
    assert cell == f"{row['needed']} [{row['needed_low']}, {row['needed_high']}]"
    assert not [name for name in power.build(rows())[0].headings if "needed" in name]


def test_an_end_of_the_number_needed_that_is_not_known_is_a_dash() -> None:
    frame = rows(difference=5.0)
    frame.loc[0, "needed_high"] = pd.NA
    row = frame.iloc[0]
    (cell, *_) = power.build(frame)[0].to_frame()["for a difference of 5 seeds needed"]
    assert cell == f"{row['needed']} [{row['needed_low']}, {DASH}]"


def test_notes_say_how_rough_a_pilot_is() -> None:
    seeds, images = (" ".join(table.notes) for table in power.build(rows()))
    assert "0.52 to 6.28 times with 3. 3 seeds make a rough pilot." in seeds
    assert "too narrow where a training failed" in seeds and "--alpha 0.05/m" in seeds
    assert "percentile bootstrap" in images and "rough pilot" not in images
    assert "rough pilot" not in " ".join(power.build(rows(runs("a", "b", seeds=5)))[0].notes)


def test_captions_state_the_test() -> None:
    seeds, _ = power.build(rows(runs_of_texts("a", "b")))
    assert "(texts, GRU, q2d nDCG@10)" in seeds.caption
    assert "a two-sided paired t-test at level 0.05 finds it with probability 0.8" in seeds.caption


def test_what_is_not_known_is_a_dash_with_its_reason() -> None:
    mixed = pd.concat([runs("a", "b", images=40), run("c", 0, 8.0, images=40)], ignore_index=True)
    table = power.build(rows(mixed))[0]
    text = " ".join(table.to_text().split())
    assert "a against c; b against c: one seed: seed variance unknown." in text
    assert "left out: seed 1 of a, seed 2 of a." in text
    assert np.isnan(table.to_frame()["smallest difference 3 seeds"][1])


def test_several_metrics_and_blocks_are_named() -> None:
    frame = runs("a", "b", images=40)
    other = frame.assign(encoder="VSRN", run="x" + frame["run"])
    table = power.build(rows(pd.concat([frame, other], ignore_index=True), "rsum", "t2i_MRR"))[0].to_frame()
    assert table[["encoder", "metric"]].to_numpy().tolist() == [
        ["VSE++", "rsum"], ["VSRN", "rsum"], ["VSE++", "t2i MRR"], ["VSRN", "t2i MRR"],
    ]  # fmt: skip


def test_a_csv_of_rows_makes_the_same_table(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from lossscope.io.csv_tables import format_csv
    from lossscope.io.frames import read_rows

    frame = rows(difference=5.0)
    (tmp_path / "p.csv").write_text(format_csv(frame), encoding="utf-8")
    read = power.build(read_rows(tmp_path / "p.csv"))
    assert [table.to_text() for table in read] == [table.to_text() for table in power.build(frame)]


def test_frames_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="rows of power must have the columns"):
        power.build(rows().drop(columns="mdd"))
    with pytest.raises(InputError, match="must have rows; got none"):
        power.build(rows().iloc[:0])
