"""Are the studies of the repository what they say: the papers' recipes and rows, and do the small ones run?"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.report.chapters import sensitivity
from lossscope.report.chapters.base import ReportData
from lossscope.report.papers import papers
from lossscope.report.results import read_results
from lossscope.studies.study import Study
from lossscope.studies.study_file import StudyGrid, StudyRun, read_study_file
from lossscope.studies.worker import work
from lossscope.tables import _printed
from lossscope.tables.published import base as published
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import read_recipe
from lossscope.training.recipes import preset_path

HOME = Path(__file__).parents[2] / "studies"
FILES = sorted(path for path in HOME.glob("*.toml") if path.stem != "objectives")  # which is the text of a report
SMALL = [path for path in FILES if path.stem.endswith("-small")]
NEEDING = [path for path in FILES if path not in SMALL]  # data of this machine
FULL = [path for path in NEEDING if path.stem != "bleeker2022-flickr8k"]  # with recipes of their own
PUBLISHED = {"bleeker2022": "bleeker2022", "xuan2023": "xuan2023_goal", "li2022": "li2022_unified"}
Who = tuple[str, str, _printed.Key]


@cache
def grid_of(path: Path) -> StudyGrid:
    """The grid of a study as it stands."""
    return read_study_file(path)


def head(path: Path) -> str:
    """The comment that a study begins with, its broken lines joined."""
    lines = path.read_text(encoding="utf-8").split("\nname =")[0].splitlines()
    return re.sub(r"\\\n\s*", "", "\n".join(line.removeprefix("#") for line in lines))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_study_says_what_it_is_and_fits_its_paper(path: Path) -> None:
    grid = grid_of(path)
    assert grid.name == path.stem and grid.about.endswith("?")
    assert f"lossscope study run studies/{path.name}" in head(path)
    assert grid.paper in {None, *PUBLISHED} and (grid.paper is None) == ("sensitivity" in path.stem)
    if grid.paper is not None:
        rows = published.load(PUBLISHED[grid.paper])
        assert {cell.dataset for cell in grid.cells} <= set(rows["dataset"])
        assert {cell.method for cell in grid.cells} - {None} <= set(rows["method"])


@pytest.mark.parametrize("path", NEEDING, ids=lambda path: path.stem)
def test_the_command_in_its_head_names_every_data_entry(path: Path) -> None:
    grid = grid_of(path)
    given = dict(text.split("=", 1) for text in re.findall(r'--data "([^"]+)"', head(path)))
    assert set(given) == {cell.data for cell in grid.cells}
    other = read_study_file(path, {name: spec.replace("DIR", "/elsewhere") for name, spec in given.items()})
    for mine, theirs in zip(grid.cells, other.cells, strict=True):
        assert "root=/elsewhere" in theirs.recipe.data
        assert _where(mine.recipe.data) == _where(theirs.recipe.data)  # the same options at another place
        assert dataclasses.replace(mine.recipe, data="x") == dataclasses.replace(theirs.recipe, data="x")


def _where(data: str) -> str:
    return re.sub(r"(root|words)=[^,]+", r"\1=HERE", data)


def _preset(stem: str, cell: StudyRun) -> str | None:
    """The preset of `lossscope train` with the recipe of a cell, where there is one."""
    objective = cell.recipe.objective.partition(":")[0]
    if stem.startswith("bleeker2022"):
        tower = "vsrn" if cell.encoder == "VSRN" else "vsepp"
        return f"{tower}_ecir_{'coco' if cell.data.startswith('COCO') else 'f30k'}_{objective}"
    presets = {
        "xuan2023-vse-infty-butd": "vse_infty_region_bert", "xuan2023-vse-infty-wsl": "vse_infty_grid_wsl_bert",
        "li2022": "unified_vsepp_butd", "li2022-sensitivity": "unified_vsepp_butd", "li2022-clip": "unified_clip",
        "li2022-ce": "ce_msrvtt_full", "li2022-mmt": "mmt_msrvtt_1ka",
    }  # fmt: skip
    of_encoder = {"SCAN T2I AVG": "unified_scan", "BFAN (equal)": "unified_bfan", "SGRAF, SGR": "unified_sgraf"}
    return presets.get(stem) or of_encoder.get(cell.encoder)


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.stem)
def test_cells_have_the_recipes_of_the_presets(path: Path) -> None:
    met = 0
    for cell in grid_of(path).cells:
        preset = _preset(path.stem, cell)
        if preset is None:
            continue
        met += 1
        wanted = read_recipe(preset_path(preset)).canonical()
        same: dict[str, Any] = {"data": "", "objective": "", "seed": 0, "encoder": ""}
        assert dataclasses.replace(cell.recipe, **same) == dataclasses.replace(wanted, **same), cell.key
        assert _shape(cell.recipe) == _shape(wanted), cell.key
    assert met or path.stem == "xuan2023-vsepp"


def _shape(recipe: Recipe) -> Mapping[str, str]:
    """The encoder's options, files aside."""
    name, _, options = recipe.encoder.partition(":")
    pairs = dict(pair.split("=", 1) for pair in options.split(","))
    return {"name": name, **{k: v for k, v in pairs.items() if k not in ("weights", "bert", "path", "tokeniser")}}


