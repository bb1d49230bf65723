"""Fit the weights of photos and captions on the human judgements of Flickr8k; write them beside their reader.

    python studies/audit/default_weights.py --data "karpathy:root=DIR,name=flickr8k,size=64" --source RUN \
        --expert DIR/text/ExpertAnnotations.txt --crowd DIR/text/CrowdFlowerAnnotations.txt

RUN is a model of the test split's pictures and captions, such as vsepp trained from scratch on 64 x 64 pixels. The
study keeps only the weights, no data.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from lossscope.audit.estimate.default_weights import FILE
from lossscope.audit.estimate.signal_table import SignalTable
from lossscope.audit.parts.material import Material
from lossscope.audit.search.random_batches import pairs_of, random_batches
from lossscope.audit.steps.inputs import read_inputs
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.signals import build_signals
from lossscope.audit.types import PairRows
from lossscope.core.pair_rows import resolve_pairs
from lossscope.datasets.judgements.any_format import read_judgements
from lossscope.io.files import write_text

ORIGIN = "Flickr8k image-caption judgements"
GROUPS = {"texts": (True, False), "embeddings": (False, True), "both": (True, True)}


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser()
    for name in ("--data", "--source", "--expert", "--crowd"):
        parser.add_argument(name, required=True)
    typed = parser.parse_args()
    options = AuditOptions.of(data=typed.data, split="test")
    fits = {}
    for name, (texts, embeddings) in GROUPS.items():
        inputs = read_inputs([typed.source] if embeddings else [], options)
        relations = inputs.material.relations
        random_pairs, _ = pairs_of(random_batches(relations, 128, 0), relations)
        signals = [
            signal for signal in build_signals(()) if signal.group in ({"texts"} if texts else set()) | {"embeddings"}
        ]
        table = SignalTable.of(inputs.material, signals, random_pairs)
        parts = [judged(inputs.material, file) for file in (typed.expert, typed.crowd)]
        Z = np.concatenate([table.standardise(table.raw(pairs)) for pairs, _ in parts])
        y = np.concatenate([answers for _, answers in parts])
        fewest = min(len(answers) for _, answers in parts)
        weight = np.concatenate([np.full(len(answers), fewest / len(answers)) for _, answers in parts])
        fits[name] = fit(table.names, Z, y, weight)
        print(name, fits[name]["intercept"], fits[name]["weights"])
    stored = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    stored["photos"] = {"origin": ORIGIN, "fits": fits}
    write_text(FILE, json.dumps(stored, indent=1) + "\n")


def judged(material: Material, file: str) -> tuple[PairRows, np.ndarray]:
    """Return the judged pairs of a file that are no known matches, and whether people called them a match."""
    found = read_judgements(Path(file))
    rows = resolve_pairs(material, found.first, found.second, found.where)
    answers = np.array(found.positive)
    known = np.array(
        [material.relations.is_positive(*np.array(pair)[:, None])[0, 0] for pair in zip(*rows, strict=True)]
    )
    return PairRows(rows[0][~known], rows[1][~known]), answers[~known]


def fit(names: tuple[str, ...], Z: np.ndarray, y: np.ndarray, weight: np.ndarray) -> dict[str, object]:
    """Return the weights of a logistic regression, and their covariance, the intercept first."""
    model = LogisticRegression(C=1.0, max_iter=2000).fit(Z, y, sample_weight=weight)
    X = np.c_[np.ones(len(Z)), Z]
    p = expit(model.intercept_[0] + Z @ model.coef_[0])
    curvature = (X * (weight * p * (1 - p))[:, None]).T @ X + np.eye(X.shape[1])
    covariance = np.linalg.inv(curvature)
    return {
        "intercept": round(float(model.intercept_[0]), 4),
        "weights": {name: round(float(value), 4) for name, value in zip(names, model.coef_[0], strict=True)},
        "covariance": [[round(float(value), 6) for value in row] for row in covariance],
    }


if __name__ == "__main__":
    main()
