"""The folder of a doctor's page, as the next `lossscope doctor --out` and `lossscope render` find it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.blank_pictures import blank_pictures
from tests.fuzz.commands import Refusal, run_command
from tests.fuzz.kinds import doctor_dump

FILES = {"page/index.json": "json", "page/csv/*.csv": "csv", "page": "folder"}
CHECKSUMMED = ()
SHARE = 0.3  # of the cases of other kinds: each looks for every finding, and draws
_EXAMINE = ("doctor", "dump.npz", "--batch-size", "16", "--no-cache", "--quiet", "--out", "page")


def make(folder: Path) -> None:
    """Write a page with pictures."""
    doctor_dump.make(folder)
    here = Path.cwd()
    os.chdir(folder)
    try:
        with blank_pictures("pdf"):
            run_command(*_EXAMINE, "--objective", "ntxent:tau=0.1")
    finally:
        os.chdir(here)


def read(folder: Path) -> object:
    """Ask for a picture of a file that is for readers, then write a page of fewer pictures in its place."""
    try:
        hint = run_command("render", "epoch_counts", "page/csv/checks.csv", "--out", "x.pdf")
    except Refusal as refusal:
        hint = str(refusal)
    with blank_pictures("pdf"):
        text = run_command(*_EXAMINE)
    return hint, text, sorted(path.name for path in (folder / "page").rglob("*.tex"))
