"""The lengths of the suite: `make quick`, `make test`, and eighths of what only `make test-all` has.

tests/durations.csv has the seconds that each test function took, all its cases together; `make durations` renews it.
`make quick` takes the functions that cost little; one that is in no line costs nothing.
Tests marked `thorough` are left to `make test-all`. The files that cost most are run first, so that two processes end
together.
"""

from __future__ import annotations

import csv
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).parent / "durations.csv"
SHORTEST = 0.02  # seconds; functions that take less have no line
QUICK = 0.25  # seconds of a function that `make quick` still runs
NEVER_QUICK = ("tests/docs/", "lossscope/")
SPREAD = ("tests/fuzz/test_kinds.py", "tests/crash/test_crash.py", "tests/docs/test_console_lines.py")
"""Files whose cases may run in different processes of pytest: they share nothing that takes long to make."""
PARTS = 8


@cache
def durations() -> Mapping[str, float]:
    """Return test function -> seconds."""
    if not TABLE.is_file():
        return {}
    with open(TABLE, encoding="utf-8", newline="") as file:
        return {row["test"]: float(row["seconds"]) for row in csv.DictReader(file)}


def function_of(nodeid: str) -> str:
    """Return the id of a test without its case."""
    return nodeid.partition("[")[0]


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


def thorough(*cases: Any) -> list[Any]:
    """Return cases of a parametrised test that are left to `make test-all`; a tuple has a value for each argument."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.thorough) for case in cases]


def add_options(parser: pytest.Parser) -> None:
    """Add the options that choose tests."""
    group = parser.getgroup("lengths of the suite")
    group.addoption("--quick", action="store_true", help="only functions that cost little, by tests/durations.csv")
    group.addoption("--part", help="only one part of the thorough tests, e.g. 3/8")
    group.addoption("--renew-durations", action="store_true", help="write what each function took to the table")


def is_left_out(path: Path, config: pytest.Config) -> bool | None:
    """Whether a file is not even imported: none of it is quick."""
    if not config.getoption("--quick") or path.is_dir():
        return None
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
    return True if name.startswith(NEVER_QUICK) or name in _without_quick_tests() else None


@cache
def _without_quick_tests() -> frozenset[str]:
    """Return the files whose first function alone costs too much, as they make something that all the others need."""
    slow: dict[str, list[bool]] = defaultdict(list)
    for test, seconds in durations().items():
        slow[file_of(test)].append(seconds > QUICK)
    return frozenset(file for file, own in slow.items() if all(own) and _functions_of(file) <= len(own))


def _functions_of(file: str) -> int:
    path = ROOT / file
    return path.read_text(encoding="utf-8").count("\ndef test_") if path.is_file() else 0


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other lengths, and sort files by what they cost."""
    if config.getoption("--quick"):
        _keep(config, items, [item for item in items if _is_quick(item)])
    part = config.getoption("--part")
    if part:
        number, _, parts = part.partition("/")
        if int(parts or 0) != PARTS or not 1 <= int(number) <= PARTS:
            raise pytest.UsageError(f"--part must be 1/{PARTS} to {PARTS}/{PARTS}; got {part}")
        thorough = [item for item in items if _is_thorough(item)]
        chosen = parts_of([item.nodeid for item in thorough])[int(number) - 1]
        _keep(config, items, [item for item in thorough if item.nodeid in chosen])
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return  # the order that was typed
    cost: dict[str, float] = defaultdict(float)
    for function, seconds in durations().items():
        cost[file_of(function)] += seconds
    items.sort(key=lambda item: -cost[file_of(item.nodeid)])  # stable: the tests of a file keep their order


def parts_of(tests: Sequence[str]) -> list[set[str]]:
    """Share tests between the parts: functions that cost little whole, of others each case, always the same way."""
    cases: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        cases[function_of(test)].append(test)
    units: list[tuple[float, str, list[str]]] = []
    whole = sum(durations().get(function, 0.0) for function in cases)
    for function, own in cases.items():
        seconds = durations().get(function, 0.0)
        if seconds > whole / PARTS / 4:
            units += [(seconds / len(own), test, [test]) for test in own]
        else:
            units.append((seconds, function, own))
    parts, costs = [set[str]() for _ in range(PARTS)], [0.0] * PARTS
    for seconds, name, own in sorted(units, key=lambda unit: (-unit[0], unit[1])):
        least = min(range(PARTS), key=lambda place: (costs[place], zlib.crc32(f"{name} {place}".encode())))
        parts[least].update(own)
        costs[least] += seconds
    return parts


def _is_quick(item: pytest.Item) -> bool:
    return not _is_thorough(item) and durations().get(function_of(item.nodeid), 0) <= QUICK


def _is_thorough(item: pytest.Item) -> bool:
    return item.get_closest_marker("thorough") is not None


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    chosen = set(map(id, kept))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = kept


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a file go to one process of pytest, but for those of SPREAD."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if file_of(nodeid) in SPREAD else file_of(nodeid)


@dataclass
class Durations:
    """Collect what each function took, and write the table at the end of a run."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add the setup, call and teardown of a case; subtests are within the call."""
        if isinstance(report, pytest.TestReport) and type(report) is pytest.TestReport:
            self.seconds[function_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the table: the functions that ran with what they took now, the others as they were."""
        merged = {**durations(), **self.seconds}
        write_table({test: seconds for test, seconds in merged.items() if (ROOT / file_of(test)).is_file()})


def write_table(seconds: Mapping[str, float]) -> None:
    """Write test function -> seconds, those that take less than SHORTEST left out."""
    rows: Iterable[tuple[str, float]] = sorted((test, one) for test, one in seconds.items() if one >= SHORTEST)
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("test", "seconds"))
        writer.writerows((test, f"{one:.2g}" if one < 10 else f"{one:.0f}") for test, one in rows)
