"""`python -m tests.fuzz`: judge damaged files of every kind, print the tally and every finding; exit code 1 for any.

One case again: `python -m tests.fuzz --kind npz_dump --seed 17`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from .campaign import cases_of_each, findings_of, keep_finding, run_batch, run_campaign
from .kind import kind_names
from .originals import HOME, ROOT, original_of
from .tally import format_findings, format_tally
from .verdict import Outcome, Verdict


def main() -> int:
    """Parse the options and run the campaign, or one case."""
    options = _parser().parse_args()
    home = options.home.resolve()
    os.environ[HOME] = str(home)
    if options.seed is not None:
        return _replay(options.kind or kind_names(), options.seed, home)
    begun = time.monotonic()
    kinds = options.kind or kind_names()
    cases = cases_of_each(kinds, options.total) if options.total else options.cases
    seeds = range(options.first, options.first + cases)
    verdicts = run_campaign(kinds, seeds, home, options.jobs, _report)
    findings = findings_of(verdicts)
    for finding in findings if options.keep else ():
        keep_finding(finding, original_of(finding.kind, home), home)
    outcomes: tuple[Outcome, ...] = tuple(options.also)
    text = format_tally(verdicts) + "\n\n" + format_findings(verdicts)
    if outcomes:
        text += "\n\n" + format_findings(verdicts, outcomes)
    text += f"\n{len(findings)} findings in {len(verdicts):,} cases, {time.monotonic() - begun:.0f} s"
    _say(text)
    if options.out:
        options.out.write_text(f"```\n{text}\n```\n", encoding="utf-8")
    return 1 if findings else 0


def _replay(kinds: list[str], seed: int, home: Path) -> int:
    """Judge one case of each kind, and say where its files are."""
    verdicts = [verdict for kind in kinds for verdict in run_batch(kind, [seed], home)]
    for verdict in verdicts:
        for name, value in asdict(verdict).items():
            _say(f"{name:<8} {value!a}")
        _say(f"files    {keep_finding(verdict, original_of(verdict.kind, home), home)}")
    return 1 if findings_of(verdicts) else 0


def _report(kind: str, verdicts: list[Verdict]) -> None:
    seconds = sum(verdict.seconds for verdict in verdicts)
    _say(f"{kind}: {len(verdicts)} cases, {len(findings_of(verdicts))} findings, {seconds:.0f} s of reading")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--kind", action="append", choices=kind_names(), help="repeat for several; default: all")
    parser.add_argument("--seed", type=int, help="judge this one case")
    parser.add_argument("--cases", type=int, default=100, help="of each kind")
    parser.add_argument("--total", type=int, help="cases of all kinds together, instead of --cases")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--home", type=Path, default=ROOT / "build" / "fuzz", help="folder of originals and findings")
    parser.add_argument("--keep", action="store_true", help="keep the damaged files of findings in HOME/findings")
    parser.add_argument("--out", type=Path, help="file for the tally and the findings, too")
    parser.add_argument("--also", nargs="*", default=[], help="outcomes that are listed too, e.g. 'no file' different")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
