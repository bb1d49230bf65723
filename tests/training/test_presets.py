"""Is each of the papers' recipes complete, with existing names, its paper, and the data that it needs?"""

from __future__ import annotations

import pytest

from lossscope.errors import SpecError
from lossscope.registry import names
from lossscope.spec import Spec
from lossscope.training.components import resolve
from lossscope.training.recipe_files import preset_path, presets, read_recipe

WANTED = {
    "vsepp_ecir_f30k_smoothap": {"epochs": 150, "lr_step": 75, "lr": 2e-4},
    "vsepp_ecir_coco_ntxent": {"epochs": 30, "lr_step": 15, "objective": "ntxent:tau=0.1"},
    "vsrn_ecir_f30k_triplet_sh": {"lr_step": 10, "select_by": "r1_r5"},
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
}
of_presets = pytest.mark.parametrize("name", presets())


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
