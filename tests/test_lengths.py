"""Does a run say how many tests it skipped, and fail where there is no reason for so many?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import durations, lengths
from tests.durations import Cost, Durations

pytest_plugins = "pytester"
CONFTEST = """
from tests.conftest import pytest_addoption, pytest_sessionfinish, pytest_terminal_summary
"""
TESTS = """
import pytest

@pytest.mark.parametrize("case", range(2))
def test_skipped(case):
    pytest.skip("no reason")

def test_of_cases(subtests):
    with subtests.test():
        pytest.skip("no reason")

@pytest.mark.xfail
def test_that_fails():
    assert False
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Run pytest on a folder with three skipped tests, one of them a case within a test."""
    monkeypatch.setattr(lengths, "CHROMIUM", "chromium")
    monkeypatch.setattr(lengths, "PDFLATEX", "pdflatex")
    monkeypatch.setattr(lengths, "MOST_SKIPPED", {"not thorough": 1, "": 2})
    pytester.makeini("[pytest]\ntestpaths = .\nverbosity_subtests = 0\nmarkers = thorough: of all")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    return pytester


@pytest.mark.parametrize(
    "options", [(), ("-m", "not thorough"), pytest.param(("-n", "1"), marks=pytest.mark.thorough)], ids=" ".join
)
def test_a_whole_run_that_skips_too_many_fails(run: pytest.Pytester, options: tuple[str, ...]) -> None:
    most = 1 if "-m" in options else 2
    done = run.runpytest_inprocess(*options)
    done.stdout.fnmatch_lines([f"3 skipped; at most {most} where Chromium and pdflatex are installed"])
    assert done.ret == pytest.ExitCode.TESTS_FAILED


def test_it_does_not_where_a_program_is_missing(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "PDFLATEX", None)
    done = run.runpytest_inprocess()
    done.stdout.fnmatch_lines(["3 skipped; at most 2 *"])
    assert done.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("options", [("-k", "skipped"), (".",), ("--quick",), ("-m", "thorough")], ids=" ".join)
def test_it_does_not_where_tests_are_chosen(run: pytest.Pytester, options: tuple[str, ...]) -> None:
    done = run.runpytest_inprocess(*options)
    assert done.ret in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "at most" not in done.stdout.str()


def test_so_many_are_not_too_many(run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lengths.MOST_SKIPPED, "", 3)
    assert run.runpytest_inprocess().ret == pytest.ExitCode.OK


@pytest.mark.thorough
def test_files_are_run_in_the_order_that_they_were_sorted_in(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = thorough: of all")
    pytester.makeconftest("from tests.conftest import pytest_xdist_make_scheduler")
    pytester.makepyfile(test_a="def test_1(): pass", test_b="def test_1(): pass\ndef test_2(): pass")
    done = pytester.runpytest_inprocess("-n", "1", "-v")
    done.stdout.fnmatch_lines(
        [f"*PASSED {test}*" for test in ("test_a.py::test_1", "test_b.py::test_1", "test_b.py::test_2")]
    )


def test_parts_are_all_tests_and_keep_what_is_shared_together(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"a::shared": Cost(1, 90), "a::too": Cost(1, 90), "b::long": Cost(160, 0), "b::short": Cost(2, 0)}
    monkeypatch.setattr(lengths, "durations", lambda: costs)
    a, b = ["a::shared[1]", "a::shared[2]", "a::too"], [*(f"b::long[{case}]" for case in range(16)), "b::short"]
    parts = lengths.parts_of([*a, *b, "c::new"])
    assert sorted(test for part in parts for test in part) == sorted([*a, *b, "c::new"])
    assert sum(bool(part & set(a)) for part in parts) == 1
    assert all(len(part & set(b)) in ((2, 3) if not part & set(a) else (0,)) for part in parts)


def test_a_long_case_weighs_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = {"a::t": Cost(170, 0), "a::t[0]": Cost(100, 0), "a::other": Cost(0, 0)}
    monkeypatch.setattr(lengths, "durations", lambda: costs)
    parts = lengths.parts_of([f"a::t[{case}]" for case in range(15)])
    assert {"a::t[0]"} in parts and sorted(map(len, parts)) == [1, *[2] * 7]


@pytest.fixture
def renew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Mapping[str, Cost]]:
    """Return the table after a run whose tests took n seconds each."""
    monkeypatch.setattr(durations, "ROOT", tmp_path)
    monkeypatch.setattr(durations, "TABLE", tmp_path / "table.csv")
    monkeypatch.setattr(durations, "durations", durations.durations.__wrapped__)  # without its cache
    (tmp_path / "a.py").touch()

    def run(
        seconds: Mapping[str, float], is_whole: bool = True, quick: bool = False, ended: int = pytest.ExitCode.OK
    ) -> Mapping[str, Cost]:
        plugin = Durations(is_whole)
        for test, taken in seconds.items():
            plugin.pytest_runtest_logreport(
                pytest.TestReport(test, ("", 0, ""), {}, "passed", None, "call", duration=taken)
            )
        config = SimpleNamespace(getoption=lambda option: quick and option == "--quick")
        plugin.pytest_sessionfinish(SimpleNamespace(config=config, exitstatus=ended))  # type: ignore[arg-type]
        return durations.durations()

    return run


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, {"a.py::t": 1.0}),
        ({"is_whole": False}, {"a.py::gone": 9.0, "a.py::t": 1.0}),
        ({"ended": pytest.ExitCode.INTERRUPTED}, {"a.py::gone": 9.0, "a.py::t": 1.0}),
        ({"is_whole": False, "quick": True}, {"a.py::gone": 9.0, "a.py::t": 9.0}),
    ],
    ids=["whole", "some", "broken off", "quick"],
)
def test_only_a_whole_run_forgets_and_a_quick_one_lowers_nothing(
    renew: Callable[..., Mapping[str, Cost]], how: dict[str, Any], expected: dict[str, float]
) -> None:
    renew({"a.py::t": 9.0, "a.py::gone": 9.0})
    assert {test: cost.seconds for test, cost in renew({"a.py::t": 1.0}, **how).items()} == expected


def test_a_long_case_has_a_line_beside_its_function(renew: Callable[..., Mapping[str, Cost]]) -> None:
    table = renew({"a.py::t[short]": 2.0, "a.py::t[long]": 30.0})
    assert {test: cost.seconds for test, cost in table.items()} == {"a.py::t": 32.0, "a.py::t[long]": 30.0}
    assert durations.seconds_of_files() == {"a.py": 32.0}
