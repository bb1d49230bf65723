"""A sheet, a run and an `_ids.txt` whose ids have to be written as JSON strings."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lossscope.audit.estimate.pair_file import read_pair_file
from lossscope.core.sides import Sides
from lossscope.datasets.conversion.feature_extraction import lines_of_ids
from lossscope.datasets.formats.feature_rows import read_ids
from lossscope.io.csv_tables import format_csv
from lossscope.io.exact_texts import IN_RUNS
from lossscope.io.trec_files import iter_run
from tests.test_ids import LISTED

FILES = {"sheet.csv": "csv", "a.run": "text", "test_ids.txt": "text"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Name each item in each file."""
    rows = pd.DataFrame({"image": LISTED, "caption": LISTED, "answer": "yes"}, dtype=object)
    (folder / "sheet.csv").write_text(format_csv(rows, ("image", "caption")), encoding="utf-8", newline="")
    words = list(map(IN_RUNS.write, LISTED))
    (folder / "a.run").write_text("".join(f"{word} Q0 {word} 1 0.5 tag\n" for word in words), encoding="utf-8")
    (folder / "test_ids.txt").write_text(lines_of_ids(LISTED), encoding="utf-8", newline="")


def read(folder: Path) -> object:
    """Read all ids."""
    file = read_pair_file(folder / "sheet.csv", Sides(), is_lenient=True)
    return (
        file.left, file.right, file.answers, file.faults.notice(file.rows), list(iter_run(str(folder / "a.run"))),
        read_ids(folder / "test_ids.txt", "test", len(LISTED), 1),
    )  # fmt: skip
