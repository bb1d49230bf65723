"""Is a run evaluated once, and again when its configuration changes, with all that data and objective allow?"""

from __future__ import annotations

import base64
import io
import json
import shutil
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lossscope.datasets.formats.thumbnails import thumbnails
from lossscope.engine.heaviest_negatives import HeaviestNegatives
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError, Interrupted
from lossscope.io.frames import SUMMARY
from lossscope.io.run_folder import Run
from lossscope.registry import build
from lossscope.retrieval.evaluate import evaluate
from lossscope.retrieval.per_query import per_query
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.studies.examine import SCHEMA, examine, is_current
from lossscope.studies.study_file import ExamineConfig
from lossscope.training.recipe_files import read_recipe, write_recipe
from tests.tiny import SCENES

CONFIG = ExamineConfig(
    probes=("cocos:eps=0.01,curve=true", "similarity"),
    conventions=("released", "text"),
    what_if="ntxent:tau=0.1..0.2/2",
    singles=("similarity",),
)

FILES = {
    "rows.parquet", "retrieval.parquet", "curves.parquet", "what_if.parquet", "per_query.parquet", "findings.json",
    "heaviest_negatives.parquet", "pictures.parquet", "manifest.json",
}  # fmt: skip
RECALL_FILES = FILES - {"curves.parquet", "what_if.parquet", "per_query.parquet"}
COCOS = ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=())


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Run:
    return Run(Path(shutil.copytree(tiny_run, tmp_path / "run")))


