"""Are damaged files of every kind refused with a message, or read with unchanged numbers?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.campaign import findings_of, run_campaign
from tests.fuzz.kind import kind_names
from tests.fuzz.tally import format_findings

CASES = 40  # of a kind at a time
ALL = 200  # of a kind
LONG = "report_page"  # each of its cases takes seconds: left to `make test-all`
BATCHES = [
    pytest.param(kind, first, marks=pytest.mark.thorough if first or kind == LONG else ())
    for kind in kind_names()
    for first in range(0, ALL, CASES)
]


@pytest.fixture(scope="session")
def home(folder_of_run: Path) -> Path:
    """Return the folder of originals, which kinds and the processes of pytest share."""
    return folder_of_run / "fuzz"


@pytest.mark.parametrize(("kind", "first"), BATCHES)
def test_damaged_files_are_refused_or_read_right(kind: str, first: int, home: Path) -> None:
    verdicts = run_campaign([kind], range(first, first + CASES), home)
    assert verdicts
    assert not findings_of(verdicts), format_findings(verdicts)
