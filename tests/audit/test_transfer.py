"""When do weights of the judged photos and captions give probabilities of other data?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lossscope.audit.estimate import transfer
from lossscope.audit.estimate.default_weights import FILE
from lossscope.audit.estimate.signal_table import SignalTable
from lossscope.audit.estimate.transfer import SIGNALS, Transfer, compare, signature
from lossscope.audit.parts.material import Material
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.scorer import Scorer
from lossscope.audit.steps.signals import build_signals
from lossscope.core.relations import Relations
from lossscope.datasets.base import Split, Texts
from lossscope.io.json_files import read_json
from lossscope.registry import build
from tests.audit.small import OWNERS, TEXTS, every_pair, material, source, split, two_texts, vectors

STORED = read_json(FILE)["transfer"]
WEIGHTS: dict[str, list[float]] = STORED["weights"]


def table(of: Material, names: tuple[str, ...] = SIGNALS) -> SignalTable:
    relations = of.relations
    pairs = every_pair(relations.first, relations.second)
    return SignalTable.of(of, [build("signals", name) for name in names], pairs)


def inside(level: float = 0.5) -> dict[str, float]:
    """Return a signature with w x + b = level in all numbers."""
    return {name: (level - b) / w for name, (w, b) in WEIGHTS.items()}


def set_of_texts() -> Material:
    relations = Relations.of_labels(np.arange(12) % 4)
    ids = [f"i{row}" for row in range(12)]
    return Material.of((), Split("test", Texts(TEXTS), TEXTS, None, ids, ids, "0", relations=relations))


def captions_of_texts() -> Material:
    """Return images and captions by name; the first side has texts."""
    return Material.of((), replace(split(), images=Texts([f"title {row}" for row in range(5)])))


def without_texts() -> Material:
    return Material.of((source(vectors(5, 0), vectors(12, 1)),), None)


@pytest.fixture
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_LEAST_TEXTS", 12)
    monkeypatch.setattr(transfer, "_LEAST_ITEMS", 5)


@pytest.mark.usefixtures("_few_are_enough")
@pytest.mark.parametrize(
    ("of", "names", "reason"),
    [
        (two_texts(), SIGNALS, "the sides are query/document, and judgements are of images and captions"),
        (set_of_texts(), SIGNALS, "and judgements are of images and captions"),
        (without_texts(), ("similarity",), "captions, whose texts were not given"),
        (captions_of_texts(), (*SIGNALS, "text_direct"), "captions, whose texts were not given, or not all compared"),
        *((material(0), tuple(n for n in SIGNALS if n != name), "or not all compared") for name in SIGNALS),
        (material(1), (*SIGNALS, "similarity"), "judgements are of one model's embeddings, and those of other models"),
        (material(2), SIGNALS, "judgements are of one model's embeddings, and those of other models differ"),
    ],
)
def test_other_data_than_pictures_with_captions_alone_are_not_alike(
    of: Material, names: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such data are refused even if their captions pass the test."""
    monkeypatch.setattr(transfer, "signature", lambda *_: inside())
    found = Transfer.of(of, table(of, names))
    assert (found.holds, found.distance) == (False, None)
    assert reason in found.reason


@pytest.mark.parametrize(("texts", "items"), [(13, 5), (12, 6)])
def test_few_captions_or_images_are_not_compared(texts: int, items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "signature", lambda *_: inside())
    monkeypatch.setattr(transfer, "_LEAST_TEXTS", texts)
    monkeypatch.setattr(transfer, "_LEAST_ITEMS", items)
    reason = f"5 images with 12 captions are too few to compare: {items} and {texts} are needed"
    assert Transfer.of(material(0), table(material(0))) == Transfer(False, reason)


@pytest.mark.usefixtures("_few_are_enough")
@pytest.mark.parametrize(("level", "holds"), [(0.0, True), (0.999, True), (-0.999, True), (1.001, False), (-4, False)])
def test_captions_within_all_ranges_are_alike(level: float, holds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    of = material(0)
    monkeypatch.setattr(transfer, "signature", lambda *_: inside(level))
    found = Transfer.of(of, table(of))
    assert found.holds == holds
    assert found.distance == pytest.approx(abs(level), abs=1e-9)
    if holds:
        assert f"{STORED['others that pass']} of {STORED['others']} other data sets passed" in found.reason
    else:
        assert found.reason.startswith("its captions are unlike those of photos that people judged: ")


@pytest.mark.usefixtures("_few_are_enough")
def test_captions_that_nobody_judged_are_unlike_and_the_worst_is_named() -> None:
    of = material(0)
    found = Transfer.of(of, table(of))
    distance, name = compare(signature(of, table(of)), WEIGHTS)
    assert found == Transfer(False, f"its captions are unlike those of photos that people judged: {name}", distance)
    assert distance > 1


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_worst_number_decides(name: str) -> None:
    weight, offset = WEIGHTS[name]
    distance, worst = compare(inside() | {name: (-3 - offset) / weight}, WEIGHTS)
    assert distance == pytest.approx(3)
    assert worst == name


def test_every_number_of_a_signature_has_a_range() -> None:
    of = material(0)
    values = signature(of, table(of))
    assert values.keys() == WEIGHTS.keys()
    assert np.isfinite(list(values.values())).all()


def test_a_signature_has_the_shares_of_its_captions_and_the_quantiles_of_its_signals() -> None:
    texts = ["the cat on the mat", "the cat on the mat", "we saw Ada in 1843", "a dog"] * 3
    of = Material.of((), split(OWNERS, texts))
    measured = table(of)
    column = np.linspace(0, 1, 101, dtype=np.float32)
    random = np.stack([column, column + 1, column + 2, np.where(column < 0.5, np.nan, column)], 1)
    values = signature(of, replace(measured, of_random=random))
    assert values["share of English function words"] == pytest.approx((3 + 3 + 1 + 1) / 17)
    assert values["share of names and numbers"] == pytest.approx(2 / 17)
    assert values["repeated captions"] == pytest.approx(1 - 3 / 12)
    for start, name in enumerate(SIGNALS[:3]):
        for share in (0.5, 0.9, 0.99):
            assert values[f"{name} at {share:.0%} of random pairs"] == pytest.approx(start + share, abs=1e-6)
    assert values[f"{SIGNALS[3]} at 50% of random pairs"] == pytest.approx(0.75, abs=1e-6), "NaN is no value"


@pytest.mark.parametrize(
    ("holds", "labels", "state"),
    [(False, 0, "ranked only"), (True, 0, "transferred"), (False, 40, "calibrated"), (True, 40, "calibrated")],
)
def test_labels_make_any_data_calibrated(holds: bool, labels: int, state: str) -> None:
    of: Any = material(0)
    scorer = Scorer.of(of, build_signals(SIGNALS, of.relations.sides), AuditOptions(batch_size=4))
    scorer = replace(scorer, transfer=Transfer(holds, "x"), calibration=replace(scorer.calibration, labels=labels))
    assert scorer.state == state
    scored = scorer.score(every_pair())
    copies = scored.copy == 1
    assert np.isnan(scored.probability[~copies]).all() == (state == "ranked only")
    assert np.isfinite(scored.score[~copies]).all()
    assert list(scored.score_column(state)) == (["score"] if state == "ranked only" else ["probability"])
