"""Is the rate counted from 60 answers unbiased, and is the truth in its interval? On data whose truth is known.

    python studies/audit/sixty_labels.py [--only NAME]

Each data set is drawn with 20 seeds and scored without a model and without labels. Ten sheets are drawn from each; 60
pairs of a sheet are asked in the order of the page, and the truth answers. The rows of the score `chance` have the same
truth under random scores. A row of results/sixty_labels.csv has the counted rate and the true rate.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from interval_coverage import DATA
from known_truth import Flags, rate_in_batches, truth_of

from lossscope.audit.estimate.calibration import Doubles
from lossscope.audit.estimate.design import Stratum, counted_rate, next_stratum, split_by_score
from lossscope.audit.steps.inputs import read_inputs
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.scorer import Scorer
from lossscope.audit.steps.signals import build_signals
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text

RESULTS = Path(__file__).parent / "results" / "sixty_labels.csv"
SEEDS, SHEETS = range(20), 10
LABELS = 60
MOST = 30  # pairs of a stratum among those of a page
BLIND = ("scenes, ambiguity 0.4", "scenes, ambiguity 0.7")  # asked again under a score of chance


def main() -> None:
    """Ask about all data sets, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", help="name of a data set; nothing is written")
    typed = parser.parse_args()
    rows = []
    for seed in SEEDS:
        for name, data in DATA.items():
            if typed.only in (None, name):
                rows += asked(name, f"{data},seed={seed}", seed)
                print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    table["inside"] = (table["low"] <= table["rate"]) & (table["rate"] <= table["high"])
    print(table.groupby(["data", "score"]).mean(numeric_only=True).T.to_string())
    if not typed.only:
        write_text(RESULTS, format_csv(table.astype({"inside": int})))


def asked(name: str, data: str, seed: int) -> list[dict[str, object]]:
    """Return a row for each sheet of a data set: the counted and the true rate."""
    options = AuditOptions.of(data=data, seed=seed)
    inputs = read_inputs([], options)
    split = inputs.material.split
    assert split is not None
    scorer = Scorer.of(inputs.material, build_signals((), inputs.material.relations.sides), options)
    drawn, rate = scorer.score_random(), rate_in_batches(split, options.batch_size)
    truth = truth_of(split)[drawn.pairs.left, drawn.pairs.right]
    score, is_open = scorer.calibration.logit(drawn.Z), drawn.copy == 0
    scores = {"texts": score} | ({"chance": np.random.default_rng(seed).random(len(score))} if name in BLIND else {})
    rows: list[dict[str, object]] = []
    for what, values in scores.items():
        for sheet in range(SHEETS):
            numbers = count(values[is_open], truth[is_open], len(truth), SHEETS * seed + sheet)
            rows.append({"data": name, "score": what, "seed": seed, "sheet": sheet, "rate": rate, **numbers})
    return rows


def count(score: Doubles, truth: Flags, pairs: int, seed: int) -> dict[str, float]:
    """Ask 60 pairs; return the counted rate.

    Args:
        score: (n,) of pairs that are no copies.
        truth: (n,) whether each matches.
        pairs: number of pairs, copies included.
        seed: of the order within strata.
    """
    random = np.random.default_rng(seed)
    parts = split_by_score(score)
    queues = [truth[random.permutation(part)[:MOST]].tolist() for part in parts]
    strata = [Stratum(len(part) / pairs) for part in parts]
    for _ in range(LABELS):
        is_open = [len(q) > stratum.answers for q, stratum in zip(queues, strata, strict=True)]
        number = next_stratum(strata, is_open)
        assert number is not None
        stratum = strata[number]
        strata[number] = Stratum(stratum.share, stratum.answers + 1, stratum.yes + queues[number][stratum.answers])
    counted = counted_rate(strata)
    assert counted is not None and counted.rate.low is not None and counted.rate.high is not None
    values = {"counted": counted.rate.value, "low": counted.rate.low, "high": counted.rate.high}
    return {**{key: float(f"{value:.5g}") for key, value in values.items()}, "yes": counted.yes}


if __name__ == "__main__":
    main()
