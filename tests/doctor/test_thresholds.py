"""Does a finding show the threshold that made it a finding?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import ge, le, lt
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import lossscope
from lossscope.core.pair import Pair
from lossscope.doctor.base import Check
from lossscope.doctor.dimensional_collapse import DimensionalCollapse
from lossscope.doctor.examination.checks import all_checks
from lossscope.doctor.hubness import Hubness
from lossscope.doctor.parts.alignment import Alignment
from lossscope.doctor.parts.hubs import Hubs
from lossscope.doctor.parts.items import Items
from lossscope.doctor.parts.patient import Patient
from lossscope.doctor.parts.spectrum import Spectrum
from lossscope.doctor.types import Evidence
from tests.planted import hard_negatives_too_hard, misaligned_pairs, no_learning
from tests.planted.base import SIZES, Plant, aligned, pairs

RESULTS = Path(__file__).parents[2] / "studies" / "doctor" / "results"


@pytest.mark.parametrize("plant", [no_learning.vectors, misaligned_pairs.shuffled])
@pytest.mark.parametrize("n", [32, 100, 600])
def test_the_auc_of_guessing_depends_on_the_number_of_pairs(plant: Plant, n: int, tmp_path: Path) -> None:
    case = plant(replace(SIZES[0], n=n), tmp_path)
    (examination,) = lossscope.doctor(*case.sources, cache=False, **case.options).examinations
    shown = [
        each
        for finding in (*examination.findings, *examination.folded)
        for each in finding.evidence
        if "AUC" in each.statistic
    ]
    assert shown and all(each.threshold == pytest.approx(0.5 + max(0.05, 3 / np.sqrt(12 * n))) for each in shown)


@pytest.mark.parametrize("check", [check for check in all_checks() if check.healthy], ids=lambda check: check.id())
def test_a_check_finds_nothing_in_the_range_that_its_page_calls_healthy(check: Check) -> None:
    """The folded table of a page says `at most 0.25` beside a number: no recorded state may contradict it."""
    assert check.healthy is not None
    side, name = check.healthy
    bound = float(getattr(check, name))
    is_healthy = {"at most": le, "at least": ge, "below": lt}[side]
    planted = pd.read_csv(RESULTS / "planted.csv")
    planted = planted[planted["id"] == check.id()]
    found = planted["alarms"].fillna("").str.split().map(lambda ids: check.id() in ids)
    states = list(zip(planted["signal"], found, strict=True))
    wall = pd.read_csv(RESULTS / "wall.csv")
    if check.id() in wall:
        severe = wall["findings"].fillna("").str.split(";")
        found = severe.map(lambda texts: any(text.startswith(f"{check.id()} ") for text in texts))
        states += zip(wall[check.id()], found, strict=True)
    known = [(signal, is_found) for signal, is_found in states if np.isfinite(signal)]
    assert any(is_found for _, is_found in known)
    assert [signal for signal, is_found in known if is_found and is_healthy(signal, bound)] == []


def _collapse(share: float, used: float) -> Sequence[Evidence]:
    side = SimpleNamespace(name="images", d=100, rank=100 * share, null=100.0, share=share, used=used)
    found = DimensionalCollapse().examine(Patient("x", given={Spectrum: Spectrum((side,))}))
    return () if found is None else found.evidence


@pytest.mark.parametrize(
    ("share", "used", "thresholds"),
    [(0.03, 0.5, (0.04, None)), (0.1, 0.2, (0.15, 0.25)), (0.1, 0.5, None), (0.2, 0.2, None)],
)
def test_few_dimensions_are_shown_with_the_rule_that_they_meet(
    share: float, used: float, thresholds: tuple[float, float | None] | None
) -> None:
    evidence = _collapse(share, used)
    assert tuple(entry.threshold for entry in evidence[:2]) == (thresholds or ())


def _hubs(tmp_path: Path, share: float, direction: int) -> tuple[Hubness, Patient]:
    """Return a patient: a share of the queries of one direction has the same nearest candidate."""
    n = 400
    S = torch.from_numpy(np.random.default_rng(0).normal(size=(n, n)).astype(np.float32)) / 10 + 0.5 * torch.eye(n)
    S[: int(share * n), 7] = 0.9
    both = Pair(S, S.T.contiguous()) if direction == 0 else Pair(S.T.contiguous(), S)
    split = Patient("x")
    rows = Pair(np.arange(n), np.arange(n))
    alignment = Alignment(both, torch.ones(n, n, dtype=torch.bool), rows, ("i2t", "t2i"))
    items = lossscope.doctor(pairs(tmp_path, *aligned(replace(SIZES[0], n=n))), cache=False).examinations[0].patient
    assert items is not None
    split.given = {Alignment: alignment, Items: items.part(Items)}
    return Hubness(), split


@pytest.mark.parametrize("direction", [0, 1])
def test_hubs_of_either_direction_are_found_and_their_signal_is_above_the_threshold(
    direction: int, tmp_path: Path
) -> None:
    check, patient = _hubs(tmp_path, 0.4, direction)
    found = check.examine(patient)
    assert found is not None and f"In {('i2t', 't2i')[direction]}" in found.why
    assert patient.signals["hubness"] >= min(entry.threshold or 1 for entry in found.evidence[:2])


def test_the_share_of_hubs_has_a_threshold_of_its_own(tmp_path: Path) -> None:
    _, patient = _hubs(tmp_path, 0.4, 0)
    share = patient.part(Hubs).directions[0].share_of_hubs
    assert Hubness(largest=0.9, hubs=share - 0.01).examine(patient) is not None
    assert Hubness(largest=0.9, hubs=share + 0.01).examine(patient) is None


def test_hubs_of_a_model_in_its_first_plateau_have_a_signal(tmp_path: Path) -> None:
    _, patient = _hubs(tmp_path, 0.4, 0)
    found = Hubness(recall=0.99).examine(patient)
    assert found is not None and patient.signals["hubness"] >= 0.3 and found.evidence[0].threshold is None


@pytest.mark.parametrize("length", [2.0, 5.0])
def test_long_rows_of_a_dot_product_tower_are_a_temperature_of_their_own(length: float, tmp_path: Path) -> None:
    """recommenders issue 231, mended: the loss takes products at tau = 1, and lengths compensate."""
    first, second = aligned(SIZES[0])
    options = {"objective": "ntxent:tau=1", "batch_size": 256, "cache": False}
    assert "temperature-too-high" in lossscope.doctor(pairs(tmp_path, first, second), **options).ids
    towers = lossscope.doctor(pairs(tmp_path, length * first, length * second), **options)
    assert not any(finding.is_alarm for finding in towers.findings), towers


def test_hard_negatives_of_a_weak_model_are_none_that_are_distributed_as_positives(tmp_path: Path) -> None:
    size = SIZES[1]
    others = hard_negatives_too_hard.other_positives(size, tmp_path)
    arrays = dict(np.load(others.sources[0]))
    (found,) = lossscope.doctor(*others.sources, cache=False, **others.options).findings
    assert found.id == "hard-negatives-too-hard" and found.evidence[0].threshold == pytest.approx(
        1.36 / size.n**0.5 * 2**0.5
    )
    queries, captions = arrays["queries"], arrays["documents"][: size.n]
    S = queries @ captions.T
    np.fill_diagonal(S, -1)
    arrays |= {"documents": captions, "negatives": S.argsort(1)[:, -30:-29]}
    mined = lossscope.doctor(arrays, cache=False, **others.options)
    assert not [finding.id for finding in mined.findings if finding.is_alarm]
