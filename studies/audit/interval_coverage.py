"""Is the true rate of false negatives inside the audit's interval? On data whose truth is known.

    python studies/audit/interval_coverage.py --out DIR [--only NAME]

Each data set is drawn with 20 seeds and audited without a model. The truth answers the sheet of 100 pairs, and the
audit is repeated with these labels. A sheet without any yes is drawn again with twice the pairs. A row of
results/interval_coverage.csv has estimates and truth. DIR keeps the signals of all pairs for a second call.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from judgements import auc_and_ap
from known_truth import labelled_of, rate_in_batches, truth_of, write_answers

from lossscope.audit.base import Signal
from lossscope.audit.estimate.signal_table import SignalTable
from lossscope.audit.parts.material import Material
from lossscope.audit.search.candidates import without_known
from lossscope.audit.search.random_batches import pairs_of, random_batches
from lossscope.audit.steps.inputs import Inputs, read_inputs
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.result import AuditResult
from lossscope.audit.steps.run import examine
from lossscope.audit.steps.scorer import Scorer
from lossscope.audit.steps.signals import build_signals
from lossscope.audit.types import Floats, PairRows
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text

RESULTS = Path(__file__).parent / "results" / "interval_coverage.csv"
SEEDS = range(20)
DATA = {
    **{
        f"scenes, ambiguity {ambiguity}": f"scenes:train=300,val=2,test=2,size=16,ambiguity={ambiguity}"
        for ambiguity in (0.1, 0.4, 0.7)
    },
    "passages": "passages:train=600",
}
_CHUNK = 1 << 18  # pairs


@dataclass(frozen=True, eq=False)
class KnownSignal:
    """A signal with values of all pairs, computed once and kept in a folder."""

    signal: Signal
    folder: Path

    @property
    def group(self) -> str:
        """The group of the signal."""
        return self.signal.group

    @property
    def because(self) -> str:
        """The meaning of a high value."""
        return self.signal.because

    def name(self) -> str:
        """Return the name of its column."""
        return self.signal.name()

    def values(self, material: Material, pairs: PairRows) -> Floats:
        """Return a number of each pair, (n,). Raises Missing if the signal does."""
        path = self.folder / f"{self.name()}.npy"
        if not path.is_file():
            pairs_of_all = all_pairs(material)
            parts = [pairs_of_all.part(k, k + _CHUNK) for k in range(0, len(pairs_of_all), _CHUNK)]
            np.save(path, np.concatenate([self.signal.values(material, part) for part in parts]))
        column: Floats = self._read[pairs.left * material.relations.second + pairs.right]
        return column

    @cached_property
    def _read(self) -> Floats:
        values: Floats = np.load(self.folder / f"{self.name()}.npy")
        return values


def main() -> None:
    """Audit all data sets, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, required=True, help="folder of signals and sheets")
    parser.add_argument("--only", help="name of a data set; nothing is written")
    typed = parser.parse_args()
    rows = []
    for name, data in DATA.items():
        if typed.only in (None, name):
            for seed in SEEDS:
                rows.append({"data": name, "seed": seed, **audited(f"{data},seed={seed}", seed, typed.out)})
                print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    print(table.groupby("data").mean(numeric_only=True).T.to_string())
    if not typed.only:
        write_text(RESULTS, format_csv(table))


def audited(data: str, seed: int, out: Path) -> dict[str, float]:
    """Audit, label by the truth, audit again; return estimates and truth."""
    options = AuditOptions.of(data=data, seed=seed)
    folder = out / "".join(letter if letter.isalnum() else "-" for letter in data)
    folder.mkdir(parents=True, exist_ok=True)
    inputs = read_inputs([], options)
    material, split = inputs.material, inputs.material.split
    assert split is not None
    signals: Any = [KnownSignal(signal, folder) for signal in build_signals((), material.relations.sides)]
    truth = truth_of(split)
    before = repeat(inputs, signals, options)
    while len(np.unique(truth[before.sheet.pairs.left, before.sheet.pairs.right])) < 2:  # an audit refuses such labels
        options = replace(options, sheet=2 * options.sheet)
        before = repeat(inputs, signals, options)
    answers = write_answers(before, truth, folder / "labels.csv")
    after = repeat(inputs, signals, replace(options, labels=(answers,)))

    random_pairs, _ = pairs_of(random_batches(material.relations, options.batch_size, seed), material.relations)
    table = SignalTable.of(material, signals, random_pairs)
    pairs = without_known(material, all_pairs(material))
    Z, copy, match = table.standardise(table.raw(pairs)), table.is_copy(pairs), truth[pairs.left, pairs.right]
    sheet = before.sheet.pairs
    values: dict[str, float] = {
        "pairs": len(pairs), "false negatives": int((truth & ~labelled_of(split)).sum()),
        "labels": after.calibration.labels, "yes": int(truth[sheet.left, sheet.right].sum()),
        "rate": rate_in_batches(split, options.batch_size), "threshold": options.threshold,
    }  # fmt: skip
    for name, result in (("uncalibrated", before), ("labelled", after)):
        p = np.where(copy > 0, 1.0, result.calibration.probability(Z))
        values |= {f"{what}, {name}": value for what, value in quality(result, p, match).items()}
    values["inside"] = int(values["low, labelled"] <= values["rate"] <= values["high, labelled"])
    return {name: float(f"{value:.5g}") for name, value in values.items()}


def repeat(inputs: Inputs, signals: Any, options: AuditOptions) -> AuditResult:
    """Return an audit of inputs by known signals."""
    return examine(inputs, Scorer.of(inputs.material, signals, options), options)


def all_pairs(material: Material) -> PairRows:
    """Return all pairs, in order of rows."""
    relations = material.relations
    rows = np.arange(relations.first * relations.second, dtype=np.int64)
    return PairRows(rows // relations.second, rows % relations.second)


def quality(result: AuditResult, p: npt.NDArray[np.float64], match: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Return AUC and AP over all pairs; with labels the rate, and precision and recall, estimated and true."""
    values, level = np.unique(p, return_inverse=True)
    auc, ap = auc_and_ap(level, match, np.ones(len(p)), len(values))
    rate, above = result.rate, p >= result.threshold
    if rate is None:
        return {"AUC": auc, "AP": ap}
    at = next(accuracy for accuracy in result.accuracy if accuracy.threshold == result.threshold)
    nan = float("nan")
    return {
        "AUC": auc, "AP": ap, "estimate": rate.value,
        **({} if rate.low is None or rate.high is None else {"low": rate.low, "high": rate.high}),
        "precision": at.precision.value, "true precision": float(match[above].mean()) if above.any() else nan,
        "recall": at.recall.value, "true recall": float(match[above].sum() / match.sum()),
    }  # fmt: skip


if __name__ == "__main__":
    main()
