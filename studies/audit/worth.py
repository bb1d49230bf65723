"""Does `audit --worth` tell what a mask is worth? Trials of exact, audited and random masks, judged by the truth.

    python studies/audit/worth.py --out DIR

The data sets are those of mask_worth.py, with other seeds: its full trainings show what masks gained, and the trial's
learning rate, width and steps were set on seed 0. The study trains a model of each seed without a mask, and tries heads
on its vectors. Finished models in DIR are kept. A row of results/worth.csv is a trial of a seed. A random mask has as
many pairs as the audit's, and is judged by the audit's probabilities. In the ranking "by truth" all true matches are
right answers, which only these data know; the random mask has none.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from known_truth import labelled_of, truth_of, write_answers
from mask_worth import lossscope_command
from scipy import sparse

from lossscope.audit.estimate.held_out_trial import Difference, Trial, TrialItems, held_out_trial
from lossscope.audit.steps.inputs import Inputs, read_inputs
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.result import AuditResult
from lossscope.audit.steps.run import audit
from lossscope.audit.steps.worth import trial_vectors
from lossscope.core.types import HIDDEN_FROM
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text
from lossscope.registry import build

RESULTS = Path(__file__).parent / "results" / "worth.csv"
SEEDS = (101, 102, 103)  # of data, model, audit and trial; the design of the trial did not use them
OBJECTIVES = ("triplet-sh:margin=0.2", "ntxent")


@dataclass(frozen=True)
class Model:
    """A data set, and the options of its training."""

    name: str
    data: str
    tau: float
    options: tuple[str, ...]


MODELS = (
    Model(
        "scenes", "scenes:train=1000,val=250,test=250,size=32,ambiguity=0.4", 0.1,
        ("--encoder", "vsepp", "--epochs", "10", "--lr", "0.002"),
    ),
    Model("passages", "passages:train=2000", 0.05,
          ("--encoder", "biencoder", "--epochs", "6", "--lr", "0.002", "--min-count", "1")),
)  # fmt: skip


def main() -> None:
    """Try masks on each model, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, required=True, help="folder of models and labels")
    parser.add_argument("--only", help="name of a model; nothing is written")
    typed = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in SEEDS:
        for model in MODELS:
            if typed.only in (None, model.name):
                rows += trials_of(model, seed, typed.out / f"{model.name}-{seed}")
    table = pd.DataFrame(rows)
    table = table.sort_values("data", kind="stable", ascending=False)
    print(table.to_string())
    if not typed.only:
        write_text(RESULTS, format_csv(table))


def trials_of(model: Model, seed: int, out: Path) -> list[dict[str, Any]]:
    """Return a row for each mask and objective."""
    out.mkdir(parents=True, exist_ok=True)
    data = f"{model.data},seed={seed}"
    if not (out / "best.pt").is_file():
        lossscope_command(
            "train", "--data", data, "--objective", f"ntxent:tau={model.tau}", *model.options, "--seed", str(seed),
            "--device", "cpu", "--out", str(out), "--quiet",
        )  # fmt: skip
    split = build("datasets", data).split("train")
    truth = sparse.csr_matrix(truth_of(split) & ~labelled_of(split), dtype=np.float64)
    options = AuditOptions.of(data=data, seed=seed)
    labels = write_answers(audit([], options), truth_of(split), out / "labels.csv")
    audited = probabilities(audit([], replace(options, labels=(labels,))))
    inputs = read_inputs([out / "best.pt"], options)
    masks = {
        "perfect": truth, "audit and 100 labels": audited, "random": random_pairs(audited, labelled_of(split), seed),
    }  # fmt: skip
    rows = []
    for name, probability in masks.items():
        hidden = probability >= HIDDEN_FROM
        right = hidden.multiply(truth).sum() / max(hidden.sum(), 1)
        for objective in (OBJECTIVES[0], f"{OBJECTIVES[1]}:tau={model.tau}"):
            trial = tried(inputs, hidden, truth if name == "perfect" else audited, objective, seed)
            by_truth = trial if name == "perfect" else None
            if name not in ("perfect", "random"):
                by_truth = tried(inputs, hidden, truth, objective, seed)
            rows.append(row_of(model.name, name, seed, right, trial, by_truth))
            print(rows[-1], flush=True)
    return rows


def probabilities(result: AuditResult) -> sparse.csr_matrix:
    """Return the probabilities of the suspects, (N, M)."""
    pairs, relations = result.suspects.pairs, result.material.relations
    return sparse.csr_matrix(
        (result.suspects.probability, (pairs.left, pairs.right)), (relations.first, relations.second)
    )


def random_pairs(like: sparse.csr_matrix, labelled: np.ndarray, seed: int) -> sparse.csr_matrix:
    """Return as many negatives as a mask leaves out, drawn at random, with probability 1."""
    free = np.flatnonzero(~labelled)
    chosen = np.random.default_rng(seed).choice(free, int((like >= HIDDEN_FROM).sum()), replace=False)
    return sparse.csr_matrix((np.ones(len(chosen)), np.unravel_index(chosen, labelled.shape)), labelled.shape)


def tried(inputs: Inputs, hidden: sparse.csr_matrix, matches: sparse.csr_matrix, objective: str, seed: int) -> Trial:
    """Return the trial of a mask, judged by probabilities."""
    items = TrialItems(*trial_vectors(inputs), inputs.material.relations, hidden, matches)
    return held_out_trial(items, build("objectives", objective), objective, 128, seed)


def row_of(data: str, mask: str, seed: int, precision: float, trial: Trial, by_truth: Trial | None) -> dict[str, Any]:
    """Return the differences in mAP of a trial with intervals, and those of the same heads judged by the truth."""
    row: dict[str, Any] = {
        "data": data, "objective": trial.objective, "mask": mask, "seed": seed, "hidden": trial.hidden,
        "precision": round(float(precision), 4), "without": round(trial.headline.without, 3),
    }  # fmt: skip
    parts: dict[str, Difference] = {part.ranking: part for part in trial.differences if part.measure == "mAP"}
    if by_truth is not None:
        parts["by truth"] = by_truth.headline
    for ranking, part in parts.items():
        numbers = {"": part.value, " low": part.low, " high": part.high}
        row |= {f"{ranking}{end}": round(value, 4) for end, value in numbers.items()}
    return row


if __name__ == "__main__":
    main()
