"""Do the words of a command line reach the library? Each option is typed, and nothing is computed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from lossscope.audit.steps.options import AuditOptions
from lossscope.core.request import Request
from lossscope.doctor.examination.options import Options
from lossscope.engine.sweep import Sweep
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.studies.report_options import ReportOptions
from lossscope.training.recipe import Recipe
from tests.command_line import document, lossscope, message
from tests.each import each

Arguments = dict[str, Any]
Called = Callable[[str, str], Arguments]


def cocos_spec(eps: float = 0.01, convention: str = "corrected", unit: str = "", curve: str = "false") -> str:
    return f"cocos:eps={eps},convention={convention},curve={curve}{f',unit={unit}' if unit else ''}"


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Called:
    """Return `called("module:function", words)`, which returns the arguments of the one call of a command line."""

    def call(target: str, words: str) -> Arguments:
        module, _, path = target.partition(":")
        owner, _, name = path.rpartition(".")
        holder = getattr(import_module(module), owner) if owner else import_module(module)
        signature, calls = inspect.signature(getattr(holder, name)), list[Arguments]()

        def record(*positional: Any, **named: Any) -> None:
            bound = signature.bind(*positional, **named)
            bound.apply_defaults()
            calls.append(dict(bound.arguments))
            raise typer.Exit

        with monkeypatch.context() as patch:
            patch.setattr(holder, name, record)
            result = lossscope(*words) if isinstance(words, tuple) else lossscope(words)
        assert result.exit_code == 0 and len(calls) == 1, result.output
        return calls[0]

    return call


@pytest.fixture(autouse=True)
def _dumps(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sides: Arguments = {"queries": rng.normal(size=(12, 4)), "documents": rng.normal(size=(12, 4))}
    positives = np.stack([np.arange(12)] * 2, 1)
    texts, ids = np.array([f"text {n % 5}" for n in range(12)]), np.array([f"q{n}" for n in range(12)])
    np.savez("pairs.npz", **sides, positives=positives, negatives=rng.integers(0, 12, (12, 3)), document_text=texts,
             query_id=ids)  # fmt: skip
    np.savez("guide.npz", **sides, positives=positives, query_id=ids)
    np.savez("images.npz", images=sides["queries"], captions=sides["documents"], caption_image=np.arange(12))
    np.savez("set.npz", embeddings=sides["queries"], labels=np.arange(12) % 3)
    Path("shards").mkdir()
    for name in ("images", "captions"):
        np.save(f"shards/{name}-0.npy", rng.normal(size=(12, 4)))


SUPCON = "supcon:tau=0.1,form=out"
PAIRS, SET, IMAGES, SHARDS = "pairs.npz", "set.npz", "images.npz", "shards"
MINED = "pairs, mined negatives"
SWEEPS: list[tuple[str, str, Arguments, str]] = [
    # source, typed words, changed fields of the sweep, and the sampling that its rows state
    (PAIRS, "", {}, MINED),
    (PAIRS, "--negatives own", {"negatives": "own"}, "pairs, own mined negatives"),
    (PAIRS, "--negatives none", {"negatives": "none"}, "pairs, no mined negatives"),
    (PAIRS, "--mined 2", {"mined": 2}, f"{MINED}, 2 mined"),
    (PAIRS, "--mask same-item", {"masks": ("same_item",)}, f"{MINED}, mask same_item"),
    (PAIRS, "--mask same-text", {"masks": ("same_text",)}, f"{MINED}, mask same_text"),
    (PAIRS, "--mask above", {"masks": ("above:margin=0.1",)}, f"{MINED}, mask above"),
    (PAIRS, "--mask above:margin=0.2", {"masks": ("above:margin=0.2",)}, f"{MINED}, mask above:margin=0.2"),
    (PAIRS, "--mask percent", {"masks": ("percent:share=0.95",)}, f"{MINED}, mask percent"),
    (
        PAIRS, "--mask above --mask same-item", {"masks": ("above:margin=0.1", "same_item")},
        f"{MINED}, mask above+same_item",
    ),
    (
        PAIRS, "--mask gist --guide guide.npz",
        {"masks": ("gist:margin=0,strategy=absolute",), "guide": "guide.npz"}, f"{MINED}, mask gist",
    ),
    (PAIRS, "--mask none", {}, MINED),
    (PAIRS, "--terms q2q,d2d", {"terms": ("q2q", "d2d")}, f"{MINED}, terms q2q+d2d"),
    (PAIRS, "--sampling views", {"sampling": "views"}, "views"),
    (PAIRS, "--sampling pairs", {"sampling": "pairs"}, MINED),
    (
        PAIRS, "--sampling groups --objective supcon",
        {"sampling": "groups", "objectives": (SUPCON,)}, "groups, mined negatives",
    ),
    (PAIRS, "--same-image mask", {"same_image": "mask"}, MINED),
    (SET, "--objective supcon", {"objectives": (SUPCON,)}, "classes of 4"),
    (SET, "--per-class 2 --objective supcon", {"per_class": 2, "objectives": (SUPCON,)}, "classes of 2"),
    (
        SET, "--sampling classes --objective supcon",
        {"sampling": "classes", "objectives": (SUPCON,)}, "classes of 4",
    ),
    (IMAGES, "--batch-size 4", {"batch_size": 4}, "pairs"),
    (IMAGES, "--batch-size all", {"batch_size": None}, "pairs"),
    (IMAGES, "--drop-last", {"drop_last": True}, "pairs"),
    (IMAGES, "--no-shuffle", {"shuffle": False}, "pairs"),
    (IMAGES, "--captions first", {"captions": "first"}, "pairs"),
    (IMAGES, "--seed 7", {"seed": 7}, "pairs"),
    (IMAGES, "--per-query --out frame", {"per_query": True}, "pairs"),
    (IMAGES, "--interval 99", {"interval": 0.99}, "pairs"),
    (IMAGES, "--interval 90%", {"interval": 0.9}, "pairs"),
    (IMAGES, "--interval none", {"interval": None}, "pairs"),
    (IMAGES, "--interval-groups 10", {"interval_groups": 10}, "pairs"),
    (IMAGES, "--eps 0.1 --eps 0.2", {"probes": (cocos_spec(0.1), cocos_spec(0.2))}, "pairs"),
    (IMAGES, "--eps 0.0123456789 --eps 0.0123456789", {"probes": (cocos_spec(0.0123456789),)}, "pairs"),
    (IMAGES, "--unit relative", {"probes": (cocos_spec(unit="relative"),)}, "pairs"),
    (IMAGES, "--convention text", {"probes": (cocos_spec(convention="text"),)}, "pairs"),
    (IMAGES, "--curve a.csv", {"probes": (cocos_spec(curve="true"),)}, "pairs"),
    (
        IMAGES, "--objective ntxent:tau=0.1..0.3/3",
        {"objectives": ("ntxent:tau=0.1", "ntxent:tau=0.2", "ntxent:tau=0.3")}, "pairs",
    ),
    (SHARDS, "--queries 5", {"queries": 5, "batch_size": None}, "pairs"),
    (
        SHARDS, "--precision-of C_neg=1%", {"precision_of": "C_neg=1%", "batch_size": None},
        "pairs",
    ),
]  # fmt: skip


@each("source, options, changes, sampling", SWEEPS)
def test_options_of_a_sweep(source: str, options: str, changes: Arguments, sampling: str, called: Called) -> None:
    usual = Sweep(("ntxent:tau=0.1",), (cocos_spec(),))
    objective = "" if "--objective" in options else "--objective ntxent"
    arguments = called("lossscope.engine.sweep:Sweep.run", f"cocos {source} {objective} {options}")
    assert arguments["self"] == replace(usual, **changes)
    embedded = arguments["embedded"]
    plan = arguments["self"].plan.for_relations(embedded.relations)
    assert plan.sampling_label(plan.batchings[0]) == sampling
    assert (arguments["guide"] is None) == ("--guide" not in options)
    assert (arguments["frame"] is None) == ("--out" not in options)


@each(
    "words, probes",
    [
        ("probe images.npz --probes similarity --probes cocos:eps=0.1", ("similarity", cocos_spec(0.1))),
        ("weight-mass images.npz --eps 0.2", ("weight_mass:eps=0.2,convention=corrected",)),
        ("false-negatives images.npz --near 0.5", ("false_negatives:near=0.5",)),
    ],
)
def test_probes_of_a_sweep(words: str, probes: tuple[str, ...], called: Called) -> None:
    assert called("lossscope.engine.sweep:Sweep.run", words)["self"].probes == probes


@each("words, masks, negatives", [
    ("", ("same_item", "above:margin=0.1"), "none"),
    ("--mask none", (), "none"),
    ("--mask above:margin=0.3", ("above:margin=0.3",), "none"),
    ("--negatives batch", ("same_item", "above:margin=0.1"), "batch"),
])  # fmt: skip
def test_batches_are_as_a_run_was_trained_unless_options_say_otherwise(
    words: str, masks: tuple[str, ...], negatives: str, tiny_run: Path, called: Called
) -> None:
    """A run trained with a rule raised a traceback once; only damaged files showed it."""
    base = Checkpoint.load(tiny_run / "best.pt")
    trained = {**base.training, "mask": "same_item;above:margin=0.1", "negatives": "none"}
    Checkpoint(**{**vars(base), "training": trained}).save("trained.pt")
    for line in (f"cocos trained.pt {words}", f"similarity trained.pt {words}"):
        sweep = called("lossscope.engine.sweep:Sweep.run", line)["self"]
        assert (sweep.masks, sweep.negatives) == (masks, negatives)
    pair = called("lossscope.engine.paired_sweep:PairedSweep.run", f"diff trained.pt --b-mode train {words}")["self"]
    assert {(sweep.masks, sweep.negatives) for sweep in (pair.first, pair.second)} == {(masks, negatives)}


@each(
    "damage",
    [{"mined": -3}, {"mined": 1.5}, {"mined": "all"}, {"negatives": ["own"]}, {"negatives": "some"}],
    "line",
    ["cocos bad.pt", "diff bad.pt --b-mode train", "diff tiny.pt bad.pt", "doctor bad.pt"],
)
def test_a_recipe_that_no_run_has_is_the_fault_of_its_source(
    damage: Arguments, line: str, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message blamed `--mined`, with exit code 2, though nobody had typed it."""
    monkeypatch.chdir(tmp_path)
    base = Checkpoint.load(tiny_run / "best.pt")
    for name, more in (("tiny.pt", {}), ("bad.pt", damage)):
        Checkpoint(**{**vars(base), "training": {**base.training, **more}}).save(name)
    done = lossscope(line)
    assert done.exit_code == 1
    assert "the recipe in bad.pt must be that of a training" in message(done)


