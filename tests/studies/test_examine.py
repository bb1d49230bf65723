"""Is a run asked once, asked again when the questions change, and only told what its data and its objective know?"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from lossscope.engine.plan import Sweep
from lossscope.errors import InputError, Interrupted
from lossscope.io.frames import SUMMARY
from lossscope.io.run_folder import Run
from lossscope.retrieval.evaluate import evaluate
from lossscope.retrieval.per_query import per_query
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.studies.examine import SCHEMA, examine, is_current
from lossscope.studies.study_file import ExamineConfig

ASKED = ExamineConfig(
    probes=("cocos:eps=0.01,curve=true", "similarity"),
    conventions=("released", "text"),
    what_if="ntxent:tau=0.1..0.2/2",
    singles=("similarity",),
)
FILES = {"rows.parquet", "queries.parquet", "curves.parquet", "what_if.parquet", "singles.parquet", "manifest.json"}


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Run:
    return Run(Path(shutil.copytree(tiny_run, tmp_path / "run")))


@pytest.fixture(scope="module")
def asked(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Examined once; not to be written to."""
    run = Run(Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("examined") / "run")))
    examine(run, ASKED)
    return run


def rows_of(run: Run, kind: str = "rows") -> pd.DataFrame:
    return pd.read_parquet(run.path / "examined" / f"{kind}.parquet")


def stamps(run: Run) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (run.path / "examined").rglob("*") if path.is_file()}


def test_the_folder_holds_what_it_says(asked: Run) -> None:
    folder = asked.path / "examined"
    assert {path.name for path in folder.iterdir() if path.is_file()} == FILES
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["schema"] == SCHEMA and manifest["asked"]["what_if"] == ASKED.what_if
    assert {"torch", "lossscope"} <= set(manifest["versions"])
    rows = rows_of(asked)
    assert set(SUMMARY) <= set(rows.columns) and set(rows["split"]) == {"train", "test"}
    assert (rows["split"] == "test").equals(rows["probe"] == "recall")
    assert rows["data_fingerprint"].nunique() == 1 and is_current(asked)


def test_numbers_are_those_of_the_commands(asked: Run) -> None:
    test = load(asked.path, split="test", cache=False)
    rows = rows_of(asked)
    recall = rows[rows["probe"] == "recall"].reset_index(drop=True)
    pd.testing.assert_frame_equal(recall[["statistic", "mean"]], evaluate([test])[["statistic", "mean"]])
    pd.testing.assert_frame_equal(rows_of(asked, "queries"), per_query(test), check_dtype=False)
    train = load(asked.path, split="train", cache=False)
    counted = Sweep(("ntxent:tau=0.1",), ("cocos:eps=0.01",), batch_size=32).run(train)[0]
    ours = rows[(rows["probe"] == "cocos") & (rows["convention"] == "corrected")]
    assert ours["mean"].tolist() == pytest.approx(counted["mean"].tolist())


def test_what_else_would_weigh_is_apart(asked: Run) -> None:
    other = rows_of(asked, "what_if")
    assert set(other["objective"]) == {"ntxent:tau=0.1", "ntxent:tau=0.2"} and set(other["probe"]) == {"cocos"}
    assert set(other["batch_size"]) == {128}  # the same for every run, whatever it was trained with
    assert set(rows_of(asked)["objective"].dropna()) == {"ntxent:tau=0.1"}
    assert set(rows_of(asked, "singles")["probe"]) == {"similarity"}


def test_conventions_are_those_the_objective_knows(asked: Run, run: Run) -> None:
    rows = rows_of(asked)
    assert set(rows.loc[rows["probe"] == "cocos", "convention"]) == {"corrected", "released", "text"}
    assert set(rows_of(asked, "curves")["convention"]) == {"corrected"}  # further ones are counted at eps alone
    kept = Checkpoint.load(run.best)
    Checkpoint(**{**vars(kept), "objective": "unified"}).save(run.best)
    examine(run, replace(ASKED, what_if="", singles=()))
    rows = rows_of(run)
    assert set(rows.loc[rows["probe"] == "cocos", "convention"]) == {"corrected"}


