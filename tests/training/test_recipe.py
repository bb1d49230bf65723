"""Does a recipe's TOML file state all choices, and do messages name its errors?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.errors import InputError
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
        ("epochs = 2.0", "epochs of .* must be a whole number; got 2.0"),
        ("epochs = '2'", "epochs of .* must be a whole number; got '2'"),
        ("epochs = true", "epochs of .* must be a whole number; got True"),
        ("lr = 'fast'", "lr of .* must be a number; got 'fast'"),
        ("data = 3", "data of .* must be text in quotes; got 3"),
        ("reduction = 3", "reduction of .* got 3"),
        ("reduction = 'max'", "reduction of .* must be one of sum, mean, pairs, cells; got 'max'"),
        ("sampling = 'triples'", "sampling of .* must be one of pairs, images, single, groups; got 'triples'"),
        ("same_image = 'drop'", "same_image of .* must be one of keep, mask; got 'drop'"),
        ("precision = 'fp8'", "precision of .* must be one of fp32, bf16, fp16; got 'fp8'"),
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
        ("[[data]]\nx = 1", "data of .* must be text in quotes"),
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


def test_choices_have_one_name_and_files_with_their_former_names_are_read(tmp_path: Path) -> None:
    recipe = read(tmp_path, "rates = 'bert=0.1'\nramp = 2\nselect = 'last'\n")
    assert recipe == Recipe(lr_groups="bert=0.1", loss_ramp_epoch=2, select_by="last")
    with pytest.raises(InputError, match=r"keys of .* got 'ramp'"):
        read(tmp_path, "ramp = 2\nloss_ramp_epoch = 1\n")


@pytest.mark.parametrize("text", [
        "lr_groups = 'bert'", "lr_groups = 'bert=x'", "freeze = 'a=-1'", "freeze = 'a=inf'", "freeze = 'a=0.5'",
        "lr_groups = 'a=1,a=2'", "lr_groups = '=2'",
    ],
)  # fmt: skip
def test_groups_are_named_with_numbers(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"(lr-groups|freeze) must be"):
        read(tmp_path, text)


def test_choices_that_do_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="loss-ramp-epoch must be an epoch of the run, at most 2; got 3"):
        Recipe(epochs=2, loss_ramp_epoch=3)
    with pytest.raises(InputError, match="beta2 is for adam and adamw"):
        Recipe(optimiser="ranger", beta2=0.9)
