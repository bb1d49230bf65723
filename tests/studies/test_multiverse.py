"""Does each claim hold where the numbers of its universe say so, and does a stopped multiverse resume to equal rows?"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError, OptionError
from lossscope.io.evaluation_folder import read_frame
from lossscope.sources.base import load
from lossscope.stats.multiverse import COLUMNS, claim_shares, level_shares
from lossscope.studies.multiverse import FOLDER, Multiverse
from lossscope.studies.multiverse_options import MultiverseOptions
from lossscope.studies.study import Study, write_status
from tests.each import each
from tests.tiny import run_study

STUDY = """
name = "equal"
paper = "bleeker2022"
seeds = [0, 1]
[recipe]
epochs = 1
batch_size = 8
lr = 1e-12 # both losses keep the model of their seed
[[data]]
name = "scenes"
spec = "scenes:train=12,val=8,test=8,size=16"
published = "flickr30k"
[[encoders]]
name = "VSE++"
spec = "vsepp:width=4,dim=8,words=8"
published = "VSE++ (ResNet50, frozen)"
[[objectives]]
name = "SH"
spec = "triplet-sh:margin=0.2"
recipe = { warmup = 0 }
[[objectives]]
name = "Triplet"
spec = "triplet:margin=0.2"
[examine]
probes = ["cocos:eps=0.01"]
what_if = ""
singles = []
"""
OPTIONS = MultiverseOptions(metric=("i2t_C_q_all",), eps=(0.01, 2.0), epochs=("best", "last"))
FEW = MultiverseOptions(
    metric=("i2t_C_q_all",), eps=(0.01,), epochs=("best",), conventions=("corrected",), units=("paper",)
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished study of two losses on equal models. Do not write to it."""
    return run_study(tmp_path_factory.mktemp("equal"), STUDY).path


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """Return a copy that tests may write to."""
    return Path(shutil.copytree(trained, tmp_path / "study"))


def computed(folder: Path, options: MultiverseOptions) -> Multiverse:
    universes = Multiverse.of(Study.open(folder), options)
    universes.compute()
    return universes


def stop_after(number: int) -> Callable[[str, int, int], None]:
    """Return a report of progress that stops as Ctrl-C does."""

    def report(_label: str, done: int, _of: int) -> None:
        if done == number:
            raise KeyboardInterrupt

    return report


def test_the_hardest_negative_counts_fewer_in_every_universe_until_eps_is_above_all_weights(folder: Path) -> None:
    """On equal models triplet counts every violating negative, triplet-sh one of them at most; no weight is above 2."""
    rows = computed(folder, OPTIONS).rows()
    assert tuple(rows.columns) == COLUMNS and len(rows) == (3 + 2) * 2 * 3 * 2 * 2
    assert set(rows["lower"]) == {"SH"} and set(rows["higher"]) == {"Triplet"} and set(rows["origin"]) == {"ours"}
    low, high = rows[rows["eps"] == 0.01], rows[rows["eps"] == 2.0]
    assert low["holds"].eq(True).all() and (low["value_lower"] <= 1).all() and (low["difference"] > 0).all()
    assert high["holds"].eq(False).all() and high["tie"].all() and (high["difference"] == 0).all()
    (claim,) = claim_shares(rows).to_dict("records")
    assert (claim["share"], claim["ties"], claim["undefined"]) == (0.5, len(rows) / 2, 0)
    assert (claim["decisive"], claim["flips"]) == ("eps", 1.0)
    levels = level_shares(rows).set_index(["dimension", "level"])["share"]
    assert (levels["eps", "0.01"], levels["eps", "2"], levels["unit", "cosine"]) == (1.0, 0.0, 0.5)


