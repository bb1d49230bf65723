"""Does the doctor leave healthy runs alone? Train the entries of `wall.toml`, and examine each item.

    python studies/doctor/wall.py --out DIR                    train what DIR lacks, examine all
    python studies/doctor/wall.py --out DIR --examine-only     train nothing: after a threshold has changed
    python studies/doctor/wall.py --out DIR --resume           keep the rows of an interrupted examination
    python studies/doctor/wall.py --out DIR --only scenes-dcl  a single entry: print it, and leave the results alone

An item is a checkpoint, a run folder, the trajectory.csv of a run alone, or a dump. A row of results/wall.csv has the
findings and, for each check, the number that it compares with its threshold; DIR/rows has the evidence, too. --signals
prints the distribution of these numbers over the half of the items that may set thresholds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import normalize

import lossscope
from lossscope.io.run_folder import Run
from lossscope.registry import build
from lossscope.training.loop import train
from lossscope.training.recipe import Recipe

LIST = Path(__file__).with_suffix(".toml")
RESULTS = Path(__file__).parent / "results" / "wall.csv"
HALVES = ("calibration", "held-out")
SEVERE = ("error", "warning")
QUANTILES = {"min": 0, "1 %": 0.01, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "99 %": 0.99, "max": 1}
NO_CHOICE = ("name", "half", "examine", "excluded")  # keys of a training in the list that are no choice of its recipe
TAUS = np.geomspace(0.01, 0.5, 40)


@dataclass(frozen=True)
class Item:
    """A checkpoint, run, log or dump to examine."""

    entry: dict[str, Any]  # of the list
    kind: str  # checkpoint, run, log or dump
    path: Path | None = None
    epoch: int | None = None

    @property
    def name(self) -> str:
        """The name of the entry, with the examined part."""
        suffix = {"checkpoint": f"/epoch-{self.epoch}", "run": "/run", "log": "/log", "dump": ""}[self.kind]
        return f"{self.entry['name']}{suffix}"

    def examine(self) -> Any:
        """Return the examination."""
        if self.kind == "dump":
            arrays, objective = dump_of(self.entry)
            return lossscope.doctor(arrays, objective=objective, batch_size=self.entry.get("batch_size"))
        if self.kind == "log":
            options = {"objective": self.entry["objective"], "batch_size": self.entry["batch_size"]}
            return lossscope.doctor(log=self.path, **options)
        return lossscope.doctor(str(self.path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--only", action="append", default=[], help="name of an entry; repeat for several")
    parser.add_argument("--resume", action="store_true", help="keep rows of items that were examined")
    parser.add_argument("--examine-only", action="store_true", help="train nothing")
    parser.add_argument("--signals", action="store_true", help="print the distribution of the signals")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.setdefault("LOSSSCOPE_CACHE", str(options.out / "cache"))
    entries = read_list(options.only)
    start = time.perf_counter()
    if not options.examine_only:
        for entry in entries["training"]:
            train_missing(entry, options.out / "runs" / entry["name"])
    trained = time.perf_counter()
    frame = examine_all(list(items_of(entries, options.out)), options.out / "rows", options.resume)
    if options.only:
        print(frame.T.to_string(header=False))
    else:
        frame.to_csv(RESULTS, index=False, lineterminator="\n")
    report(frame)
    if options.signals:
        print(f"\n{distribution(frame[frame['half'] == HALVES[0]]).to_string(float_format='%.4g')}")
    print(f"\n{trained - start:.0f} s of training, {time.perf_counter() - trained:.0f} s of examination, one core")


def read_list(only: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the entries by kind. Raises SystemExit for a wrong half, and for a name that is not listed."""
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))
    entries = {kind: listed[kind] for kind in ("training", "dump")}
    known = {entry["name"]: entry for of_kind in entries.values() for entry in of_kind}
    wrong = [name for name, entry in known.items() if entry["half"] != HALVES[sha256(name.encode()).digest()[0] % 2]]
    unknown = [name for name in only if name not in known]
    if wrong or unknown:
        raise SystemExit(f"not listed: {', '.join(unknown)}" if unknown else f"of the other half: {', '.join(wrong)}")
    return {
        kind: [entry for entry in of_kind if not only or entry["name"] in only] for kind, of_kind in entries.items()
    }


