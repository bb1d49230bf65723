"""Does training on texts hold for a step by hand, mined negatives, rules, groups, resumed runs and processes?"""

from __future__ import annotations

import csv
import json
import math
import signal
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.distributed import process_group
from lossscope.datasets.base import Texts
from lossscope.errors import InputError, Interrupted
from lossscope.io.run_folder import Run
from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.components import resolve
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.recipe import Recipe
from lossscope.training.recipe_files import read_recipe
from lossscope.training.state import new_state
from lossscope.training.step import Step, train_step
from lossscope.training.task import Task, prepare_task
from tests.farm import run_ranks

DATA = "passages:train=60,val=20,test=20,negatives=3,false_negatives=0.2,duplicates=0.1"
GRU = "biencoder:dim=16,words=16"
TRANSFORMER = "biencoder:tower=transformer,dim=16,words=16,heads=2,share=false"
PLAIN = Recipe(
    data=DATA, encoder=GRU, objective="ntxent:tau=0.05", epochs=2, batch_size=24, lr=0.01, min_count=1, clip=0.0,
)  # fmt: skip
RECIPES = {
    "mined": PLAIN,
    "own negatives": replace(PLAIN, negatives="own", mined=2, encoder=TRANSFORMER),
    "rules": replace(PLAIN, mask="same-item;same-text;above:margin=0.05"),
    "learnt scale": replace(PLAIN, objective="infonce", negatives="none"),
    "groups": replace(PLAIN, objective="supcon:tau=0.05", sampling="groups", batch_size=8),
    "sum": replace(PLAIN, objective="triplet-sh", reduction="sum", batch_size=7),
}  # the last batch is never full


