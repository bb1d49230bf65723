"""Run a command undisturbed, then struck by a fault, then again; the last run must leave what the first left."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.farm import run_command

from .jobs import Job
from .judging import Snapshot, differences, finished_files, snapshot, tracebacks
from .processes import Setting, environment, wait_for_orphans
from .striking import FAULTS

WORK = "work"  # folder in which commands run
_ATTEMPTS = 4  # to strike a command before it ends


@dataclass(frozen=True)
class Baseline:
    """A command undisturbed."""

    job: Job
    inputs: Path  # folder of what it reads
    wanted: Snapshot
    seconds: float  # from its first file to its end
    before: float  # from its start to its first file
    bytes_written: int
    largest: int  # bytes of its largest file


@dataclass(frozen=True)
class CaseResult:
    """The outcome of a case."""

    job: str
    fault: str
    seed: int
    struck: bool  # the fault changed how the command ended
    same: bool  # as many bits as undisturbed
    lost: tuple[str, ...]  # finished files that the second run wrote again
    leftovers: tuple[str, ...]
    findings: tuple[str, ...]  # every finding


def run_undisturbed(job: Job, folder: Path) -> Baseline:
    """Prepare the inputs of a command, and run it in a copy of them. Raises RuntimeError when it fails."""
    inputs, copy = folder / "inputs", folder / WORK
    (inputs / "out").mkdir(parents=True)
    for arguments in job.prepare(inputs):
        _run(arguments, inputs)
    shutil.copytree(inputs, copy)
    known = {(copy / "out" / name).as_posix() for name in snapshot(copy / "out")}
    imports, begun = seconds_of_imports(), time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(run_command, *job.arguments, cwd=copy, environment=environment(copy))
        while not run.done() and {p.as_posix() for p in (copy / "out").rglob("*") if p.is_file()} == known:
            time.sleep(0.002)
        first, done = time.monotonic(), run.result()
    if done.returncode:
        raise RuntimeError(f"{job.name} must work undisturbed; got {done.stderr}")
    wanted = snapshot(copy / "out")
    seconds = time.monotonic() - first
    new = [path.stat() for path in ((copy / "out" / name) for name in wanted) if path.as_posix() not in known]
    shutil.rmtree(copy)
    size, largest = sum(stat.st_blocks * 512 for stat in new), max(stat.st_size for stat in new)
    return Baseline(job, inputs, wanted, seconds, imports + first - begun, size, largest)


def run_case(baseline: Baseline, fault: str, seed: int, folder: Path) -> CaseResult:
    """Strike a command, run it again, and judge; keep the files of a finding under the case's name."""
    job, home, folder = baseline.job, folder, folder / WORK  # the same path for all: some files state it
    out = folder / "out"
    for attempt in range(_ATTEMPTS):  # a moment after the end is no fault: an earlier one is tried
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(baseline.inputs, folder)
        rng, share = random.Random(f"{job.name} {fault} {seed} {attempt}"), 0.5**attempt
        setting = Setting(
            job,
            folder,
            share * baseline.seconds,
            share * baseline.before,
            baseline.bytes_written,
            baseline.largest,
            rng,
        )
        outcome = FAULTS[fault](setting)
        if any(outcome.codes) or outcome.complaints:
            break
        wait_for_orphans(folder)
    finished = finished_files(out, job.finished)
    findings = [*outcome.complaints, *tracebacks(folder, outcome.errors)]
    if any(outcome.codes) or fault == "removed":
        done = run_command(*job.again(folder), cwd=folder, environment=environment(folder))
        if done.returncode:
            findings.append(f"the same command again ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    changed = differences(snapshot(out), baseline.wanted)
    after = finished_files(out, job.finished)
    again = sorted((path for path in finished if after.get(path) != finished[path]), key=lambda path: finished[path])
    lost = tuple(path.name for path in again[: max(len(again) - job.redone, 0)])
    findings += [*changed, *(f"written again: {name}" for name in lost)]
    leftovers = tuple(line for line in changed if line.startswith("leftover"))
    wait_for_orphans(folder)
    if findings:
        folder.rename(home / f"{seed}-{fault.replace(' ', '-')}")
    else:
        shutil.rmtree(folder)
    return CaseResult(job.name, fault, seed, any(outcome.codes), not changed, lost, leftovers, tuple(findings))


@cache
def seconds_of_imports() -> float:
    """Return how many seconds a fresh command imports before it does what a warm one does at once."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch, pandas, lossscope_cli"], check=True)
    return time.monotonic() - begun


def _run(arguments: list[str], folder: Path) -> None:
    done = run_command(*arguments, cwd=folder, environment=environment(folder))
    if done.returncode:
        raise RuntimeError(f"lossscope {' '.join(arguments)} must work; got {done.stderr}")
