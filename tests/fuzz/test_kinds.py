"""Are damaged files of every kind refused with a message, or read to the numbers they hold?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.campaign import findings_of, run_campaign
from tests.fuzz.kind import kind_names
from tests.fuzz.tally import format_findings

CASES = 40  # of a kind at a time
ALL = 200  # of a kind, of which the first 40 are left to no other day


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of originals, which kinds share."""
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(CASES, ALL, CASES))])
@pytest.mark.parametrize("kind", kind_names())
def test_damaged_files_are_refused_or_read_right(kind: str, first: int, home: Path) -> None:
    verdicts = run_campaign([kind], range(first, first + CASES), home)
    assert verdicts
    assert not findings_of(verdicts), format_findings(verdicts)