REQUESTS: list[tuple[str, Arguments]] = [
    ("--split val", {"split": "val"}),
    ("--data scenes", {"data": "scenes"}),
    ("--no-cache", {"cache": False}),
    ("--trust-code", {"trust_code": True}),
    ("--device cpu", {"device": "cpu"}),
    ("--vocabulary words.txt", {"vocabulary": Path("words.txt")}),
    ("--caption-image images.txt", {"caption_image": Path("images.txt")}),
    ("--sides user/item", {"sides": "user/item"}),
    ("--encoder-option score=itc --encoder-option b=2", {"encoder": ("score=itc", "b=2")}),
    ("--accept-option a --accept-option b", {"accepted_options": ("a", "b")}),
]
OPENING = {
    # command that opens sources: the split that it takes unless told
    "cocos images.npz --objective ntxent": "train",
    "similarity images.npz": "train",
    "eval images.npz": "test",
    "compare images.npz images.npz": "test",
    "mine images.npz --out mined": "train",
}


@each("line, split", OPENING.items(), "options, changes", REQUESTS)
def test_how_a_source_is_opened(line: str, split: str, options: str, changes: Arguments, called: Called) -> None:
    usual = {
        "data": None,
        "split": None,
        "usual_split": split,
        "cache": True,
        "trust_code": False,
        "vocabulary": None,
        "device": "cpu",
    }
    given = called("lossscope.sources.base:read_source", f"{line} --device cpu {options}")
    assert {name: getattr(given["request"], name) for name in (*usual, *changes)} == {**usual, **changes}
    assert Path(given["path"]) == Path("images.npz")