def table(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stop_after(n: int) -> Callable[[str, int, int], None]:
    """Return a progress function that sends SIGINT, as Ctrl-C does, after n steps."""
    done: list[str] = []

    def progress(label: str, _step: int, _total: int) -> None:
        if label.startswith("epoch"):
            done.append(label)
            if len(done) == n:
                signal.raise_signal(signal.SIGINT)

    return progress


@pytest.mark.parametrize("name", ["own negatives", "rules", "learnt scale", "groups"])
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path: Path, name: str) -> None:
    whole = train(RECIPES[name], tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(RECIPES[name], tmp_path / "run", observers=Observers(progress=stop_after(2)))
    with pytest.raises(Interrupted):
        resume(tmp_path / "run", observers=Observers(progress=stop_after(3)))
    assert Checkpoint.load(tmp_path / "run" / "checkpoints" / "last.pt").optimiser is not None
    run = resume(tmp_path / "run")
    for file in ("metrics.csv", "trajectory.csv", "config.toml"):
        assert (run.path / file).read_bytes() == (whole.path / file).read_bytes()
    assert len(table(run.trajectory)) >= 2 * 3
    for path in [whole.best, *(whole.path / "checkpoints").iterdir()]:
        expected, ours = Checkpoint.load(path), Checkpoint.load(run.path / path.relative_to(whole.path))
        assert expected.weights.keys() == ours.weights.keys()
        assert [key for key, tensor in expected.weights.items() if not torch.equal(tensor, ours.weights[key])] == []


def test_a_run_is_recorded_under_its_own_sides(tmp_path: Path) -> None:
    run = train(replace(PLAIN, mask="above;same-item"), tmp_path / "run")
    row = table(run.metrics)[-1]
    assert {"q2d_nDCG@10", "d2q_MRR@10", "q2d_MAP@R"} <= row.keys()
    assert not [name for name in row if name.startswith(("i2t", "t2i"))]
    assert read_recipe(run.config).mask == "above:margin=0.1;same_item"
    best = max(table(run.metrics)[1:], key=lambda r: float(r["q2d_nDCG@10"]) + float(r["d2q_nDCG@10"]))
    assert Checkpoint.load(run.best).epoch == int(best["epoch"])


def first_step(folder: Path, recipe: Recipe) -> dict[str, float]:
    """Return loss and gradient norm of the first batch; its pairs and initial weights depend on the seed alone."""
    task = prepare_task(resolve(recipe), folder, "cpu")
    batch = next(task.sampling.batches(task.train.relations))
    return train_step(task, new_state(task), Step(task.objective), batch, folder)


def test_more_mined_negatives_in_sight_make_a_larger_loss(tmp_path: Path) -> None:
    """For a batch: no mined negatives, each query its own, the first of all queries, all of all queries."""
    choices: dict[str, dict[str, Any]] = {
        "none": {"negatives": "none"},
        "one of its own": {"negatives": "own", "mined": 1},
        "its own": {"negatives": "own"},
        "all": {"negatives": "batch"},
    }
    losses = [first_step(tmp_path, replace(PLAIN, **changes))["loss"] for changes in choices.values()]
    assert losses == sorted(losses)
    assert len(set(losses)) == len(losses)
    mined = first_step(tmp_path, replace(PLAIN, mined=1))["loss"]
    assert losses[0] < losses[1] < mined < losses[3]
    assert first_step(tmp_path, replace(PLAIN, mined=3))["loss"] == losses[3]  # the data have three


def by_hand(task: Task, model: Any, rules: tuple[str, ...], margin: float) -> Tensor:
    """½ (mean over queries + mean over documents) of −log softmax(s / 0.05)[+] over what rules leave, in loops.

    In each direction, a rule compares with the positive of that direction's query.
    """
    batch = next(task.sampling.batches(task.train.relations))
    split, b = task.train, len(batch.images)
    positives = {tuple(pair) for pair in split.relations.positives.tolist()}
    items = {name: torch.from_numpy(rows) for name, rows in split.images.take(batch.images).items()}
    S = model.score(model.encode_images(items), model.encode_texts(*task.captions.take(batch.captions, task.device)))
    assert isinstance(split.images, Texts)
    questions, answers = (
        [texts[row] for row in of_batch.tolist()]
        for texts, of_batch in ((split.images.texts, batch.images), (split.captions, batch.captions))
    )
    similarity = S.detach()
    from_queries, from_documents = set(), set()
    for q in range(b):
        for d, document in enumerate(batch.captions.tolist()):
            if "same-item" in rules and (int(batch.images[q]), document) in positives:
                from_queries.add((q, d))
                from_documents.add((q, d))
            if "same-text" in rules and answers[d] == answers[q]:
                from_queries.add((q, d))
            if "same-text" in rules and d < b and questions[q] == questions[d]:
                from_documents.add((q, d))
            if "above" in rules and float(similarity[q, d]) > float(similarity[q, q]) + margin:
                from_queries.add((q, d))
            if "above" in rules and d < b and float(similarity[q, d]) > float(similarity[d, d]) + margin:
                from_documents.add((q, d))
    assert not rules or {pair for pair in from_queries if pair[0] != pair[1]}
    rows = [[S[q, d] for d in range(S.shape[1]) if d == q or (q, d) not in from_queries] for q in range(b)]
    columns = [[S[q, d] for q in range(b) if q == d or (q, d) not in from_documents] for d in range(b)]
    losses = [
        torch.stack([torch.logsumexp(torch.stack(seen) / 0.05, 0) - S[i, i] / 0.05 for i, seen in enumerate(side)])
        for side in (rows, columns)
    ]
    return 0.5 * (losses[0].mean() + losses[1].mean())


@pytest.mark.parametrize(
    "rules", [(), ("same-item",), ("same-text",), ("above",), ("same-item", "above"), ("same-item", "same-text")]
)
def test_a_step_is_the_one_computed_by_hand(tmp_path: Path, rules: tuple[str, ...]) -> None:
    margin = 0.3
    mask = ";".join(f"{rule}:margin={margin}" if rule == "above" else rule for rule in rules)
    recipe = replace(PLAIN, mask=mask, seed=2)
    task = prepare_task(resolve(recipe), tmp_path, "cpu")
    state = new_state(task)
    model = deepcopy(state.model)
    batch = next(task.sampling.batches(task.train.relations))
    row = train_step(task, state, Step(task.objective), batch, tmp_path)
    value = by_hand(task, model, rules, margin)
    value.backward()
    assert row["loss"] == pytest.approx(float(value.detach()), rel=1e-5)
    gradients = {name: p.grad for name, p in model.named_parameters()}
    norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients.values() if g is not None))
    assert row["gradient_norm"] == pytest.approx(norm, rel=1e-4)
    for name, p in state.model.named_parameters():
        assert p.grad is not None
        torch.testing.assert_close(p.grad, gradients[name], rtol=1e-3, atol=1e-5, msg=name)


def test_rules_leave_out_what_they_hide_in_training(tmp_path: Path) -> None:
    losses = {
        mask: first_step(tmp_path, replace(PLAIN, mask=mask, seed=2))["loss"]
        for mask in ("", "same-item", "same-text", "above:margin=0.3", "same-item;above:margin=0.3")
    }
    assert all(loss < losses[""] for mask, loss in losses.items() if mask)
    assert losses["same-item;above:margin=0.3"] < min(losses["same-item"], losses["above:margin=0.3"])