def train_missing(entry: dict[str, Any], path: Path) -> None:
    """Train a run unless it exists; an interrupted run begins again, which takes seconds."""
    if path.exists():
        return
    partial = path.with_name(f"{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    start = time.perf_counter()
    train(Recipe(**{key: value for key, value in entry.items() if key not in NO_CHOICE}), partial)
    partial.rename(path)
    ill = illness(entry, Run(path))
    took = f"{time.perf_counter() - start:.0f} s"
    print(f"trained {entry['name']}: R@1 {recalls(Run(path)).iloc[-1]:.1f}, {ill or 'healthy'}, {took}", flush=True)


def items_of(entries: dict[str, list[dict[str, Any]]], out: Path) -> Iterator[Item]:
    """Yield the items of runs that exist and are not excluded, and the dumps."""
    rule = tomllib.loads(LIST.read_text(encoding="utf-8"))["healthy"]
    for entry in entries["training"]:
        run = Run(out / "runs" / entry["name"])
        if "excluded" in entry:
            continue
        if not run.path.exists():
            print(f"not trained: {entry['name']}")
            continue
        ill = illness(entry, run, rule)
        if ill:
            print(f"not healthy, and not marked as excluded: {entry['name']}: {ill}")
            continue
        for epoch in entry["examine"]:
            yield Item(entry, "checkpoint", run.path / "checkpoints" / f"epoch-{epoch:02d}.pt", epoch)
        yield Item(entry, "run", run.path, entry["epochs"])
        yield Item(entry, "log", run.trajectory)
    for entry in entries["dump"]:
        yield Item(entry, "dump")


def illness(entry: dict[str, Any], run: Run, rule: dict[str, float] | None = None) -> str:
    """Return why a run is not healthy by the rule of the list, or an empty text."""
    rule = rule or tomllib.loads(LIST.read_text(encoding="utf-8"))["healthy"]
    ratio = float(recalls(run).iloc[-1]) / (100 * chance(entry["data"]))
    if ratio < rule["times_chance"]:
        return f"recall@1 is {ratio:.1f} times chance"
    steps = pd.read_csv(run.trajectory)
    losses = steps[steps["objective"] == steps["objective"].iloc[-1]].groupby("epoch")["loss"].mean().dropna()
    if len(losses) > 1 and losses.iloc[-1] > rule["loss_falls_to"] * losses.iloc[0]:
        return f"the loss of the last epoch is {losses.iloc[-1] / losses.iloc[0]:.2f} of that of the first"
    return ""


def recalls(run: Run) -> pd.Series:
    """Return the validation recall@1 of each epoch, in per cent, the mean of both directions."""
    metrics = pd.read_csv(run.metrics).set_index("epoch")
    return metrics[[name for name in metrics if str(name).endswith("_R@1")]].mean(axis=1)


@cache
def chance(data: str) -> float:
    """Return recall@1 of guessing on validation data, the mean of both directions."""
    relations = build("datasets", data).split("val").relations
    pairs = len(np.unique(relations.positives, axis=0))
    return float(
        pairs / relations.first / relations.second
    )  # mean number of positives over candidates, the same both ways


def examine_all(items: list[Item], rows: Path, resume: bool) -> pd.DataFrame:
    """Examine items in turn; keep each row as a file."""
    rows.mkdir(parents=True, exist_ok=True)
    table = []
    for item in items:
        file = rows / f"{item.name.replace('/', '--')}.json"
        if not (resume and file.exists()):
            file.write_text(json.dumps(row_of(item)), encoding="utf-8")
        table.append(json.loads(file.read_text(encoding="utf-8")))
    signals = sorted({name for row in table for name in row["signals"]})
    return pd.DataFrame(
        {key: value for key, value in row.items() if key not in ("signals", "evidence")}
        | {name: row["signals"].get(name, math.nan) for name in signals}
        for row in table
    )


def row_of(item: Item) -> dict[str, Any]:
    """Examine an item, and return its row."""
    entry = item.entry
    recall = entry.get("recall")
    if item.path is not None and item.epoch is not None:
        run = item.path if item.kind == "run" else item.path.parent.parent
        recall = float(recalls(Run(run)).to_numpy()[item.epoch]) / 100
    row = {
        "name": item.name, "half": entry["half"], "kind": item.kind, "data": entry.get("data", "aligned vectors"),
        "objective": entry.get("objective"), "batch_size": entry.get("batch_size"), "epoch": item.epoch,
        "val_recall": recall,
    }  # fmt: skip
    try:
        examination = item.examine().examinations[0]
    except Exception:
        print(f"crashed: {item.name}\n{traceback.format_exc()}", flush=True)
        return row | {"verdict": "crash", "findings": "crash error", "signals": {}}
    evidence = {
        finding.id: [(fact.statistic, str(fact.value), str(fact.threshold)) for fact in finding.evidence]
        for finding in examination.findings
    }
    row["objective"] = examination.objective or row["objective"]
    found = ";".join(f"{finding.id} {finding.severity}" for finding in examination.findings)
    signals = {name: float(f"{value:.4g}") for name, value in examination.signals.items()}
    verdict = examination.judgement.verdict
    return row | {"verdict": verdict, "findings": found, "signals": signals, "evidence": evidence}


def report(frame: pd.DataFrame) -> None:
    """Print the number of items and of their findings."""
    kinds = Counter(frame["kind"])
    print(f"{len(frame)} items: {', '.join(f'{count} of kind {kind}' for kind, count in kinds.items())}")
    found: Counter[tuple[str, str, str]] = Counter()
    for half, cell in zip(frame["half"], frame["findings"].fillna(""), strict=True):
        found.update((*text.split(" "), half) for text in cell.split(";") if text)
    totals = {severity: sum(n for (_, other, _), n in found.items() if other == severity) for severity in SEVERE}
    print(f"{totals['error']} errors, {totals['warning']} warnings")
    print(", ".join(f"{verdict}: {count}" for verdict, count in Counter(frame["verdict"]).items()))
    for severity in SEVERE:
        for id in sorted({id for id, other, _ in found if other == severity}):
            counts = ", ".join(f"{found[id, severity, half]} {half}" for half in HALVES)
            print(f"  {severity} {id}: {counts}")


def distribution(frame: pd.DataFrame) -> pd.DataFrame:
    """Return quantiles of each signal; their columns follow that of the findings."""
    rows = {}
    for name in list(frame)[list(frame).index("findings") + 1 :]:
        values = frame[name].to_numpy(dtype=np.float64)
        values = values[np.isfinite(values)]
        if len(values):
            rows[name] = {"items": len(values)} | {key: np.quantile(values, q) for key, q in QUANTILES.items()}
    return pd.DataFrame(rows).T


def dump_of(entry: dict[str, Any]) -> tuple[dict[str, np.ndarray], str | None]:
    """Return the arrays of an entry, and its objective."""
    low, high = 0.0, 16.0
    for _ in range(20):  # more noise lowers recall
        noise = (low + high) / 2
        low, high = (noise, high) if _recall(*_sides(entry, noise)) >= entry["recall"] else (low, noise)
    first, second, owner = _sides(entry, low)
    objective = entry.get("objective")
    if objective == "fitted":
        objective = f"ntxent:tau={best_tau(first, second, owner, entry['batch_size']):.3g}"
    if "labels" in entry:
        return {"embeddings": first.numpy(), "labels": owner.numpy()}, objective
    pairs = torch.stack([owner, torch.arange(len(owner))], 1)
    return {"queries": first.numpy(), "documents": second.numpy(), "positives": pairs.numpy()}, objective


def _sides(entry: dict[str, Any], noise: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, documents, and the query of each document; for a labelled set, its items twice, and classes."""
    generator = torch.Generator().manual_seed(int.from_bytes(sha256(entry["name"].encode()).digest()[:4], "big"))
    n, d, clusters = entry["n"], entry["d"], entry.get("labels", entry.get("clusters", 0))

    def draw(rows: int) -> Tensor:
        scales = torch.arange(1, d + 1) ** -float(entry.get("spectrum", 0.0))
        return torch.randn(rows, d, generator=generator) * scales / scales.square().sum().sqrt()

    group = torch.arange(n) % max(clusters, 1)
    centres = draw(max(clusters, 1))[group]
    cone, gap = normalize(torch.randn(2, d, generator=generator), dim=1)
    shift = math.sqrt(entry.get("cone", 0.0))

    def place(rows: Tensor, side: float) -> Tensor:
        length = math.sqrt(max(1 - shift**2, 0.0))
        return normalize(length * normalize(rows, dim=1) + shift * cone + side * entry.get("gap", 0.0) / 2 * gap, dim=1)

    if "labels" in entry:
        items = place(centres + noise * draw(n), 0.0)
        return items, items, group
    z = draw(n) if not clusters else centres + 0.7 * draw(n)
    owner = torch.arange(n).repeat_interleave(entry.get("captions", 1))
    return place(z + noise * draw(n), 1.0), place(z[owner] + noise * draw(len(owner)), -1.0), owner


def _recall(first: Tensor, second: Tensor, owner: Tensor) -> float:
    """Return recall@1 of up to 1,000 queries among all candidates; in one set the nearest must have the same class."""
    queries = torch.arange(min(len(first), 1000))
    S = first[queries] @ second.T
    if second is first:
        S[queries, queries] = -torch.inf
        queries = owner[queries]
    return float((owner[S.argmax(1)] == queries).float().mean())


def best_tau(first: Tensor, second: Tensor, owner: Tensor, size: int) -> float:
    """Return the temperature of least loss in a batch of pairs, which a learnt temperature would find."""
    generator = torch.Generator().manual_seed(0)
    if second is first:  # two of each class
        rows = torch.argsort(owner, stable=True)
        classes = torch.randperm(int(owner.max()) + 1, generator=generator)
        pairs = [rows[owner[rows] == number][:2] for number in classes]
        chosen = torch.stack(pairs[: size // 2])
        S = first[chosen[:, 0]] @ first[chosen[:, 1]].T
    else:
        starts = torch.searchsorted(owner, torch.arange(len(first)))
        chosen = torch.randperm(len(first), generator=generator)[:size]
        S = first[chosen] @ second[starts[chosen]].T
    losses = [float((torch.logsumexp(S / tau, 1) - S.diag() / tau).mean()) for tau in TAUS]
    return float(TAUS[int(np.argmin(losses))])


if __name__ == "__main__":
    main()