def typed_value(field: str, value: Any) -> tuple[str, Any]:
    """Return the typed text of another value of a choice, and the value."""
    others: Arguments = {
        "data": "passages", "encoder": "vsepp:dim=8", "objective": "triplet", "reduction": "sum", "sampling": "images",
        "same_image": "mask", "negatives": "own", "mask": "same-item;above", "precision": "bf16", "init": "best.pt",
        "info": "info.npz", "offline": "mined", "optimiser": "adamw", "schedule": "linear", "lr_groups": "bert=0.1",
        "freeze": "backbone=1", "select_by": "r1_r5", "beta2": 0.5,
    }  # fmt: skip
    if isinstance(value, bool):
        return "", not value
    other = others[field] if field in others else value + (0.5 if isinstance(value, float) and value < 0.5 else 1)
    return str(other), other


@each("field", [field.name for field in fields(Recipe)])
def test_a_choice_of_a_training(field: str, called: Called) -> None:
    named = {"data": "scenes", "encoder": "vsepp", "objective": "ntxent"}
    text, value = typed_value(field, getattr(Recipe(), field))
    option = f"--{field.replace('_', '-')}"
    words = " ".join(f"--{name} {spec}" for name, spec in named.items() if name != field)
    recipe = called("lossscope.training.loop:train", f"train {words} {option} {text}")["recipe"]
    assert recipe == replace(Recipe(**{name: spec for name, spec in named.items() if name != field}), **{field: value})


