"""Is each of the papers' recipes complete, with existing names, its paper, and the data that it needs?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib import resources

import pandas as pd
import pytest
from lossscope_cli import app
from typer.testing import CliRunner

from lossscope.errors import SpecError
from lossscope.registry import names
from lossscope.spec import Spec
from lossscope.training.components import resolve
from lossscope.training.optimisers import learning_rate
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import preset_path, presets, read_recipe

WANTED = {
    "vsepp_ecir_f30k_smoothap": {"epochs": 150, "lr_step": 75, "lr": 2e-4},
    "vsepp_ecir_coco_ntxent": {"epochs": 30, "lr_step": 15, "objective": "ntxent:tau=0.1"},
    "vsrn_ecir_f30k_triplet_sh": {"lr_step": 15, "select_by": "r1_r5"},
    "vsrn_ecir_f30k_smoothap": {"epochs": 150, "lr_step": 75},
    "vsrn_ecir_f30k_smoothap_released": {"epochs": 150, "lr_step": 50},
    "vsrn_ecir_coco_smoothap": {"epochs": 150, "lr_step": 75},
    "vse_infty_region_bert": {"weight_decay": 1e-4, "lr_groups": "bert=0.1", "warmup": 1, "drop_last": True},
    "vse_infty_grid_butd_bert": {"lr_groups": "bert=0.1,backbone=0.01", "freeze": "backbone=1", "loss_ramp_epoch": 2},
    "vse_infty_region_bigru": {"weight_decay": 1e-2, "lr": 5e-4, "epochs": 25},
    "scan_t2i_avg_f30k": {"lr": 2e-4, "epochs": 30, "lr_step": 15},
    "scan_i2t_avg_coco": {"lr": 5e-4, "epochs": 20, "lr_step": 10},
    "bfan_equal_f30k": {"epochs": 15, "lr": 2e-4},
    "bfan_prob_coco": {"epochs": 20, "lr": 5e-4},
    "sgraf_saf_f30k": {"epochs": 30, "lr_step": 20},
    "sgraf_sgr_f30k": {"epochs": 40, "lr_step": 30},
    "sgraf_sgr_coco": {"epochs": 20, "lr_step": 10},
    "xvlm_coco": {"lr": 3e-5, "schedule": "linear", "lr_warmup": 0.1, "batch_size": 20, "beta2": 0.98},
    "mmt_msrvtt_1ka": {"lr": 5e-5, "lr_gamma": 0.95, "steps": 1000, "batch_size": 32, "select_by": "last"},
    "ce_msrvtt_full": {"optimiser": "ranger", "lr": 0.1, "weight_decay": 1e-3, "batch_size": 64},
    "unified_vsepp_butd": {"objective": "unified:margin=0.2,gamma=60", "epochs": 20, "lr": 5e-4},
    "unified_clip": {"objective": "unified:margin=0.2,gamma=50", "epochs": 10},
    "goal_vsepp_vit": {"epochs": 30, "lr": 2e-4, "lr_step": 15},
    "goal_vsepp_resnet152_finetuned": {"epochs": 15, "lr": 2e-5},
}
of_presets = pytest.mark.parametrize("name", presets())


OF_PAPERS = {  # section of a paper -> its recipes, each a preset
    "001, 3": [
        f"{tower}_ecir_{data}_{loss}"
        for tower in ("vsepp", "vsrn")
        for data in ("f30k", "coco")
        for loss in ("triplet", "triplet_sh", "ntxent", "smoothap")
    ],
    "000, 4.3": [f"goal_vsepp_{network}{step}" for network in ("resnet152", "vit") for step in ("", "_finetuned")],
    "000, 4.3, VSE-infinity": ["vse_infty_region_bert", "vse_infty_grid_wsl_bert"],
    "000, 4.4": ["xvlm_f30k", "xvlm_coco"],
    "003, B.1.1 and B.1.3": ["unified_vsepp_butd", "unified_bfan", "unified_sgraf", "unified_scan"],
    "003, B.1.2": ["unified_clip"],
    "003, B.1.4": ["unified_ce", "unified_mmt"],
}


METHODS = {  # method of the printed recipes -> beginning of the names of its presets
    "VSE++": "vsepp_ecir", "VSRN": "vsrn_ecir", "VSE++ (BUTD)": "unified_vsepp_butd", "BFAN": "unified_bfan",
    "SGRAF": "unified_sgraf", "SCAN": "unified_scan", "CLIP": "unified_clip", "MMT": "unified_mmt", "CE": "unified_ce",
}  # fmt: skip
CHOICES: dict[str, Callable[[Recipe], float]] = {  # key of the printed recipes -> the number in a recipe
    "epochs": lambda recipe: recipe.epochs,
    "batch_size": lambda recipe: recipe.batch_size,
    "learning_rate": lambda recipe: recipe.lr,
    "learning_rate_after_drop": lambda recipe: recipe.lr * recipe.lr_gamma,
    "lr_drop_after_epoch": lambda recipe: recipe.lr_step,
    "lr_drop_factor": lambda recipe: 1 / recipe.lr_gamma,
    "unified_m": lambda recipe: float(Spec.parse(recipe.objective).values["margin"]),
    "unified_gamma": lambda recipe: float(Spec.parse(recipe.objective).values["gamma"]),
}


def test_every_recipe_of_the_papers_is_a_preset() -> None:
    listed = {item["name"] for item in json.loads(CliRunner().invoke(app, ["list", "presets", "--format=json"]).stdout)}
    assert [name for wanted in OF_PAPERS.values() for name in wanted if name not in listed] == []


def test_the_recipes_have_the_numbers_that_the_papers_print() -> None:
    """Every method and number of the texts' recipes is that of its presets; times five for SmoothAP's epochs."""
    printed = pd.read_csv(resources.files("lossscope.tables.published") / "recipes.csv", keep_default_na=False)
    printed = printed[~printed["source_section"].str.startswith("(") & printed["key"].isin(CHOICES)]
    printed = printed[~printed["method"].str.contains("only")]  # SmoothAP's epochs: "multiplied by k"
    compared: Counter[str] = Counter()
    for row in printed.to_dict("records"):
        for method in set(row["method"].split("|")) & set(METHODS):
            for name in (name for wanted in OF_PAPERS.values() for name in wanted if name.startswith(METHODS[method])):
                times = 5 if name.endswith("smoothap") and row["key"] in ("epochs", "lr_drop_after_epoch") else 1
                value = CHOICES[row["key"]](read_recipe(preset_path(name)))
                assert value == pytest.approx(float(row["value"]) * times), (name, row["key"])
                compared[method] += 1
    assert set(compared) == set(METHODS) and compared["VSRN"] == 8 * 5 and compared["MMT"] == 2


@pytest.mark.parametrize("loss", ["triplet", "triplet_sh", "ntxent", "smoothap"])
def test_the_released_jobs_of_vsrn_differ_from_the_text_in_the_rate_alone(loss: str) -> None:
    text = read_recipe(preset_path(f"vsrn_ecir_f30k_{loss}"))
    released = read_recipe(preset_path(f"vsrn_ecir_f30k_{loss}_released"))
    assert replace(released, lr_step=text.lr_step) == text != released
    rates = [{round(learning_rate(recipe, epoch), 9) for epoch in range(recipe.epochs)} for recipe in (text, released)]
    assert rates == [{2e-4, 2e-5}, {2e-4, 2e-5, 2e-6}]


@of_presets
def test_a_preset_is_a_recipe_of_things_that_exist(name: str) -> None:
    recipe = read_recipe(preset_path(name))
    assert resolve(recipe).sampling.batch_size == recipe.batch_size
    assert Spec.parse(recipe.encoder).name in names("encoders")


@of_presets
def test_a_preset_says_what_it_is_and_what_it_reads(name: str) -> None:
    text = preset_path(name).read_text(encoding="utf-8")
    assert presets()[name]
    assert any(line.startswith("# Data: ") for line in text.splitlines())
    assert "data =" not in text


@pytest.mark.parametrize("name", WANTED)
def test_the_published_values_are_stated(name: str) -> None:
    recipe = read_recipe(preset_path(name))
    assert {key: getattr(recipe, key) for key in WANTED[name]} == WANTED[name]


def test_a_name_is_found_with_dashes_and_a_wrong_one_gets_its_neighbours() -> None:
    assert preset_path("SCAN-t2i-avg-f30k").stem == "scan_t2i_avg_f30k"
    with pytest.raises(SpecError, match="got 'scan_t2i'; did you mean scan_t2i_avg"):
        preset_path("scan_t2i")
