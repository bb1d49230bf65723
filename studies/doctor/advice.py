"""Does the doctor's advice work? Sick runs, runs after an advised command, and healthy twins.

    python studies/doctor/advice.py --out DIR [--only ID ...]

The study trains and examines each sick run, runs the doctor's command, and examines the result; it trains a twin
without the fault. A row of results/advice.csv has the findings before and after, and recall@1 of all three runs on
validation data, the mean of both directions.
"""

from __future__ import annotations

import argparse
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lossscope
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text
from lossscope.io.run_folder import Run

RESULTS = Path(__file__).parent / "results" / "advice.csv"
PASSAGES = "passages:train=2000,val=250,test=50,negatives=0,duplicates=0,false_negatives=0,mined_answers=0"
SCENES = "scenes:train=1000,val=200,test=100,size=32"
TOWERS = ("--encoder", "vsepp:width=16,dim=256,words=64", "--batch-size", "128", "--lr", "0.003")
TEXTS = ("--encoder", "biencoder:dim=64", "--batch-size", "64", "--lr", "0.002", "--min-count", "1", "--epochs", "10")
SEEDS = (0, 1)


@dataclass(frozen=True)
class Illness:
    """The options of a run with a fault, and of the same run without it."""

    id: str
    sick: tuple[str, ...]  # options of `lossscope train`; a later one wins
    twin: tuple[str, ...]
    variant: str = ""  # of the fault, if several lead to the same finding

    @property
    def name(self) -> str:
        """The name of its runs."""
        return f"{self.id}-{self.variant}" if self.variant else self.id

    @property
    def fault(self) -> str:
        """The options that differ from the twin."""
        sick, twin = merged(self.sick), merged(self.twin)
        other = [word for key in sick if sick[key] != twin.get(key) for word in (key, sick[key])]
        left_out = [word for key in twin if key not in sick for word in (key, twin[key])]
        return f"with {shlex.join(other)}" if other else f"without {shlex.join(left_out)}"


def illnesses() -> Iterator[Illness]:
    """Yield all illnesses."""
    scenes = ("--data", SCENES, *TOWERS, "--objective", "triplet-sh", "--epochs", "12")
    yield Illness("margin-plateau", scenes, (*scenes, "--warmup", "6"))
    plain = ("--data", PASSAGES, *TEXTS)
    yield Illness(
        "temperature-too-high",
        (*plain, "--objective", "ntxent:tau=1"),
        (*plain, "--objective", "ntxent:tau=0.07"),
    )
    yield Illness(
        "siglip-start",
        (*plain, "--objective", "siglip:bias=-10"),
        (*plain, "--objective", "siglip:bias=-4.14"),
    )
    short = (*plain, "--objective", "ntxent:tau=0.07", "--epochs")
    yield Illness("not-finished", (*short, "4"), (*short, "10"))
    alike = ("--data", "scenes:train=600,val=150,test=50,size=16,ambiguity=1", *TOWERS, "--epochs", "4")
    yield Illness(
        "duplicates",
        (*alike, "--objective", "ntxent:tau=0.07"),
        (*alike, "--objective", "ntxent:tau=0.07", "--mask", "same-text"),
    )
    same = ("--data", SCENES, *TOWERS, "--objective", "ntxent:tau=0.07", "--epochs", "6")
    yield Illness("same-item-negatives", same, (*same, "--same-image", "mask"))
    few = ("--data", PASSAGES.replace("train=2000", "train=1000"), *TEXTS, "--objective")  # hinges take longer
    contrastive = (*few, "contrastive")
    yield Illness("margin-unreachable", (*few, "triplet:margin=3"), (*few, "triplet"))
    yield Illness("margin-unreachable", (*few, "contrastive:margin=3"), contrastive, "pairs")
    yield Illness("complete-collapse", (*few, "contrastive:margin=0"), contrastive, "margin")
    softmax = (*plain, "--objective", "ntxent:tau=0.07")
    yield Illness("complete-collapse", (*softmax, "--lr", "1"), softmax, "rate")
    yield Illness("no-learning", (*softmax, "--lr", "1e-7"), softmax, "rate")
    yield Illness("no-learning", (*softmax, "--weight-decay", "1"), softmax, "decay")


