"""Are sources of a page that were trained with several losses counted in one unit, that of `cocos`?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lossscope.core.request import Request
from lossscope.doctor.examination.examine import examine_sources
from lossscope.doctor.examination.options import Options
from lossscope.sources.base import read_source
from lossscope.studies.report_sources import ReportedSource, report_sources
from tests.each import each

UNITS = {
    ("ntxent:tau=0.1", "ntxent:tau=0.05"): "paper",
    ("ntxent:tau=0.1", "triplet:margin=0.2"): "relative",
    ("ntxent:tau=0.1", "smoothap:tau=0.01"): "cosine",
}
"""Losses of two sources -> the unit of their weights."""


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    random, home = np.random.default_rng(0), tmp_path_factory.mktemp("dumps")
    for name in "ab":
        vectors = random.normal(size=(30, 6))
        np.savez(home / f"{name}.npz", images=vectors, captions=vectors + random.normal(size=(30, 6)))
    return [home / "a.npz", home / "b.npz"]


@each("losses, unit", UNITS.items())
def test_sources_of_several_losses_are_in_one_unit(
    losses: tuple[str, str], unit: str, dumps: list[Path], tmp_path: Path
) -> None:
    """Two temperatures of a loss were `relative`, and a page with smoothap was refused."""
    read = [replace(read_source(path, Request()), objective=loss) for path, loss in zip(dumps, losses, strict=True)]
    diagnosis = examine_sources(list(map(str, dumps)), Options())
    report_sources([ReportedSource(source, source) for source in read], diagnosis, tmp_path / "page", "a command")
    rows = pd.read_parquet(tmp_path / "page" / "numbers" / "rows.parquet")
    counted = rows[rows["probe"] == "cocos"]
    assert set(counted["objective"]) == set(losses) and set(counted["weight_unit"]) == {unit}
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert 'id="which-samples"' in page
    for number, (source, loss) in enumerate(zip(read, losses, strict=True), 1):
        assert f"{loss} of {source.name}: weights are in the unit {unit}" in page
        listed = (tmp_path / "page" / "csv" / f"which_samples-{number}.csv").read_text(encoding="utf-8")
        assert len(listed.splitlines()) > 12
