"""Does every study of the repository run to its end: tiny models on tiny data, with its own objectives and recipe?"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.datasets.conversion.feature_extraction import Extraction
from lossscope.registry import build
from lossscope.spec import Spec
from lossscope.studies.study import Study
from lossscope.studies.study_file import StudyGrid, StudyRun
from lossscope.studies.worker import prepare, work
from tests.studies.test_toml_files import FILES, WITH_DATA, grid_of

SCENES = "scenes:train=24,val=8,test=10,size=16"
TINY = {  # family of an encoder -> options of a tiny one; a None is left out
    "vsepp": {"dim": 8, "words": 8, "width": 4, "weights": None, "crop": None},
    "vsrn": {"dim": 8, "words": 8, "blocks": 1},
    "scan": {"dim": 8, "words": 8},
    "bfan": {"dim": 8, "words": 8},
    "sgraf": {"dim": 8, "words": 8, "sim_dim": 4},
    "vse_infty": {
        "dim": 8, "words": 8, "text": "bigru", "bert": None, "pieces": None, "image": "regions", "backbone": None,
        "weights": None,
    },
    "clip": {"path": None, "depth": 1, "heads": 1, "width": 64, "subwords": 60},
    "xvlm": {
        "embed": 32, "depths": "1/1", "window": 4, "patch": 2, "width": 64, "layers": 2, "fused": 1, "positions": 16,
        "max_tokens": 12, "dim": 8, "weights": None, "tokeniser": None, "pieces": 60,
    },
    "ce": {"dim": 6, "word_dim": 64},
    "mmt": {"dim": 8, "layers": 1, "heads": 2, "ffn": 12, "positions": 6, "bert": "small", "pieces": 60},
}  # fmt: skip
NETWORKS = re.compile(r"image=(resnet|vit)[^,]*")  # pretrained towers of vsepp; the small CNN stands in for them
STEPS = 2


@pytest.fixture(name="data", scope="module")
def tiny_data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return kind of data of the studies -> spec of tiny data of that kind."""
    folder = tmp_path_factory.mktemp("data")
    regions = folder / "regions"
    features = build("features", "hog-grid:rows=2,columns=2,cell=16")
    Extraction(SCENES, build("datasets", SCENES), features, regions, device="cpu").run(None)
    for file in regions.glob("test_*"):
        shutil.copy(file, file.with_name(file.name.replace("test", "testall")))
    of_pictures = dict.fromkeys(("karpathy", "xvlm", "scenes"), SCENES)
    of_regions = dict.fromkeys(("precomp", "grids"), f"precomp:root={regions}")
    of_videos = msrvtt(folder / "videos")
    words = f"{of_videos},words={folder / 'videos' / 'words'}"
    return {**of_pictures, **of_regions, "msrvtt": of_videos, "msrvtt with words": words}


def msrvtt(root: Path) -> str:
    """Write 24 videos of random experts and random vectors of words; return their spec."""
    root.mkdir()
    videos = [{"video_id": f"video{k}", "split": "train"} for k in range(24)]
    sentences = [{"video_id": f"video{k}", "caption": f"a dog runs {k} {i}"} for k in range(24) for i in range(2)]
    (root / "all_videodatainfo.json").write_text(json.dumps({"videos": videos, "sentences": sentences}))
    rows = "".join(f"ret{k};msr{k};video{k};a cat {k}\n" for k in range(18, 24))
    (root / "MSRVTT_JSFUSION_test.csv").write_text(f"key;vid_key;video_id;sentence\n{rows}")
    for words in (("synthetic-experts", "features", "--width", "8", "--frames", "4"), ("random-words", "words")):
        done = CliRunner().invoke(app, ["data", words[0], str(root / words[1]), "--captions", str(root), *words[2:]])
        assert done.exit_code == 0, done.output
    return f"msrvtt:root={root},held=4,frames=4"


