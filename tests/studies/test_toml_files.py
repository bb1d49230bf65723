"""Have the studies of the repository the recipes and rows of their papers, and do the small ones run?"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.report.chapters import sensitivity
from lossscope.report.chapters.base import ReportData
from lossscope.report.papers import build_paper_tables, papers_with_tables
from lossscope.studies.report import read_runs
from lossscope.studies.study import Study
from lossscope.studies.study_file import StudyGrid, StudyRun, read_study_file
from lossscope.studies.worker import work
from lossscope.tables import _printed
from lossscope.tables.published import base as published
from lossscope.training.components import resolve
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import preset_path, read_recipe

HOME = Path(__file__).parents[2] / "studies"
FILES = sorted(path for path in HOME.glob("*.toml") if path.stem != "objectives")  # objectives: the text of a report
SMALL = [path for path in FILES if path.stem.endswith("-small")]
WITH_DATA = [path for path in FILES if path not in SMALL]  # they need data on this machine
FULL = [path for path in WITH_DATA if path.stem != "bleeker2022-flickr8k"]  # with recipes of their own
PUBLISHED = {"bleeker2022": "bleeker2022", "xuan2023": "xuan2023_goal", "li2022": "li2022_unified"}
Row = tuple[str, str, _printed.Key]  # dataset, method, objective


@cache
def grid_of(path: Path) -> StudyGrid:
    """Return the runs of a study file."""
    return read_study_file(path)


def head(path: Path) -> str:
    """Return the comment at the top of a study file, its continued lines joined."""
    lines = path.read_text(encoding="utf-8").split("\nname =")[0].splitlines()
    return re.sub(r"\\\n\s*", "", "\n".join(line.removeprefix("#") for line in lines))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_study_is_described_and_fits_its_paper(path: Path) -> None:
    grid = grid_of(path)
    assert grid.name == path.stem and grid.about.endswith("?")
    assert f"lossscope study run studies/{path.name}" in head(path)
    assert grid.paper in {None, *PUBLISHED} and (grid.paper is None) == ("sensitivity" in path.stem)
    if grid.paper is not None:
        rows = published.load(PUBLISHED[grid.paper])
        assert {run.dataset for run in grid.runs} <= set(rows["dataset"])
        assert {run.method for run in grid.runs} - {None} <= set(rows["method"])


@pytest.mark.parametrize("path", WITH_DATA, ids=lambda path: path.stem)
def test_the_command_at_the_top_names_every_data_entry(path: Path) -> None:
    grid = grid_of(path)
    specs = dict(text.split("=", 1) for text in re.findall(r'--data "([^"]+)"', head(path)))
    assert set(specs) == {run.data for run in grid.runs}
    moved = read_study_file(path, {name: spec.replace("DIR", "/elsewhere") for name, spec in specs.items()})
    for run, elsewhere in zip(grid.runs, moved.runs, strict=True):
        assert "root=/elsewhere" in elsewhere.recipe.data
        assert _without_paths(run.recipe.data) == _without_paths(elsewhere.recipe.data)  # the same options
        assert dataclasses.replace(run.recipe, data="x") == dataclasses.replace(elsewhere.recipe, data="x")


def _without_paths(data: str) -> str:
    return re.sub(r"(root|words)=[^,]+", r"\1=HERE", data)


def _preset(stem: str, run: StudyRun) -> str | None:
    """Return the preset of `lossscope train` with the recipe of a run, or None."""
    objective = run.recipe.objective.partition(":")[0]
    if stem.startswith("bleeker2022"):
        tower = "vsrn" if run.encoder == "VSRN" else "vsepp"
        return f"{tower}_ecir_{'coco' if run.data.startswith('COCO') else 'f30k'}_{objective}"
    presets = {
        "xuan2023-vse-infty-butd": "vse_infty_region_bert", "xuan2023-vse-infty-wsl": "vse_infty_grid_wsl_bert",
        "xuan2023-vse-infty-butd-flickr30k": "vse_infty_region_bert",
        "xuan2023-vse-infty-wsl-flickr30k": "vse_infty_grid_wsl_bert",
        "li2022": "unified_vsepp_butd", "li2022-sensitivity": "unified_vsepp_butd", "li2022-clip": "unified_clip",
        "li2022-ce": "ce_msrvtt_full", "li2022-mmt": "mmt_msrvtt_1ka",
    }  # fmt: skip
    of_encoder = {
        "SCAN T2I AVG": "unified_scan", "BFAN (equal)": "unified_bfan", "SGRAF, SGR": "unified_sgraf",
        "VSE++ (BUTD)": "unified_vsepp_butd",
        "VSE++ ResNet152": "goal_vsepp_resnet152", "VSE++ ResNet152, fine-tuned": "goal_vsepp_resnet152_finetuned",
        "VSE++ ViT": "goal_vsepp_vit", "VSE++ ViT, fine-tuned": "goal_vsepp_vit_finetuned",
        "X-VLM, vectors": "xvlm_coco",
    }  # fmt: skip
    return presets.get(stem) or of_encoder.get(run.encoder)


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.stem)
def test_runs_have_the_recipes_of_the_presets(path: Path) -> None:
    compared = 0
    for run in grid_of(path).runs:
        preset = _preset(path.stem, run)
        if preset is None or not run.recipe.epochs:
            continue
        compared += 1
        expected = _recipe_of(preset)
        same: dict[str, Any] = {"data": "", "objective": "", "seed": 0, "encoder": ""}
        assert dataclasses.replace(run.recipe, **same) == dataclasses.replace(expected, **same), run.key
        assert _encoder_options(run.recipe) == _encoder_options(expected), run.key
    assert compared


def _recipe_of(preset: str) -> Recipe:
    return resolve(read_recipe(preset_path(preset))).recipe


def _encoder_options(recipe: Recipe) -> Mapping[str, str]:
    """Return the encoder's options without its files, and without the candidates that a re-ranking scores."""
    name, _, options = recipe.encoder.partition(":")
    pairs = dict(pair.split("=", 1) for pair in options.split(","))
    left_out = ("weights", "bert", "path", "tokeniser", "k_test")
    return {"name": name, **{k: v for k, v in pairs.items() if k not in left_out}}


