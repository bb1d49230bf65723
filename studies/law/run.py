"""Train what the design of the law lacks, and write a row of results.csv as each run ends.

`python studies/law/run.py` trains two groups of runs at a time; stopped, the same command resumes. A group is all runs
that begin with one model, which is trained first and again after a stop, to the same bits.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from design import AFTER_START, BATCH, DATA, START, Group, LawRun, design
from predictors import PREDICTORS, predict

from lossscope.errors import InputError
from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load
from lossscope.training.loop import train
from lossscope.training.recipe import Recipe

RESULTS = Path(__file__).parent / "results.csv"
METRICS = ("rsum", "R@1", "nDCG@10")
KEY = ("data", "rate", "encoder", "batch", "seed", "start", "objective", "kept")
COLUMNS = ("block", *KEY, "spec", "epochs", "steps", "lr", *METRICS, *PREDICTORS, "seconds")
_AT_1, _RSUM = "R@1", ("R@1", "R@5", "R@10")


def recipe_of(group: Group, objective: str, epochs: int, init: Path | None) -> Recipe:
    """Return the recipe of a run; its rate grows with the root of the batch size, and is lower after a start."""
    data = DATA[group.data]
    encoder, lr = data.encoders[group.encoder]
    lr *= (group.batch / BATCH) ** 0.5 * (1 if init is None else AFTER_START)
    return Recipe(
        data=data.spec.format(unclear=data.unclear[group.rate], seed=group.seed), encoder=encoder, objective=objective,
        epochs=epochs, batch_size=group.batch, warmup=0, lr=lr, same_image="mask",
        sampling="pairs", min_count=1, drop_last=True, seed=group.seed, init=None if init is None else str(init),
        select_by="last",
    )  # fmt: skip


def retrieval_of(checkpoint: Path, group: Group) -> dict[str, float]:
    """Return rsum, R@1 (percent) and nDCG@10 of the clean test split; the last two are means of both directions."""
    clean = DATA[group.data].clean.format(seed=group.seed)
    rows = evaluate([load(checkpoint, split="test", data=clean, cache=False)])
    rows = rows[rows["direction"] != "both"]
    means = rows.groupby("statistic")["mean"].mean()
    return {
        "rsum": float(sum(rows.loc[rows["statistic"] == name, "mean"].sum() for name in _RSUM)),
        "R@1": float(means[_AT_1]),
        "nDCG@10": float(means.get("nDCG@10", float("nan"))),
    }


def train_group(runs: list[LawRun], block_of_predictors: str = "main") -> Iterator[dict[str, Any]]:
    """Train all runs of a group, and yield a row of each."""
    torch.set_num_threads(1)
    group = runs[0].group
    with tempfile.TemporaryDirectory() as folder:
        start, epochs_of_start = None, DATA[group.data].start[group.start]
        if epochs_of_start:
            begun = train(recipe_of(group, START, epochs_of_start, None), Path(folder) / "start")
            start = begun.epoch(epochs_of_start)
        for number, run in enumerate(runs):
            since = time.process_time()
            epochs = DATA[group.data].epochs + (0 if start else DATA[group.data].start["strong"])
            recipe = recipe_of(group, run.spec, epochs, start)
            row: dict[str, Any] = {
                "block": run.block, **run.key, "spec": run.spec, "epochs": epochs, "lr": recipe.lr
            }  # fmt: skip
            try:
                trained = train(recipe, Path(folder) / str(number))
            except InputError as error:
                if "training diverged" not in str(error):
                    raise
                yield {**row, "rsum": math.nan, "seconds": time.process_time() - since}
                continue
            row |= {"steps": len(pd.read_csv(trained.trajectory)), **retrieval_of(trained.epoch(epochs), group)}
            if run.block == block_of_predictors:
                row |= predict(trained.epoch(1), group.batch, group.seed)
            yield {**row, "seconds": time.process_time() - since}


_lock: Any = None  # of results.csv, shared by the processes


def _share(lock: Any) -> None:
    global _lock
    _lock = lock


def _work(runs: list[LawRun]) -> int:
    """Train a group, and write each row as its run ends, so that a stop loses one run of each process."""
    rows = 0
    for row in train_group(runs):
        with _lock:
            write_row(row)
        rows += 1
    return rows


def groups_of(runs: list[LawRun]) -> list[list[LawRun]]:
    """Return the runs of each group within each block, in the order of the design."""
    groups: dict[tuple[str, Group], list[LawRun]] = {}
    for run in runs:
        groups.setdefault((run.block, run.group), []).append(run)
    return list(groups.values())


def missing_runs() -> list[LawRun]:
    """Return the runs of the design that results.csv lacks."""
    if not RESULTS.is_file():
        return design()
    known = pd.read_csv(RESULTS)[list(KEY)].astype(str)
    done = set(known.itertuples(index=False, name=None))
    return [run for run in design() if tuple(str(run.key[name]) for name in KEY) not in done]


def write_row(row: dict[str, Any]) -> None:
    """Append a row to results.csv."""
    is_new = not RESULTS.is_file()
    with open(RESULTS, "a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        rounded = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()}
        writer.writerow({**rounded, "rate": row["rate"]})


def study(processes: int, minutes: float) -> None:
    """Train missing groups until all are done or no further group may begin."""
    left, begun = groups_of(missing_runs()), time.monotonic()
    number = sum(map(len, left))
    print(f"{number} of {len(design())} runs are missing, in {len(left)} groups", flush=True)
    done = 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _share, (context.Lock(),)) as pool:
        waiting = iter(left)
        futures = {pool.submit(_work, runs): runs for runs in itertools.islice(waiting, processes)}
        while futures:
            finished = next(as_completed(futures))
            group = futures.pop(finished)[0].group
            done += finished.result()
            print(f"{done}/{number} after {(time.monotonic() - begun) / 60:.1f} min: {group}", flush=True)
            if (following := next(waiting, None)) and time.monotonic() - begun < minutes * 60:
                futures[pool.submit(_work, following)] = following


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2, help="groups at a time")
    parser.add_argument("--minutes", type=float, default=720.0, help="after which no further group begins")
    options = parser.parse_args()
    study(options.processes, options.minutes)


if __name__ == "__main__":
    main()
