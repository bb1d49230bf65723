"""Are examples ids of the source, for any sample, and thresholds those of the finding?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lossscope
from lossscope.doctor.parts import splits
from lossscope.doctor.parts.patient import Patient
from lossscope.doctor.parts.splits import SharedItems, Splits
from lossscope.doctor.split_leak import SplitLeak
from tests.planted.base import SIZES, aligned, pairs


def _examples(id: str, path: str, **options: object) -> list[str]:
    (examination,) = lossscope.doctor(path, cache=False, **options).examinations
    return list(next(finding for finding in (*examination.findings, *examination.folded) if finding.id == id).examples)


def test_shared_items_are_named_by_their_ids_also_of_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row is not finite, and the doctor reads half of the others."""
    monkeypatch.setattr(splits, "_MOST", 300)
    first, second = aligned(SIZES[0])
    train = pairs(tmp_path, first, second, "train.npz")
    first, second = first.copy(), aligned(SIZES[1])[1][: len(first)]
    first[0], first[1::2] = np.nan, -first[1::2]
    test = pairs(tmp_path, first, aligned(SIZES[0])[1], "test.npz", image_id=[f"p{row}" for row in range(len(first))])
    examples = _examples("split-leak", test, against=train)
    assert len(examples) == 5
    for example in examples:
        side, name = example.split()
        assert side == "image" and int(name[1:]) % 2 == 0


def test_shuffled_pairs_are_named_by_their_ids_also_of_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = aligned(SIZES[0])
    wrong = np.random.default_rng(0).choice(len(first), len(first) // 2, replace=False)
    second[wrong] = second[np.roll(wrong, 1)]
    first, second = (np.concatenate([np.full_like(x[:100], np.nan), x]) for x in (first, second))
    names = {name: [f"{name[0]}{row}" for row in range(len(first))] for name in ("image_id", "caption_id")}
    examples = _examples("shuffled-share", pairs(tmp_path, first, second, **names))
    assert len(examples) == 5
    rows = [int(example.split()[1][1:]) for example in examples]
    assert examples == [f"image i{row} with caption c{row}" for row in rows]
    assert {*rows} <= {int(row) + 100 for row in wrong}


def test_the_threshold_of_shared_items_is_that_of_the_finding() -> None:
    """Of two splits, the finding shows the one furthest above its usual share; the threshold includes the allowance."""
    rows = np.arange(40)
    usual = SharedItems("image", "train", "test", 100, rows[:0], rows, 0.3, [str(row) for row in range(100)])
    rare = replace(usual, held_out="val", near=rows[:10], usual=0.01)
    patient = Patient("x", given={Splits: Splits((usual, rare))})
    found = SplitLeak().examine(patient)
    assert found is not None and found.title.startswith("10.0% of the val images")
    assert found.evidence[0].threshold == pytest.approx(0.005 + 2 * 0.01)
    assert SplitLeak().examine(Patient("x", given={Splits: Splits((usual,))})) is None