def test_objectives_of_the_bleeker_studies_are_those_of_their_presets() -> None:
    for path in FULL:
        if path.stem.startswith("bleeker2022"):
            for cell in grid_of(path).cells:
                preset = _preset(path.stem, cell)
                assert preset is not None
                assert cell.recipe.objective == read_recipe(preset_path(preset)).canonical().objective


def _cells_of(paper: str) -> set[Who]:
    grids = [grid_of(path) for path in FULL]
    cells = [cell for grid in grids if grid.paper == paper for cell in grid.cells]
    return {(cell.dataset or "", cell.method or "", _printed.key_of(cell.recipe.objective)) for cell in cells}


def _rows_of(paper: str, *tables: int) -> set[Who]:
    printed = [row for t in tables for _, row in _printed.Printed.of(PUBLISHED[paper], t).rows.iterrows()]
    return {(row["dataset"], row["method"], _printed.keyed(row)) for row in printed if _printed.keyed(row)[0]}


def test_the_full_studies_have_every_row_of_their_tables() -> None:
    assert _rows_of("bleeker2022", 1, 2, 3, 4) == _cells_of("bleeker2022")
    grids, ours = _rows_of("xuan2023", 2, 3, 4, 5), _cells_of("xuan2023")
    assert grids <= ours and len([who for who in ours if who[2][0] == "goal"]) == 15 * 6
    assert {who for who in _rows_of("xuan2023", 6) - ours if who[0] == "mscoco" and who[2][0] == "goal"} == {
        ("mscoco", "X-VLM", ("goal", "cir", "sig_ms"))
    }
    missing = {who for who in _rows_of("li2022", 1, 2, 3, 4, 5, 7) - _cells_of("li2022") if "*" not in who[1]}
    assert {who[2][0] for who in missing if who[0] != "mscoco"} == {"rsp", "meta_spn"}  # of which there is no code
    assert {who[1] for who in missing if who[0] == "mscoco"} == {"VSE++ (BUTD)"}  # folds


def test_the_grid_of_goal_is_whole_in_every_study() -> None:
    wanted = {(t, p) for t in ("con", "nca", "cir") for p in ("con", "lin", "sig", "lin_ms", "sig_ms")}
    for path in FILES:
        if path.stem.startswith("xuan2023"):
            for encoder, found in _combinations(grid_of(path)).items():
                assert found == wanted, encoder


def _combinations(grid: StudyGrid) -> dict[str, set[tuple[str | None, str | None]]]:
    found: dict[str, set[tuple[str | None, str | None]]] = {}
    for cell in grid.cells:
        name, triplet, pair = _printed.key_of(cell.recipe.objective)
        if name == "goal":
            found.setdefault(cell.encoder, set()).add((triplet, pair))
    return found


def cut(path: Path, folder: Path) -> Path:
    """The same study on a few pictures: one seed, one epoch, narrow models; objectives as they are."""
    text = path.read_text(encoding="utf-8")
    for old, new in (
        (r"seeds = \[.*\]", "seeds = [0]"), (r"epochs = \d+", "epochs = 1"), (r"warmup = \d+", "warmup = 0"),
        (r"batch_size = \d+", "batch_size = 12"), (r"train=.*,size=\d+", "train=40,val=8,test=12,size=16"),
        (r"width=\d+,", "width=4,"), (r"dim=\d+", "dim=8"), (r"words=\d+", "words=8"),
        (r"rows=3,columns=3", "rows=2,columns=2"), (r"ambiguity = \[0.1, .*\]", "ambiguity = [0.1]"),
    ):  # fmt: skip
        text = re.sub(old, new, text)
    made = folder / path.name
    made.write_text(text, encoding="utf-8")
    return made


TABLES = {
    "bleeker2022-small": {"bleeker2022_1", "bleeker2022_2", "bleeker2022_3", "bleeker2022_4"},
    "xuan2023-small": {"xuan2023_2", "xuan2023_3", "xuan2023_5", "xuan2023_6"},
    "li2022-small": {"li2022_1", "li2022_5"},
    "li2022-sensitivity-small": set(),
}


@pytest.mark.slow
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_a_small_study_runs_and_fills_its_tables(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    file = cut(path, tmp_path)
    cost = CliRunner().invoke(app, ["study", "run", str(file), "--dry-run", "--device", "cpu"])
    assert cost.exit_code == 0 and "minutes of work" in cost.stdout and "a few steps" in cost.stdout, cost.output
    study = Study.opened(tmp_path / "runs" / path.stem)
    for cell in study.grid.cells:  # as launchers do, but within this process
        work(study.path, cell.key)
    assert {state.status for state in study.states()} == {"done"}
    shown = CliRunner().invoke(app, ["study", "table", str(file)])
    assert shown.exit_code == 0, shown.output
    results = read_results([study.path])
    tables = [table for counted in (True, False) for table in papers(ReportData(results), counted)]
    names = {match[1] for table in tables if (match := re.match(r"([a-z]+\d+_\d)", table.name))}
    assert names >= TABLES[path.stem] and (TABLES[path.stem] or not names)
    swept = [item.name for section in sensitivity.build(ReportData(results)) for item in section.everything]
    assert bool(swept) == ("sensitivity" in path.stem)
    for table in tables:
        assert table.caption[:60] in shown.stdout
        if table.name.startswith(("xuan2023_3", "xuan2023_5")):
            assert len(table.rows) == 5 and not any(cell.missing for row in table.rows for cell in row[1:])
