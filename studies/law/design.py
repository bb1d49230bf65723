"""Which trainings does the law need? The design that PLAN.md fixes: blocks of runs, in the order in which they run."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

RATES = (0.0, 0.01, 0.1, 1.0, 8.0)  # percent of the negatives of a batch that are true positives without a label
FEW_RATES = (0.0, 1.0, 8.0)
OBJECTIVES = {
    "NT-Xent": "ntxent:tau=0.1",
    "Triplet": "triplet:margin=0.2",
    "SmoothAP": "smoothap:tau=0.01",
    "SigLIP": "siglip",
}
FEW_OBJECTIVES = ("NT-Xent", "Triplet")
KEPT = ("top 1", "top 2", "top 5", "top 20", "all")
START = "ntxent:tau=0.2"  # trains what all runs of a group begin with
AFTER_START = 0.5  # factor on the learning rate of what follows
SEEDS, MORE_SEEDS = (0, 1, 2), (3, 4, 5, 6, 7, 8, 9)
BATCH = 128


@dataclass(frozen=True)
class Data:
    """A data set at several rates of false negatives, and two encoders of it."""

    spec: str  # {unclear} is what makes false negatives, {seed} the seed
    clean: str  # of the test split, where labels are complete
    unclear: dict[float, float]  # rate in percent -> value of {unclear}
    encoders: tuple[tuple[str, float], ...]  # spec and learning rate at 128 pairs
    epochs: int  # of a run, after its start
    start: dict[str, int]  # strength of the start -> its epochs


DATA = {
    "scenes": Data(
        "scenes:train=1024,val=100,test=300,size=16,captions=2,ambiguity={unclear},seed={seed}",
        "scenes:train=2,val=2,test=300,size=16,captions=2,ambiguity=0,seed={seed}",
        {0.0: 0.0, 0.01: 0.08, 0.1: 0.205, 1.0: 0.425, 8.0: 0.705},
        (("vsepp:width=8,dim=64,words=32", 0.004), ("clip:width=32,depth=1,heads=2,patch=4,dim=64", 0.001)),
        9,
        {"strong": 12, "weak": 6, "none": 0},
    ),
    "passages": Data(
        "passages:train=2000,val=100,test=600,negatives=0,mined_answers=0,false_negatives=0,duplicates=0,"
        "vague={unclear},seed={seed}",
        "passages:train=2,val=2,test=600,negatives=0,mined_answers=0,false_negatives=0,duplicates=0,seed={seed}",
        {0.0: 0.0, 0.01: 0.0005, 0.1: 0.0027, 1.0: 0.027, 8.0: 0.215},
        (("biencoder:dim=64,words=64", 0.004), ("biencoder:tower=transformer,dim=64,words=64", 0.004)),
        6,
        {"strong": 6, "weak": 3, "none": 0},
    ),
}


@dataclass(frozen=True)
class Group:
    """Runs that begin with one model: equal data, encoder, batch size, seed and start."""

    data: str
    rate: float  # percent
    encoder: int  # 0 or 1
    batch: int
    seed: int
    start: str = "strong"  # or weak; none: random weights


@dataclass(frozen=True)
class LawRun:
    """A training: which negatives of which loss."""

    block: str
    group: Group
    objective: str  # name in OBJECTIVES
    kept: str  # `all`, `top K`, `tail K`, `above EPS`

    @property
    def spec(self) -> str:
        """Spec of the objective that is trained."""
        whole, (kind, _, value) = OBJECTIVES[self.objective], self.kept.partition(" ")
        if kind == "all":
            return whole
        return f'only_{kind}:of="{whole}",{"eps" if kind == "above" else "k"}={value}'

    @property
    def key(self) -> dict[str, Any]:
        """The columns of results.csv that say which run a row is of."""
        group = self.group
        return {
            "data": group.data, "rate": group.rate, "encoder": group.encoder, "batch": group.batch,
            "seed": group.seed, "start": group.start, "objective": self.objective, "kept": self.kept,
        }  # fmt: skip


def _block(
    name: str,
    rates: tuple[float, ...] = FEW_RATES,
    encoder: int = 0,
    batches: tuple[int, ...] = (BATCH,),
    seeds: tuple[int, ...] = SEEDS,
    objectives: tuple[str, ...] = FEW_OBJECTIVES,
    kept: tuple[str, ...] = ("top 1", "top 5", "all"),
    start: str = "strong",
) -> list[LawRun]:
    return [
        LawRun(name, Group(data, rate, encoder, batch, seed, start), objective, part)
        for seed, batch, rate, data in itertools.product(seeds, batches, rates, DATA)
        for objective in objectives
        for part in kept
    ]


def design() -> list[LawRun]:
    """Return all runs, blocks in the order of PLAN.md, seeds within blocks."""
    return [
        *_block("main", RATES, objectives=tuple(OBJECTIVES), kept=KEPT),
        *_block("seeds", seeds=MORE_SEEDS, kept=("top 1", "all")),
        *_block("batch", batches=(32, 512)),
        *_block("encoder", encoder=1),
        *_block("tail", objectives=("NT-Xent",), kept=("tail 1", "tail 5", "above 0.01")),
        *_block("weak start", start="weak"),
        *_block("no start", (0.0, 8.0), kept=("top 1", "all"), start="none"),
    ]
