"""Does each answer begin with the facts, and give a clean bill only where recall allows it?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lossscope
from lossscope.doctor.parts.alignment import normal_recall
from lossscope.engine.loss_levels import Layout, loss_levels
from lossscope.errors import InputError
from lossscope.registry import build
from tests.planted.base import SIZES, Size, aligned, healthy_dump, healthy_log, log, pairs, unit


def examine(*sources: Any, **options: Any) -> dict[str, Any]:
    """Return the document."""
    document: dict[str, Any] = lossscope.doctor(*sources, cache=False, **options).document()
    return document


def coarse(size: Size, known: int) -> tuple[Any, Any]:
    """Return sides that know the group of a pair, and next to nothing of the pair."""
    rng = size.rng
    groups = rng.normal(size=(known, size.d))[rng.integers(0, known, size.n)]
    return unit(groups + 0.4 * rng.normal(size=groups.shape)), unit(groups + 0.4 * rng.normal(size=groups.shape))


def test_a_clean_bill_has_the_state_beside_it(tmp_path: Path) -> None:
    case = healthy_dump(SIZES[0], tmp_path)
    document = examine(*case.sources, **case.options, objective="ntxent:tau=0.07")
    state = document["state"]
    assert document["verdict"] == "no problem found" and not document["unexplained"]
    assert state["recall@1 i2t"]["value"] > 0.5 > state["recall@1 i2t"]["chance"]
    assert state["recall@1 i2t"]["possible"] >= state["recall@1 i2t"]["value"]
    assert state["loss"]["value"] < state["loss"]["chance"] and 0 < state["queries with a gradient"]["value"] <= 1
    assert {name for name in state if name.startswith("effective rank")} == {
        "effective rank images",
        "effective rank captions",
    }


@pytest.mark.parametrize("size", SIZES[:3])
def test_recall_far_below_what_the_auc_implies_is_no_clean_bill(size: Size, tmp_path: Path) -> None:
    document = examine(pairs(tmp_path, *coarse(size, size.n // 30)))
    assert document["verdict"] == "cannot explain", document
    assert "usually comes with" in document["unexplained"][0]["text"] and document["unexplained"][0]["bring"]


@pytest.mark.parametrize("size", SIZES)
def test_the_recall_of_normal_similarities_follows_from_their_auc(size: Size) -> None:
    rng, m = size.rng, 400
    positive, negatives = rng.normal(2.0, 1.0, 4000), rng.normal(size=(4000, m))
    auc = float((positive[:, None] > negatives).mean())
    assert normal_recall(auc, m) == pytest.approx(float((positive > negatives.max(1)).mean()), abs=0.03)
    assert normal_recall(0.5, m) == pytest.approx(1 / (m + 1), rel=0.01) and normal_recall(1.0, m) > 0.99


@pytest.mark.parametrize("rows", [1, 3, 15, 19])
def test_a_log_of_few_steps_is_too_little_to_judge(rows: int, tmp_path: Path) -> None:
    document = examine(log=log(tmp_path, loss=np.linspace(4, 3, rows + 1)[1:]), batch_size=64)
    assert document["verdict"] == "too little to judge" and document["state"]["logged loss"]["value"] == pytest.approx(
        3
    )


def test_ten_pairs_are_too_little_to_judge(tmp_path: Path) -> None:
    first, second = aligned(Size(10, 16))
    assert examine(pairs(tmp_path, first, second))["verdict"] == "too little to judge"


def test_a_loss_that_never_moved_is_no_clean_bill(tmp_path: Path) -> None:
    """With an unknown objective and batch size, the doctor knows no loss of guessing."""
    document = examine(log=log(tmp_path, loss=37.0 * (1 + 0.002 * SIZES[0].rng.normal(size=300))))
    assert document["verdict"] == "cannot explain" and "has not moved" in document["unexplained"][0]["text"]


@pytest.mark.parametrize("objective", ["ntxent:tau=0.07", "dcl", "infonce:tau=0.3"])
@pytest.mark.parametrize("share", [0.15, 0.4, 0.9])
def test_a_loss_that_stops_far_from_perfect_pairs_is_no_clean_bill(
    share: float, objective: str, tmp_path: Path
) -> None:
    levels = loss_levels(build("objectives", objective), Layout(64))
    assert levels is not None
    end = levels.guess + share * (levels.perfection - levels.guess)
    for stops, verdict in (
        (True, "no problem found" if share > 0.5 else "cannot explain"),
        (False, "no problem found"),
    ):
        way = np.minimum(np.linspace(0, 4 if stops else 1, 400), 1)
        noise = 1 + 0.01 * np.random.default_rng(0).normal(size=400)
        path = log(tmp_path, loss=noise * (levels.guess + way * (end - levels.guess)))
        document = examine(log=path, objective=objective, batch_size=64)
        assert document["verdict"] == verdict
        if verdict == "cannot explain":
            assert f"{share:.0%} of the way from guessing" in str(document["unexplained"])


@pytest.mark.parametrize(("objective", "start"), [("supcon:tau=0.1", 4.1), ("ntxent:tau=0.07", 6.9)])
def test_a_loss_whose_perfection_is_not_known_may_stop_anywhere(objective: str, start: float, tmp_path: Path) -> None:
    way = np.minimum(np.linspace(0, 4, 400), 1)
    path = log(tmp_path, loss=(start - way * 0.5) * (1 + 0.01 * np.random.default_rng(0).normal(size=400)))
    assert examine(log=path, objective=objective, batch_size=64)["verdict"] == "no problem found"


def test_recall_below_its_start_is_no_clean_bill(tmp_path: Path) -> None:
    falling = np.linspace(0.374, 0.3, 6)
    case = healthy_log(SIZES[0], tmp_path, validation={"val_recall@1": falling})
    found = examine(**case.options)
    assert found["verdict"] != "no problem found", found


def test_what_cannot_be_explained_is_a_warning_for_scripts(tmp_path: Path) -> None:
    found = lossscope.doctor(pairs(tmp_path, *coarse(SIZES[0], 20)), cache=False)
    assert found.reaches("warning") and not found.reaches("error")


def test_rows_of_text_say_that_no_recall_is_known(tmp_path: Path) -> None:
    rows = "".join(f'{{"query": "question {i} of many", "positive": "answer {i} at length"}}\n' for i in range(50))
    (tmp_path / "train.jsonl").write_text(rows, encoding="utf-8")
    document = examine(str(tmp_path / "train.jsonl"))
    assert document["verdict"] == "no problem found" and set(document["state"]) == {"rows"}


def test_recall_below_the_model_before_training_is_no_clean_bill(tmp_path: Path) -> None:
    """The training destroyed knowledge of the model; its vectors alone look like a weak model's."""
    (tmp_path / "before").mkdir()
    before = pairs(tmp_path / "before", *aligned(SIZES[0], noise=0.5))
    after = pairs(tmp_path, *aligned(SIZES[0], noise=1.6))
    alone, beside = examine(after), examine(after, before=before)
    assert alone["verdict"] == "no problem found" and beside["verdict"] == "cannot explain"
    assert "before this training" in beside["unexplained"][0]["text"]
    recall = beside["state"]["recall@1 i2t"]
    assert recall["possible"] > 0.9 > recall["value"] and "before this training" in recall["text"]
    assert examine(before, before=after)["verdict"] == "no problem found"


