"""tests/durations.csv: the seconds that each test function took, all its cases together; `make durations` renews it.

A case that takes long has a row too, beside the row of its function.

What tests share, a fixture of a module or of the run, is named beside: `make quick` would make it for a single function
that is left of a file, however little that function takes itself. What no fixture shows, such as a cache that the first
test fills, is seen in a run of `make quick`, where other tests come first: of both runs the row has what cost more.
"""

from __future__ import annotations

import csv
import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).parent / "durations.csv"
SHORTEST = 0.02  # seconds; functions that take less have no line
LONG = 10.0  # seconds of a case that has a line


class Cost(NamedTuple):
    """Seconds of a test function: its own, and of the fixtures that it shares with others."""

    seconds: float
    shared: float

    @property
    def all(self) -> float:
        """Seconds that the function takes alone."""
        return self.seconds + self.shared


NOTHING = Cost(0.0, 0.0)


@cache
def durations() -> Mapping[str, Cost]:
    """Return test function, or long case -> what it costs."""
    if not TABLE.is_file():
        return {}
    with open(TABLE, encoding="utf-8", newline="") as file:
        return {row["test"]: Cost(float(row["seconds"]), float(row["shared"])) for row in csv.DictReader(file)}


def of_functions() -> Mapping[str, Cost]:
    """Return test function -> what it costs, without the long cases."""
    return {test: cost for test, cost in durations().items() if test == function_of(test)}


def seconds_of_files() -> Mapping[str, float]:
    """Return test file -> seconds of all its functions, with what they share, once."""
    costs: dict[str, list[Cost]] = defaultdict(list)
    for function, cost in of_functions().items():
        costs[file_of(function)].append(cost)
    return {
        file: sum(cost.seconds for cost in of_file) + max(cost.shared for cost in of_file)
        for file, of_file in costs.items()
    }


def function_of(nodeid: str) -> str:
    """Return the id of a test without its case."""
    return nodeid.partition("[")[0]


def file_of(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]


class Durations:
    """Collect what each function took, and write the table at the end of a run; a plugin of each process of pytest."""

    def __init__(self, is_whole: bool) -> None:
        """Say whether a run has every test: then the table is written anew."""
        self.is_whole = is_whole
        self.seconds: dict[str, float] = defaultdict(float)
        self.of_cases: dict[str, float] = defaultdict(float)
        self.shared: dict[str, float] = defaultdict(float)
        self.of_fixture: dict[Any, float] = {}
        self.made = 0.0  # seconds of shared fixtures that the running test makes

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Time a fixture that tests share."""
        begun = time.perf_counter()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.of_fixture[fixturedef] = time.perf_counter() - begun
                self.made += self.of_fixture[fixturedef]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: Any) -> Generator[None, Any, Any]:
        """Write into the reports of a test what it shares."""
        self.made = 0.0
        try:
            return (yield)
        finally:
            used = {definitions[-1] for definitions in item._fixtureinfo.name2fixturedefs.values() if definitions}
            shared = sum(self.of_fixture.get(definition, 0.0) for definition in used)
            item.user_properties.append(("shared", (self.made, shared)))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add the setup, call and teardown of a case; subtests are within the call."""
        if isinstance(report, pytest.TestReport) and type(report) is pytest.TestReport:
            function = function_of(report.nodeid)
            made, shared = dict(report.user_properties).get("shared", (0.0, 0.0))
            seconds = report.duration - (made if report.when == "setup" else 0.0)
            self.seconds[function] += seconds
            if function != report.nodeid:
                self.of_cases[report.nodeid] += seconds
            self.shared[function] = max(self.shared[function], shared)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the table: the functions that ran with what they took now, any others as they were."""
        if hasattr(session.config, "workerinput"):
            return
        before = {} if self.is_whole and session.exitstatus == pytest.ExitCode.OK else durations()
        long = {case: seconds for case, seconds in self.of_cases.items() if seconds >= LONG}
        taken = {
            test: Cost(seconds, self.shared[function_of(test)]) for test, seconds in {**self.seconds, **long}.items()
        }
        if session.config.getoption("--quick"):
            taken = {test: max(cost, before.get(test, NOTHING)) for test, cost in taken.items()}
        merged = {**before, **taken}
        write_table({test: cost for test, cost in merged.items() if (ROOT / file_of(test)).is_file()})


def write_table(costs: Mapping[str, Cost]) -> None:
    """Write test function -> what it costs, those that cost less than SHORTEST left out."""
    rows = sorted((test, cost) for test, cost in costs.items() if cost.all >= SHORTEST)
    with open(TABLE, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("test", "seconds", "shared"))
        writer.writerows((test, *map(_short, cost)) for test, cost in rows)


def _short(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"
