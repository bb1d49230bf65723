"""Who is a seed of whom: systems from recipes, their names, and what can not be told apart."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from lossscope.errors import InputError
from lossscope.stats.naming import TrainedModel, name_systems
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import printed_choices


def model(name: str, **choices: Any) -> TrainedModel:
    recipe = Recipe(**choices).canonical()
    return TrainedModel(name, recipe.seed, printed_choices(asdict(recipe)))


def names(*models: TrainedModel, **more: Any) -> list[object]:
    return [row["objective_label"] for row in name_systems(models, **more)]


def test_runs_that_differ_in_their_seed_alone_are_one_system() -> None:
    found = name_systems([model("a", seed=0), model("b", seed=1), model("c", seed=1, objective="triplet:margin=0.3")])
    assert [row["objective_label"] for row in found] == ["ntxent", "ntxent", "triplet:margin=0.3"]
    assert [row["seed"] for row in found] == [0, 1, 1]
    assert [row["run"] for row in found] == ["a", "b", "c"]
    assert {row["encoder"] for row in found} == {"vsepp"}
    assert {str(row["data"]).partition(":")[0] for row in found} == {"scenes"}


def test_names_tell_whatever_differs() -> None:
    assert names(model("a"), model("b", lr=0.1), model("c", lr=0.1, batch_size=64)) == [
        "ntxent, batch-size 128, lr 0.001", "ntxent, batch-size 128, lr 0.1", "ntxent, batch-size 64, lr 0.1",
    ]  # fmt: skip
    found = name_systems([model("a"), model("b", encoder="vsepp:dim=64")])
    assert [row["objective_label"] for row in found] == ["ntxent, vsepp", "ntxent, vsepp:dim=64"]
    assert {row["encoder"] for row in found} == {"several"}


def test_first_stages_of_their_own_make_seeds_no_name_systems() -> None:
    assert names(model("a", init="a.pt"), model("b", init="b.pt", seed=1)) == ["ntxent", "ntxent"]
    assert names(model("a", init="a.pt"), model("b", init="b.pt")) == ["ntxent, init a.pt", "ntxent, init b.pt"]


def test_a_net_of_the_objective_is_in_another_file_for_every_seed() -> None:
    recipes = [
        {**model("x", seed=s).choices, **printed_choices({"objective": f"meta_spn:net=run{s}.pt"})} for s in (0, 1)
    ]
    found = names(*(TrainedModel(f"r{seed}", seed, recipe) for seed, recipe in enumerate(recipes)))
    assert len(set(found)) == 1
    assert str(found[0]).startswith("meta_spn")


def test_a_plug_in_is_named_without_being_imported() -> None:
    recipe = {**model("x").choices, **printed_choices({"objective": "./gone.py:Mine:margin=1"})}
    assert names(TrainedModel("r", 0, recipe), model("b")) == ["./gone.py:Mine:margin=1", "ntxent"]


def test_what_does_not_say_how_it_was_trained_is_named_after_itself() -> None:
    found = name_systems(
        [TrainedModel("saf.npz"), TrainedModel("sgr.npz", None, printed_choices({"converted_from": "x"}))]
    )
    assert [row["objective_label"] for row in found] == ["saf.npz", "sgr.npz"]
    assert [row["seed"] for row in found] == [None, None]
    assert {row["data"] for row in found} == {row["encoder"] for row in found} == {"unknown"}


def test_what_can_not_be_compared_is_told() -> None:
    with pytest.raises(InputError, match="runs must be given once each; got a several times"):
        name_systems([model("a"), model("a")])
    two = model("a"), model("b", data="scenes:train=10")
    with pytest.raises(
        InputError, match=r"runs must be of the same data to be compared; got a: scenes.*b: scenes.*--data"
    ):
        name_systems(two)
    assert names(*two, data="scenes")[1] == "ntxent, data scenes:train=10"
