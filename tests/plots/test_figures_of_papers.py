"""Is every numbered figure of the papers that shows data a picture, and does a command draw it?

Xuan & Chen 2023 (GOAL) has Figures 1-3; Figure 1 is a drawing of the method. Bleeker & de Rijke 2022 has none. Li et
al. 2022 (Unified loss) has Figures 1-5.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from lossscope.declarations import declarations
from lossscope.plots import sensitivity, training, trajectory
from tests.command_line import lossscope
from tests.each import each
from tests.plots.frames import FRAMES

FIGURES = {("GOAL", 2), ("GOAL", 3), *(("Unified loss", number) for number in range(1, 6))}
LOSSES = ("--objective", "triplet-sh", "--objective", "unified:gamma=5")
COMMANDS = {  # picture -> what `lossscope diagram` needs to draw it
    "triplet_field": ("--triplet", "con", "--triplet", "nca", "--triplet", "cir"),
    "pair_curves": ("--pair", "con", "--pair", "lin", "--pair", "sig", "--pair", "lin-ms", "--pair", "sig-ms"),
    "circle_steps": (*LOSSES, "--on-circle", "0.5,0.75,0.6,-0.5"),
    "tangent_cloud": (*LOSSES, "--overlay", "{run}", "--path", "--tangent"),
}
TRAINED = (training, trajectory, sensitivity)  # of trained runs: `lossscope report` and `render` draw them


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _figures(question: str) -> set[tuple[str, int]]:
    found = re.findall(r"\((GOAL|Unified loss),? Figure (\d)", question)
    return {(paper, int(number)) for paper, number in found}


def test_the_figures_are_those_that_pictures_name_and_each_has_a_command() -> None:
    named = {item.name: _figures(item.question) for item in declarations("pictures")}
    assert sorted(figure for figures in named.values() for figure in figures) == sorted(FIGURES)
    of_papers = {name for name, figures in named.items() if figures}
    assert of_papers == {*COMMANDS, *(module.__name__.rpartition(".")[2] for module in TRAINED)}


@each("picture", COMMANDS)
def test_the_numbers_of_a_diagram_give_the_figure(picture: str, tiny_run: Path) -> None:
    line = ["diagram", *(word.format(run=tiny_run) for word in COMMANDS[picture]), "--points", "5", "-q"]
    Path("rows.csv").write_text(lossscope(*line, "--format", "csv").stdout, encoding="utf-8")
    _render(picture)


@each("module", TRAINED)
def test_numbers_of_trained_runs_give_the_figure(module: ModuleType) -> None:
    FRAMES[module]()[1].to_csv("rows.csv", index=False)
    _render(module.__name__.rpartition(".")[2])


def _render(picture: str) -> None:
    result = lossscope("render", picture, "rows.csv", "-o", "drawn.png")
    assert result.exit_code == 0, result.stderr
    assert Path("drawn.png").stat().st_size > 10_000
