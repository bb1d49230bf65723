"""Judge cases of many kinds, each batch in a new process; the death of a process is a finding, not the end."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from tests import farm

from .kind import Kind, load_kind
from .originals import HOME, ROOT, original_of
from .verdict import FINDINGS, Verdict, innermost
from .worker import judge_alone

BATCH = 250  # cases of a process
OnBatch = Callable[[str, list[Verdict]], None]


def run_campaign(
    kinds: Sequence[str], seeds: range, home: Path, jobs: int = 1, on_batch: OnBatch | None = None
) -> list[Verdict]:
    """Judge the cases of kinds x seeds, write all verdicts to HOME/verdicts.jsonl and return them.

    Args:
        kinds: by name.
        seeds: of every kind.
        home: folder of originals and findings.
        jobs: processes at a time.
        on_batch: called with the name of a kind and the verdicts of a batch.
    """
    os.environ[HOME] = str(home)
    home.mkdir(parents=True, exist_ok=True)
    (home / "verdicts.jsonl").unlink(missing_ok=True)
    batches = [
        (kind, chosen[start : start + BATCH])
        for kind in kinds
        for chosen in [share_of(load_kind(kind), seeds)]
        for start in range(0, len(chosen), BATCH)
    ]

    def run(batch: tuple[str, range]) -> list[Verdict]:
        verdicts = run_batch(*batch, home)
        with open(home / "verdicts.jsonl", "a", encoding="utf-8") as lines:
            lines.writelines(json.dumps(asdict(verdict)) + "\n" for verdict in verdicts)
        if on_batch:
            on_batch(batch[0], verdicts)
        return verdicts

    with ThreadPoolExecutor(jobs) as pool:
        return [verdict for verdicts in pool.map(run, batches) for verdict in verdicts]


def share_of(kind: Kind, seeds: range) -> range:
    """Return the seeds of a kind: all, or only the first where its cases take long."""
    return seeds[: max(1, round(len(seeds) * _share(kind)))]


def cases_of_each(kinds: Sequence[str], total: int) -> int:
    """Return the number of cases of each kind that makes `total` over all kinds, shares considered."""
    loaded = [load_kind(kind) for kind in kinds]
    cases = math.ceil(total / sum(map(_share, loaded)))
    while sum(len(share_of(kind, range(cases))) for kind in loaded) < total:  # shares are rounded
        cases += 1
    return cases


def run_batch(kind: str, seeds: Sequence[int], home: Path) -> list[Verdict]:
    """Return the verdicts of a kind's cases; start a new process after every death."""
    try:
        original = original_of(kind, home)
    except Exception as error:  # a kind whose files cannot be made is a finding too
        return [
            Verdict(kind, seeds[0], "crash", f"no valid file: {type(error).__name__}: {error}"[:600], innermost(error))
        ]
    verdicts: list[Verdict] = []
    waiting = list(seeds)
    while waiting:
        with tempfile.TemporaryDirectory(prefix="lossscope-fuzz-") as scratch:
            folder = Path(scratch)
            code = _start(kind, original, folder, waiting)
            new, begun = _read_verdicts(folder / "verdicts.jsonl")
            verdicts += new
            waiting = waiting[len(new) :]
            if code != 0:
                stack, log = (_text(folder / name) for name in ("stacks", "log"))
                verdicts.append(judge_death(kind, begun if begun is not None else waiting[0], code, stack, log))
                waiting = [] if begun is None else waiting[1:]  # the valid files cannot be read
    return verdicts


def keep_finding(verdict: Verdict, original: Path, home: Path) -> Path:
    """Make the damaged files of a finding again, in HOME/findings/KIND-SEED."""
    from .case import damage, random_of
    from .kind import load_kind

    folder = home / "findings" / f"{verdict.kind}-{verdict.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    damage(original, folder, load_kind(verdict.kind), random_of(verdict.kind, verdict.seed))
    return folder


def findings_of(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts whose outcome must not happen."""
    return [verdict for verdict in verdicts if verdict.outcome in FINDINGS]


def _share(kind: Kind) -> float:
    return float(getattr(kind, "SHARE", 1.0))


def _start(kind: str, original: Path, scratch: Path, seeds: Sequence[int]) -> int:
    """Judge cases in a new process, and return its exit code."""
    process = farm.context().Process(target=judge_alone, args=(kind, original, scratch, list(seeds), os.environ[HOME]))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def _read_verdicts(file: Path) -> tuple[list[Verdict], int | None]:
    """Return the verdicts, and the seed that began without a verdict."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []
    verdicts = [Verdict(**line) for line in lines if "begun" not in line]
    last = lines[-1].get("begun") if lines else None
    return verdicts, last


def judge_death(kind: str, seed: int, code: int, stack: str, log: str) -> Verdict:
    """Return the verdict of a case that killed its process: a hang where the watchdog wrote a stack, else a crash.

    Args:
        kind: of the case.
        seed: of the case.
        code: of the process.
        stack: written by the watchdog.
        log: output of the process.
    """
    frames = re.findall(r'File "([^"]+)", line (\d+)', stack or log)
    ours = [(file, line) for file, line in frames if f"{ROOT}/lossscope/" in file or f"{ROOT}/cli/" in file]
    frame = ":".join((ours or frames)[0]).removeprefix(f"{ROOT}/") if frames else ""
    if stack:
        return Verdict(kind, seed, "hang", "a call that does not return to Python", frame)
    cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return Verdict(kind, seed, "crash", f"{cause}: {log[-300:]}", frame)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
