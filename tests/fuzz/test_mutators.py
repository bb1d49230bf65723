"""Does every mutator change its file, and does a seed always give the same change?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.families import BYTES, FAMILIES, Inapplicable, load_mutator
from tests.fuzz.samples import write_sample

MUTATORS = sorted({*BYTES, *(name for names in FAMILIES.values() for name in names)})
SEEDS = range(8)


def contents(path: Path) -> dict[str, bytes | str]:
    """Return the bytes of a file, or of every file below a folder; links and pipes by their kind."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {str(f): f.read_bytes() if f.is_file() else str(f.lstat().st_mode) for f in files}


def mutate_sample(name: str, seed: int, folder: Path) -> dict[str, bytes | str]:
    """Return a fresh sample after a mutator; unchanged where the mutator does not apply."""
    sample = write_sample(name, folder)
    try:
        load_mutator(name).mutate(sample, np.random.default_rng(seed))
    except Inapplicable:
        write_sample(name, folder)
    return contents(folder)


def test_every_file_of_mutators_belongs_to_a_family() -> None:
    assert sorted(file.stem for file in (Path(__file__).parent / "mutators").glob("*.py")) == MUTATORS


@pytest.mark.parametrize("name", MUTATORS)
def test_a_mutator_changes_the_file_and_is_the_same_for_a_seed(name: str, tmp_path: Path) -> None:
    write_sample(name, tmp_path)
    before = contents(tmp_path)
    results = [mutate_sample(name, seed, tmp_path) for seed in SEEDS]
    assert sum(result != before for result in results) >= len(SEEDS) // 2
    assert [mutate_sample(name, seed, tmp_path) for seed in SEEDS[:3]] == results[:3]
