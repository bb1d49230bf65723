"""Is the doctor right on kinds of data beyond those of its thresholds? Train, plant, examine.

    python studies/doctor/kinds.py [--only KIND ...] [--shift N] [--out results/kinds.csv]

Each file of kinds_of_data is a kind: small trainings on synthetic data, healthy or with a planted fault, as dumps and
as logs. A healthy item that fails the rule of base.Item.illness, which reads no finding, is left out and printed. So is
a planted fault that the training did not bring about. A row for each item has the planted fault, the doctor's first
finding, all alarms, and whether that is right.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kinds_of_data
import pandas as pd
import torch
from kinds_of_data.base import Item

import lossscope

RESULTS = Path(__file__).parent / "results" / "kinds.csv"
_NO_KINDS = ("base", "world", "pairs")
SHIFT = 100  # errors in the rows of shift 0 were mended; rows of other seeds were not read before


def main() -> None:
    """Examine all items and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="a file of kinds_of_data; repeat for several")
    parser.add_argument("--out", type=Path, help="CSV of the rows; without --only results/kinds.csv")
    parser.add_argument("--shift", type=int, default=SHIFT, help=f"added to every seed; default {SHIFT}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    start = time.process_time()
    rows = []
    for item in all_items(options.only, options.shift):
        reason = item.absence() if item.planted else item.illness()
        if reason:
            what = f"{item.planted[0]} is not there" if item.planted else "it is not healthy by the rule"
            print(f"left out, as {what}: {item.kind}: {item.name}: {reason}", flush=True)
            continue
        rows.append(row_of(item))
    table = pd.DataFrame(rows)
    out = options.out or (None if options.only else RESULTS)
    if out is not None:
        table.to_csv(out, index=False, lineterminator="\n")
    report(table)
    print(f"{time.process_time() - start:.0f} s of one core")


def all_items(only: list[str], shift: int) -> Iterator[Item]:
    """Yield the items of all kinds, or of those in `only`."""
    names = sorted(module.name for module in pkgutil.iter_modules(kinds_of_data.__path__))
    for name in names:
        if name not in _NO_KINDS and (not only or name in only):
            yield from importlib.import_module(f"kinds_of_data.{name}").items(shift)


def row_of(item: Item) -> dict[str, Any]:
    """Examine an item."""
    n, d = item.size
    recall = item.recall()
    row: dict[str, Any] = {
        "kind": item.kind, "name": item.name, "planted": " ".join(item.planted), "n": n, "d": d, "batch": item.batch,
        "seed": item.seed, "recall": None if recall is None else round(recall[0], 4),
        "chance": None if recall is None else round(recall[1], 6),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        sources, options = item.write(Path(folder))
        try:
            diagnosis = lossscope.doctor(*sources, cache=False, **options)
        except Exception:
            print(f"crashed: {item.kind}: {item.name}\n{traceback.format_exc()}", flush=True)
            return row | {"verdict": "crash", "first": "crash", "alarms": "crash", "right": False}
    examination = diagnosis.examinations[-1 if options.get("same_items") else 0]
    alarms = [finding.id for finding in diagnosis.findings if finding.is_alarm]
    alarms = list(dict.fromkeys(alarms))
    first = alarms[0] if alarms else ""
    verdict = examination.judgement.verdict
    right = first in item.planted if item.planted else not alarms
    return row | {"verdict": verdict, "first": first, "alarms": " ".join(alarms), "right": right}


def report(table: pd.DataFrame) -> None:
    """Print how often the doctor is right on each kind, and the items where it is wrong."""
    print(summary(table).to_string())
    wrong = table[~table["right"] | ((table["planted"] == "") & (table["verdict"] == "cannot explain"))]
    if len(wrong):
        print(wrong.drop(columns=["seed", "right"]).to_string(index=False))


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row a kind: number of items, of right ones, and unexplained findings."""
    rows = {}
    for kind, group in [*table.groupby("kind", sort=False), ("all", table)]:
        sick, healthy = group[group["planted"] != ""], group[group["planted"] == ""]
        rows[kind] = {
            "planted": len(sick),
            "found first": int(sick["right"].sum()),
            "healthy": len(healthy),
            "false alarms": int((~healthy["right"]).sum()),
            "cannot explain": int((healthy["verdict"] == "cannot explain").sum()),
        }
    return pd.DataFrame(rows).T


if __name__ == "__main__":
    main()
