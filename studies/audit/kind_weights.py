"""Fit the weights of queries and documents over several kinds of data, and judge them on left-out kinds.

    python studies/audit/kind_weights.py --shared DIR --out DIR [--write]

Each data set of pair_kinds knows which pairs match. --out keeps its signals of all matches, and of other pairs in three
strata; the embeddings are static word vectors (the package wordllama). A logistic regression has an intercept for each
data set and shared weights; all kinds count the same, and the weights of photos and captions are the prior. The
differences of weights between kinds become the deviation of the prior before a user's labels. results/kind_weights.csv
has AUC and AP of weights fitted without the kind. --write puts the fit beside its reader.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from pair_kinds.base import DataSet
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.metrics import average_precision_score, roc_auc_score

from lossscope.audit.estimate.default_weights import FILE, LIKE_TEXT_COSINE
from lossscope.audit.estimate.signal_table import SignalTable
from lossscope.audit.parts.material import Material
from lossscope.audit.search.candidates import without_known
from lossscope.audit.search.random_batches import pairs_of, random_batches
from lossscope.audit.steps.signals import build_signals
from lossscope.audit.types import PairRows
from lossscope.core.embedded import SplitEmbeddings
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text

RESULTS = Path(__file__).parent / "results" / "kind_weights.csv"
FITTED = ("people", "shared_answers", "near_copies", "passages", "products", "reports", "tickets")
JUDGED = ("photos", "scenes", "hidden_captions", "intents")  # kinds with the weights of photos and captions
GROUPS = {"texts": ("texts",), "embeddings": ("embeddings",), "both": ("texts", "embeddings")}
ORIGIN = "kinds of queries and documents whose matches are known"
STRATA, EACH = (0, 4000, 30_000), 4000  # ranks of non-matches by the sum of the signals, and pairs of a stratum
MATCHES = 100.0  # weight of a data set's matches, whatever their number
RIDGE, LEAST_SD, MOST_SD = 1.0, 0.1, 1.0
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sample:
    """Pairs of a data set without copies, weighted so that they stand for all pairs."""

    kind: str
    name: str
    names: tuple[str, ...]
    Z: Doubles  # (n, k)
    match: npt.NDArray[np.bool_]
    weight: Doubles
    rate: float  # of matches in random batches
    random: Doubles  # (m, k) of random pairs

    def columns(self, names: Sequence[str]) -> Doubles:
        """Return the signals of these names, 0 for a signal that the data set lacks."""
        return np.stack(
            [self.Z[:, self.names.index(n)] if n in self.names else np.zeros(len(self.Z)) for n in names], 1
        )


def main() -> None:
    """Collect, judge, fit, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder of flickr8k and captions")
    parser.add_argument("--out", type=Path, required=True, help="folder of signals")
    parser.add_argument("--write", action="store_true", help="put the fit beside its reader")
    typed = parser.parse_args()
    typed.out.mkdir(parents=True, exist_ok=True)
    samples = [sample for module in (*FITTED, *JUDGED) for sample in collected(module, typed.shared, typed.out)]
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    frame = judge(samples, stored["photos"]["fits"])
    print(frame.to_string())
    write_text(RESULTS, format_csv(frame))
    fitted = [sample for sample in samples if sample.kind in FITTED and sample.match.any()]
    fits = {group: fit(fitted, signal_names(fitted, group), prior(stored, group)) for group in GROUPS}
    for group, found in fits.items():
        print(group, found["intercept"], found["weights"])
    if typed.write:
        stored["texts"] = {"origin": f"{len(FITTED)} {ORIGIN}", "fits": fits}
        write_text(FILE, json.dumps(stored, indent=1) + "\n")


def collected(module: str, shared: Path, out: Path) -> Iterator[Sample]:
    """Yield the samples of a kind; read those that are in the folder."""
    kind = importlib.import_module(f"pair_kinds.{module}")
    arguments = {"photos": (shared / "flickr8k",), "hidden_captions": (shared,)}.get(module, ())
    for number, data in enumerate(kind.data_sets(*arguments)):
        file = out / f"{module}-{number}.npz"
        if not file.is_file():
            print("signals of", module, data.name, flush=True)
            np.savez(file, **signals_of(data))
        with np.load(file) as kept:
            names = tuple(kept["names"].tolist())
            yield Sample(
                module, data.name, names, kept["Z"], kept["match"], kept["weight"], float(kept["rate"]), kept["random"]
            )


