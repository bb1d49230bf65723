"""The lengths of the suite: `make quick`, `make test`, and eighths of what only `make test-all` has.

`make quick` takes the functions that cost little, by tests/durations.csv; one that is in no line costs nothing.
Tests marked `thorough` are left to `make test-all`. A whole run says how many tests were skipped, and fails where these
are more than there is a reason for. The files that cost most are run first, so that two processes end
together.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.chromium import CHROMIUM
from tests.durations import NOTHING, ROOT, durations, file_of, function_of, of_functions, seconds_of_files
from tests.pdflatex import PDFLATEX

QUICK = 0.08  # seconds of a function that `make quick` still runs, with what it shares
NEVER_QUICK = ("tests/docs/", "lossscope/", "tests/live/test_sentence_", "tests/live/test_apart_sampler.py")
"""The last ones import sentence-transformers, which takes two seconds."""
SPREAD = ("tests/fuzz/test_kinds.py", "tests/crash/test_crash.py", "tests/docs/test_console_lines.py")
"""Files whose cases may run in different processes of pytest: they share no costly fixture."""
PARTS = 8
MOST_SKIPPED = {"not thorough": 4, "": 5}
"""-m -> how many tests a whole run may skip where Chromium and pdflatex are, and no GPU: two need Flickr8k and one
needs pictures of COCO, which may not be handed on, and one needs open_clip; of the thorough ones another trains in
float16, as only GPUs do."""


def thorough(*cases: Any) -> list[Any]:
    """Return cases of a parametrised test for `make test-all` alone; a tuple has a value for each argument."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.thorough) for case in cases]


def add_options(parser: pytest.Parser) -> None:
    """Add the options that choose tests."""
    group = parser.getgroup("lengths of the suite")
    group.addoption("--quick", action="store_true", help="only functions that cost little, by tests/durations.csv")
    group.addoption("--part", help="only one part of the thorough tests, e.g. 3/8")
    group.addoption("--renew-durations", action="store_true", help="write what each function took to the table")


def is_left_out(path: Path, config: pytest.Config) -> bool | None:
    """Is a file not even imported, because none of it is quick?"""
    if not config.getoption("--quick") or path.is_dir():
        return None
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
    return True if name.startswith(NEVER_QUICK) or name in _without_quick_tests() else None


@cache
def _without_quick_tests() -> frozenset[str]:
    """Return the files whose first function alone costs too much: it makes what all the others need."""
    slow: dict[str, list[bool]] = defaultdict(list)
    for function, cost in of_functions().items():
        slow[file_of(function)].append(cost.all > QUICK)
    return frozenset(file for file, are in slow.items() if all(are) and _functions_of(file) <= len(are))


def _functions_of(file: str) -> int:
    path = ROOT / file
    return path.read_text(encoding="utf-8").count("\ndef test_") if path.is_file() else 0


def is_slow(function: str, config: pytest.Config) -> bool:
    """Does a run leave out a function because it costs too much?"""
    return bool(config.getoption("--quick")) and durations().get(function, NOTHING).all > QUICK


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other lengths, and sort files by their cost."""
    if config.getoption("--quick"):
        _keep(config, items, [item for item in items if not _is_thorough(item)])
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
    cost = seconds_of_files()
    items.sort(key=lambda item: -cost.get(file_of(item.nodeid), 0.0))  # stable: the tests of a file keep their order


def parts_of(tests: Sequence[str]) -> list[set[str]]:
    """Share tests between the parts, always the same way: files whole, but functions and cases of those that cost much.

    What tests share, a fixture of a module, is made again in every part that has one of them.
    """
    whole = sum(durations().get(function, NOTHING).seconds for function in {function_of(test) for test in tests})
    units = sorted(_units(tests, whole / PARTS / 4), key=lambda unit: (-unit[0], unit[1]))
    parts, costs = [set[str]() for _ in range(PARTS)], [0.0] * PARTS
    for seconds, name, chosen in units:
        least = min(range(PARTS), key=lambda part: (costs[part], zlib.crc32(f"{name} {part}".encode())))
        parts[least].update(chosen)
        costs[least] += seconds
    return parts


def _units(tests: Sequence[str], most: float) -> Iterator[tuple[float, str, Sequence[str]]]:
    """Yield the seconds, name and tests of each group that stays together: at most `most` seconds, or a single case."""
    for file, of_file in _group(tests, file_of).items():
        functions = _group(of_file, function_of)
        costs = {function: durations().get(function, NOTHING) for function in functions}
        shared, seconds = max(cost.shared for cost in costs.values()), sum(cost.seconds for cost in costs.values())
        if seconds <= most:
            yield seconds + shared, file, of_file
            continue
        for function, cases in functions.items():
            if costs[function].seconds <= most:
                yield costs[function].all, function, cases
            else:
                yield from ((seconds + shared, case, [case]) for case, seconds in _seconds_of(function, cases))


def _seconds_of(function: str, cases: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield the cases of a function with their seconds: cases without a line share the remaining cost equally."""
    long = {test: cost.seconds for test, cost in durations().items() if test.startswith(f"{function}[")}
    others = sum(case not in long for case in cases)
    left = max(durations()[function].seconds - sum(long.values()), 0.0)
    for case in cases:
        yield case, long[case] if case in long else left / others


def _group(tests: Iterable[str], of: Callable[[str], str]) -> Mapping[str, Sequence[str]]:
    """Return the file or function of tests -> the tests."""
    groups: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        groups[of(test)].append(test)
    return groups


def is_whole(config: pytest.Config) -> bool:
    """Does a run leave out no test but those that `-m` names?"""
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not any(
        config.getoption(option) for option in ("quick", "part", "keyword", "deselect", "collectonly")
    )


def most_skipped(config: pytest.Config) -> int | None:
    """Return how many tests a run may skip; None where it is not whole."""
    return MOST_SKIPPED.get(config.getoption("markexpr")) if is_whole(config) else None


def count_skipped(config: pytest.Config) -> int:
    """Return how many tests were skipped, counting cases within tests, which pytest does not report."""
    stats = config.pluginmanager.get_plugin("terminalreporter").stats  # type: ignore[union-attr]
    reports = [report for category in stats.values() for report in category]
    return sum(getattr(report, "skipped", False) and not hasattr(report, "wasxfail") for report in reports)


def skips_too_many(config: pytest.Config) -> bool:
    """Did a run skip more tests than this machine has reasons for?"""
    most = most_skipped(config)
    if most is None or CHROMIUM is None or PDFLATEX is None or count_skipped(config) <= most:
        return False
    import torch  # the first process of a run seldom skips any

    return not torch.cuda.is_available()


def _is_thorough(item: pytest.Item) -> bool:
    return item.get_closest_marker("thorough") is not None


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    chosen = set(map(id, kept))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = kept


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a file go to one process of pytest, but for those of SPREAD, in the order of `choose`."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        """Keep the order: xdist would run the files with the most tests first, which are not the costliest."""
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if file_of(nodeid) in SPREAD else file_of(nodeid)