def test_objectives_of_the_bleeker_studies_are_those_of_their_presets() -> None:
    for path in FULL:
        if path.stem.startswith("bleeker2022"):
            for run in grid_of(path).runs:
                preset = _preset(path.stem, run)
                assert preset is not None
                assert run.recipe.objective == _recipe_of(preset).objective


def _runs_of(paper: str) -> set[Row]:
    grids = [grid_of(path) for path in FULL]
    runs = [run for grid in grids if grid.paper == paper for run in grid.runs]
    losses = [run.recipe.objective if run.recipe.epochs or run.begins_from else None for run in runs]
    keys = map(_printed.key_of, losses)
    return {(run.dataset or "", run.method or "", key) for run, key in zip(runs, keys, strict=True)}


def _rows_of(paper: str, *tables: int) -> set[Row]:
    printed = [row for t in tables for _, row in _printed.PrintedTable.read(PUBLISHED[paper], t).rows.iterrows()]
    return {(row["dataset"], row["method"], _printed.key_of_row(row)) for row in printed if _printed.key_of_row(row)[0]}


def test_the_full_studies_have_every_row_of_their_tables() -> None:
    assert _rows_of("bleeker2022", 1, 2, 3, 4) == _runs_of("bleeker2022")
    runs = _runs_of("xuan2023")
    assert _rows_of("xuan2023", 2, 3, 4, 5, 6) <= runs
    of_goal = Counter(dataset for dataset, method, (name, *_) in runs if method and name == "goal")
    assert of_goal == {"mscoco": 15 * 6 + 1, "flickr30k": 3 + 1 + 1}  # X-VLM's, and of Flickr30k the first step's
    missing = _rows_of("li2022", 1, 2, 3, 4, 5, 6, 7) - _runs_of("li2022")
    assert not missing
    assert {(data, "CLIP", _printed.NO_LOSS) for data in ("flickr30k", "mscoco")} <= _runs_of("li2022")  # zero-shot


def test_the_grid_of_goal_is_complete_in_every_study() -> None:
    expected = {(t, p) for t in ("con", "nca", "cir") for p in ("con", "lin", "sig", "lin_ms", "sig_ms")}
    for path in FILES:
        if path.stem.startswith("xuan2023") and not path.stem.endswith(("flickr30k", "xvlm")):  # of Table 6 alone
            for encoder, combinations in _combinations(grid_of(path)).items():
                assert combinations == expected, encoder