def test_a_number_is_that_of_a_sweep_and_of_the_evaluation(folder: Path) -> None:
    universes = computed(folder, OPTIONS)
    rows = universes.rows().query("seed == 1 and epoch == 'best' and unit == 'paper' and eps == 0.01")
    (run,) = [run for run in universes.study.grid.runs if run.system[2] == "Triplet" and run.seed == 1]
    path = universes.study.folder(run) / "run"
    of_run = read_frame(path, "rows")
    assert of_run is not None
    for convention in ("corrected", "released", "text"):
        row = rows[(rows["convention"] == convention) & (rows["batch"] == 1)].iloc[0]
        same = of_run["convention"] == convention
        evaluated = of_run[same & (of_run["statistic"] == "C_q_all") & (of_run["direction"] == "i2t")]["mean"]
        assert row["value_higher"] == pytest.approx(evaluated.iloc[0], rel=1e-12)
        assert (row["batch_size_higher"], row["n_higher"], row["split"]) == (8, 8, "train")
    half = rows[(rows["convention"] == "corrected") & (rows["batch"] == 0.5)].iloc[0]
    train = load(path, split="train", cache=False)
    counted = Sweep(("triplet:margin=0.2",), ("cocos:eps=0.01",), batch_size=4, seed=1).run(train).summary
    expected = counted[(counted["statistic"] == "C_q_all") & (counted["direction"] == "i2t")]["mean"].iloc[0]
    assert half["value_higher"] == pytest.approx(expected, rel=1e-12) and half["batch_size_higher"] == 4


def test_what_the_paper_prints_is_the_claim_and_of_retrieval_epoch_and_seed_alone_matter(folder: Path) -> None:
    rows = computed(folder, replace(OPTIONS, metric=("rsum", "i2t_count"), eps=(0.01,))).rows()
    claims = rows.drop_duplicates("metric").set_index("metric")
    assert claims.loc["rsum", ["lower", "higher", "origin", "table"]].tolist() == [
        "Triplet", "SH", "printed", "bleeker2022_1",
    ]  # fmt: skip
    assert claims.loc["rsum", ["stated_lower", "stated_higher"]].tolist() == [309.4, 353.8]
    assert claims.loc["i2t_count", ["lower", "higher", "origin", "table"]].tolist() == [
        "SH", "Triplet", "printed", "bleeker2022_2",
    ]  # fmt: skip
    assert claims.loc["i2t_count", ["stated_lower", "stated_higher", "statistic_lower"]].tolist() == [1.0, 6.79, "C_q"]
    ranked = rows[rows["metric"] == "rsum"]
    assert len(ranked) == 4 and ranked["eps"].isna().all() and ranked["convention"].isna().all()
    assert ranked["tie"].all() and set(ranked["split"]) == {"test"}  # the models are equal


def test_a_statistic_without_a_threshold_has_no_universe_for_each_eps(folder: Path) -> None:
    rows = computed(folder, replace(OPTIONS, metric=("i2t_N_eff",))).rows()
    assert rows["eps"].isna().all() and not rows.duplicated(["convention", "unit", "batch", "epoch", "seed"]).any()
    assert rows["holds"].eq(True).all()


def test_a_stopped_multiverse_resumes_to_equal_rows(folder: Path, trained: Path, tmp_path: Path) -> None:
    study = Study.open(folder)
    universes = Multiverse.of(study, FEW)
    assert len(universes.tasks()) == universes.number_of_tasks() == 12
    with pytest.raises(KeyboardInterrupt):
        universes.compute(progress=stop_after(5))
    again = Multiverse.of(study, FEW)
    assert len(again.tasks()) == 7 and again.number_of_tasks() == 12
    with pytest.raises(InputError, match="7 sweeps and evaluations are left"):
        again.rows()
    again.compute()
    whole = computed(Path(shutil.copytree(trained, tmp_path / "whole")), FEW).rows()
    pd.testing.assert_frame_equal(again.rows(), whole)


def test_further_choices_compute_what_is_missing_alone(folder: Path) -> None:
    computed(folder, FEW)
    more = Multiverse.of(Study.open(folder), replace(FEW, eps=(0.01, 0.1)))
    assert {probe.split(",")[0] for task in more.tasks() for probe in task.probes} == {"cocos:eps=0.1"}
    more.compute()
    assert not more.tasks() and not Multiverse.of(Study.open(folder), FEW).tasks()
    assert set(more.rows()["eps"]) == {0.01, 0.1}