def main() -> None:
    """Try all illnesses, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--only", action="append", default=[], help="an id, repeat; rows of the others stay")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tried = list(illnesses())
    chosen = [illness for illness in tried if not options.only or illness.id in options.only]
    rows = pd.DataFrame([row_of(illness, seed, options.out) for illness in chosen for seed in SEEDS])
    print(rows.to_string())
    if options.only:
        before = pd.read_csv(RESULTS)
        rows = pd.concat([before[~before["id"].isin(options.only)], rows])
        order = list(dict.fromkeys(illness.id for illness in tried))
        rows = rows.sort_values("id", key=lambda ids: ids.map(order.index), kind="stable")
    write_text(RESULTS, format_csv(rows))
    print(f"{sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]):.0f} s of one core, of trainings")


def row_of(illness: Illness, seed: int, out: Path) -> dict[str, Any]:
    """Train a sick run, follow the advice, train the twin."""
    sick = train(out / f"{illness.name}-sick-{seed}", (*illness.sick, "--seed", str(seed)))
    before = recall(sick)
    found = lossscope.doctor(str(sick), cache=False)
    of_fault = [finding for finding in found.findings if finding.id == illness.id]
    commands = (advice.command or "" for finding in of_fault for advice in finding.advice)
    command = next((line for line in commands if line.startswith("lossscope train ")), None)
    again = None
    if command is not None:
        words = shlex.split(command)
        again = out / f"{sick.name}-again"
        if "--resume" in words and not again.is_dir():
            shutil.copytree(sick, again)
        words = [
            str(again) if number and words[number - 1] == "--resume" else word for number, word in enumerate(words)
        ]
        if not (again / "followed").is_file():
            run = [sys.executable, "-m", "lossscope_cli", *words[1:], "--quiet"]
            subprocess.run(run, check=True, capture_output=True)
            (again / "followed").touch()
    after = lossscope.doctor(str(again), cache=False) if again is not None else None
    healthy = (*illness.twin, "--seed", str(seed))
    twin = train(
        out / f"twin-{sha256(shlex.join(healthy).encode()).hexdigest()[:8]}", healthy
    )  # several faults have one
    shown = "" if command is None else command.replace(f"{out}/", "")
    return {
        "id": illness.id,
        "fault": illness.fault,
        "seed": seed,
        "found": bool(of_fault),
        "command": shown,
        "found_after": after is not None and illness.id in after.ids,
        "alarms_after": "" if after is None else " ".join(f.id for f in after.findings if f.is_alarm),
        "before": before,
        "after": None if again is None else recall(again),
        "twin": recall(twin),
    }


def train(path: Path, options: tuple[str, ...]) -> Path:
    """Train a run unless it exists."""
    if not (path / "best.pt").is_file():
        words = [word for option in merged(options).items() for word in option]
        command = [sys.executable, "-m", "lossscope_cli", "train", *words, "--out", str(path), "--quiet"]
        subprocess.run(command, check=True, capture_output=True)
    return path


def merged(options: tuple[str, ...]) -> dict[str, str]:
    """Return option -> value; a later one wins."""
    return dict(zip(options[::2], options[1::2], strict=True))


def recall(path: Path) -> float:
    """Return the best recall@1 of a run on validation data, the mean of both directions, in per cent."""
    metrics = pd.read_csv(Run(path).metrics)
    columns = [name for name in metrics.columns if str(name).endswith("_R@1")]
    return round(float(np.max(metrics[columns].mean(axis=1))), 1)


if __name__ == "__main__":
    main()
