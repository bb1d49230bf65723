"""Does every output of `lossscope audit` keep to its state? `ranked only` states no probability, rate or mask."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lossscope as package
from lossscope.audit.estimate import calibration
from lossscope.audit.output.folder import FILES
from lossscope.errors import InputError
from lossscope.io.csv_tables import format_csv, read_csv
from lossscope.io.parquet_tables import read_parquet
from lossscope.live.apart_sampler import apart
from tests.command_line import lossscope, message
from tests.each import each

WORDS = {
    "photos": "--data scenes:train=20,val=4,test=4,size=16,ambiguity=0.6",
    "texts": "--data passages:train=40,val=8,test=8,duplicates=0.3",
    "a dump": "pairs.npz --split test",
    "a set": "set.npz --split test",
}
OPTIONS = "--batch-size 8 --sheet 12 --shown 20"
NUMBERS = {  # all keys of a document that is ranked only
    "items", "calibration.labels", "calibration.weights", "transfer.holds", "batch_size", "suspects", "examined",
    "pairs", "copies.pairs",
}  # fmt: skip
WHAT_TO_DO = "got a ranked-only audit, which has no mask. Label its sheet.html, then audit again with --labels"


def write_dumps() -> None:
    """Write queries with documents, and a set with labels."""
    random = np.random.default_rng(0)
    queries = random.normal(size=(20, 6))
    pairs = np.stack([np.arange(20), np.arange(20)], 1)
    np.savez("pairs.npz", queries=queries, documents=queries + random.normal(size=(20, 6)), positives=pairs)
    np.savez("set.npz", embeddings=random.normal(size=(24, 6)), labels=np.arange(24) % 6)


@dataclass
class Audited:
    """The folder that an audit without labels wrote, and its output."""

    words: str
    out: Path
    printed: str

    @property
    def has_copies(self) -> bool:
        """Are there pairs of copies, which match for certain?"""
        return bool(read_parquet(self.out / "suspects.parquet")["is_copy"].any())


@pytest.fixture(scope="module", params=WORDS)
def audited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("states"))
        patch.setenv("COLUMNS", "200")
        write_dumps()
        words = f"{WORDS[request.param]} {OPTIONS}"
        result = lossscope(f"audit {words} --out out")
        assert result.exit_code == 0, result.stderr
        found = Audited(words, Path("out").resolve(), result.stdout)
        assert found.has_copies == (request.param == "texts")
        yield found


@pytest.fixture(autouse=True)
def _beside_the_audit(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(audited.out.parent)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of a document with its path, without indices of lists."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, path)
    else:
        yield path, value


def test_the_document_has_no_rate_no_threshold_and_no_probability(audited: Audited) -> None:
    document = json.loads((audited.out / "audit.json").read_text())
    assert document["state"] == "ranked only"
    assert document["status"].startswith("ranked only: pairs are in order, and nothing says how many match.")
    numbers = {path for path, value in leaves(document) if isinstance(value, int | float)}
    assert {path for path in numbers if not path.startswith("calibration.weights.")} <= NUMBERS
    texts = [value for path, value in leaves(document) if isinstance(value, str) and path != "name"]
    assert not [text for text in texts if re.search(r"\d%|probabilit", text)]


def test_pages_show_a_probability_of_copies_alone_and_no_rate(audited: Audited) -> None:
    seen = []
    for name in ("index.html", "sheet.html"):
        page = (audited.out / name).read_text()
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
        assert found is not None
        seen += [pair["probability"] for pair in json.loads(found[1])["pairs"]]
        assert re.findall(r"<dt[^>]*>(.*?)</dt>", page) == ["state"]
        assert re.findall(r"<dd[^>]*>ranked only: ", page)
    assert set(seen) <= {None, 1.0}
    assert None in seen
    assert (1.0 in seen) == audited.has_copies


def test_suspects_have_a_score_by_which_they_are_ordered(audited: Audited) -> None:
    suspects = read_parquet(audited.out / "suspects.parquet")
    assert not [name for name in suspects.columns.tolist() if "probab" in name]
    copies = suspects["is_copy"] == 1
    assert (suspects["score"].isna() == copies).all()
    assert copies.is_monotonic_decreasing, "copies are in front"
    assert suspects["score"][~copies].is_monotonic_decreasing
    assert len(suspects) == len(suspects.drop_duplicates(list(suspects.columns[:2])))


def test_the_folder_has_no_mask(audited: Audited) -> None:
    assert {path.name for path in audited.out.iterdir()} == set(FILES) - {"mask.npz"}


def test_the_state_is_printed_first_and_nothing_is_a_share(audited: Audited) -> None:
    lines = audited.printed.splitlines()
    assert lines[0].startswith("Ranked only: pairs are in order, and nothing says how many match.")
    assert "%" not in audited.printed
    assert not [line for line in lines if line.startswith(("p >=", "false negatives", "Train without"))]
    assert "No rate, no probability and no mask: 12 labels make them." in lines
    assert "Label out/sheet.html, then give --labels labels.csv." in lines


def test_scores_of_a_file_are_no_probabilities(audited: Audited) -> None:
    suspects = read_parquet(audited.out / "suspects.parquet")
    first, second = suspects.columns[:2]
    chosen = suspects.iloc[[0, len(suspects) // 2, -1]]
    Path("pairs.csv").write_text(format_csv(chosen[[first, second]]))
    result = lossscope(f"audit {audited.words} --pairs pairs.csv --out scores")
    assert result.exit_code == 0, result.stderr
    assert "Note: ranked only: pairs are in order" in result.stderr
    table = read_csv("scores/scores.csv")
    assert list(table)[:3] == [first, second, "score"]
    assert not [name for name in table.columns.tolist() if "probab" in name]
    np.testing.assert_allclose(table["score"], chosen["score"], atol=1e-5)


COMMANDS = (
    "cocos pairs.npz --batch-size 8 --objective ntxent --mask out",
    "cocos pairs.npz --batch-size 8 --objective ntxent --mask out:threshold=0.5",
    "cocos pairs.npz --batch-size 8 --objective ntxent --mask out/mask.npz",
    "doctor pairs.npz --batch-size 8 --objective ntxent --audit out",
    "probe pairs.npz --batch-size 8 --objective ntxent --probes false_negatives:audit=out --out rows.csv",
    "train --data passages:train=40,val=8,test=8 --encoder biencoder --objective ntxent --out run --mask out",
)


@each("words", COMMANDS)
def test_a_command_that_needs_probabilities_refuses_and_says_what_to_do(audited: Audited, words: str) -> None:
    result = lossscope(words)
    assert result.exit_code == 1, result.output
    assert "out must be an audit with probabilities" in message(result)
    assert WHAT_TO_DO in message(result)


@each("take", [package.suspects, apart], "path", ["out", "out/mask.npz"])
def test_a_loop_that_needs_probabilities_is_refused(take: Callable[[str], Any], path: str) -> None:
    with pytest.raises(InputError, match=re.escape(WHAT_TO_DO)):
        take(path)


def test_labels_make_any_data_calibrated_and_without_them_its_mask_goes(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "_STEPS", 1000)  # of six fits
    sheet = read_csv("out/sheet.csv")
    answers = sheet.columns[2]
    Path("labels.csv").write_text(
        format_csv(sheet.astype({answers: object}).assign(**{answers: np.resize(["yes", "no"], len(sheet))}))
    )
    result = lossscope(f"audit {audited.words} --labels labels.csv --out again")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"Calibrated: probabilities are fitted on {len(sheet)} labels of labels.csv.")
    document = json.loads(Path("again/audit.json").read_text())
    assert (document["state"], document["calibration"]["labels"]) == ("calibrated", len(sheet))
    assert 0 <= document["rate"]["low"] <= document["rate"]["value"] <= document["rate"]["high"] <= 1
    assert {path.name for path in Path("again").iterdir()} == set(FILES)
    assert read_parquet(Path("again/suspects.parquet"))["probability"].between(0, 1).all()
    assert package.suspects("again").known.status == document["status"]

    without = lossscope(f"audit {audited.words} --out again")
    assert without.exit_code == 0, without.stderr
    assert not Path("again/mask.npz").exists()
    pd.testing.assert_frame_equal(
        read_parquet(Path("again/suspects.parquet")), read_parquet(audited.out / "suspects.parquet")
    )
    with pytest.raises(InputError, match=re.escape(WHAT_TO_DO)):
        package.suspects("again")
