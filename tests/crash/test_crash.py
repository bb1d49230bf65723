"""Does a command, struck at a random moment and run again, leave the bits of an undisturbed run?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lengths import thorough

from .campaign import ORDER, describe, faults_of, run_campaign, tally
from .case import CaseResult
from .jobs import JOBS, Job, nothing
from .judging import differences, snapshot, tracebacks
from .processes import Outcome
from .striking import one_message

MOMENTS = 12  # of a command: every fault, the most frequent again
LONG = ("report", "study")  # jobs whose first moment alone takes half a minute
EVERY_DAY = [(job, range(1)) for job in JOBS if job.name not in LONG]
THOROUGH = [(job, range(n, n + 4)) for job in JOBS for n in range(0, MOMENTS, 4)]


def _id(value: Job | range) -> str:
    return f"{value.start}-{value.stop}" if isinstance(value, range) else value.name


@pytest.mark.parametrize(("job", "moments"), [*EVERY_DAY, *thorough(*THOROUGH)], ids=_id)
def test_a_struck_command_that_is_run_again_leaves_the_same_bits(job: Job, moments: range, tmp_path: Path) -> None:
    seed = 19 * JOBS.index(job) + moments.start  # other faults for other commands
    results = run_campaign([job], len(moments), seed, tmp_path, faults=faults_of(job, len(moments), seed))
    assert len(results) == len(moments)
    assert not [line for result in results for line in describe(result)]


def test_what_differs_is_named(tmp_path: Path) -> None:
    for folder, files in (("wanted", ("a", "b", "c")), ("got", ("a", "b", ".c.abcdefgh.part"))):
        (tmp_path / folder).mkdir()
        for name in files:
            (tmp_path / folder / name).write_text(name)
    (tmp_path / "got" / "b").write_text("other")
    got, wanted = (snapshot(tmp_path / folder) for folder in ("got", "wanted"))
    assert differences(got, wanted) == ["leftover .c.abcdefgh.part", "missing c", "other bytes in b"]
    assert differences(wanted, wanted) == []


def test_times_are_no_difference(tmp_path: Path) -> None:
    before = write_step(tmp_path / "a", seconds=1.5, event="{}")
    assert differences(write_step(tmp_path / "b", seconds=2.5, event='{"x": 1}'), before) == []
    assert differences(write_step(tmp_path / "c", seconds=1.5, event="{}", status="failed"), before) != []


def write_step(folder: Path, seconds: float, event: str, status: str = "done") -> dict[str, str]:
    folder.mkdir()
    (folder / "events.jsonl").write_text(event)
    (folder / "status.json").write_text(f'{{"status": "{status}", "seconds": {seconds}}}')
    return snapshot(folder)


def test_a_traceback_on_stderr_and_in_the_log_of_a_worker_is_seen(tmp_path: Path) -> None:
    text = 'Traceback (most recent call last):\n  File "x"\nKeyError: 1\n'
    (tmp_path / "log.txt").write_text(text)
    assert len(tracebacks(tmp_path, ["", text])) == 2 and not tracebacks(tmp_path / "none", ["Error: x"])
    of_python = 'Traceback (most recent call last):\n  File "<frozen site>", line 617, in main\nKeyboardInterrupt\n'
    assert not tracebacks(tmp_path / "none", [of_python])


@pytest.mark.parametrize(
    ("code", "text", "complaints"),
    [
        (0, "", 0),
        (1, "Error: out/x/a must be written whole; got 'no space left on device'. Make room\n", 0),
        (1, "", 1),
        (1, "Error: no space\n", 1),
        (1, "Error: out/x\nError: out/y\n", 1),
        (-11, "", 1),
    ],
)
def test_a_command_that_fails_must_say_so_once(code: int, text: str, complaints: int) -> None:
    assert len(one_message(Outcome([code], [text], [])).complaints) == complaints


def test_findings_are_counted_and_can_be_replayed() -> None:
    good = CaseResult("train", "kill -9", 4, True, True, (), (), ())
    bad = CaseResult("train", "kill -9", 5, True, False, ("a",), ("leftover b",), ("leftover b", "written again: a"))
    assert tally([good, bad]).splitlines()[1].split() == ["train", "kill", "-9", "2", "2", "1", "1", "1", "2"]
    assert list(describe(good)) == []
    assert list(describe(bad))[-1].endswith("python -m tests.crash --job train --fault 'kill -9' --seed 5 --moments 1")


def test_every_fault_comes_in_its_turn() -> None:
    job = Job("train", (), nothing)
    assert len(faults_of(job, 20)) == 20 and set(faults_of(job, 10)) <= set(ORDER)
    assert faults_of(job, 3, 1) == faults_of(job, 4)[1:]
    assert "worker killed" in faults_of(Job("study", (), nothing), 10)