def test_a_dump_of_other_items_is_no_start(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    before = pairs(tmp_path / "before", *aligned(Size(500)))
    with pytest.raises(InputError, match="must be a dump of the same items, 600 and 600 of both sides; got 500"):
        examine(pairs(tmp_path, *aligned(SIZES[0])), before=before)


@pytest.mark.parametrize(("size", "noise"), [(SIZES[0], 1.2), (SIZES[1], 1.2), (SIZES[2], 2.0)])
@pytest.mark.parametrize(("length", "verdict"), [(6.0, "cannot explain"), (1.0, "no problem found")])
def test_a_cone_as_of_a_collapse_is_no_clean_bill(
    size: Size, noise: float, length: float, verdict: str, tmp_path: Path
) -> None:
    """The model misses more than half of the pairs, and all items share a direction of that length."""
    shared = unit(np.random.default_rng(0).normal(size=(1, size.d)))
    sides = [unit(side + length * shared) for side in aligned(size, noise)]
    document = examine(pairs(tmp_path, *sides))
    alarms = [finding for finding in document["findings"] if finding["severity"] != "note"]
    assert not alarms and document["verdict"] == verdict, document
    cone = next(finding for finding in document["findings"] if finding["id"] == "cone")
    assert ("collapses" in cone["advice"][0]["text"]) == (length > 5)
