"""Train all objectives with the same budget on scenes: six epochs, equal batches, three seeds -> reports/objectives.

`python studies/objectives.py` trains the missing runs (two at a time, less than an hour on two free cores; a stopped
study resumes) and writes results.csv, a row for each run. `--table` only writes README.md from that file: final rsum on
the test split, mean ± standard deviation over seeds, and why some objectives stay below triplet.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import re
import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from lossscope.engine.sweep import Sweep
from lossscope.io.files import write_atomically, write_text
from lossscope.io.run_folder import Run
from lossscope.registry import build, names
from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.tables.base import Table
from lossscope.tables.cells import Better, Cell, mark_best
from lossscope.training.loop import resume, train
from lossscope.training.offline_candidates import mine_candidates
from lossscope.training.recipe import Recipe

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "reports" / "objectives"
SEEDS = (0, 1, 2)
BUDGET = Recipe(
    data="scenes:size=32",
    encoder="vsepp:width=16,dim=128,words=64",
    epochs=6,
    batch_size=128,
    lr=0.002,
    warmup=2,
    sampling="pairs",
)
# variants of objectives beside the defaults of all names of the registry
VARIANTS = ("goal:triplet=cir,pair=sig", "goal:triplet=cir,pair=sig-ms", "cmpm:scale=20", "npair:scale=20")
# objectives that learn little from scratch also start from a model of two epochs of triplet, the warm-up of others
WARM_START = ", after 2 epochs of triplet"
WARM_START_SPECS = tuple(
    f"{name}{WARM_START}"
    for name in (
        "binomial_deviance", "circle", "cmpm", "contrastive", "lifted_structure", "multi_similarity", "npair",
        "ranked_list", "siglip",
    )
)  # fmt: skip


def specs() -> list[str]:
    """Return the specs of the study: all objectives, variants, and warm starts."""
    whole = [name for name in names("objectives") if not build("objectives", name).traits.is_part]
    return [*whole, *VARIANTS, *WARM_START_SPECS]


def train_run(spec: str, seed: int, runs: Path) -> Run:
    """Train a run of the budget, or resume it."""
    recipe = replace(BUDGET, objective=spec.removesuffix(WARM_START), seed=seed)
    folder = runs / f"{re.sub(r'[^a-z0-9]+', '_', spec)}-seed{seed}"
    if spec.endswith(WARM_START):
        start = train_run("triplet_sh", seed, runs).epoch(BUDGET.warmup)
        recipe = replace(recipe, epochs=BUDGET.epochs - BUDGET.warmup, warmup=0, init=str(start))
    if spec == "smoothap":  # batches of 26 images with all captions have about as many captions as 128 pairs
        recipe = replace(recipe, sampling="images", batch_size=26)
    if spec == "ncr":
        recipe = replace(recipe, info=str(write_labels(runs)))
    if spec == "aoq":  # half of the budget trains the model that ranks the training split, half trains with the lists
        start = train_run("triplet_sh", seed, runs).epoch(BUDGET.epochs // 2)
        lists = runs / f"ranked-seed{seed}"
        mine_candidates(load(start, cache=False), lists)
        recipe = replace(recipe, epochs=BUDGET.epochs // 2, warmup=0, init=str(start), offline=str(lists))
    if not folder.exists():
        return train(recipe, folder)
    return resume(folder)


def write_labels(runs: Path) -> Path:
    """Write soft labels for ncr, a choice of ours: 1 / the number of training images that a caption is true of."""
    path = runs / "labels.npz"
    if not path.is_file():
        split: Any = build("datasets", BUDGET.data).split("train")
        with write_atomically(path) as part, open(part, "wb") as file:
            np.savez(file, label=1 / split.truth().sum(1))
    return path


def result_row(spec: str, seed: int, runs: Path) -> dict[str, Any]:
    """Train a run; return its row: final rsum on the test split, and the numbers that explain it."""
    torch.set_num_threads(1)
    run = train_run(spec, seed, runs)
    last = max((run.path / "checkpoints").glob("epoch-*.pt"))
    retrieval = evaluate([load(last, split="test", cache=False)])
    rsum = float(retrieval.loc[retrieval["statistic"] == "rsum", "mean"].iloc[0])
    steps, epochs = pd.read_csv(run.trajectory), pd.read_csv(run.metrics)
    end = epochs.iloc[-1]
    embedded = load(last, cache=False)
    sweep = Sweep(objectives=(str(embedded.objective),), sampling=BUDGET.sampling if spec != "smoothap" else None)
    counts = sweep.run(embedded).summary.set_index(["direction", "statistic"])["mean"]
    return {
        "objective": spec, "seed": seed, "rsum": rsum, "rsum_val": float(end["rsum"]),
        "epochs": int(end["epoch"]), "gradient_norm": float(steps["gradient_norm"].median()),
        "clipped": float((steps["gradient_norm"] > BUDGET.clip).mean()), "positive": float(end["pos_mean"]),
        "hardest_negative": float(end["neg_mean"]), "n_eff": float(counts["i2t", "N_eff"]),
        "best_epoch": int(epochs["rsum"].to_numpy().argmax()), "rsum_best_val": float(epochs["rsum"].max()),
        "spec": Checkpoint.load(last).objective,
    }  # fmt: skip


def study(runs: Path, processes: int) -> None:
    """Train the runs that results.csv lacks, several at a time; write each row as soon as its run ends."""
    REPORT.mkdir(parents=True, exist_ok=True)
    runs.mkdir(parents=True, exist_ok=True)
    results = REPORT / "results.csv"
    finished = set(map(tuple, pd.read_csv(results)[["objective", "seed"]].to_numpy())) if results.is_file() else set()
    missing = [(spec, seed) for spec in specs() for seed in SEEDS if (spec, seed) not in finished]
    # some later runs start from a run of triplet_sh
    missing.sort(key=lambda run: (run[0] in VARIANTS + WARM_START_SPECS, run[0] == "aoq", run[1]))
    write_labels(runs)
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(result_row, spec, seed, runs): (spec, seed) for spec, seed in missing}
        for done, future in enumerate(as_completed(futures), 1):
            row = future.result()
            is_new = not results.is_file()
            with open(results, "a", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                if is_new:
                    writer.writeheader()
                writer.writerow(row)
            print(f"{done}/{len(missing)} {row['objective']} seed {row['seed']}: rsum {row['rsum']:.1f}", flush=True)


WHY: dict[str, str] = tomllib.loads((REPORT / "reasons.toml").read_text(encoding="utf-8"))


def page(rows: pd.DataFrame) -> str:
    """Return README.md: the table, best first, and a line for each objective whose mean is below triplet's.

    Raises KeyError for an objective below triplet without a line in reasons.toml.
    """
    numbers = [column for column in rows.columns if column not in ("objective", "seed", "spec")]
    groups = rows.groupby("objective")[numbers]
    means: dict[str, dict[str, float]] = groups.mean().sort_values("rsum", ascending=False).to_dict("index")  # type: ignore[assignment]
    deviations, counts = groups.std()["rsum"].to_dict(), groups.size().to_dict()
    cells = [
        [
            Cell(text=name), Cell(mean=mean["rsum"], std=float(deviations[name])),
            Cell(mean=counts[name], digits=0), Cell(mean=mean["n_eff"]), Cell(mean=mean["positive"], digits=2),
            Cell(mean=mean["hardest_negative"], digits=2), Cell(mean=mean["gradient_norm"], digits=2),
            Cell(mean=100 * mean["clipped"], digits=0),
        ]
        for name, mean in means.items()
    ]  # fmt: skip
    headings = ("objective", "rsum", "seeds", "N_eff", "s₊", "hardest s₋", "gradient norm", "clipped %")
    better: list[Better] = [None, "higher", *[None] * 6]
    table = Table("objectives", CAPTION, tuple(("", h) for h in headings), mark_best(cells, better), NOTES)
    for name, mean in means.items():
        mean["gained"] = mean["rsum"] - means[name.removesuffix(WARM_START)]["rsum"]
    lines = [
        f"- `{name}` ({mean['rsum']:.0f}): {WHY[name].format(**mean)}"
        for name, mean in means.items()
        if mean["rsum"] < means["triplet"]["rsum"]
    ]
    return HEAD + table.to_markdown() + "\n## Below triplet, and why\n\n" + "\n".join(lines) + "\n"


CAPTION = (
    f"Final rsum on the test split of {BUDGET.data}, mean ± standard deviation over seeds. One budget: "
    f"{BUDGET.encoder}, {BUDGET.epochs} epochs, Adam at {BUDGET.lr:g}, gradients clipped to norm {BUDGET.clip:g}, "
    f"{BUDGET.batch_size} pairs a batch; the first {BUDGET.warmup} epochs are the triplet loss where an objective asks "
    "for a warm-up."
)
NOTES = (
    "Sorted by rsum, in points (600 is perfect). N_eff: effective number of negatives that carry the weight of an "
    "image query on the training split at the end. s₊ and hardest s₋: mean similarities on the validation split then. "
    "Gradient norm: median over steps, before clipping; clipped: share of steps above the limit.",
    "smoothap: batches of 26 images with all five captions. aoq: half of the budget trains triplet_sh, which ranks the "
    "training split, the other half trains with the lists. ncr: soft labels 1 / (training images the caption is true "
    "of), a choice of ours. Defaults otherwise: the papers', made for pretrained towers and, some, for other data.",
)
HEAD = """# Every objective with one budget

Made by `python studies/objectives.py`; each run is a row of [results.csv](results.csv). One small model from scratch
and one learning rate for all: a table of what happens to each loss in the same place, not of which loss is best when
each is tuned.

"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "objectives", help="where the runs go")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="only write README.md from results.csv")
    options = parser.parse_args()
    if not options.table:
        study(options.runs, options.processes)
    write_text(REPORT / "README.md", page(pd.read_csv(REPORT / "results.csv")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