def signals_of(data: DataSet) -> dict[str, Any]:
    """Return the signals of a sample of the pairs."""
    material = data.material
    random_pairs, _ = pairs_of(random_batches(material.relations, 128, 0), material.relations)
    by_texts = [signal for signal in build_signals(()) if signal.group in ("texts", "copies")]
    table = SignalTable.of(material, by_texts, random_pairs)
    pairs = PairRows(*data.judged) if data.judged is not None else without_known(material, every_pair(material))
    pairs = take(pairs, np.nonzero(table.is_copy(pairs) == 0)[0])
    match, closeness = data.matches(pairs.left, pairs.right), table.standardise(table.raw(pairs)).sum(1)
    rows, weight = sampled(match, closeness, data.judged is not None)
    models = encoded(data)
    if models:
        material = Material.of(models, data.split, data.training)
        signals = [signal for signal in build_signals(()) if signal.group in ("texts", "embeddings")]
        table = SignalTable.of(material, signals, random_pairs)
    return {
        "names": np.array(table.names), "Z": table.standardise(table.raw(take(pairs, rows))), "match": match[rows],
        "weight": weight, "rate": data.matches(random_pairs.left, random_pairs.right).mean(),
        "random": table.standardise(table.of_random[:100_000]),
    }  # fmt: skip


def sampled(match: npt.NDArray[np.bool_], closeness: Doubles, keep_all: bool) -> tuple[Any, Doubles]:
    """Return rows and weights: matches, and samples of the closest, the close and the remaining pairs."""
    if keep_all:
        return np.arange(len(match)), np.ones(len(match))
    random = np.random.default_rng(0)
    matching, others = np.nonzero(match)[0], np.nonzero(~match)[0]
    others = others[np.argsort(-closeness[others], kind="stable")]
    parts = [matching, *np.split(others, STRATA[1:])]
    rows, weights = [], []
    for part in parts:
        chosen = random.choice(part, min(EACH, len(part)), replace=False)
        rows.append(chosen)
        weights.append(np.full(len(chosen), len(part) / max(len(chosen), 1)))
    return np.concatenate(rows), np.concatenate(weights)


