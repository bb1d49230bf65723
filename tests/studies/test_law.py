"""Do the design and the analysis of the law find what was put in, on rows whose answers are known?"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

HOME = Path(__file__).parents[2] / "studies" / "law"
MODULES = ("design", "predictors", "run", "words", "page", "analyse")


@pytest.fixture(scope="module")
def law() -> Iterator[dict[str, ModuleType]]:
    """Return the files of studies/law, as their scripts import each other."""
    found: dict[str, ModuleType] = {}
    for name in MODULES:
        spec = importlib.util.spec_from_file_location(name, HOME / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        found[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[name])
    found["analyse"].RESAMPLES = 200  # of 4,000
    yield found
    for name in MODULES:
        del sys.modules[name]


def rows_of(law: dict[str, ModuleType], rsum: Any, seed: int = 0) -> pd.DataFrame:
    """Return results of the whole design; `rsum(run)` is its outcome, and predictors are noise."""
    rng = np.random.default_rng(seed)
    rows = []
    for run in law["design"].design():
        noise = dict(zip(law["predictors"].PREDICTORS, rng.normal(size=6), strict=True))
        rows.append({"block": run.block, **run.key, "rsum": rsum(run, rng), "seconds": 1.0, **noise})
    return pd.DataFrame(rows)


def test_the_plan_states_the_design(law: dict[str, ModuleType]) -> None:
    runs = law["design"].design()
    assert len({tuple(run.key.items()) for run in runs}) == len(runs)
    plan = (HOME / "PLAN.md").read_text(encoding="utf-8")
    assert f"{len(runs):,} runs in this order" in plan
    for block, number in Counter(run.block for run in runs).items():
        assert f"| {block} | {number} |" in plan


def test_specs_train_what_they_say(law: dict[str, ModuleType]) -> None:
    from lossscope.registry import build

    specs = {run.kept: build("objectives", run.spec) for run in law["design"].design() if run.objective == "NT-Xent"}
    assert {kept: type(objective).__name__ for kept, objective in specs.items()} == {
        **dict.fromkeys(("top 1", "top 2", "top 5", "top 20"), "OnlyTop"), "all": "NTXent",
        **dict.fromkeys(("tail 1", "tail 5"), "OnlyTail"), "above 0.01": "OnlyAbove",
    }  # fmt: skip
    assert (specs["top 20"].k, specs["tail 5"].k, specs["above 0.01"].eps) == (20, 5, 0.01)


def test_contrasts_turns_and_doses_are_those_that_were_put_in(law: dict[str, ModuleType]) -> None:
    """top 1 is better by 10 at 0 %, and worse by 10 at 8 %; the sign turns between 0.1 and 1 %."""
    put_in = {0.0: 10.0, 0.01: 8.0, 0.1: 5.0, 1.0: -5.0, 8.0: -10.0}

    def rsum(run: Any, rng: Any) -> float:
        of_seed = 3.0 * run.group.seed + 100
        return of_seed + rng.normal(0, 0.5) + (put_in[run.group.rate] if run.kept == "top 1" else 0.0)

    rows = rows_of(law, rsum)
    contrasts = law["analyse"].contrasts(rows).set_index("what")
    for rate, mean in ((0, 10), (1, -5), (8, -10)):
        line = contrasts.loc[f"top 1 - all at {rate} %"]
        assert line["n"] == 10
        assert line["low"] < mean < line["high"]
        assert line["p_holm"] < 1e-6
    assert contrasts.loc["(top 1 - all at 8 %) - (at 0 %)", "mean"] == pytest.approx(-20, abs=0.5)
    turns = law["analyse"].turns(rows)
    assert turns["rate"].between(0.2, 0.5).all()  # in the middle of 0.1 and 1, on a logarithmic scale
    assert turns["turned"].eq(1).all()
    doses = law["analyse"].doses(rows)
    assert doses.loc[doses["kept"] == "top 5", "mean"].abs().max() < 2


def test_no_turn_is_said_where_the_sign_stays(law: dict[str, ModuleType]) -> None:
    turns = law["analyse"].turns(rows_of(law, lambda run, rng: 50.0 + 2.0 * (run.kept == "top 1")))
    assert turns["rate"].isna().all()
    assert turns["turned"].eq(0).all()


def test_a_predictor_of_the_outcome_has_skill_and_noise_has_none(law: dict[str, ModuleType]) -> None:
    rows = rows_of(law, lambda run, rng: 100 + rng.normal(0, 5))
    ranks = rows.groupby(["data", "rate", "encoder", "batch", "seed", "start"])["rsum"].rank()
    skills = law["analyse"].skills(rows.assign(k95=-ranks)).set_index("predictor")
    assert skills.index[0] == "k95"
    assert skills.loc["k95", "low"] > 0.8
    assert (skills.drop("k95")["high"] < 0.3).all()
    assert (skills.drop("k95")["behind_low"] > 0).all()
    assert skills["ceiling"].iloc[0] < 0


def test_holm_and_t_are_those_of_the_books(law: dict[str, ModuleType]) -> None:
    assert law["analyse"].holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    line = law["analyse"].t_line(np.array([1.0, 2.0, 3.0]))
    assert (line["mean"], line["high"]) == pytest.approx((2, 2 + 4.3027 / math.sqrt(3)), rel=1e-4)
    assert line["p"] == pytest.approx(0.0742, abs=1e-4)


def test_the_page_has_the_numbers_and_the_picture(law: dict[str, ModuleType], tmp_path: Path) -> None:
    rows = rows_of(law, lambda run, rng: 100 + rng.normal(0, 5))
    analyse = law["analyse"]
    found = {table.__name__: table(rows) for table in analyse.TABLES}
    law["page"].write_page(tmp_path, rows, found)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "All 1,302 runs have ended, in 0.4 core hours; 0 diverged." in page
    mean = found["contrasts"]["mean"].iloc[0]
    shown = f"{mean:.1f}".replace("-", "\N{MINUS SIGN}")
    assert f"top 1 - all at 0 % | 10 | {shown} |" in page
    assert (tmp_path / "law.png").stat().st_size > 1000


def test_the_words_of_the_report_hold_in_its_tables(law: dict[str, ModuleType]) -> None:
    """The numbers of the five sentences come from the tables; what the words say of them is looked up here."""
    analyse, words = law["analyse"], law["words"]
    found = {table.__name__: pd.read_csv(analyse.REPORT / f"{table.__name__}.csv") for table in analyse.TABLES}
    assert analyse.missing() == []
    assert words.sentences(found) in (analyse.REPORT / "README.md").read_text(encoding="utf-8")
    lines, skills = found["contrasts"].set_index("what"), found["skills"].set_index("predictor")
    tested = lines[lines["family"].isin(["H1", "H2"])]
    assert (tested["p_holm"] < 0.05).all()
    assert (tested["mean"] > 0).tolist() == [False, False, True, True]  # worse at 0 and 1 %, better at 8 %; it rises
    turn = found["turns"].set_index(["data", "objective"]).loc[("passages", "NT-Xent")]
    assert turn["turned"] > 0.99 and turn["at_0"] > 0 > turn["at_8"]
    doses = found["doses"].set_index(["data", "objective", "rate", "kept"]).sort_index()
    of_triplet = doses.loc[("passages", "Triplet", 8.0)]["mean"]
    assert of_triplet["top 20"] > 0.7 * of_triplet["top 1"]
    assert (doses.xs(("scenes", "top 1"), level=("data", "kept"))["mean"] < 0).all()
    assert (doses.loc[[("scenes", "Triplet", rate, "top 5") for rate in (0.0, 0.01, 0.1)], "mean"] > 0).all()
    weak, strong = ("weak start, scenes, top 1 - all at 0 %", "scenes, NT-Xent, top 1 - all at 0 %")
    assert lines.loc[weak, "mean"] < lines.loc[strong, "mean"] < 0
    rows = pd.read_csv(analyse.RESULTS)
    untaught = rows[(rows["start"] == "none") & (rows["kept"] == "top 1") & (rows["rate"] == 0)]
    assert untaught.groupby("data")["rsum"].mean().max() < 40
    assert skills["low"].max() < 0 < skills["high"].max() and skills.loc["C_neg", "high"] < 0
    assert skills["skill"].idxmax() == "k95" and skills["ceiling"].iloc[0] > skills["high"].max()
    tail = lines[lines["family"] == "tail"]
    assert len(tail) == 18 and tail["p_holm"].min() > 0.05


def test_no_contrast_is_shown_while_runs_are_missing(law: dict[str, ModuleType], tmp_path: Path) -> None:
    rows = rows_of(law, lambda run, rng: 100.0)[:50]
    law["page"].write_state(tmp_path, rows, ["encoder 3 of 108"])
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "**The study is not finished.** 50 runs have ended" in page
    assert "encoder 3 of 108" in page
    assert "|" not in page


def test_runs_of_a_group_train_from_one_start_and_are_measured(
    law: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    design, small = law["design"], {}
    for name, data in design.DATA.items():
        spec = (
            data.spec.replace("train=1024", "train=64").replace("train=2000", "train=80").replace("val=100", "val=20")
        )
        clean = data.clean.replace("test=300", "test=20").replace("test=600", "test=20")
        start = {"strong": 1, "weak": 1, "none": 0}
        small[name] = replace(data, spec=spec, clean=clean, epochs=1, start=start)
    monkeypatch.setattr(law["run"], "DATA", small)
    for name in small:
        group = design.Group(name, 1.0, 0, 16, 0)
        runs = [design.LawRun("main", group, "NT-Xent", kept) for kept in ("all", "top 1", "top 127")]
        whole, top, everything = law["run"].train_group(runs)
        assert set(whole) <= set(law["run"].COLUMNS)
        assert whole["rsum"] == everything["rsum"]  # the 127 heaviest of 15 are all
        assert top["N_eff"] == 1.0
        assert 0 <= top["false_weight"] <= 1
        assert all(math.isfinite(row[predictor]) for row in (whole, top) for predictor in ("k95", "utility_margin"))
