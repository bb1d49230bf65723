"""Many cases, several at once, and their tally: command, fault, tried, same bits, lost, leftovers, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .case import CaseResult, run_case, run_undisturbed
from .jobs import JOBS, Job
from .small_disks import can_mount
from .striking import FAULTS

# the faults of the moments of a job, in turn: a kill is the hardest, and comes most often
ORDER = (
    "kill -9", "two writers", "disk full", "SIGTERM", "kill -9",
    "SIGINT", "file limit", "removed", "kill -9", "read-only",
)  # fmt: skip


def faults_of(job: Job, moments: int, seed: int = 0) -> list[str]:
    """Return the fault of each moment of a job, beginning with that of the seed."""
    order = [_possible(fault, job) for fault in ORDER]
    return [order[(seed + number) % len(order)] for number in range(moments)]


def run_campaign(
    jobs: Sequence[Job],
    moments: int,
    seed: int,
    folder: Path,
    at_once: int = 2,
    faults: Sequence[str] = (),
    on_result: Callable[[CaseResult], None] = lambda _result: None,
) -> list[CaseResult]:
    """Run all cases; a case is named by its command, its fault and its seed.

    Args:
        jobs: commands.
        moments: cases of each.
        seed: of the first case of each; those after it have the next ones.
        folder: to work in.
        at_once: commands side by side; the cases of a command follow each other, in one folder.
        faults: of the cases of each; empty: all in turn.
        on_result: called with each result.
    """

    def run(job: Job) -> list[CaseResult]:
        baseline, results = run_undisturbed(job, folder / job.name), []
        for number, fault in enumerate(faults or faults_of(job, moments, seed), seed):
            results.append(run_case(baseline, fault, number, folder / job.name))
            on_result(results[-1])
        return results

    with ThreadPoolExecutor(at_once) as pool:
        return [result for results in pool.map(run, jobs) for result in results]


def tally(results: Sequence[CaseResult]) -> str:
    """Return the results as a table: a row for each command and fault, and a last row for all."""
    rows = [("command", "fault", "tried", "struck", "same bits", "lost", "leftovers", "findings")]
    for job in JOBS:
        for fault in FAULTS:
            chosen = [result for result in results if (result.job, result.fault) == (job.name, fault)]
            rows += [(job.name, fault, *_counts(chosen))] if chosen else []
    rows.append(("all", "", *_counts(results)))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)


def describe(result: CaseResult) -> Iterator[str]:
    """Yield the findings of a case, with the command that replays it."""
    for finding in result.findings:
        yield f"{result.job}, {result.fault}, seed {result.seed}: {finding}"
    if result.findings:
        replay = f"--job {result.job} --fault '{result.fault}' --seed {result.seed} --moments 1"
        yield f"  replay: python -m tests.crash {replay}"


def _counts(results: Sequence[CaseResult]) -> tuple[str, str, str, str, str, str]:
    return (
        str(len(results)),
        str(sum(result.struck for result in results)),
        str(sum(result.same for result in results)),
        str(sum(len(result.lost) for result in results)),
        str(sum(len(result.leftovers) for result in results)),
        str(sum(len(result.findings) for result in results)),
    )


def _possible(fault: str, job: Job) -> str:
    """Return a fault that this machine and this command can have."""
    if fault == "disk full" and not can_mount():
        return "file limit"
    return "worker killed" if fault == "SIGTERM" and job.name == "study" else fault