def test_truth_is_told_only_where_the_data_know_it(run: Run, asked: Run) -> None:
    assert "truth" not in set(rows_of(asked)["probe"])  # nobody said what the pictures are
    plain = ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=())
    examine(run, plain, data="scenes:train=60,val=20,test=20,size=16")
    (truth,) = rows_of(run)[rows_of(run)["probe"] == "truth"].to_dict("records")
    assert truth["statistic"] == "true_negatives" and truth["unit"] == "%" and 0 <= truth["mean"] < 100
    assert truth["n"] == 60 * 5 * 59 and truth["split"] == "train"


def test_what_was_asked_is_not_asked_again(asked: Run) -> None:
    before = stamps(asked)
    told: list[str] = []
    assert examine(asked, ASKED, progress=lambda label, _done, _all: told.append(label)) == asked.path / "examined"
    assert stamps(asked) == before and told == []


def test_another_question_is_asked_and_the_old_numbers_go(run: Run) -> None:
    first = ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=())
    examine(run, first)
    examine(run, replace(first, probes=("cocos:eps=0.1",)))
    assert set(rows_of(run).loc[rows_of(run)["probe"] == "cocos", "eps"]) == {0.1}
    examine(run, replace(first, split="val", test="val"))
    assert set(rows_of(run)["split"]) == {"val"}


def test_files_of_an_earlier_question_do_not_stay(run: Run) -> None:
    """Curves, what-if rows and single queries that were not asked for now would be read as if they were."""
    examine(run, ASKED)
    examine(run, replace(ASKED, probes=("cocos:eps=0.1",), what_if="", singles=()))
    there = {path.name for path in (run.path / "examined").iterdir() if path.is_file()}
    assert there == {"rows.parquet", "queries.parquet", "manifest.json"}


def test_another_checkpoint_is_asked_anew(run: Run) -> None:
    asked = ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=())
    examine(run, asked)
    before = rows_of(run).set_index(["direction", "probe", "statistic"])["mean"]
    shutil.copy(run.epoch(1), run.best)
    assert not is_current(run)  # its answers are about weights that are no longer there
    examine(run, asked)
    assert is_current(run)
    after = rows_of(run).set_index(["direction", "probe", "statistic"])["mean"]
    assert set(before.index) == set(after.index) and not before.equals(after)


def test_what_was_stopped_goes_on(run: Run) -> None:
    """Stopped in the middle of counting: the parts that are there are kept, and the numbers are those of one go."""
    asked = ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=(), batch_size=4)

    def stop(label: str, done: int, total: int) -> None:
        if label != "queries" and done < total and done > 0:
            raise Interrupted("enough")

    with pytest.raises(Interrupted):
        examine(run, asked, progress=stop)
    assert not is_current(run)
    examine(run, asked)
    resumed = rows_of(run)
    shutil.rmtree(run.path / "examined")
    examine(run, asked)
    pd.testing.assert_frame_equal(resumed, rows_of(run))


def test_a_probe_that_is_none_is_told_before_any_work(run: Run) -> None:
    with pytest.raises(InputError, match="probe must be one of"):
        examine(run, ExamineConfig(probes=("nonsense",)))
    assert not is_current(run)


@pytest.mark.slow
def test_how_often_each_candidate_is_the_hardest_negative_is_kept_where_hubness_is_asked_for(run: Run) -> None:
    plain = ExamineConfig(probes=("hubness",), conventions=(), what_if="", singles=(), batch_size=8)
    examine(run, plain)
    found = rows_of(run, "chosen")
    train = load(run.path, split="train", cache=False)
    sides = found.groupby("direction")["count"]
    assert sides.size().to_dict() == {"i2t": len(train.caption_ids), "t2i": len(train.image_ids)}
    assert set(sides.sum()) == {len(train.caption_ids)}  # every pair of a batch has one hardest negative on each side
    assert set(found["batch_size"]) == {8}
    examine(run, replace(plain, probes=("similarity",)))
    assert not (run.path / "examined" / "chosen.parquet").exists()


@pytest.mark.slow
def test_a_file_that_a_checkpoint_names_is_not_imported_unless_trusted(run: Run, tmp_path: Path) -> None:
    file, sign = tmp_path / "theirs.py", tmp_path / "imported"
    file.write_text(f"open({str(sign)!r}, 'w').close()\n\n\ndef loss(S):\n    return (1 - S.diagonal()).mean()\n")
    checkpoint = Checkpoint.load(run.best)
    replace(checkpoint, objective=f"{file}:loss").save(run.best)
    plain = ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=())
    with pytest.raises(InputError, match="--trust-code"):
        examine(run, plain)
    assert not sign.exists()
