"""Does lossscope group runs into systems by their recipes, and name the systems after their differences?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from lossscope.errors import InputError
from lossscope.registry import build, spec_of
from lossscope.stats.naming import TrainedModel, label_systems, name_systems
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import printed_choices


def model(name: str, **choices: Any) -> TrainedModel:
    recipe = Recipe(**choices)
    kinds = {"data": "datasets", "encoder": "encoders", "objective": "objectives"}
    full_specs = {field: spec_of(build(kind, getattr(recipe, field))) for field, kind in kinds.items()}
    return TrainedModel(name, recipe.seed, printed_choices(asdict(recipe) | full_specs))


def names(*models: TrainedModel, **more: Any) -> list[object]:
    return [row["objective_label"] for row in name_systems(models, **more)]


def test_runs_that_differ_in_their_seed_alone_are_one_system() -> None:
    rows = name_systems([model("a", seed=0), model("b", seed=1), model("c", seed=1, objective="triplet:margin=0.3")])
    assert [row["objective_label"] for row in rows] == ["ntxent", "ntxent", "triplet:margin=0.3"]
    assert [row["seed"] for row in rows] == [0, 1, 1]
    assert [row["run"] for row in rows] == ["a", "b", "c"]
    assert {row["encoder"] for row in rows} == {"vsepp"}
    assert {str(row["data"]).partition(":")[0] for row in rows} == {"scenes"}


def test_names_have_every_choice_that_differs() -> None:
    assert names(model("a"), model("b", lr=0.1), model("c", lr=0.1, batch_size=64)) == [
        "ntxent, batch-size 128, lr 0.001", "ntxent, batch-size 128, lr 0.1", "ntxent, batch-size 64, lr 0.1",
    ]  # fmt: skip
    rows = name_systems([model("a"), model("b", encoder="vsepp:dim=64")])
    assert [row["objective_label"] for row in rows] == ["ntxent, vsepp", "ntxent, vsepp:dim=64"]
    assert {row["encoder"] for row in rows} == {"several"}


def test_runs_with_their_own_first_stages_are_seeds_of_one_system() -> None:
    assert names(model("a", init="a.pt"), model("b", init="b.pt", seed=1)) == ["ntxent", "ntxent"]
    assert names(model("a", init="a.pt"), model("b", init="b.pt")) == ["ntxent, init a.pt", "ntxent, init b.pt"]


def test_a_net_of_the_objective_is_in_another_file_for_every_seed() -> None:
    recipes = [
        {**model("x", seed=s).choices, **printed_choices({"objective": f"meta_spn:net=run{s}.pt"})} for s in (0, 1)
    ]
    labels = names(*(TrainedModel(f"r{seed}", seed, recipe) for seed, recipe in enumerate(recipes)))
    assert len(set(labels)) == 1
    assert str(labels[0]).startswith("meta_spn")


def test_a_plug_in_is_named_without_being_imported() -> None:
    recipe = {**model("x").choices, **printed_choices({"objective": "./gone.py:Mine:margin=1"})}
    assert names(TrainedModel("r", 0, recipe), model("b")) == ["./gone.py:Mine:margin=1", "ntxent"]


def test_a_model_of_unknown_training_is_named_after_its_file() -> None:
    rows = name_systems(
        [TrainedModel("saf.npz"), TrainedModel("sgr.npz", None, printed_choices({"converted_from": "x"}))]
    )
    assert [row["objective_label"] for row in rows] == ["saf.npz", "sgr.npz"]
    assert [row["seed"] for row in rows] == [None, None]
    assert {row["data"] for row in rows} == {row["encoder"] for row in rows} == {"unknown"}


def test_only_systems_that_share_what_is_shown_elsewhere_are_distinguished() -> None:
    models = [model("a"), model("b", data="scenes:train=10", lr=0.1), model("c", lr=0.1)]
    assert label_systems(models[:2], within=("data",)) == ["ntxent", "ntxent"]
    assert label_systems(models, within=("data",)) == ["ntxent, lr 0.001", "ntxent", "ntxent, lr 0.1"]


def test_models_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(InputError, match="runs must be given once each; got a several times"):
        name_systems([model("a"), model("a")])
    two = model("a"), model("b", data="scenes:train=10")
    with pytest.raises(
        InputError, match=r"runs must be of the same data for a comparison; got a: scenes.*b: scenes.*--data"
    ):
        name_systems(two)
    assert names(*two, data="scenes")[1] == "ntxent, data scenes:train=10"