def shrink(run: StudyRun, data: dict[str, str]) -> StudyRun:
    """Return a run with its objective, schedule and optimiser, but a tiny model, tiny data and one epoch of steps."""
    recipe = run.recipe
    encoder = Spec.parse(NETWORKS.sub("image=cnn-small", recipe.encoder))
    values = {key: value for key, value in encoder.values.items() if TINY[encoder.name].get(key, "") is not None}
    values |= {key: str(value) for key, value in TINY[encoder.name].items() if value is not None}
    has_groups = encoder.name != "vse_infty"  # whose pretrained networks are not here
    kind = recipe.data.partition(":")[0] + (" with words" if encoder.name == "ce" else "")
    return replace(
        run,
        features=run.features and "hog-grid:rows=2,columns=2,cell=16",
        recipe=replace(
            recipe,
            data=data[kind],
            encoder=str(Spec(encoder.name, values)),
            epochs=min(recipe.epochs, 1),
            steps=STEPS,
            batch_size=8,
            warmup=0,
            min_count=1,
            loss_ramp_epoch=min(recipe.loss_ramp_epoch, 1),
            lr_groups=recipe.lr_groups if has_groups else "",
            freeze=recipe.freeze if has_groups else "",
            optimiser="adam" if recipe.optimiser == "ranger" else recipe.optimiser,
            lr=min(recipe.lr, 0.01),
        ),
    )


def with_starts(grid: StudyGrid, runs: list[StudyRun]) -> list[StudyRun]:
    """Return runs, each after those that it needs, once."""
    chosen: dict[str, StudyRun] = {}
    for run in runs:
        needed = with_starts(grid, [grid.run(key) for key in run.needs])
        for each in (*needed, run):
            chosen.setdefault(each.key, each)
    return list(chosen.values())


def of_each_kind(grid: StudyGrid) -> list[StudyRun]:
    """Return the fewest runs, from the last on, that have every encoder and every family of objectives."""
    runs: list[StudyRun] = []
    seen: set[str] = set()
    for run in reversed(grid.runs):
        kinds = {f"encoder {run.encoder}", f"objective {run.recipe.objective.partition(':')[0]}"}
        if kinds - seen:
            runs.append(run)
            seen |= kinds
    return runs


def finish(path: Path, runs: list[StudyRun], data: dict[str, str], folder: Path) -> Study:
    """Do tiny versions of runs of a study, as its workers do."""
    grid = grid_of(path)
    tiny = replace(grid, runs=tuple(shrink(run, data) for run in with_starts(grid, runs)))
    study = Study.begin(folder, tiny)
    prepare(study)
    for run in study.grid.runs:
        work(study.path, run.key)
    assert [status.status for status in study.statuses()] == ["done"] * len(study.grid.runs)
    return study


@pytest.mark.parametrize("path", WITH_DATA, ids=lambda path: path.stem)
def test_the_cost_of_a_study_is_told_without_its_data(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lossscope.studies.cost._start_seconds", lambda: 3.0)
    runs = [run for run in grid_of(path).runs if not run.members]
    for run in runs:
        assert run.sizes is not None, run.data
    told = CliRunner().invoke(app, ["study", "run", str(path), "--dry-run", "--device", "cpu"])
    assert told.exit_code == 0, told.output
    stdout = " ".join(told.stdout.split())
    ensembles = len(grid_of(path).runs) - len(runs)
    more = f", and {ensembles} ensembles, which train nothing" if ensembles else ""
    assert re.search(rf"{len(runs)} runs left of {len(runs)}{more}: [1-9][\d,]+ steps of trainings", stdout)
    assert "Not timed: " in told.stderr


@pytest.mark.parametrize("stem", ["li2022-ce", "xuan2023-vsepp", "xuan2023-xvlm"])  # of the others below
def test_a_tiny_run_of_a_study_ends(stem: str, data: dict[str, str], tmp_path: Path) -> None:
    path = next(path for path in FILES if path.stem == stem)
    finish(path, [grid_of(path).runs[-1]], data, tmp_path / "study")


@pytest.mark.thorough
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_tiny_runs_of_every_model_and_objective_end(path: Path, data: dict[str, str], tmp_path: Path) -> None:
    finish(path, of_each_kind(grid_of(path)), data, tmp_path / "study")


def test_aoq_draws_from_what_the_model_that_it_begins_from_mines(data: dict[str, str], tmp_path: Path) -> None:
    path = next(path for path in FILES if path.stem == "li2022-attention")
    (run,) = (run for run in grid_of(path).runs if "bfan-equal--aoq" in run.key)
    study = finish(path, [run], data, tmp_path / "study")
    first, second = study.grid.runs
    assert (first.objective_label, second.objective_label) == ("Triplet-HN", "AOQ")
    config = (study.folder(second) / "run" / "config.toml").read_text(encoding="utf-8")
    assert f'init = "{(study.folder(first) / "run" / "best.pt").resolve()}"' in config
    assert f'offline = "{(study.folder(second) / "offline").resolve()}"' in config
