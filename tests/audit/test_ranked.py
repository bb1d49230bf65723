"""If data are ranked only, are the first pairs those of the highest score, and do notices name unused options?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lossscope_cli.audit import _lines

from lossscope.audit.output.tables import text_of
from lossscope.audit.steps import run
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.result import AuditResult
from lossscope.io.json_files import shorten
from tests.audit.small import vectors

DATA = "passages:train=40,val=8,test=8,duplicates=0.3"


def audit(data: str | None = DATA, *sources: Path, **options: Any) -> AuditResult:
    return run.audit(sources, AuditOptions.of(data, batch_size=8, sheet=10, **options))


def shown(result: AuditResult) -> list[str]:
    """Return the printed pairs, each by its texts, or by its ids if it has none."""
    text = " ".join("\n".join(_lines(result, Path("out"))).split())
    first = text.index("are listed in order.")
    return re.findall(r"('[^:]+ and '[^:]+): ", text[first:])


def texts(result: AuditResult, rows: list[int]) -> list[str]:
    left, right = result.suspects.pairs.left[rows], result.suspects.pairs.right[rows]
    both = zip(left.tolist(), right.tolist(), strict=True)
    return [f"{shorten(text_of(result, 0, q))} and {shorten(text_of(result, 1, c))}" for q, c in both]


def names(result: AuditResult, rows: Any) -> list[str]:
    left, right = result.suspects.pairs.left[rows], result.suspects.pairs.right[rows]
    ids = result.material.image_ids, result.material.caption_ids
    return [f"{ids[0][q]} and {ids[1][c]}" for q, c in zip(left.tolist(), right.tolist(), strict=True)]


@pytest.fixture(scope="module")
def whole() -> AuditResult:
    return audit()


@pytest.mark.parametrize("number", [3, 40, 700])
def test_the_first_pairs_by_score_are_listed_however_they_are_cut(
    whole: AuditResult, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(whole.suspects.pairs) == whole.examined == whole.pairs
    monkeypatch.setattr(run, "_RANKED", number)
    monkeypatch.setattr(run, "_CHUNK", 101)
    first = audit()
    assert first.examined == whole.examined
    np.testing.assert_allclose(first.suspects.score, whole.suspects.score[:number], atol=1e-4)
    certain = first.suspects.score > whole.suspects.score[number] + 1e-4  # not within rounding of the next
    assert set(names(first, np.nonzero(certain)[0])) <= set(names(whole, np.arange(number)))
    assert len(set(names(first, np.arange(number)))) == number


def test_the_first_pairs_that_are_no_copies_are_printed(whole: AuditResult) -> None:
    copies = int(whole.suspects.copy.sum())
    assert copies > 3
    assert shown(whole) == texts(whole, [copies, copies + 1, copies + 2])


def test_of_one_set_two_items_are_printed_once(tmp_path: Path) -> None:
    """Copies counted in both orders, so that as many of the first pairs were skipped."""
    np.savez(tmp_path / "set.npz", embeddings=vectors(24, 0), labels=np.arange(24) % 6)
    result = audit(None, tmp_path / "set.npz", split="test")
    first = result.suspects.pairs
    assert [(first.left[k], first.right[k]) for k in (1, 3)] == [(first.right[k], first.left[k]) for k in (0, 2)]
    assert shown(result) == texts(result, [0, 2, 4])
    suspects = replace(result.suspects, copy=(np.arange(len(first)) < 4).astype(np.int64))
    assert shown(replace(result, suspects=suspects)) == texts(result, [4, 6, 8])


def test_options_that_need_probabilities_are_said_to_do_nothing(whole: AuditResult) -> None:
    assert not whole.notices
    given = audit(objectives=("ntxent",), threshold=0.3)
    assert [text.partition(":")[0] for text in given.notices] == ["--objective is not used", "--threshold is not used"]
    assert (given.weights, given.accuracy, given.least) == ((), (), None)
