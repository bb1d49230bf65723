"""Is a planted fault the first finding, at each size, and is its healthy twin clean?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lossscope
from tests.planted.base import SIZES, Case, Plant, Size

from .planted_modules import CONTRACT, NOTES, OF_TEXT_ROWS, OF_TRAINERS, planted

PLANTED = planted()


def _at_sizes(id: str, plants: tuple[Plant, ...]) -> Iterator[Any]:
    for plant in plants:
        for size in SIZES:
            marks = () if size is SIZES[0] else (pytest.mark.thorough,)
            yield pytest.param(id, plant, size, id=f"{id}-{plant.__name__}-n{size.n}d{size.d}", marks=marks)


def _run(id: str, plant: Plant) -> Any:
    return pytest.param(id, plant, SIZES[0], id=f"{id}-{plant.__name__}")


SICK = [
    *(case for id, module in PLANTED.items() for case in _at_sizes(id, module.SICK)),
    *(_run(id, plant) for id, module in PLANTED.items() for plant in getattr(module, "SICK_RUNS", ())),
]
HEALTHY = [
    *(case for id, plant in PLANTED.items() if hasattr(plant, "healthy") for case in _at_sizes(id, (plant.healthy,))),
    *(_run(id, module.healthy_run) for id, module in PLANTED.items() if hasattr(module, "healthy_run")),
]


def diagnose(case: Case) -> Any:
    """Examine a case as a user would, without the cache of embeddings."""
    return lossscope.doctor(*case.sources, cache=False, **case.options)


@pytest.mark.parametrize(("id", "plant", "size"), SICK)
def test_the_planted_disease_is_the_first_finding(id: str, plant: Plant, size: Size, tmp_path: Path) -> None:
    found = diagnose(plant(size, tmp_path))
    assert found.ids[:1] == (id,), found


@pytest.mark.parametrize(("id", "plant", "size"), HEALTHY)
def test_the_healthy_twin_is_well(id: str, plant: Plant, size: Size, tmp_path: Path) -> None:
    found = diagnose(plant(size, tmp_path))
    assert not any(finding.is_alarm for finding in found.findings), found
    assert id not in found.ids


def test_every_finding_is_planted() -> None:
    assert set(PLANTED) == {*CONTRACT, *OF_TEXT_ROWS} - OF_TRAINERS


def test_every_planted_disease_has_a_healthy_twin() -> None:
    for id, module in PLANTED.items():
        assert not module.SICK or hasattr(module, "healthy"), id
        assert hasattr(module, "healthy_run") or hasattr(module, "healthy"), id


def test_notes_are_planted_too() -> None:
    assert {id for id, severity in CONTRACT.items() if severity == "note"} == NOTES <= set(PLANTED)
