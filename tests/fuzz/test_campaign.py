"""Does a campaign continue after a death, and do fast kinds make up for the shares of slow kinds?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.fuzz import campaign
from tests.fuzz.kind import kind_names, load_kind
from tests.fuzz.verdict import Verdict

SEGFAULT = -11


def test_a_death_is_a_finding_and_the_other_cases_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[list[int]] = []

    def start(kind: str, original: Path, scratch: Path, seeds: Sequence[int]) -> int:
        starts.append(list(seeds))
        with open(scratch / "verdicts.jsonl", "w", encoding="utf-8") as lines:
            for seed in seeds:
                lines.write(json.dumps({"begun": seed}) + "\n")
                if seed == 3:
                    return SEGFAULT
                lines.write(json.dumps(asdict(Verdict(kind, seed, "refused"))) + "\n")
        return 0

    monkeypatch.setattr(campaign, "_start", start)
    verdicts = campaign.run_batch("specs", range(6), tmp_path)
    assert starts == [[0, 1, 2, 3, 4, 5], [4, 5]]
    assert [(verdict.seed, verdict.outcome) for verdict in verdicts] == [
        (0, "refused"), (1, "refused"), (2, "refused"), (3, "crash"), (4, "refused"), (5, "refused")
    ]  # fmt: skip
    assert "SIGSEGV" in verdicts[3].detail


def test_a_valid_file_that_cannot_be_read_is_one_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "_start", lambda *_: 1)
    assert [verdict.outcome for verdict in campaign.run_batch("specs", range(6), tmp_path)] == ["crash"]


def test_a_total_is_reached_though_slow_kinds_have_fewer_cases() -> None:
    kinds = kind_names()
    cases = campaign.cases_of_each(kinds, 20_000)
    assert 20_000 <= sum(len(campaign.share_of(load_kind(kind), range(cases))) for kind in kinds) < 20_300
    assert len(campaign.share_of(load_kind("report_page"), range(cases))) < cases / 5
