"""Does the doctor's advice work? Sick runs, their advice where it is a command, and healthy twins.

    python studies/doctor/advice.py --out DIR [--only NAME]

Every sick run is trained, examined, trained again by the command that the doctor gives, and examined again; its twin
is trained without the fault. A row of results/advice.csv has what was found before and after, and recall@1 of
validation data, the mean of both directions, of all three.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
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
    """A run with a fault, and the same without."""

    id: str
    sick: tuple[str, ...]  # options of `lossscope train`
    twin: tuple[str, ...]


def illnesses() -> Iterator[Illness]:
    """Yield what is tried."""
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


def main() -> None:
    """Try everything, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--only", help="an id")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in illnesses() if options.only in (None, one.id)]
    rows = pd.DataFrame([row_of(one, seed, options.out) for one in chosen for seed in SEEDS])
    print(rows.to_string())
    if not options.only:
        write_text(RESULTS, format_csv(rows))


def row_of(one: Illness, seed: int, out: Path) -> dict[str, Any]:
    """Train a sick run, follow the advice, train the twin."""
    sick = train(out / f"{one.id}-sick-{seed}", (*one.sick, "--seed", str(seed)))
    before = recall(sick)
    found = lossscope.doctor(str(sick), cache=False)
    own = [finding for finding in found.findings if finding.id == one.id]
    commands = (advice.command or "" for finding in own for advice in finding.advice)
    command = next((one for one in commands if one.startswith("lossscope train ")), None)
    again = None
    if command is not None:
        words = shlex.split(command)
        again = out / f"{sick.name}-again"
        if "--resume" in words and not again.is_dir():
            shutil.copytree(sick, again)
        words = [str(again) if place and words[place - 1] == "--resume" else word for place, word in enumerate(words)]
        if not (again / "followed").is_file():
            run = [sys.executable, "-m", "lossscope_cli", *words[1:], "--quiet"]
            subprocess.run(run, check=True, capture_output=True)
            (again / "followed").touch()
    after = lossscope.doctor(str(again), cache=False) if again is not None else None
    twin = train(out / f"{one.id}-twin-{seed}", (*one.twin, "--seed", str(seed)))
    shown = "" if command is None else command.replace(f"{out}/", "")
    return {
        "id": one.id,
        "seed": seed,
        "found": bool(own),
        "command": shown,
        "found_after": after is not None and one.id in after.ids,
        "alarms_after": "" if after is None else " ".join(f.id for f in after.findings if f.is_alarm),
        "before": before,
        "after": None if again is None else recall(again),
        "twin": recall(twin),
    }


def train(path: Path, options: tuple[str, ...]) -> Path:
    """Train a run unless it is there; a later option wins."""
    if not (path / "best.pt").is_file():
        own = dict(zip(options[::2], options[1::2], strict=True))
        words = [word for option in own.items() for word in option]
        command = [sys.executable, "-m", "lossscope_cli", "train", *words, "--out", str(path), "--quiet"]
        subprocess.run(command, check=True, capture_output=True)
    return path


def recall(path: Path) -> float:
    """Return the best recall@1 of a run on validation data, the mean of both directions, in per cent."""
    metrics = pd.read_csv(Run(path).metrics)
    columns = [name for name in metrics.columns if str(name).endswith("_R@1")]
    return round(float(np.max(metrics[columns].mean(axis=1))), 1)


if __name__ == "__main__":
    main()
