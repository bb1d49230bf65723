"""Does the doctor find planted diseases? Each disease of tests/planted in each size, and its healthy twin.

    python studies/doctor/planted.py [--out studies/doctor/results/planted.csv] [--only NAME]

A row for each case: the planted disease, sizes, the first finding, the number that its check compares with a threshold,
seconds. Nothing depends on the seconds. The page docs/doctor.md is made of these rows.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[2]))

import lossscope
from lossscope.io.csv_tables import format_csv
from lossscope.io.files import write_text
from tests.planted.base import SIZES, Case, Size

HERE = Path(__file__).parent
PLANTED = HERE.parents[1] / "tests" / "planted"


def main() -> None:
    """Run the cases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "planted.csv")
    parser.add_argument("--only", help="a file of tests/planted")
    options = parser.parse_args()
    names = [options.only] if options.only else planted_names()
    rows = pd.DataFrame([row for name in names for row in rows_of(name)])
    if not options.only:
        write_text(options.out, format_csv(rows))
    sick = rows[rows["planted"] == "sick"]
    right = (sick["first"] == sick["id"]).mean()
    alarms = rows[(rows["planted"] == "healthy") & (rows["alarms"] != "")]
    print(f"{len(sick)} planted: {right:.1%} found first; {len(rows) - len(sick)} twins: {len(alarms)} with an alarm")
    print(sick[sick["first"] != sick["id"]].to_string() if right < 1 else "", alarms.to_string() if len(alarms) else "")


def planted_names() -> list[str]:
    """Return the files of tests/planted."""
    return sorted(path.stem for path in PLANTED.glob("*.py") if path.stem not in ("base", "__init__"))


def rows_of(name: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each case of a file."""
    module: Any = importlib.import_module(f"tests.planted.{name}")
    for size in SIZES:
        for function in module.SICK:
            yield row_of(name, "sick", function, size)
        if hasattr(module, "healthy"):
            yield row_of(name, "healthy", module.healthy, size)
    for seed in range(2):
        for function in getattr(module, "SICK_RUNS", ()):
            yield row_of(name, "sick", function, Size(seed=seed))
        if hasattr(module, "healthy_run"):
            yield row_of(name, "healthy", module.healthy_run, Size(seed=seed))


def row_of(name: str, planted: str, function: Any, size: Size) -> dict[str, Any]:
    """Examine a case."""
    with tempfile.TemporaryDirectory() as folder:
        case: Case = function(size, Path(folder))
        begun = time.perf_counter()
        result = lossscope.doctor(*case.sources, cache=False, **case.options)
        seconds = time.perf_counter() - begun
    id = name.replace("_", "-")
    alarms = [finding.id for finding in result.findings if finding.is_alarm]
    cure = next((finding.cure for finding in result.findings if finding.id == id), None)
    return {
        "id": id,
        "planted": planted,
        "case": function.__name__,
        "n": size.n,
        "d": size.d,
        "batch_size": size.batch,
        "seed": size.seed,
        "first": result.ids[0] if result.ids else "",
        "alarms": " ".join(alarms),
        "signal": result.examinations[0].signals.get(id),
        "verdict": result.examinations[0].judgement.verdict,
        "cure": "" if cure is None else cure.what,
        "cured": "" if cure is None else cure.statistic,
        "before": None if cure is None else cure.before,
        "after": None if cure is None else cure.after,
        "seconds": round(seconds, 2),
    }


if __name__ == "__main__":
    main()
