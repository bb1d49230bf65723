"""The demo: one call from training to page, that can be stopped and gone on with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.io.run_folder import Run
from lossscope.studies.demo import AMBIGUOUS, Demo, demo
from lossscope.training.recipe import Recipe

TINY = "scenes:train=64,val=20,test=20,size=16"


class Small(Demo):
    """The same demo on next to nothing."""

    def recipes(self) -> dict[str, Recipe]:
        found = super().recipes()
        small = {
            name: replace(recipe, data=TINY, encoder="vsepp:width=4,dim=16,words=8", epochs=2, batch_size=16, warmup=1)
            for name, recipe in found.items()
        }
        return {name: recipe.canonical() for name, recipe in small.items()}


pytestmark = pytest.mark.slow  # a demo takes seconds even when it is the smallest


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demo")
    demo(out, Small(quick=True, points=21))
    return out


def test_the_plan_trains_four_losses_and_one_run_on_ambiguous_captions() -> None:
    recipes = Demo().recipes()
    assert list(recipes) == ["triplet", "triplet_sh", "ntxent", "smoothap", AMBIGUOUS]
    assert "ambiguity=0.9" in recipes[AMBIGUOUS].data
    assert len({recipe.encoder for recipe in recipes.values()}) == 1
    assert len({recipe.seed for recipe in recipes.values()}) == 1


def test_the_folder_has_page_tables_pictures_and_checkpoints(made: Path) -> None:
    listing = json.loads((made / "index.json").read_text())
    assert (made / "index.html").stat().st_size > 10_000
    assert listing
    for name in ("retrieval", "cocos_triplet", "cocos_softmax", "cocos_smoothap", "recall_beside_counts"):
        assert (made / "csv" / f"{name}.csv").is_file()
        assert (made / "latex" / f"{name}.tex").is_file()
    for name in ("triplet_weights", "pair_weights", "loss_weights", "counts", "trajectories"):
        assert (made / "figures" / f"{name}.png").is_file()
    assert len(list(made.glob("runs/*/best.pt"))) == 5


def test_the_numbers_of_the_page_are_those_of_the_summary(made: Path) -> None:
    rows = pd.read_csv(made / "summary.csv")
    table = pd.read_csv(made / "csv" / "retrieval.csv")
    rsum = rows[rows["statistic"] == "rsum"].set_index("source")["mean"]
    assert table.set_index("source")["rsum"].to_dict() == pytest.approx(rsum.to_dict())
    assert {"corrected", "released"} <= set(rows["convention"].dropna())


def test_a_finished_demo_is_not_trained_again(made: Path) -> None:
    said: list[str] = []
    before = Run(made / "runs" / "ntxent").last.stat().st_mtime_ns
    demo(made, Small(quick=True, points=21), tell=said.append)
    assert Run(made / "runs" / "ntxent").last.stat().st_mtime_ns == before
    assert not [line for line in said if "epoch 1" in line]


def test_a_demo_of_another_seed_in_the_same_folder_is_refused(made: Path) -> None:
    with pytest.raises(InputError, match="trained otherwise"):
        demo(made, Small(quick=True, points=21, seed=1))
