"""What is the mask of an audit worth? Trainings without a mask, with that of an audit, and with the exact truth.

    python studies/audit/mask_worth.py --out DIR

In the scenes 0.9 % of the negatives match; models read regions with histograms of gradients. In the passages hardly
any negative matches. The audit has no model, and a sheet of 100 pairs that the truth answers. Finished runs in DIR are
kept. A row of results/mask_worth.csv is a run, with its results on the test split by the exact truth.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from known_truth import labelled_of, perfect_mask, truth_of, write_answers

import lossscope
from lossscope.audit.output.folder import mask_of
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.run import audit
from lossscope.core.known_pairs import KnownPairs, read_known_pairs
from lossscope.core.relations import Relations
from lossscope.datasets.base import Split
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text
from lossscope.registry import build
from lossscope.retrieval.metrics import retrieve

RESULTS = Path(__file__).parent / "results" / "mask_worth.csv"
SEEDS = (0, 1, 2)
LABELLED = "audit and 100 labels"
MASKS = ("none", "perfect", LABELLED, f"{LABELLED}, p >= 0.2", f"{LABELLED}, p >= 0.5")


@dataclass(frozen=True)
class Training:
    """A data set, and the options of its trainings."""

    name: str
    data: str  # with texts to audit, and a known truth
    objectives: tuple[str, ...]
    options: tuple[str, ...]
    masks: tuple[str, ...]
    features: tuple[str, ...] = ()  # options of `lossscope data features`, if models read regions


TRAININGS = (
    Training(
        "scenes",
        "scenes:train=1000,val=250,test=250,size=32,ambiguity=0.4",
        ("triplet-sh:margin=0.2", "ntxent:tau=0.1"),
        (
            "--encoder",
            "vsrn:dim=128,words=64,blocks=1,word_init=1.0",
            "--epochs",
            "10",
            "--lr",
            "0.003",
            "--warmup",
            "3",
        ),
        ("none", "perfect", LABELLED, f"{LABELLED}, p >= 0.2"),
        ("--backbone", "hog-grid:rows=3,columns=3,cell=16"),
    ),
    Training(
        "passages",
        "passages:train=2000",
        ("triplet-sh:margin=0.2", "ntxent:tau=0.05"),
        ("--encoder", "biencoder", "--epochs", "6", "--lr", "0.002", "--min-count", "1"),
        ("none", "perfect", LABELLED, f"{LABELLED}, p >= 0.5"),
    ),
)


def main() -> None:
    """Train missing runs, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, required=True, help="folder of features, masks and runs")
    parser.add_argument("--only", help="name of a data set; nothing is written")
    parser.add_argument("--mask", choices=MASKS, help="one of the masks; nothing is written")
    typed = parser.parse_args()
    rows = []
    for training in TRAININGS:
        if typed.only in (None, training.name):
            masks = [typed.mask] if typed.mask else training.masks
            rows += list(runs_of(training, masks, typed.out / training.name))
    table = pd.DataFrame(rows)
    print(table.to_string())
    if not (typed.only or typed.mask):
        write_text(RESULTS, format_csv(table))


def runs_of(training: Training, masks: list[str] | tuple[str, ...], out: Path) -> Iterator[dict[str, object]]:
    """Train, and yield a row for each run."""
    out.mkdir(parents=True, exist_ok=True)
    dataset = build("datasets", training.data)
    train, test = dataset.split("train"), dataset.split("test")
    data = training.data
    if training.features:
        data = f"precomp:root={out / 'features'}"
        if not (out / "features" / "manifest.json").is_file():
            lossscope_command(
                "data", "features", "--data", training.data, *training.features, "--out", str(out / "features")
            )
    for seed in SEEDS:
        for mask in masks:
            file = None if mask == "none" else mask_file(training, train, mask, seed, out)
            hidden = {} if file is None else quality(read_known_pairs(file), train, threshold_of(mask))
            for objective in training.objectives:
                path = out / "-".join((objective.partition(":")[0], *mask.split(), str(seed)))
                if not (path / "finished").is_file():
                    masked = () if file is None else ("--mask", f"pairs:file={file},threshold={threshold_of(mask)}")
                    lossscope_command(
                        "train", "--data", data, "--objective", objective, *training.options, *masked,
                        "--seed", str(seed), "--device", "cpu", "--out", str(path), "--quiet",
                    )  # fmt: skip
                    (path / "finished").touch()
                yield {
                    "data": training.name, "objective": objective, "mask": mask, "seed": seed, **hidden,
                    **test_values(path, test),
                }  # fmt: skip


