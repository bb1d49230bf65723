"""Do systems of a report get the user's names?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.report.results import RunRecord
from lossscope.studies.relabel import relabel


def record(run: str, label: str, seed: int = 0) -> RunRecord:
    return RunRecord(run, Path(run), "scenes", "VSE++", label, label, seed)


RUNS = [record("a0", "triplet"), record("a1", "triplet", 1), record("b0", "ntxent:tau=0.1")]


def labels(*given: str) -> list[str]:
    return [run.objective_label for run in relabel(RUNS, given)]


def test_without_labels_nothing_changes() -> None:
    assert relabel(RUNS, ()) == RUNS


def test_a_run_names_all_seeds_of_its_system() -> None:
    assert labels("a0=Triplet") == ["Triplet", "Triplet", "ntxent:tau=0.1"]
    assert labels("runs/b0/=InfoNCE, tau=0.1") == ["triplet", "triplet", "InfoNCE, tau=0.1"]


def test_names_in_order_are_those_of_systems() -> None:
    assert labels("Triplet", "NT-Xent, tau=0.1") == ["Triplet", "Triplet", "NT-Xent, tau=0.1"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("a0=T", "c0=X"), "label must be RUN=NAME, with one of a0, a1, b0; got 'c0=X'"),
        (("T",), "a NAME for each of 2 systems; got 1: T"),
        (("c0=X",), "with one of a0, a1, b0"),
        (("a0=T", "a1=U"), "seeds of one system must have one label; got 'T' and 'U'"),
        (("a0=X", "b0=X"), "labels of systems must differ; got 'X'"),
    ],
)
def test_labels_that_cannot_be_meant_are_refused(given: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        labels(*given)
