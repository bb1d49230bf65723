"""Does a recipe resolve to full specs, the warm-up objective, and the batches that the objective needs?"""

from __future__ import annotations

import pytest

from lossscope.errors import InputError, SpecError
from lossscope.training.components import require_trainable, resolve
from lossscope.training.recipe import Recipe


def test_every_option_is_stated_and_stating_it_again_changes_nothing() -> None:
    full = resolve(Recipe(objective="triplet-sh", encoder="vsepp:dim=8")).recipe
    assert full.objective == "triplet_sh:margin=0.2"
    assert full.encoder.startswith("vsepp:image=cnn-small,dim=8,")
    assert resolve(full).recipe == full
    with pytest.raises(SpecError, match="did you mean 'ntxent'"):
        resolve(Recipe(objective="ntxnt"))


def test_the_warm_up_objective_is_the_objectives_own() -> None:
    made = resolve(Recipe(objective="triplet_sh:margin=0.3", warmup=2))
    assert type(made.warmup_objective).__name__ == "Triplet"
    assert getattr(made.warmup_objective, "margin", None) == 0.3
    assert resolve(Recipe(objective="triplet_sh", warmup=0)).warmup_objective is None
    assert resolve(Recipe(objective="ntxent", warmup=2)).warmup_objective is None


def test_sampling_is_the_objectives_own_unless_stated() -> None:
    assert resolve(Recipe(objective="ntxent")).sampling.mode == "pairs"
    assert resolve(Recipe(objective="smoothap")).sampling.mode == "images"
    assert resolve(Recipe(objective="smoothap", sampling="pairs")).sampling.mode == "pairs"
    with pytest.raises(InputError, match="sampling must be pairs or single for triplet"):
        resolve(Recipe(objective="triplet", sampling="images"))


def test_an_objective_that_needs_candidates_is_not_trained_without_them() -> None:
    recipe = Recipe(objective="aoq")
    with pytest.raises(InputError, match="lossscope mine"):
        require_trainable(recipe, resolve(recipe).objective)