def every_pair(material: Material) -> PairRows:
    """Return all pairs, in order of rows."""
    number = material.relations.second
    rows = np.arange(material.relations.first * number, dtype=np.int64)
    return PairRows(rows // number, rows % number)


def take(pairs: PairRows, rows: Any) -> PairRows:
    """Return the pairs at these rows."""
    return PairRows(pairs.left[rows], pairs.right[rows])


def encoded(data: DataSet) -> tuple[SplitEmbeddings, ...]:
    """Return static word vectors of both sides; empty if the first side has no texts."""
    texts, split = data.material.first_texts, data.split
    if texts is None:
        return ()
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise SystemExit("wordllama is not installed; make .venv/.models installs it")
    word_vectors = importlib.import_module("wordllama").WordLlama
    model = word_vectors.load(cache_dir=Path(found.origin).parent, disable_download=True)
    first, second = (torch.from_numpy(model.embed(list(side), norm=True)).float() for side in (texts, split.captions))
    first, second = (torch.nan_to_num(side) for side in (first, second))
    return (
        SplitEmbeddings(
            "wordllama", first, second, None, None, split.image_ids, split.caption_ids, "0", relations=split.relations
        ),
    )


def judge(samples: Sequence[Sample], photos: Any) -> pd.DataFrame:
    """Return the quality of weights on each data set: fitted without its kind, and others."""
    rows = []
    for kind in (*FITTED, *JUDGED):
        rest = [sample for sample in samples if sample.kind in FITTED and sample.kind != kind and sample.match.any()]
        for group in GROUPS:
            names = signal_names(samples, group)
            mean = prior({"photos": {"fits": photos}}, group)
            usual = np.array([photos[group]["intercept"], *(mean.get(name, 0.0) for name in names)])
            scored = {"photos and captions": (names, usual)}
            if kind in FITTED:
                scored["other kinds"] = (names, of_kinds(rest, names, mean))
                if group == "texts":
                    others = [name for name in names if name != "text_names"]
                    scored["other kinds, without names"] = (others, of_kinds(rest, others, mean))
            for sample in samples:
                if sample.kind != kind or (group != "texts" and "similarity" not in sample.names):
                    continue
                for by, (columns, b) in scored.items():
                    found = quality(sample, b[0] + sample.columns(columns) @ b[1:])
                    rows.append({"kind": kind, "data": sample.name, "signals": group, "weights": by, **found})
    return pd.DataFrame(rows)


def of_kinds(samples: Sequence[Sample], names: Sequence[str], mean: dict[str, float]) -> Doubles:
    """Return the weights that all kinds share, (k + 1,), the median intercept first."""
    b, intercepts = shared(samples, names, mean)
    weights: Doubles = np.r_[np.median(intercepts), b]
    return weights


def quality(sample: Sample, log_odds: Doubles) -> dict[str, float]:
    """Return the true and the stated share of matches, the calibration error, AUC and AP; NaN without a match."""
    p, weight = expit(log_odds), sample.weight / sample.weight.sum()
    found = {
        "true": float(weight @ sample.match), "stated": float(weight @ p),
        "calibration error": error_of(p, sample, weight),
        "AUC": float("nan"), "AP": float("nan"),
    }  # fmt: skip
    if sample.match.any():
        found["AUC"] = roc_auc_score(sample.match, log_odds, sample_weight=weight)
        found["AP"] = average_precision_score(sample.match, log_odds, sample_weight=weight)
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def error_of(p: Doubles, sample: Sample, weight: Doubles, bins: int = 10) -> float:
    """Return the mean |mean probability − share of matches| over bins of equal weight."""
    order = np.argsort(p, kind="stable")
    bin_of = np.minimum((weight[order].cumsum() * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(bin_of, (weight * (p - sample.match))[order], bins)).sum())


def signal_names(samples: Sequence[Sample], group: str) -> list[str]:
    """Return the signals of a group that the samples have."""
    wanted = [signal.name() for signal in build_signals(()) if signal.group in GROUPS[group]]
    return [name for name in wanted if any(name in sample.names for sample in samples)]


def prior(stored: Any, group: str) -> dict[str, float]:
    """Return the weights of photos and captions; text_direct gets the weight of text_cosine."""
    weights: dict[str, float] = dict(stored["photos"]["fits"][group]["weights"])
    if "text_cosine" in weights:
        weights[LIKE_TEXT_COSINE] = weights["text_cosine"]
    return weights


def shared(samples: Sequence[Sample], names: Sequence[str], mean: dict[str, float]) -> tuple[Doubles, Doubles]:
    """Return the weights that all data sets share, (k,), and the intercept of each."""
    start = np.array([mean.get(name, 0.0) for name in names])
    kinds, k = [sample.kind for sample in samples], len(names)
    parts = [
        (
            sample.columns(names),
            sample.match,
            sample.weight * MATCHES / sample.weight[sample.match].sum() / kinds.count(sample.kind),
        )
        for sample in samples
    ]

    def objective(b: Doubles) -> tuple[float, Doubles]:
        value, slope = 0.5 * RIDGE * ((b[:k] - start) ** 2).sum(), np.zeros_like(b)
        slope[:k] = RIDGE * (b[:k] - start)
        for number, (X, y, w) in enumerate(parts):
            z = X @ b[:k] + b[k + number]
            value += (w * (np.logaddexp(0, z) - y * z)).sum() + 0.005 * (b[k + number] + 7) ** 2
            error = w * (expit(z) - y)
            slope[:k] += X.T @ error
            slope[k + number] += error.sum() + 0.01 * (b[k + number] + 7)
        return float(value), slope

    best = minimize(objective, np.r_[start, np.full(len(parts), -8.0)], jac=True, method="L-BFGS-B").x
    return best[:k], best[k:]


def fit(samples: Sequence[Sample], names: Sequence[str], mean: dict[str, float]) -> dict[str, object]:
    """Return the shared weights, and the covariance between kinds: the intercept first."""
    b, intercepts = shared(samples, names, mean)
    centre = dict(zip(names, b.tolist(), strict=True))
    kinds = sorted({sample.kind for sample in samples})
    of_kind = np.array(
        [shared([sample for sample in samples if sample.kind == kind], names, centre)[0] for kind in kinds]
    )
    variance = ((of_kind - b) ** 2).mean(0).clip(LEAST_SD**2, MOST_SD**2)
    covariance = np.diag([float(intercepts.var()), *variance.tolist()])
    return {
        "intercept": round(float(np.median(intercepts)), 4),
        "weights": {name: round(value, 4) for name, value in centre.items()},
        "covariance": [[round(float(value), 6) for value in row] for row in covariance],
    }


if __name__ == "__main__":
    main()
