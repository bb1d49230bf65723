"""Does retrieval from the command line count the positives of judgement files?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.datasets.judgements import any_format
from lossscope.datasets.judgements.any_format import read_judgements
from tests.command_line import lossscope


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images, owners = rng.normal(size=(8, 4)), np.repeat(np.arange(8), 2)
    ids = {"image_id": [f"{i}.jpg" for i in range(8)], "caption_id": [f"c{j}" for j in range(16)]}
    captions = images[owners] + rng.normal(size=(16, 4))
    np.savez("dump.npz", images=images, captions=captions, caption_image=owners, **ids)  # type: ignore[arg-type]
    Path("judged.csv").write_text("image,caption,positive\n0.jpg,c5,1\n3.jpg,c2,1\n9.jpg,c1,1\n2.jpg,c0,0\n")
    np.savez("set.npz", embeddings=images, labels=np.arange(8) % 2)


def test_eval_gives_both_rows_and_says_what_was_added() -> None:
    result = lossscope("eval dump.npz --judgements judged.csv --format json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    rows = pd.DataFrame(document["rows"])
    assert set(rows["probe"]) == {"recall", "recall+judgements"}
    assert document["command"]["judgements"] == ["judged.csv"]
    usual = pd.DataFrame(json.loads(lossscope("eval dump.npz --k 1,5,10 --format json").stdout)["rows"])
    pd.testing.assert_frame_equal(rows[rows["probe"] == "recall"].reset_index(drop=True), usual)
    assert "3 of 4 judged pairs are positives: its column `positive` says so" in result.stderr
    assert "judgements add 2 positives, to 2 images and 2 captions" in result.stderr
    assert "1 judged pairs are not of this split" in result.stderr


def test_eval_writes_a_table_and_an_ensemble() -> None:
    for words in ("dump.npz", "dump.npz dump.npz --ensemble", "dump.npz --judged-only --k 3"):
        result = lossscope(f"eval {words} --judgements judged.csv --quiet")
        assert result.exit_code == 0, result.stderr
        assert "own and judged" in result.stdout
    lossscope("eval dump.npz --judgements judged.csv --format csv --out rows.csv")
    assert "own and judged" in lossscope("table judged_retrieval rows.csv").stdout


def test_a_file_of_judgements_is_read_once_for_all_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def read(*arguments: Any) -> Any:
        reads.append(arguments)
        return read_judgements(*arguments)

    monkeypatch.setattr(any_format, "read_judgements", read)
    result = lossscope("eval dump.npz dump.npz --judgements judged.csv --quiet")
    assert result.exit_code == 0, result.stderr
    assert len(reads) == 1
