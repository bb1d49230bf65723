"""Can the harness fail? A planted traceback, hang, crash, allocation, call and silent difference are each reported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.json_files import read_json
from tests.fuzz.campaign import judge_death
from tests.fuzz.case import Damage, damage, random_of
from tests.fuzz.equality import digest
from tests.fuzz.families import FAMILIES
from tests.fuzz.kind import Kind, kind_names, load_kind
from tests.fuzz.originals import ROOT
from tests.fuzz.tally import format_findings, format_tally
from tests.fuzz.verdict import FINDINGS, Verdict
from tests.fuzz.worker import judge

BY_BYTES = Damage("file.bin", ("flip_bits",), "bit 3")
BY_STRUCTURE = Damage("file.bin", ("json_values",), "remove 'a'")


def kind_of(read: Callable[[Path], object], checksummed: bool = True) -> Kind:
    """Return a kind of one file with that reader."""
    patterns = ("*.bin",) if checksummed else ()
    return cast("Kind", SimpleNamespace(FILES={"file.bin": "text"}, CHECKSUMMED=patterns, read=read))


@pytest.fixture(autouse=True)
def _same_folder_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return to the folder of before: readers run in the folder of the case, later tests must not."""
    monkeypatch.chdir(ROOT)


def verdict_of(
    read: Callable[[Path], object], folder: Path, done: Damage = BY_BYTES, checksummed: bool = True
) -> Verdict:
    """Return the verdict on a reader; the valid file holds 1."""
    (folder / "file.bin").write_bytes(b"1")
    with open(folder / "stacks", "w", encoding="utf-8") as stacks:
        return judge(kind_of(read, checksummed), folder, digest(1), done, stacks, 0.3)


def refuse(message: str) -> Callable[[Path], object]:
    """Return a reader that raises an InputError."""

    def read(_folder: Path) -> object:
        raise InputError(message)

    return read


def loop(_folder: Path) -> object:
    while True:
        try:
            sum(range(1000))
        except Exception:  # as a reader that catches everything
            continue


def allocate(folder: Path) -> object:
    try:
        return np.ones(1 << 34, dtype=np.int8).sum()
    except MemoryError as error:
        raise InputError(f"{folder}/file.bin is damaged") from error


def plant(folder: Path) -> object:
    (folder / "evil.py.ran").touch()
    raise InputError("file.bin is refused, too late")


@pytest.mark.parametrize(
    ("read", "outcome"),
    [
        (refuse("rows of file.bin must be numbers; got text"), "refused"),
        (refuse("rows must be numbers; got text"), "no file"),
        (refuse(""), "unclear"),
        (lambda _: 1, "equal"),
        (lambda _: 2, "silent"),
        (lambda _: [][3], "traceback"),
        (lambda folder: read_json(folder / "file.bin")["a"], "refused"),
        (loop, "hang"),
        (allocate, "memory"),
        (plant, "code run"),
    ],
)
def test_what_a_reader_does_is_reported(read: Callable[[Path], object], outcome: str, tmp_path: Path) -> None:
    assert verdict_of(read, tmp_path).outcome == outcome


def test_other_numbers_are_silent_only_where_bytes_of_a_checksummed_file_changed(tmp_path: Path) -> None:
    assert verdict_of(lambda _: 2, tmp_path, BY_STRUCTURE).outcome == "different"
    assert verdict_of(lambda _: 2, tmp_path, BY_BYTES, checksummed=False).outcome == "different"


def test_a_finding_names_the_innermost_line_of_lossscope(tmp_path: Path) -> None:
    def read(_folder: Path) -> object:
        return fingerprint_of(cast("str", 3))

    verdict = verdict_of(read, tmp_path)
    assert verdict.outcome == "traceback"
    assert verdict.frame.startswith("lossscope/io/files.py:")


def test_a_call_that_does_not_return_ends_with_its_stack() -> None:
    verdict = judge_death("npz_dump", 3, 1, stack='File "/x/lossscope/a.py", line 3 in f', log="")
    assert (verdict.outcome, verdict.frame) == ("hang", "/x/lossscope/a.py:3")
    assert judge_death("npz_dump", 3, -11, stack="", log="").outcome == "crash"


def test_a_loop_that_never_returns_to_python_ends_the_process(tmp_path: Path) -> None:
    code = (
        "import itertools, sys\nfrom tests.fuzz.limits import limits\n"
        "with open(sys.argv[1], 'w') as stacks, limits(stacks, 0.2, grace=0.5):\n"
        "    sum(itertools.repeat(1))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "stacks")], cwd=ROOT, check=False, timeout=60)
    assert done.returncode != 0
    assert judge_death("specs", 0, done.returncode, (tmp_path / "stacks").read_text(), "").outcome == "hang"


def test_the_tally_counts_and_causes_stand_once() -> None:
    verdicts = [Verdict("a", n, "traceback", "KeyError: 'rows'", "lossscope/x.py:3") for n in range(3)]
    verdicts += [Verdict("b", 0, "refused"), Verdict("b", 1, "silent")]
    lines = format_tally(verdicts).splitlines()
    assert lines[1].split()[:2] == ["a", "3"]
    assert lines[-1].split()[:3] == ["all", "5", "1"]
    causes = format_findings(verdicts)
    assert causes.startswith("- 3 x traceback at lossscope/x.py:3 (a 3)")
    assert causes.count("python -m tests.fuzz") == 2
    assert "refused" not in causes
    assert "silent" in FINDINGS


@pytest.mark.parametrize("name", ["vocabulary_json", "npz_dump", "study_toml"])
def test_a_case_is_the_same_every_time(name: str, tmp_path: Path) -> None:
    kind = load_kind(name)
    (tmp_path / "valid").mkdir()
    kind.make(tmp_path / "valid")

    def content(seed: int) -> dict[str, bytes]:
        damage(tmp_path / "valid", tmp_path / "case", kind, random_of(name, seed))
        return {f.name: f.read_bytes() for f in sorted((tmp_path / "case").iterdir())}

    first = [content(seed) for seed in range(6)]
    assert [content(seed) for seed in range(6)] == first
    assert len({str(files) for files in first}) > 3


def test_every_kind_says_what_is_damaged() -> None:
    assert len(kind_names()) >= 36
    for name in kind_names():
        kind = load_kind(name)
        assert set(kind.FILES.values()) <= set(FAMILIES)
        assert set(kind.CHECKSUMMED) <= set(kind.FILES)