def test_groups_have_every_positive_of_their_queries(tmp_path: Path) -> None:
    task = prepare_task(resolve(RECIPES["groups"]), tmp_path, "cpu")
    relations = task.train.relations
    for batch in task.sampling.batches(relations):
        match = batch.mask(relations).match.numpy()
        for row, query in enumerate(batch.images.tolist()):
            expected = relations.positives[relations.positives[:, 0] == query, 1].tolist()
            assert sorted(set(batch.captions[match[row]].tolist())) == sorted(expected)
    run = train(RECIPES["groups"], tmp_path / "run")
    losses = [float(row["loss"]) for row in table(run.trajectory)]
    assert all(map(math.isfinite, losses)) and np.mean(losses[-3:]) < np.mean(losses[:3])
    with pytest.raises(InputError, match=r"sampling must be pairs or single for ntxent.*, which takes one positive"):
        train(replace(PLAIN, sampling="groups"), tmp_path / "no")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "encoder", ["biencoder:dim=32,words=32", "biencoder:tower=transformer,dim=32,words=32,heads=2"]
)
def test_a_bi_encoder_learns_to_answer_questions_about_people_it_never_saw(tmp_path: Path, encoder: str) -> None:
    """nDCG@10 begins at that of random vectors."""
    data = "passages:train=400,val=40,test=40"
    run = train(replace(PLAIN, data=data, encoder=encoder, epochs=6, batch_size=32, clip=2.0), tmp_path / "run")
    first, *_, last = table(run.metrics)
    for direction in ("q2d", "d2q"):
        assert float(first[f"{direction}_nDCG@10"]) < 0.35
        assert float(last[f"{direction}_nDCG@10"]) > 0.7
    rows = evaluate([load(run.path, split="test", cache=False)])
    assert rows[rows["statistic"] == "nDCG@10"]["mean"].min() > 0.6


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"encoder": "vsepp:dim=8,words=8,width=4"},
            r"--encoder must take texts on both sides for passages.*, which has query/document; vsepp.* does not\.",
        ),
        (
            {"data": "scenes:train=16,val=8,test=8,size=16"},
            r"--encoder biencoder.* reads texts on both sides; scenes.* has other items",
        ),
        ({"mask": "gist"}, "mask gist:.* needs a guide, which training does not have; take another rule"),
        ({"objective": "meta_spn", "mask": "above"}, "--mask must be left out for meta_spn.*, whose network learns"),
        ({"mined": 10}, "--mined must be at most the 3 mined negatives of a query; got 10"),
        ({"mask": "sameitem"}, "did you mean 'same_item'"),
        ({"negatives": "all"}, "negatives must be one of batch, own, none; got 'all'"),
        ({"mined": -1}, "mined .*at least"),
        ({"objective": "siglip", "mask": "above", "encoder": "biencoder:dim=0"}, "must be at least 1; got 0"),
        ({"encoder": "biencoder:tower=transformer,words=10"}, "multiple of twice the heads of a transformer; got 10"),
    ],
)
def test_what_does_not_fit_is_one_message_before_anything_is_written(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        train(replace(PLAIN, **changes), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_model_of_texts_reads_no_pictures_and_one_of_pictures_no_texts(tmp_path: Path) -> None:
    """The message named pictures of another size."""
    run = train(replace(PLAIN, epochs=0), tmp_path / "run")
    checkpoint = run.path / "checkpoints" / "last.pt"
    with pytest.raises(InputError, match=r"trained on, texts; got \(3, 16, 16\)\. Name data of the sides that"):
        load(checkpoint, data="scenes:train=16,val=8,test=8,size=16", cache=False)
    with pytest.raises(InputError, match=r"trained on, \(3, 32, 32\); got texts\. Name data of the sides that"):
        load("tiny", data=DATA, cache=False)


def train_recipes(folder: Path) -> None:
    """Train all recipes in float64, so that differences are not rounding."""
    torch.set_default_dtype(torch.float64)
    torch.Tensor.float = torch.Tensor.double  # type: ignore[method-assign]
    for name, recipe in RECIPES.items():
        train(recipe, folder / f"{name} {process_group().size}")


@pytest.fixture(scope="module")
def shared_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of runs of one process and of two, named by recipe and number of processes."""
    folder = tmp_path_factory.mktemp("runs")
    for size in (1, 2):
        run_ranks(train_recipes, size, folder)
    return folder


@pytest.mark.parametrize("name", RECIPES)
def test_two_processes_take_the_steps_of_one(name: str, shared_runs: Path) -> None:
    alone, two = (Run(shared_runs / f"{name} {size}") for size in (1, 2))
    rows, expected = table(two.trajectory), table(alone.trajectory)
    assert len(rows) == len(expected) > 4
    for row, other in zip(rows, expected, strict=True):
        for column in other.keys() - {"objective"}:
            assert float(row[column]) == pytest.approx(float(other[column]), rel=1e-9, abs=1e-12, nan_ok=True), column
    for path in sorted((alone.path / "checkpoints").iterdir()):
        ours, checkpoint = Checkpoint.load(two.path / "checkpoints" / path.name), Checkpoint.load(path)
        for key, tensor in checkpoint.weights.items():
            torch.testing.assert_close(ours.weights[key], tensor, rtol=1e-9, atol=1e-9, msg=key)
    events = [json.loads(line) for line in (two.path / "events.jsonl").read_text().splitlines()]
    assert events[0]["processes"] == 2
