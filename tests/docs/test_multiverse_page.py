"""Do the numbers of the page of the multiverse agree with each other?"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "analyses" / "multiverse.md").read_text(encoding="utf-8")
LINES = re.findall(r"^(\w+) +(.+?) {2,}[\d.]+ < [\d.]+ +(\d+) of (\d+) +(\d+) +(\d+) +(\d+) +(\S.*)$", PAGE, re.M)


def test_shares_follow_from_counts_and_universes_add_up() -> None:
    assert len(LINES) == 18
    for metric, _, holds, defined, share, ties, undefined, _ in LINES:
        assert abs(100 * int(holds) / int(defined) - int(share)) <= 0.5
        assert int(defined) + int(undefined) == (8 if metric == "rsum" else 600)
        assert int(holds) + int(ties) <= int(defined)


def test_what_the_text_says_of_the_table_is_so() -> None:
    best = max(int(holds) for metric, _, holds, *_ in LINES if metric == "rsum")
    assert best == 3 and "holds in more than 3 of 8 universes" in PAGE
    decisive = {claim: words for metric, claim, *_, words in LINES if metric == "i2t_count"}
    assert decisive["Triplet < NT-Xent"] == "eps 92 %" and decisive["Triplet SH < Triplet"] == "none"
