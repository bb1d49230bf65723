"""Does a training take a start model, numbers of pairs and ranked candidates beside data and encoder?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.errors import InputError
from lossscope.io.run_folder import Run
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.offline_candidates import mine_candidates
from lossscope.training.recipe import Recipe

TINY = Recipe(
    data="scenes:train=30,val=10,test=10,size=16", encoder="vsepp:dim=16,words=8,width=4", epochs=1, batch_size=32,
    lr=0.002, warmup=0,
)  # fmt: skip
CAPTIONS = 150


@pytest.fixture(scope="module", name="start")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(replace(TINY, objective="triplet"), tmp_path_factory.mktemp("start") / "run")


@pytest.fixture(name="ranked")
def made(start: Run, tmp_path: Path) -> Path:
    mine_candidates(load(start.best, cache=False), tmp_path / "ranked", 7)
    return tmp_path / "ranked"


def losses(run: Run) -> list[float]:
    return list(pd.read_csv(run.trajectory)["loss"])


def columns(path: Path, **values: object) -> str:
    np.savez(path, **values)  # type: ignore[arg-type]
    return str(path)


def test_a_run_begins_where_another_one_ended(start: Run, tmp_path: Path) -> None:
    run = train(replace(TINY, objective="triplet", init=str(start.best), epochs=0), tmp_path / "run")
    begun, ended = Checkpoint.load(run.best), Checkpoint.load(start.best)
    assert begun.vocabulary == ended.vocabulary
    assert all(torch.equal(begun.weights[name], tensor) for name, tensor in ended.weights.items())


def test_aoq_trains_with_ranked_candidates_and_resumes(start: Run, ranked: Path, tmp_path: Path) -> None:
    recipe = replace(TINY, objective="aoq", init=str(start.best), offline=str(ranked), epochs=2)
    whole = train(recipe, tmp_path / "whole")
    train(replace(recipe, epochs=1), tmp_path / "parts")
    parts = resume(tmp_path / "parts", epochs=2)
    assert losses(parts) == losses(whole)
    assert (
        losses(whole)[0] > losses(train(replace(TINY, objective="triplet_sh", init=str(start.best)), tmp_path / "x"))[0]
    )


def test_soft_labels_reach_ncr_and_margins_unified(start: Run, tmp_path: Path) -> None:
    def first(objective: str, info: str | None) -> float:
        recipe = replace(TINY, objective=objective, init=str(start.best), info=info)
        folder = tmp_path / f"{objective.partition(':')[0]}-{Path(info).stem if info else 'none'}"
        return losses(train(recipe, folder))[0]

    certain, uncertain = (columns(tmp_path / f"{n}.npz", label=np.full(CAPTIONS, n)) for n in (1.0, 0.0))
    plain = first("triplet_sh", None)
    assert first("ncr", certain) == pytest.approx(plain)
    assert first("ncr", uncertain) < plain
    margins = columns(tmp_path / "margins.npz", margin=np.full(CAPTIONS, 0.5))
    assert first("unified", margins) == pytest.approx(first("unified:margin=0.5", None))


def test_soft_labels_are_those_of_the_captions_of_the_batch(start: Run, tmp_path: Path) -> None:
    """A label of 0 for a single caption lowers the loss of the step that has it."""
    first = np.ones(CAPTIONS)
    first[3] = 0
    recipes = [
        replace(TINY, objective="ncr", init=str(start.best), info=columns(tmp_path / f"{n}.npz", label=label))
        for n, label in (("all", np.ones(CAPTIONS)), ("one", first))
    ]
    both = [losses(train(recipe, tmp_path / f"run{n}")) for n, recipe in enumerate(recipes)]
    lower = [step for step, (a, b) in enumerate(zip(*both, strict=True)) if b != a]
    assert lower and both[1][lower[0]] < both[0][lower[0]]
    assert lower == list(range(lower[0], len(both[0])))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"label": np.ones(3)},
            r"label of .* must be 150 finite numbers, one for each training caption; got float64 \(3,\)",
        ),
        ({"label": np.full(CAPTIONS, np.nan)}, "must be 150 finite numbers"),
        ({"label": np.array(["a"] * CAPTIONS)}, "must be 150 finite numbers"),
    ],
)
def test_info_that_does_not_fit_is_refused(values: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        train(replace(TINY, objective="ncr", info=columns(tmp_path / "info.npz", **values)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_label_outside_its_range_is_refused(tmp_path: Path) -> None:
    info = columns(tmp_path / "info.npz", label=np.full(CAPTIONS, 2.0))
    with pytest.raises(InputError, match="label"):
        train(replace(TINY, objective="ncr", info=info), tmp_path / "run")


def test_what_does_not_belong_together_is_refused(start: Run, ranked: Path, tmp_path: Path) -> None:
    other = "vsepp:dim=8,words=8,width=4"
    bad = [
        (replace(TINY, objective="aoq"), "needs offline candidates. Mine those of the training split"),
        (replace(TINY, objective="ntxent", offline=str(ranked)), "--offline is for objectives with offline candidates"),
        (replace(TINY, objective="aoq", offline=str(tmp_path)), r"no manifest\.json"),
        (
            replace(TINY, objective="aoq", offline=str(ranked), data="scenes:train=20,val=10,test=10,size=16"),
            "it ranks other items",
        ),
        (replace(TINY, init=str(start.best), encoder=other), r"image\.fc\.weight must be"),
        (replace(TINY, init=str(start.best), encoder="vsrn:dim=8"), "--init must be of the encoder vsrn"),
        (
            replace(TINY, init=str(start.best), data="scenes:train=30,val=10,test=10,size=32"),
            r"--init must be of items \(3, 32, 32\), .* takes \(3, 16, 16\)",
        ),
        (replace(TINY, drop_last=True, batch_size=999), "999 with --drop-last leaves none"),
        (replace(TINY, init=str(tmp_path / "gone.pt")), "must exist"),
        (replace(TINY, info=str(tmp_path / "gone.npz")), "must exist"),
    ]
    label = columns(tmp_path / "label.npz", label=np.ones(CAPTIONS))
    bad.append((replace(TINY, objective="unified", info=label), "got 'label', and .* takes margin, weight"))
    bad.append((replace(TINY, objective="ntxent", info=label), "got 'label', and .* takes none"))
    bad.append((replace(TINY, objective="siglip", sampling="images", info=label), "--info is for pairs"))
    (tmp_path / "text.npz").write_text("no")
    bad.append((replace(TINY, info=str(tmp_path / "text.npz")), "must be an .npz of number columns"))
    for recipe, message in bad:
        with pytest.raises(InputError, match=message):
            train(recipe, tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_files_that_changed_since_are_refused(start: Run, tmp_path: Path) -> None:
    info = columns(tmp_path / "info.npz", label=np.ones(CAPTIONS))
    train(replace(TINY, objective="ncr", info=info), tmp_path / "run")
    columns(tmp_path / "info.npz", label=np.zeros(CAPTIONS))
    with pytest.raises(InputError, match=r"info of .* must be what the run began with"):
        resume(tmp_path / "run", epochs=2)


def test_init_may_change_options_and_add_whole_parts(tmp_path: Path) -> None:
    clip = "clip:width=8,heads=2,patch=8,dim=8,depth=1,subwords=300,layer="
    pytest.importorskip("transformers")
    first = train(replace(TINY, objective="infonce", encoder=f"{clip}none"), tmp_path / "first")
    begun = replace(TINY, objective="infonce", encoder=f"{clip}identity", init=str(first.best), epochs=0)
    run = train(begun, tmp_path / "second")
    stored, before = Checkpoint.load(run.last).weights, Checkpoint.load(first.best).weights
    assert all(torch.equal(stored[name], tensor) for name, tensor in before.items())
    assert torch.equal(stored["head.img.weight"], torch.eye(8))
    crop = replace(TINY, encoder="vsepp:dim=16,words=8,width=4,crop=16")
    plain = train(replace(TINY, objective="triplet"), tmp_path / "plain")
    assert train(replace(crop, init=str(plain.best)), tmp_path / "crop").best.is_file()


def test_a_run_begun_before_a_choice_existed_goes_on(tmp_path: Path) -> None:
    run = train(replace(TINY, objective="triplet"), tmp_path / "run")
    stored = torch.load(run.last, weights_only=True)
    for name in ("optimiser", "weight_decay", "schedule", "lr_groups", "steps", "select_by"):
        del stored["training"][name]
    torch.save({**stored, "version": 2, "digests": {}}, run.last)
    assert Checkpoint.load(resume(run.path, epochs=2).last).epoch == 2


def test_a_linear_schedule_keeps_its_epochs(tmp_path: Path) -> None:
    run = train(replace(TINY, objective="triplet", schedule="linear"), tmp_path / "run")
    with pytest.raises(InputError, match="--epochs must stay 1 with a linear schedule"):
        resume(run.path, epochs=3)


def test_a_stop_in_stated_steps_goes_on_to_the_same_bits_past_a_batch_of_one(tmp_path: Path) -> None:
    data = "scenes:train=5,val=10,test=10,size=16,captions=1"
    recipe = replace(TINY, objective="triplet", data=data, batch_size=2, steps=5, epochs=2, min_count=1)
    whole = train(recipe, tmp_path / "whole")
    assert len(losses(whole)) == 10

    class Stop(Exception):
        pass

    def stopping(what: str, done: int, total: int) -> None:
        if what.startswith("epoch 2") and done == 4:
            raise Stop

    with pytest.raises(Stop):
        train(recipe, tmp_path / "parted", save_every=1, observers=Observers(progress=stopping))
    resume(tmp_path / "parted")
    expected, actual = (
        Checkpoint.load(path / "checkpoints" / "last.pt").weights for path in (whole.path, tmp_path / "parted")
    )
    assert all(torch.equal(expected[name], actual[name]) for name in expected)
