"""Recipes: one TOML file that states every choice, and says what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lossscope.errors import InputError, SpecError
from lossscope.registry import build
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import read_recipe, write_recipe


def read(tmp_path: Path, text: str) -> Recipe:
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    return read_recipe(tmp_path / "a.toml")


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(),
        Recipe(
            objective="triplet_sh", lr=1e-7, clip=0.0, reduction="pairs", sampling="pairs", precision="bf16", seed=7
        ),
        Recipe(data='precomp:root="C:\\\\data\\\\é, \\"x\\""', lr=12345678.9, same_image="mask"),
    ],
)
def test_a_recipe_comes_back_from_toml(tmp_path: Path, recipe: Recipe) -> None:
    write_recipe(recipe, tmp_path / "a.toml")
    assert read_recipe(tmp_path / "a.toml") == recipe


def test_missing_keys_take_their_defaults_and_whole_numbers_serve_as_floats(tmp_path: Path) -> None:
    recipe = read(tmp_path, "lr = 1\nepochs = 3\n")
    assert recipe == Recipe(lr=1.0, epochs=3)
    assert isinstance(recipe.lr, float)


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("learning_rate = 1", "keys of .* must be of data, encoder.*got 'learning_rate'"),
        ("epochs = 2.0", "epochs of .* must be int; got 2.0"),
        ("epochs = '2'", "epochs of .* must be int; got '2'"),
        ("epochs = true", "epochs of .* must be int; got True"),
        ("lr = 'fast'", "lr of .* must be float; got 'fast'"),
        ("data = 3", "data of .* must be str; got 3"),
        ("reduction = 3", "reduction of .* got 3"),
        ("reduction = 'max'", "reduction must be one of sum, mean, pairs, cells; got 'max'"),
        ("sampling = 'triples'", "sampling must be one of pairs, images, single; got 'triples'"),
        ("same_image = 'drop'", "same-image must be one of keep, mask; got 'drop'"),
        ("precision = 'fp8'", "precision must be one of fp32, bf16, fp16; got 'fp8'"),
        ("epochs = -1", "epochs must be at least 0; got -1"),
        ("batch_size = 1", "batch-size must be at least 2; got 1"),
        ("lr_step = 0", "lr-step must be at least 1; got 0"),
        ("min_count = 0", "min-count must be at least 1; got 0"),
        ("warmup = -1", "warmup must be at least 0; got -1"),
        ("lr = 0.0", "lr and lr-gamma must be > 0, finite"),
        ("lr = nan", "lr and lr-gamma must be > 0, finite"),
        ("lr = inf", "lr and lr-gamma must be > 0, finite"),
        ("clip = -1", "clip >= 0; got"),
        ("lr_gamma = 0", "lr and lr-gamma must be > 0, finite"),
        ("seed = -1", "seed must be in 0"),
        ("seed = 99999999999999999999", "seed must be in 0"),
        ("lr = = 1", "must be a readable TOML file"),
        ("[[data]]\nx = 1", "data of .* must be str"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        read(tmp_path, text)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'data = "\xe9"')
    for path in (tmp_path, tmp_path / "none.toml", tmp_path / "latin.toml"):
        with pytest.raises(InputError, match="must be a readable TOML file"):
            read_recipe(path)


def test_canonical_writes_every_option() -> None:
    full = Recipe(objective="triplet-sh", encoder="vsepp:dim=8").canonical()
    assert full.objective == "triplet_sh:margin=0.2"
    assert full.encoder.startswith("vsepp:image=cnn-small,dim=8,")
    assert full.canonical() == full
    with pytest.raises(SpecError, match="did you mean 'ntxent'"):
        Recipe(objective="ntxnt").canonical()


def test_the_rate_falls_in_steps() -> None:
    recipe = Recipe(lr=1.0, lr_step=2, lr_gamma=0.5)
    assert [recipe.rate(epoch) for epoch in range(5)] == [1.0, 1.0, 0.5, 0.5, 0.25]


def test_the_warm_up_objective_comes_first() -> None:
    recipe = Recipe(objective="triplet_sh:margin=0.3", warmup=2)
    main, ntxent = build("objectives", recipe.objective), build("objectives", "ntxent")
    named = [type(recipe.objective_of(epoch, main)).__name__ for epoch in range(3)]
    assert named == ["Triplet", "Triplet", "TripletSH"]
    assert recipe.objective_of(0, main).margin == 0.3
    assert Recipe(objective="ntxent", warmup=2).objective_of(0, ntxent) is ntxent


def test_sampling_is_the_objectives_own_unless_stated() -> None:
    assert Recipe(objective="ntxent").batches().mode == "pairs"
    assert Recipe(objective="smoothap").batches().mode == "images"
    assert Recipe(objective="smoothap", sampling="pairs").batches().mode == "pairs"
    with pytest.raises(InputError, match="sampling must be pairs or single for triplet"):
        Recipe(objective="triplet", sampling="images").batches()


def test_a_linear_schedule_rises_and_falls_to_nothing() -> None:
    recipe = Recipe(lr=1.0, schedule="linear", lr_warmup=0.1, epochs=2)
    rates = [recipe.rate(epoch, step, 10) for epoch in range(2) for step in range(10)]
    assert rates[:2] == [0.5, 1.0]
    assert rates[2:] == pytest.approx([(20 - done) / 18 for done in range(2, 20)])
    flat = Recipe(lr=1.0, schedule="linear", epochs=1)
    assert [flat.rate(0, step, 4) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]


def test_an_epoch_of_stated_steps_goes_through_the_split_and_begins_again() -> None:
    owners = np.arange(10)
    recipe = Recipe(objective="triplet", batch_size=4, steps=5)
    sampling = recipe.batches()
    whole = [b.captions.tolist() for e in range(2) for b in recipe.epoch_of(sampling, owners, e, 0)]
    assert [len(part) for part in whole] == [4, 4, 2] * 3 + [4]
    passes = [sorted(row for part in whole[start : start + 3] for row in part) for start in (0, 3)]
    assert passes == [list(range(10))] * 2
    assert whole[:3] != whole[3:6]
    assert [b.captions.tolist() for b in recipe.epoch_of(sampling, owners, 1, 2)] == whole[7:]
    assert recipe.steps_of(3) == 5 and Recipe().steps_of(3) == 3


def test_the_loss_grows_in_the_epoch_of_the_ramp_only() -> None:
    recipe = Recipe(ramp=2)
    assert [recipe.ramped(epoch, 3, 10) for epoch in range(3)] == [1.0, 0.3, 1.0]
    assert Recipe().ramped(0, 0, 10) == 1.0


def test_what_the_best_epoch_has_most_of() -> None:
    metrics = {f"{side}_R@{k}": float(10 * k + (side == "t2i")) for side in ("i2t", "t2i") for k in (1, 5, 10)}
    metrics["rsum"] = 300.0
    assert Recipe().score(metrics, 3) == 300.0
    assert Recipe(select="r1_r5").score(metrics, 3) == 10 + 50 + 11 + 51
    assert Recipe(select="geometric").score(metrics, 3) == pytest.approx((11 * 51 * 101) ** (1 / 3))
    assert Recipe(select="last").score(metrics, 3) == 3.0


@pytest.mark.parametrize("text", [
        "rates = 'bert'", "rates = 'bert=x'", "freeze = 'a=-1'", "freeze = 'a=inf'", "freeze = 'a=0.5'",
        "rates = 'a=1,a=2'", "rates = '=2'",
    ],
)  # fmt: skip
def test_groups_are_named_with_numbers(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"(rates|freeze)"):
        read(tmp_path, text)


def test_choices_that_do_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="ramp must be an epoch of the run, at most 2; got 3"):
        Recipe(epochs=2, ramp=3)
    with pytest.raises(InputError, match="beta2 is of adam and adamw"):
        Recipe(optimiser="ranger", beta2=0.9)
