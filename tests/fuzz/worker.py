"""Judge many cases of one kind in this process; each verdict is a line of a file, so that a crash loses one case."""

from __future__ import annotations

import faulthandler
import fnmatch
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

from .case import Damage, damage, fresh_copy, random_of
from .equality import digest
from .kind import Kind, load_kind
from .limits import SECONDS, limits
from .originals import HOME, ROOT
from .verdict import Outcome, Verdict, outcome_of_error

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "COLUMNS": "1000", "TERM": "dumb", "HF_HUB_OFFLINE": "1", "MPLBACKEND": "agg"}


def judge_alone(name: str, original: Path, home: Path, seeds: list[int], originals: str) -> None:
    """Judge cases as judge_cases does, in a new process whose output goes to HOME/log.

    Args:
        name: of the kind.
        original: folder of valid files.
        home: folder of the worker.
        seeds: of the cases.
        originals: folder of the valid files of all kinds.
    """
    log = os.open(home / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(log, stream.fileno())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(ROOT)
    os.environ.update({**ENVIRONMENT, HOME: originals})
    faulthandler.enable()
    judge_cases(name, original, home, seeds)


def judge_cases(name: str, original: Path, home: Path, seeds: Iterable[int], seconds: float = SECONDS) -> None:
    """Judge cases; write begun seeds and verdicts to HOME/verdicts.jsonl, stacks of hangs to HOME/stacks.

    Args:
        name: of the kind.
        original: folder of valid files.
        home: folder of the worker.
        seeds: of the cases.
        seconds: limit of each case, beyond the seconds of the valid files.
    """
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["LOSSSCOPE_CACHE"] = str(home / "case" / "cache")
    kind, folder = load_kind(name), home / "case"
    with open(home / "verdicts.jsonl", "a", encoding="utf-8") as lines, open(home / "stacks", "w") as stacks:
        expected, usual = _digest_of_valid(kind, original, folder)
        for seed in seeds:
            _write(lines, {"begun": seed})
            done = damage(original, folder, kind, random_of(name, seed))
            begun = time.monotonic()
            verdict = judge(kind, folder, expected, done, stacks, seconds + usual)
            took = round(time.monotonic() - begun, 3)
            _write(lines, asdict(replace(verdict, kind=name, seed=seed, seconds=took)))


def judge(kind: Kind, folder: Path, expected: str, done: Damage, stacks: IO[str], seconds: float) -> Verdict:
    """Read a damaged folder under the limits and return the verdict.

    Args:
        kind: of the folder.
        folder: damaged.
        expected: digest of the valid folder's content.
        done: the damage.
        stacks: open file for the stack of a call that never returns.
        seconds: limit.
    """
    names = frozenset(path.name for path in folder.rglob("*")) | {Path(done.file).name}
    outcome: Outcome
    detail = frame = ""
    try:
        with limits(stacks, seconds):
            outcome = "equal" if _read(kind, folder) == expected else "different"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        outcome, detail, frame = outcome_of_error(error, names)
        if outcome == "no file" and not getattr(kind, "NAMES_FILES", True):
            outcome = "refused"
    if outcome == "different" and done.of_bytes and is_checksummed(kind, done.file):
        outcome = "silent"
    if (folder / "evil.py.ran").exists():
        outcome = "code run"
    return Verdict("", 0, outcome, detail, frame, f"{'+'.join(done.mutators)} of {done.file}: {done.what}"[:300])


def is_checksummed(kind: Kind, file: str) -> bool:
    """Must a reader notice damaged bytes of a file?"""
    return any(fnmatch.fnmatch(file, pattern) for pattern in kind.CHECKSUMMED)


def _digest_of_valid(kind: Kind, original: Path, folder: Path) -> tuple[str, float]:
    """Return the digest of the valid folder's content, and the seconds of the processor that reading it takes.

    Raises RuntimeError where the digest differs between reads.
    """
    digests, begun = set(), time.process_time()
    for _ in range(2):
        fresh_copy(original, folder)
        digests.add(_read(kind, folder))
    if len(digests) > 1:
        raise RuntimeError(f"{original} must be read to the same numbers every time")
    return digests.pop(), time.process_time() - begun


def _read(kind: Kind, folder: Path) -> str:
    os.chdir(folder)
    return digest(kind.read(folder))


def _write(lines: IO[str], value: object) -> None:
    lines.write(json.dumps(value) + "\n")
    lines.flush()
