"""Do labels and the choice of columns reach the page, LaTeX and CSV?"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from lossscope.studies.report import report
from lossscope.studies.report_options import ReportOptions
from lossscope.studies.study_file import ExamineConfig
from lossscope.training.loop import train
from lossscope.training.recipe import Recipe

pytestmark = pytest.mark.usefixtures("blank_pictures")
FEW = ExamineConfig(probes=("cocos:eps=0.01",), conventions=(), what_if="", singles=())


def test_labels_columns_and_published_numbers(tiny_study: Path, tmp_path: Path) -> None:
    first = next((tiny_study / "runs").iterdir()).name
    out = tmp_path / "report"
    report(
        [tiny_study],
        out,
        ReportOptions(resamples=99, labels=(f"{first}=My loss",), columns=("R@1", "rsum"), published=False),
    )
    tables = {path.stem: path.read_text(encoding="utf-8") for path in (out / "latex").glob("*.tex")}
    assert "My loss" in "".join(tables.values()) and "My loss" in (out / "index.html").read_text(encoding="utf-8")
    (name,) = [name for name in tables if re.fullmatch(r"retrieval|\w+_1-t2i", name)]
    assert "R@5" not in tables[name] and "R@1" in tables[name]
    assert not any("& published" in text for text in tables.values())
    with (out / "csv" / f"{name}.csv").open(encoding="utf-8") as file:
        assert any("R@5" in heading for heading in next(csv.reader(file)))


@pytest.mark.usefixtures("typed")
def test_runs_of_a_loss_of_ones_own_are_reported_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "import torch, torch.nn.functional as F\n"
        "def clip(S):\n"
        "    y = torch.arange(len(S))\n"
        "    return (F.cross_entropy(S / 0.1, y) + F.cross_entropy(S.T / 0.1, y)) / 2\n",
        encoding="utf-8",
    )
    tiny = Recipe(
        data="scenes:train=40,val=20,test=20,size=16", encoder="vsepp:dim=8,words=8,width=4", epochs=1, batch_size=20
    )
    for name, objective in (("own", "./mine.py:clip"), ("ours", "ntxent")):
        train(replace(tiny, objective=objective), Path(name))
    page = report([Path("own"), Path("ours")], Path("report"), ReportOptions(resamples=99), config=FEW, trust_code=True)
    text = page.read_text(encoding="utf-8")
    assert "mine.py" not in text.partition("Provenance")[0] and "clip" in text
    rows = pd.read_parquet("own/evaluation/rows.parquet")
    assert set(rows.loc[rows["probe"] == "cocos", "direction"]) == {"both"}
    assert set(rows.loc[rows["probe"] == "cocos", "weight_unit"]) == {"relative"}
