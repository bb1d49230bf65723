"""Are labels words, and names of sources as short as their differences allow?"""

from __future__ import annotations

from lossscope.declarations import declarations
from lossscope.engine.weight_fields import PAIRS, TRIPLETS, goal_specs, objective_curves
from lossscope.plots import labels
from tests.each import each


@each("label, words", [
    ("ntxent:tau=0.1", "NT-Xent, temperature τ = 0.1"),
    ("nt-xent", "NT-Xent"),
    ("triplet-sh:margin=0.2", "Triplet SH, margin 0.2"),
    ("unified:gamma=60,margin=0.2", "Unified, scale γ = 60, margin 0.2"),
    ("goal:triplet=cir,pair=lin,tau=10", "GOAL, circle triplet weight, linear pair weight, scale τ = 10"),
    ("T cir, tau 10", "Circle triplet weight, scale τ = 10"),
    ("T con, margin 0.2, P sig-ms", "Constant triplet weight, margin 0.2, sigmoid with relative term pair weight"),
    ("ntxent (other 0)", "NT-Xent, the other similarity at 0"),
    ("ntxent (other: s₋ 0.77, s₊ 0.79)", "NT-Xent, the other similarity at s₋ 0.77 or s₊ 0.79"),
    ("ntxent:tau=0.1 (a)", "NT-Xent, temperature τ = 0.1, a"),
    ("my_loss.py", "my_loss.py"),
    ("a name, of mine", "a name, of mine"),
    ("./loss.py:Mine", "./loss.py:Mine"),
    ("", ""),
])  # fmt: skip
def test_specs_and_titles_are_words_and_other_labels_stay(label, words):
    assert labels.in_words(label) == words


def test_every_objective_has_a_name():
    assert set(labels.NAMES) | set(labels.PARTS) == {declaration.name for declaration in declarations("objectives")}


def test_every_title_of_goal_and_every_curve_is_in_words():
    for title in goal_specs(TRIPLETS, PAIRS):
        assert not {"T", "P", "tau"} & set(labels.in_words(title).replace(",", "").split())
    label = objective_curves("ntxent:tau=0.1", points=3)["label"].iloc[0]
    assert labels.in_words(label) == "NT-Xent, temperature τ = 0.1, the other similarity at 0"


@each("sources, names", [
    (["runs/a/checkpoints/best.pt", "runs/b/checkpoints/best.pt"], ["a", "b"]),
    (["runs/a/checkpoints/epoch-01.pt", "runs/a/checkpoints/epoch-02.pt"], ["epoch-01", "epoch-02"]),
    (["runs/s/runs/scenes--vse--nt-xent--seed0/run", "runs/s/runs/scenes--vse--triplet-sh--seed0/run"],
     ["nt-xent", "triplet-sh"]),
    (["runs/s/runs/scenes--vse--nt-xent--seed0/run"], ["scenes, vse, nt-xent, seed0"]),
    (["checkpoints/tiny.pt"], ["tiny"]),
    (["x/a/clip.pt", "y/a/clip.pt"], ["x", "y"]),
    (["a.pt", "a.npz"], ["a.pt", "a.npz"]),
    (["best.pt", "b/best.pt"], ["best.pt", "b"]),
    (["runs/a/run, epoch 1", "runs/a/run, epoch 3"], ["run, epoch 1", "run, epoch 3"]),
])  # fmt: skip
def test_sources_are_named_by_what_distinguishes_them(sources, names):
    assert list(labels.shortest_names(sources).values()) == names
    assert list(labels.shortest_names(sources)) == sources


def test_names_are_all_different():
    sources = [f"runs/{k}/{name}--seed{seed}/run" for k in "ab" for name in ("x", "y") for seed in (0, 1)]
    assert len(set(labels.shortest_names(sources).values())) == 8