def test_numbers_of_another_checkpoint_are_computed_anew_and_a_damaged_file_is_named(folder: Path) -> None:
    universes = computed(folder, FEW)
    file = sorted((folder / FOLDER).rglob("*batch-8.json"))[0]
    document = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**document, "checkpoint": "other"}), encoding="utf-8")
    (task,) = universes.tasks()
    assert task.file == file
    file.write_text(json.dumps({**document, "numbers": 3}), encoding="utf-8")
    with pytest.raises(InputError, match=r"batch-8.json.*Remove the file, and the same command computes it again"):
        universes.tasks()


def test_universes_without_a_number_are_undefined_and_say_why(folder: Path) -> None:
    study = Study.open(folder)
    failed = next(run for run in study.grid.runs if run.system[2] == "SH" and run.seed == 1)
    write_status(study.folder(failed), "failed", "no memory left")
    rows = computed(folder, replace(FEW, batch_factors=(0.1, 1.0, 100.0))).rows()
    assert len(rows) == 6
    reasons = {(row["seed"], row["batch"]): row["reason"] for row in rows.to_dict("records")}
    assert reasons[0, 1.0] == "" and reasons[0, 0.1] == "0.1 times batch size 8 is below 2"
    assert reasons[0, 100.0] == "split train has no full batch of 800"
    assert reasons[1, 1.0] == f"{failed.key} is not done"
    undefined = rows[rows["reason"] != ""]
    assert undefined["holds"].isna().all() and undefined["difference"].map(math.isnan).all()
    (claim,) = claim_shares(rows).to_dict("records")
    assert (claim["defined"], claim["undefined"], claim["share"]) == (1, 5, 1.0)


def test_all_kept_epochs_go_by_their_number(folder: Path) -> None:
    rows = computed(folder, replace(FEW, epochs=("all",))).rows()
    assert set(rows["epoch"]) == {"1"} and set(rows["epoch_lower"]) == {1}


@each("options, says", [
    (replace(FEW, only=("Flickr",)), "must be an entry of the study, of scenes, VSE\\+\\+, SH, Triplet; got 'Flickr'"),
    (replace(FEW, only=("SH",)), "must name two losses or none"),
    (replace(FEW, metric=("i2t_C_9",)), "--metric must be one that a run has; got i2t_C_9"),
    (replace(FEW, claims="printed"), "none is printed by bleeker2022. Use --claims all"),
])  # fmt: skip
def test_claims_that_a_study_does_not_have_are_refused(trained: Path, options: MultiverseOptions, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Multiverse.of(Study.open(trained), options)


def test_equal_numbers_are_no_claim(trained: Path) -> None:
    with pytest.raises(InputError, match="in different order in a metric; got none"):
        Multiverse.of(Study.open(trained), replace(FEW, metric=("i2t_MRR",)))


@each("values, says", [
    ({"eps": ()}, "--eps must be finite numbers >= 0"), ({"eps": (-1.0,)}, "got -1"),
    ({"batch_factors": (0.0,)}, "--batch-factors must be finite numbers above 0"),
    ({"epochs": ("second",)}, "--epochs must be of first, middle, best, last, all, with commas; got 'second'"),
    ({"epochs": ("all", "best")}, "--epochs all stands alone"),
    ({"units": ("metre",)}, "--units must be of paper, relative, cosine"),
    ({"conventions": ()}, "--conventions must be of corrected, released, text, with commas; got none"),
])  # fmt: skip
def test_choices_that_cannot_be_are_refused(values: dict[str, tuple[object, ...]], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        replace(FEW, **values)  # type: ignore[arg-type]


def test_a_published_convention_needs_the_unit_of_its_paper(trained: Path) -> None:
    options = replace(FEW, conventions=("released",), units=("cosine",))
    with pytest.raises(InputError, match="released and text count in the unit paper alone; got --units cosine"):
        Multiverse.of(Study.open(trained), options).tasks()
