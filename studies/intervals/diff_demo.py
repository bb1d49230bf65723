"""Train three small models on painted scenes, and compute the differences that docs/diff.md describes.

    python studies/intervals/diff_demo.py            # ten minutes on one core
    python studies/intervals/diff_demo.py --runs DIR # keeps the models, and uses those that exist

Two VSE++ models, of `triplet-sh` and of `ntxent`, are compared at two epochs and with batch norm of the batch; a
VSE-infinity model, whose BERT has dropout, with dropout on. The script writes results/diff_demo.csv, a row for each
difference, and figures/epoch_counts.png.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results" / "diff_demo.csv"
PICTURE = ROOT / "figures" / "epoch_counts.png"
SCENES = "scenes:train=400,val=100,test=100,size=32"
VSEPP = ("--data", SCENES, "--encoder", "vsepp:dim=64", "--epochs", "6", "--lr", "0.004")
VSE_INFTY = ("--data", "precomp:root=features", "--encoder", "vse_infty:text=bert,bert=small,dim=64,drop=0")
TRAININGS = {
    "triplet-sh": (*VSEPP, "--objective", "triplet-sh"),
    "ntxent": (*VSEPP, "--objective", "ntxent"),
    "vse_infty": (*VSE_INFTY, "--objective", "ntxent", "--epochs", "3", "--lr", "0.0005"),
}
SWEEP = ("--objective", "ntxent", "--split", "train", "--batch-size", "32", "--top", "0", "--format", "json")
DIFFERENCES = {
    "epoch 2": ("triplet-sh/checkpoints/epoch-02.pt", "ntxent/checkpoints/epoch-02.pt"),
    "epoch 6": ("triplet-sh/checkpoints/epoch-06.pt", "ntxent/checkpoints/epoch-06.pt"),
    "batch norm": ("ntxent/checkpoints/epoch-06.pt", "--b-mode", "train"),
    "dropout": ("vse_infty/checkpoints/epoch-03.pt", "--b-mode", "train"),
}
COLUMNS = (
    "comparison", "objective", "direction", "probe", "statistic", "mean", "b_mean", "difference", "low", "high",
    "level", "method", "n", "unit", "batch_size", "sampling", "seed",
)  # fmt: skip


def lossscope(runs: Path, *words: str) -> str:
    """Return the output of a command."""
    print("lossscope", *words, file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "lossscope_cli", *words]
    return subprocess.run(command, cwd=runs, check=True, stdout=subprocess.PIPE, text=True).stdout


def train(runs: Path) -> None:
    """Train the missing models."""
    if not (runs / "features").is_dir():
        lossscope(runs, "data", "features", "--data", SCENES, "--out", "features")
    for name, words in TRAININGS.items():
        if not (runs / name).is_dir():
            lossscope(runs, "train", *words, "--batch-size", "32", "--out", name, "--quiet")


def differences(runs: Path) -> pd.DataFrame:
    """Return the rows of all comparisons."""
    parts = []
    for name, words in DIFFERENCES.items():
        rows = json.loads(lossscope(runs, "diff", *words, *SWEEP, "--quiet"))["rows"]
        parts.append(pd.DataFrame(rows).assign(comparison=name))
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def main() -> None:
    """Train, compare and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, help="Folder of the models; none: a temporary one.")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        runs = Path(temporary) if options.runs is None else options.runs.resolve()
        runs.mkdir(parents=True, exist_ok=True)
        train(runs)
        write_text(options.out.resolve(), format_csv(differences(runs)))
        words = ("--objective", "ntxent", "--split", "train", "--batch-size", "32", "--quiet")
        lossscope(runs, "diff", "ntxent", "--epochs", *words, "-o", str(options.picture.resolve()))


if __name__ == "__main__":
    main()
