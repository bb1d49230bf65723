"""`python -m tests.crash`: strike every command at random moments; exit 1 on any finding."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from .campaign import describe, run_campaign, tally
from .case import CaseResult
from .jobs import JOBS
from .striking import FAULTS


def main() -> int:
    """Read the options, run the campaign and print the tally."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--moments", type=int, default=20, help="of each command")
    parser.add_argument("--seed", type=int, default=0, help="of the first moment of each command")
    parser.add_argument("--jobs", type=int, default=2, help="commands at once")
    parser.add_argument("--job", choices=[job.name for job in JOBS], action="append", help="only this one")
    parser.add_argument("--fault", choices=list(FAULTS), help="only this one")
    options = parser.parse_args()
    jobs = [job for job in JOBS if not options.job or job.name in options.job]
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="crash-"))
    faults = [options.fault] * options.moments if options.fault else []
    results = run_campaign(jobs, options.moments, options.seed, folder, options.jobs, faults, _report)
    _write(tally(results))
    wrong = any(result.findings for result in results)
    kept = f"; what is wrong is kept in {folder}" if wrong else ""
    _write(f"{len(results)} cases in {time.monotonic() - begun:.0f} s{kept}")
    if not wrong:
        shutil.rmtree(folder)
    return int(wrong)


def _report(result: CaseResult) -> None:
    if not result.findings:
        _write(f"{result.job}, {result.fault}, seed {result.seed}: same bits")
    for line in describe(result):
        _write(line)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
