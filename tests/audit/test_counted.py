"""Do labels with strata count a rate, do those of two people merge, and do notices name what they cannot count?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from lossscope.audit.estimate.counted import count_labels
from lossscope.audit.estimate.labels import Labels, read_labels
from lossscope.audit.estimate.pair_file import DesignRow, design_columns
from lossscope.core.sides import Sides
from lossscope.errors import InputError
from tests.audit.small import material

PAIRS = [(q, c) for q in range(4) for c in range(12) if c // 3 != q][:14]
STRATA = [*["1 of 2,0.1"] * 6, *["2 of 2,0.9"] * 6, ",", ","]
WORDS = [*["yes", "no"] * 3, *["no"] * 5, "yes", "yes", "no"]


def write(path: Path, words: Sequence[str] = WORDS, strata: Sequence[str] = STRATA) -> Path:
    rows = [f"i{q},c{c},{word},{cells}" for (q, c), word, cells in zip(PAIRS, words, strata, strict=True)]
    path.write_text("\n".join(["image,caption,answer,stratum,share", *rows]) + "\n")
    return path


def read(*paths: Path) -> Labels:
    return read_labels(paths, material())


def test_the_rate_is_counted_from_pairs_with_a_stratum(tmp_path: Path) -> None:
    counted, notices = count_labels(read(write(tmp_path / "a.csv")))
    assert counted is not None and notices == ()
    assert counted.rate.value == pytest.approx(0.1 * 3 / 6 + 0.9 * 1 / 6)
    assert (counted.answers, counted.yes) == (12, 4)


@pytest.mark.parametrize(
    ("strata", "says"),
    [
        ([","] * 14, "a.csv has no strata"),
        ([*["1 of 3,0.1"] * 6, *["2 of 3,0.6"] * 6, ",", ","], "no rate .* stratum 3 has no answer"),
        ([*["1 of 2,0.1"] * 6, *["2 of 3,0.9"] * 6, ",", ","], "sheets with 2 and 3 strata"),
        ([*["1 of 2,0.1"] * 5, "1 of 2,0.2", *["2 of 2,0.9"] * 6, ",", ","], "stratum 1 has the shares 0.1 and 0.2"),
        ([*["1 of 2,0.3"] * 6, *["2 of 2,0.9"] * 6, ",", ","], "sum to 1.2"),
    ],
)
def test_what_counts_no_rate_is_said(tmp_path: Path, strata: Sequence[str], says: str) -> None:
    labels = read(write(tmp_path / "a.csv", strata=strata))
    counted, (notice,) = count_labels(labels)
    assert counted is None
    with pytest.raises(ValueError, match=says):
        raise ValueError(notice)


def test_a_sheet_without_the_columns_still_works(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f"i{q},c{c},{word}" for (q, c), word in zip(PAIRS, WORDS, strict=True)]
    path.write_text("\n".join(["image,caption,answer", *rows]) + "\n")
    labels = read(path)
    assert len(labels.answers) == 14 and labels.design == (None,) * 14
    assert count_labels(labels)[0] is None


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ("3 of 2,0.1", "line 2 has '3 of 2'"),
        ("1/2,0.1", "must be written like '2 of 9'"),
        ("1 of 2,0", "above 0 and up to 1"),
        ("1 of 2,1.5", "above 0 and up to 1"),
        ("1 of 2,nan", "above 0 and up to 1"),
        ("1 of 2,", "above 0 and up to 1"),
        (",0.1", "must be written like"),
    ],
)
def test_a_stratum_that_is_none_says_where(tmp_path: Path, cells: str, says: str) -> None:
    """The other rows are kept; where none can be read, the file is refused."""
    labels = read(write(tmp_path / "a.csv", strata=[cells, *STRATA[1:]]))
    assert len(labels.answers) == len(WORDS) - 1
    assert re.search(f"^1 of {len(WORDS)} rows of .* cannot be read and are left out: .*{says}", labels.unreadable[0])
    with pytest.raises(InputError, match=says):
        read(write(tmp_path / "a.csv", strata=[cells] * len(STRATA)))


def test_a_share_without_a_stratum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,caption,answer,share\ni0,c4,yes,0.1\n")
    with pytest.raises(InputError, match="both columns stratum and share, or none; it has share alone"):
        read(path)


def test_cells_come_back(tmp_path: Path) -> None:
    row = DesignRow(2, 9, 2 / 30_000)
    labels = read(write(tmp_path / "a.csv", strata=[",".join(row.cells), *STRATA[1:]]))
    assert labels.design[0] is not None
    assert (labels.design[0].stratum, labels.design[0].of) == (2, 9)
    assert labels.design[0].share == pytest.approx(row.share, rel=1e-4)
    assert not set(design_columns(Sides("stratum", "share"))) & {"stratum", "share"}


def test_two_people_are_merged_and_what_they_dispute_is_unsure(tmp_path: Path) -> None:
    other = ["no" if k == 0 else "unsure" if k == 1 else word for k, word in enumerate(WORDS)]
    labels = read(write(tmp_path / "a.csv"), write(tmp_path / "b.csv", other))
    assert (len(labels.answers), labels.disputed) == (13, 1)
    assert "1 pair is answered differently in" in labels.notices[0]
    (agreement,) = labels.agreements
    assert (agreement.pairs, agreement.alike) == (13, 12)
    counted, _ = count_labels(labels)
    assert counted is not None
    assert counted.rate.value == pytest.approx(0.1 * 2 / 5 + 0.9 * 1 / 6), "the disputed pair takes no part"


def test_three_people_have_three_agreements_and_a_dispute_stays_one(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{k}.csv", ["no" if k == 1 else "yes", *WORDS[1:]]) for k in range(3)]
    labels = read(*files)
    assert [agreement.alike for agreement in labels.agreements] == [13, 14, 13]
    assert labels.disputed == 1


def test_a_person_who_answers_a_pair_twice_differently_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv")
    path.write_text(path.read_text() + "i0,c3,no,1 of 2,0.1\n")
    with pytest.raises(InputError, match="must have one answer"):
        read(path, write(tmp_path / "b.csv"))