def test_how_a_training_is_run(called: Called) -> None:
    words = "train --data scenes --encoder vsepp --objective ntxent --out run --save-every 7 --device cpu"
    words += " --probe cocos --probe similarity --probe-every 3 --encoder-option dim=8"
    given = called("lossscope.training.loop:train", words)
    assert (given["out"], given["device"], given["save_every"]) == (Path("run"), "cpu", 7)
    assert given["recipe"].encoder == "vsepp:dim=8"
    schedule = given["probe_schedule"]
    assert (schedule.probes, schedule.every) == (("cocos", "similarity"), 3)
    resumed = called("lossscope.training.loop:resume", "train --resume run --epochs 9 --device cpu --trust-code")
    assert (resumed["out"], resumed["epochs"], resumed["trust_code"]) == (Path("run"), 9, True)


def test_a_choice_of_a_file_of_a_training_is_changed_by_what_is_typed(called: Called) -> None:
    Path("a.toml").write_text('data = "passages"\nencoder = "biencoder"\nepochs = 9\nbatch_size = 64\n')
    recipe = called("lossscope.training.loop:train", "train --config a.toml --epochs 1")["recipe"]
    assert (recipe.data, recipe.encoder, recipe.epochs, recipe.batch_size) == ("passages", "biencoder", 1, 64)


def test_options_of_an_audit(called: Called) -> None:
    words = "audit a.npz b.npz --data scenes --split val --objective triplet --objective ntxent --signal density"
    Path("a.npz").touch()
    Path("b.npz").touch()
    words += " --batch-size 16 --labels l.csv --threshold 0.3 --top 9 --sheet 30 --seed 4 --sides a/b --no-cache"
    words += " --caption-image i.txt --vocabulary v.txt --trust-code --device cpu --out out"
    given = called("lossscope.audit.steps.run:audit", words)
    assert list(map(Path, given["sources"])) == [Path("a.npz"), Path("b.npz")]
    source = Request(
        data="scenes", split="val", cache=False, vocabulary=Path("v.txt"), caption_image=Path("i.txt"), sides="a/b",
        trust_code=True, device="cpu",
    )  # fmt: skip
    assert given["options"] == AuditOptions(
        ("triplet", "ntxent"), ("density",), 16, (Path("l.csv"),), 0.3, 9, sheet=30, seed=4, source=source
    )


def test_options_of_the_doctor(called: Called) -> None:
    words = "doctor a.npz b.npz --objective ntxent --data scenes --log l.csv --column loss=a --column lr=b"
    words += " --batch-size 16 --against c.npz --audit audit --split val --sides a/b --caption-image i.txt"
    words += " --vocabulary v.txt --encoder-option x=1 --accept-option y --trust-code --no-cache --device cpu"
    words += " --before start.npz --same-items"
    given = called("lossscope.doctor.examination.examine:examine_sources", words)
    source = Request(
        data="scenes", split="val", sides="a/b", caption_image=Path("i.txt"), vocabulary=Path("v.txt"),
        encoder=("x=1",), accepted_options=("y",), trust_code=True, cache=False, device="cpu",
    )  # fmt: skip
    assert given["sources"] == ("a.npz", "b.npz") and given["log"] == Path("l.csv")
    assert given["options"] == Options(
        "ntxent", 16, ("c.npz",), before="start.npz", same_items=True, audit=Path("audit"),
        columns={"loss": "a", "lr": "b"}, source=source,
    )  # fmt: skip


def test_options_of_a_report(called: Called) -> None:
    for name in "ab":
        Path(name).mkdir()
        Path(name, "config.toml").touch()  # as in the folder of a run
    words = "report a b --out page --title Mine --split val --test train --resamples 99 --label a=A --label b=B"
    given = called("lossscope.studies.report:report", f"{words} --columns R@1,rsum --no-published --device cpu")
    assert (given["paths"], given["out"], given["device"]) == ((Path("a"), Path("b")), Path("page"), "cpu")
    assert given["options"] == ReportOptions(
        title="Mine", split="val", test="train", resamples=99, labels=("a=A", "b=B"), columns=("R@1", "rsum"),
        published=False,
    )  # fmt: skip
    assert called("lossscope.studies.report:report", "report a")["options"] == ReportOptions()


def test_json_of_a_sweep_says_what_was_typed() -> None:
    line = "cocos images.npz --objective ntxent --batch-size 4 --unit relative --format json"
    command = document(lossscope(line))["command"]
    assert command == {
        "name": "cocos", "sources": ["images.npz"], "split": None, "convention": "corrected", "unit": "relative"
    }  # fmt: skip
    assert json.dumps(command)