def _combinations(grid: StudyGrid) -> dict[str, set[tuple[str | None, str | None]]]:
    combinations: dict[str, set[tuple[str | None, str | None]]] = {}
    for run in grid.runs:
        name, triplet, pair = _printed.key_of(run.recipe.objective)
        if name == "goal":
            combinations.setdefault(run.encoder, set()).add((triplet, pair))
    return combinations


def test_every_small_study_has_its_report_and_every_paper_one() -> None:
    reports = HOME.parent / "reports"
    readme = (reports / "README.md").read_text(encoding="utf-8")
    for path in SMALL:
        keys = pd.read_csv(reports / path.stem / "csv" / "runs.csv")["run"]
        assert set(keys) == {run.key for run in grid_of(path).runs}
        assert f"({path.stem}/)" in readme
    assert {grid_of(path).paper for path in SMALL} - {None} == set(papers_with_tables())


def shrink(path: Path, folder: Path) -> Path:
    """Write the study with its objectives, but a few pictures, one seed, one epoch, narrow models and one probe."""
    text = path.read_text(encoding="utf-8")
    for old, new in (
        (r"seeds = \[.*\]", "seeds = [0]"), (r"epochs = \d+", "epochs = 1"), (r"warmup = \d+", "warmup = 0"),
        (r"batch_size = \d+", "batch_size = 12"), (r"train=.*,size=\d+", "train=40,val=8,test=12,size=16"),
        (r"width=\d+,", "width=4,"), (r"dim=\d+", "dim=8"), (r"words=\d+", "words=8"),
        (r"rows=3,columns=3", "rows=2,columns=2"), (r"ambiguity = \[0.1, .*\]", "ambiguity = [0.1]"),
        (r'what_if = ""\n', ""), (r"(?m)^\[examine\].*$", '[examine]\nprobes = ["cocos"]\nsingles = []\nwhat_if = ""'),
    ):  # fmt: skip
        text = re.sub(old, new, text)
    smaller = folder / path.name
    smaller.write_text(text, encoding="utf-8")
    return smaller


TABLES = {
    "bleeker2022-small": {"bleeker2022_1", "bleeker2022_2", "bleeker2022_3", "bleeker2022_4"},
    "xuan2023-small": {"xuan2023_2", "xuan2023_3", "xuan2023_5", "xuan2023_6"},
    "li2022-small": {"li2022_1", "li2022_5"},
    "li2022-sensitivity-small": set(),
}


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[] if path.stem == "li2022-small" else pytest.mark.thorough) for path in SMALL],
    ids=lambda path: path.stem,
)
def test_a_small_study_runs_and_fills_its_tables(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("lossscope.studies.cost._start_seconds", lambda: 3.0)
    file = shrink(path, tmp_path)
    cost = CliRunner().invoke(app, ["study", "run", str(file), "--dry-run", "--device", "cpu"])
    assert cost.exit_code == 0 and "minutes of work" in cost.stdout and "a few steps" in cost.stdout, cost.output
    study = Study.open(tmp_path / "runs" / path.stem)
    for run in study.grid.runs:  # as launchers do, but within this process
        work(study.path, run.key)
    assert {status.status for status in study.statuses()} == {"done"}
    printed = CliRunner().invoke(app, ["study", "table", str(file)])
    assert printed.exit_code == 0, printed.output
    results = read_runs([study.path])
    tables = [
        table for counts in (True, False) for table in build_paper_tables(results.paper, results.rows, None, counts)
    ]
    names = {match[1] for table in tables if (match := re.match(r"([a-z]+\d+_\d)", table.name))}
    assert names >= TABLES[path.stem] and (TABLES[path.stem] or not names)
    pictures = [item.name for section in sensitivity.build(ReportData(results)) for item in section.all_items]
    assert bool(pictures) == ("sensitivity" in path.stem)
    for table in tables:
        assert table.caption[:60] in printed.stdout
        if table.name.startswith(("xuan2023_3", "xuan2023_5")):
            assert len(table.rows) == 5 and not any(cell.missing for row in table.rows for cell in row[1:])