@pytest.fixture(scope="module")
def evaluated(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return an evaluated run; tests must not write to it."""
    run = Run(Path(shutil.copytree(tiny_run, tmp_path_factory.mktemp("evaluated") / "run")))
    examine(run, CONFIG)
    return run


def rows_of(run: Run, kind: str = "rows") -> pd.DataFrame:
    return pd.read_parquet(run.path / "evaluation" / f"{kind}.parquet")


def stamps(run: Run) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (run.path / "evaluation").rglob("*") if path.is_file()}


def test_the_folder_has_its_files(evaluated: Run) -> None:
    folder = evaluated.path / "evaluation"
    assert {path.name for path in folder.iterdir() if path.is_file()} == FILES
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["schema"] == SCHEMA and manifest["config"]["what_if"] == CONFIG.what_if
    assert {"torch", "lossscope"} <= set(manifest["versions"])
    rows = rows_of(evaluated)
    assert set(SUMMARY) <= set(rows.columns) and set(rows["split"]) == {"train", "test"}
    assert (rows["split"] == "test").equals(rows["probe"] == "recall")
    assert rows["data_fingerprint"].nunique() == 1 and is_current(evaluated)


def test_numbers_are_those_of_the_commands(evaluated: Run) -> None:
    test = load(evaluated.path, split="test", cache=False)
    rows = rows_of(evaluated)
    recall = rows[rows["probe"] == "recall"].reset_index(drop=True)
    pd.testing.assert_frame_equal(recall[["statistic", "mean"]], evaluate([test])[["statistic", "mean"]])
    pd.testing.assert_frame_equal(rows_of(evaluated, "retrieval"), per_query(test), check_dtype=False)
    train = load(evaluated.path, split="train", cache=False)
    counted = Sweep(("ntxent:tau=0.1",), ("cocos:eps=0.01",), batch_size=32).run(train).summary
    ours = rows[(rows["probe"] == "cocos") & (rows["convention"] == "corrected")]
    assert ours["mean"].tolist() == pytest.approx(counted["mean"].tolist())


def test_rows_under_other_objectives_have_their_own_file(evaluated: Run) -> None:
    other = rows_of(evaluated, "what_if")
    assert set(other["objective"]) == {"ntxent:tau=0.1", "ntxent:tau=0.2"} and set(other["probe"]) == {"cocos"}
    assert set(other["batch_size"]) == {128}  # the same for all runs, whatever their training
    assert set(rows_of(evaluated)["objective"].dropna()) == {"ntxent:tau=0.1"}
    assert set(rows_of(evaluated, "per_query")["probe"]) == {"similarity"}


def test_the_queries_with_the_most_gradient_are_those_of_the_sweep(evaluated: Run) -> None:
    train = load(evaluated.path, split="train", cache=False)
    expected = HeaviestNegatives(Sweep(("ntxent:tau=0.1",), batch_size=32)).most_and_least(train, 3)
    ours = rows_of(evaluated, "heaviest_negatives")
    assert len(ours) == len(expected) > 40
    for name in ("list", "query_id", "candidate_id", "candidate_text", "weight", "negative_weight", "similarity"):
        assert ours[name].fillna("").tolist() == expected[name].fillna("").tolist()


def test_the_images_of_the_list_are_kept_as_pictures(evaluated: Run) -> None:
    listed, kept = rows_of(evaluated, "heaviest_negatives"), rows_of(evaluated, "pictures")
    by_direction = zip(("i2t", "t2i"), ("query_id", "candidate_id"), strict=True)
    images = {id for direction, side in by_direction for id in listed.loc[listed["direction"] == direction, side]}
    assert set(kept["id"]) == images - {None} and kept["id"].is_unique
    split = build("datasets", SCENES).split("train")
    pixels = split.images.take(np.array([split.image_ids.index(kept["id"][0])]))[0]
    address = kept["picture"][0].removeprefix("data:image/webp;base64,")
    with Image.open(io.BytesIO(base64.b64decode(address))) as image:
        drawn = np.asarray(image.convert("RGB")).astype(float)
    assert np.abs(drawn - pixels.transpose(1, 2, 0)).mean() < 8  # WebP loses a little


def test_pictures_of_other_ids_are_not_shown(run: Run) -> None:
    """Features may have row numbers as ids, and an equal id of the pictures is then another image."""
    examine(run, COCOS, pictures=SCENES.replace("train=60", "train=61"))
    assert not (run.path / "evaluation" / "pictures.parquet").exists()


def test_features_and_texts_have_no_pictures() -> None:
    texts = build("datasets", "passages:train=20,val=20,test=20").split("train")
    assert thumbnails(texts, texts.image_ids) == {}
    scenes = build("datasets", SCENES).split("train")
    regions = SimpleNamespace(shape=(36, 8))
    features = copy(scenes)
    object.__setattr__(features, "images", regions)
    assert thumbnails(features, scenes.image_ids) == {} and len(thumbnails(scenes, [*scenes.image_ids, "other"])) == 60


def test_conventions_are_those_of_the_objective(evaluated: Run, run: Run) -> None:
    rows = rows_of(evaluated)
    assert set(rows.loc[rows["probe"] == "cocos", "convention"]) == {"corrected", "released", "text"}
    assert set(rows_of(evaluated, "curves")["convention"]) == {"corrected"}  # others are counted at eps alone
    kept = Checkpoint.load(run.best)
    Checkpoint(**{**vars(kept), "objective": "unified"}).save(run.best)
    examine(run, replace(CONFIG, what_if="", singles=()))
    rows = rows_of(run)
    assert set(rows.loc[rows["probe"] == "cocos", "convention"]) == {"corrected"}


def test_truth_is_recorded_only_where_the_data_have_it(run: Run, evaluated: Run) -> None:
    assert "truth" not in set(rows_of(evaluated)["probe"])  # the pictures are not named
    examine(run, COCOS, pictures=SCENES)
    (truth,) = rows_of(run)[rows_of(run)["probe"] == "truth"].to_dict("records")
    assert truth["statistic"] == "true_negatives" and truth["unit"] == "%" and 0 <= truth["mean"] < 100
    assert truth["n"] == 60 * 5 * 59 and truth["split"] == "train"


def test_an_evaluation_is_not_repeated(evaluated: Run) -> None:
    before = stamps(evaluated)
    labels: list[str] = []
    out = examine(evaluated, CONFIG, progress=lambda label, _done, _all: labels.append(label))
    assert out == evaluated.path / "evaluation" and stamps(evaluated) == before and labels == []


def test_another_configuration_replaces_the_numbers(run: Run) -> None:
    examine(run, COCOS)
    examine(run, replace(COCOS, probes=("cocos:eps=0.1",)))
    assert set(rows_of(run).loc[rows_of(run)["probe"] == "cocos", "eps"]) == {0.1}
    examine(run, replace(COCOS, split="val", test="val"))
    assert set(rows_of(run)["split"]) == {"val"}


def test_files_of_an_earlier_configuration_are_removed(run: Run) -> None:
    """Else earlier curves, what-if rows and single queries would seem to belong to this configuration."""
    examine(run, CONFIG)
    examine(run, replace(CONFIG, probes=("cocos:eps=0.1",), what_if="", singles=()))
    assert {path.name for path in (run.path / "evaluation").iterdir() if path.is_file()} == RECALL_FILES


def test_another_checkpoint_is_evaluated_anew(run: Run) -> None:
    examine(run, COCOS)
    before = rows_of(run).set_index(["direction", "probe", "statistic"])["mean"]
    shutil.copy(run.epoch(1), run.best)
    assert not is_current(run)  # its numbers belong to replaced weights
    examine(run, COCOS)
    assert is_current(run)
    after = rows_of(run).set_index(["direction", "probe", "statistic"])["mean"]
    assert set(before.index) == set(after.index) and not before.equals(after)


def test_a_stopped_evaluation_is_resumed(run: Run) -> None:
    """Parts written before the stop stay, and the numbers are those of an uninterrupted evaluation."""
    config = replace(COCOS, batch_size=4)

    def stop(label: str, done: int, total: int) -> None:
        if label != "queries" and done < total and done > 0:
            raise Interrupted("enough")

    with pytest.raises(Interrupted):
        examine(run, config, progress=stop)
    assert not is_current(run)
    examine(run, config)
    resumed = rows_of(run)
    shutil.rmtree(run.path / "evaluation")
    examine(run, config)
    pd.testing.assert_frame_equal(resumed, rows_of(run))


def test_an_unknown_probe_is_refused_before_any_work(run: Run) -> None:
    with pytest.raises(InputError, match="probe must be one of"):
        examine(run, ExamineConfig(probes=("nonsense",)))
    assert not is_current(run)


def test_counts_of_hardest_negatives_are_written_with_the_probe_hubness(run: Run) -> None:
    plain = ExamineConfig(probes=("hubness",), conventions=(), what_if="", singles=(), batch_size=8)
    examine(run, plain)
    counts = rows_of(run, "hardest_negative_counts")
    train = load(run.path, split="train", cache=False)
    sides = counts.groupby("direction")["count"]
    assert sides.size().to_dict() == {"i2t": len(train.caption_ids), "t2i": len(train.image_ids)}
    assert set(sides.sum()) == {len(train.caption_ids)}  # each pair of a batch has a hardest negative on each side
    assert set(counts["batch_size"]) == {8}
    examine(run, replace(plain, probes=("similarity",)))
    assert not (run.path / "evaluation" / "hardest_negative_counts.parquet").exists()


def test_a_file_that_a_checkpoint_names_is_not_imported_unless_trusted(run: Run, tmp_path: Path) -> None:
    file, trace = tmp_path / "theirs.py", tmp_path / "imported"
    file.write_text(f"open({str(trace)!r}, 'w').close()\n\n\ndef loss(S):\n    return (1 - S.diagonal()).mean()\n")
    checkpoint = Checkpoint.load(run.best)
    replace(checkpoint, objective=f"{file}:loss").save(run.best)
    with pytest.raises(InputError, match="--trust-code"):
        examine(run, COCOS)
    assert not trace.exists()


@pytest.mark.usefixtures("typed")
def test_a_changed_file_of_the_objective_is_evaluated_anew(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    text = "import torch\n\ndef loss(S):\n    return torch.nn.functional.cross_entropy(S / 0.1, torch.arange(len(S)))\n"
    file.write_text(text)
    write_recipe(replace(read_recipe(run.config), objective=f"{file}:loss"), run.config)
    replace(Checkpoint.load(run.best), objective=f"{file}:loss").save(run.best)
    examine(run, COCOS)
    before, when = rows_of(run), stamps(run)
    examine(run, COCOS)
    assert stamps(run) == when
    file.write_text(text.replace("0.1", "0.5"))
    examine(run, COCOS)
    counts = [rows[rows["statistic"] == "C_neg"]["mean"].iloc[0] for rows in (before, rows_of(run))]
    assert counts[1] > counts[0]
    file.unlink()
    when = stamps(run)
    examine(run, COCOS)
    assert stamps(run) == when
