"""Are damaged files of every kind refused with a message, or read to the numbers they hold?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.campaign import findings_of, run_campaign
from tests.fuzz.kind import kind_names
from tests.fuzz.tally import format_findings
from tests.lengths import thorough

CASES = 40  # of a kind at a time
ALL = 200  # of a kind


@pytest.fixture(scope="session")
def home(folder_of_run: Path) -> Path:
    """The folder of originals, which kinds and the processes of pytest share."""
    return folder_of_run / "fuzz"


@pytest.mark.parametrize("first", [0, *thorough(*range(CASES, ALL, CASES))])
@pytest.mark.parametrize("kind", kind_names())
def test_damaged_files_are_refused_or_read_right(kind: str, first: int, home: Path) -> None:
    verdicts = run_campaign([kind], range(first, first + CASES), home)
    assert verdicts
    assert not findings_of(verdicts), format_findings(verdicts)