def lossscope_command(*words: str) -> None:
    """Run a command."""
    subprocess.run([sys.executable, "-m", "lossscope_cli", *words], check=True, stdout=subprocess.DEVNULL)


def mask_file(training: Training, train: Split, mask: str, seed: int, out: Path) -> Path:
    """Write a mask unless it exists: the same for all seeds, but each seed has another sheet."""
    path = out / (f"labelled-{seed}.npz" if "labels" in mask else f"{mask}.npz")
    if path.is_file():
        return path
    if mask == "perfect":
        perfect_mask(train).write(path)
        return path
    options = AuditOptions.of(data=training.data, seed=seed)
    labels = write_answers(audit([], options), truth_of(train), out / f"labels-{seed}.csv")
    mask_of(audit([], replace(options, labels=(labels,)))).write(path)
    return path


def threshold_of(mask: str) -> float:
    """Return the smallest probability at which a mask leaves a pair out."""
    return float(mask.rpartition(">= ")[2]) if ">=" in mask else 0.1


def quality(known: KnownPairs, split: Split, threshold: float) -> dict[str, float]:
    """Return a mask's share of the negatives, its precision and its recall, by the truth."""
    wanted, negative = truth_of(split) & ~labelled_of(split), ~labelled_of(split)
    above = known.probability >= threshold
    right = int(wanted[known.left[above], known.right[above]].sum())
    return {
        "hidden": round(float(above.sum() / negative.sum()), 6),
        "precision": round(right / max(int(above.sum()), 1), 4),
        "recall": round(right / int(wanted.sum()), 4),
    }


def test_values(run: Path, test: Split) -> dict[str, float]:
    """Return the measures of a run on the test split, the mean of both directions, by the truth and by labels."""
    embedded = lossscope.load(run / "best.pt", split="test")
    assert embedded.images is not None
    assert embedded.captions is not None
    S = embedded.images @ embedded.captions.T
    values = {}
    for name, positives in (("truth", truth_of(test)), ("labels", labelled_of(test))):
        N, M = positives.shape
        relations = Relations(N, M, np.argwhere(positives), test.relations.sides)
        both = retrieve(S, relations, (1, 5, 10))
        for measure in ("MAP@R", "nDCG@10"):
            values[f"{measure}_{name}"] = round(
                float(np.mean([direction.measures[measure].mean() for direction in both])), 5
            )
        values[f"mAP_{name}"] = round(average_precision(S.numpy(), positives), 5)
        values[f"rsum_{name}"] = round(sum(direction.recall(k) for direction in both for k in (1, 5, 10)), 2)
    return values


def average_precision(S: np.ndarray, positives: np.ndarray) -> float:
    """Return the mean average precision over the whole ranking, the mean of both directions."""
    means = []
    for scores, wanted in ((S, positives), (S.T, positives.T)):
        scores, wanted = scores[wanted.any(1)], wanted[wanted.any(1)]
        hits = np.take_along_axis(wanted, np.argsort(-scores, 1, kind="stable"), 1)
        precision = hits.cumsum(1) / np.arange(1, hits.shape[1] + 1)
        means.append(((precision * hits).sum(1) / hits.sum(1)).mean())
    return float(np.mean(means))


if __name__ == "__main__":
    main()
