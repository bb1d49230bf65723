"""Define the cases of benchmarks/growth.py: each builds its inputs for a size and returns the function to time."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from measuring import source

from lossscope.audit.parts.material import Material
from lossscope.audit.steps.inputs import Inputs
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.run import examine as examine_audit
from lossscope.audit.steps.scorer import Scorer
from lossscope.audit.steps.signals import build_signals
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Rows
from lossscope.datasets.base import Split
from lossscope.datasets.lint.suite import lint
from lossscope.datasets.lint.targets import lint_sources
from lossscope.engine.blocks.matrix import row_slices
from lossscope.engine.sweep import Sweep
from lossscope.io.evaluation_folder import read_frame, write_evaluation
from lossscope.io.json_files import read_json
from lossscope.io.run_folder import Run
from lossscope.report.build import write_report
from lossscope.report.results import RunRecord, read_results
from lossscope.retrieval.evaluate import evaluate
from lossscope.studies.examine import examine as examine_run
from lossscope.studies.report import diagrams
from lossscope.studies.study_file import ExamineConfig
from lossscope.training.loop import train
from lossscope.training.recipe import Recipe

# equal in pairs, so that twice as many are twice the work
OBJECTIVES = tuple(f"{name}={k}" for k in (0.05, 0.06, 0.07, 0.08) for name in ("ntxent:tau", "triplet:margin"))
NOISE = 2.0  # of captions around their images
Function = Callable[[], object]


@dataclass(frozen=True)
class Size:
    """The sizes of a case; the benchmark doubles one of them."""

    n: int  # pairs, images, rows or queries
    d: int = 256
    B: int = 128
    objectives: int = 2


def sweep(size: Size, folder: Path) -> Function:
    """Return a sweep of small batches, in stacks."""
    embedded = source(size.n // 5, 5, size.d, NOISE)
    runner = Sweep(OBJECTIVES[: size.objectives], ("cocos:unit=paper",), batch_size=size.B)
    return partial(runner.run, embedded)


def tiles(size: Size, folder: Path) -> Function:
    """Return a sweep of one batch of all pairs, in tiles."""
    embedded = source(size.n, 1, size.d, NOISE)
    runner = Sweep(OBJECTIVES[: size.objectives], ("cocos:unit=paper",), batch_size=None, engine="tiled", interval=None)
    return partial(runner.run, embedded)


def eval_(size: Size, folder: Path) -> Function:
    """Return the evaluation of a split with five captions an image."""
    return partial(evaluate, [source(size.n // 5, 5, size.d, size.d**0.5 / 4)])


def product(embedded: SplitEmbeddings, B: int | None) -> Function:
    """Return the bare product of a split, in batches of B pairs or whole: the part that grows with d."""
    V, T = embedded.images, embedded.captions
    assert V is not None and T is not None
    if B is None:
        buffer = torch.empty(min(512, len(V)), len(T))
        return lambda: [torch.mm(V[r], T.T, out=buffer[: r.stop - r.start]) for r in row_slices(len(V), 512)]
    index = torch.from_numpy(embedded.relations.caption_image)
    return lambda: [torch.mm(V[index[r]], T[r].T) for r in row_slices(len(T), B)]


def audit(size: Size, folder: Path) -> Function:
    """Return an audit of captions of made-up words and of embeddings, without the reading."""
    embedded = source(size.n // 5, 5, size.d, NOISE)
    captions = _captions(len(embedded.caption_ids))
    split = Split(
        "train", _Pictures(len(embedded.image_ids)), captions, embedded.relations.caption_image,
        list(embedded.image_ids), list(embedded.caption_ids), "0",
    )  # fmt: skip
    options = AuditOptions.of(objectives=OBJECTIVES[: size.objectives], batch_size=size.B)

    def run() -> object:
        material = Material.of((embedded,), split)
        scorer = Scorer.of(material, build_signals((), material.relations.sides), options)
        return examine_audit(Inputs((embedded,), (None,), material), scorer, options)

    return run


def lint_(size: Size, folder: Path) -> Function:
    """Return lint of a JSONL file of questions with a positive and a negative."""
    file = folder / f"rows-{size.n}.jsonl"
    words = _words()
    rng = random.Random(0)
    if not file.exists():
        with open(file, "w", encoding="utf-8") as lines:
            for row in range(size.n):
                texts = (" ".join(rng.choices(words, k=k)) + f" {row}" for k in (6, 30, 27))
                query, positive, negative = texts
                lines.write(f'{{"query": "{query}", "positive": "{positive}", "negative": "{negative}"}}\n')
    return lambda: lint(lint_sources(str(file)))


def report(size: Size, folder: Path) -> Function:
    """Return a report of systems with two seeds each and n test queries in each direction, from reading to the page."""
    records = [_run_of(folder, size, number, seed) for number in range(size.objectives) for seed in (0, 1)]
    out = folder / "report"

    def run() -> object:
        shutil.rmtree(out, ignore_errors=True)
        results = read_results(records)
        return write_report(results, diagrams(results), out, None, "lossscope report", resamples=999)

    return run


def _run_of(folder: Path, size: Size, number: int, seed: int) -> RunRecord:
    """Return a run with random ranks of n queries, better for earlier objectives."""
    first, path = _trained(folder), folder / f"run-{size.n}-{number}-{seed}"
    if not path.exists():
        shutil.copytree(first, path)
        frames = {name: read_frame(first, name) for name in ("rows", "retrieval")}
        frames["retrieval"] = _retrieval(size.n, number, seed)
        write_evaluation(path, {k: v for k, v in frames.items() if v is not None}, _manifest(first))
    return RunRecord(f"run{number}-{seed}", path, "scenes", "VSE++", OBJECTIVES[number], OBJECTIVES[number], seed)


def _retrieval(n: int, number: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng((number, seed))
    names = np.array([f"{row}" for row in range(n)])
    directions = [
        pd.DataFrame({
            "direction": direction, "query": names, "image": names, "rank": rng.geometric(0.3 / (1 + number), n),
            "ap5": rng.random(n), "relevant": 1,
        })
        for direction in ("i2t", "t2i")
    ]  # fmt: skip
    return pd.concat(directions, ignore_index=True)


def _manifest(run: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = read_json(run / "evaluation" / "manifest.json")
    return manifest


@cache
def _trained(folder: Path) -> Path:
    """Train and evaluate a run in seconds: its numbers do not matter, its files are complete."""
    data, encoder = "scenes:train=60,val=20,test=20,size=16", "vsepp:dim=16,words=8,width=4"
    run = train(Recipe(data=data, encoder=encoder, objective="ntxent", epochs=1, batch_size=32), folder / "trained")
    examine_run(Run(run.path), ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=()))
    return run.path


@cache
def _words() -> list[str]:
    rng = random.Random(0)
    return ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(20_000)]


def _captions(number: int) -> list[str]:
    """Return texts of ten words each, with the frequencies of a language (Zipf)."""
    words, rng = _words(), np.random.default_rng(0)
    p = 1 / np.arange(1, len(words) + 1)
    picked = rng.choice(len(words), (number, 10), p=p / p.sum())
    return [" ".join(words[word] for word in row) for row in picked]


@dataclass(frozen=True)
class _Pictures:
    """Pictures of random pixels, 3 x 32 x 32."""

    number: int

    def __len__(self) -> int:
        return self.number

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of one picture."""
        return 3, 32, 32

    def take(self, rows: Rows) -> np.ndarray:
        """Return pictures of rows."""
        coarse = [np.random.default_rng(int(row)).integers(0, 256, (3, 8, 8), dtype=np.uint8) for row in rows]
        pictures: np.ndarray = np.stack(coarse).repeat(4, 2).repeat(4, 3)
        return pictures


def doubled(size: Size, axis: str, times: int) -> Size:
    """Return a size with one axis 2^times as large."""
    return replace(size, **{axis: getattr(size, axis) * 2**times})
