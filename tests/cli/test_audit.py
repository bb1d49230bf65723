"""Does `lossscope audit` write its files, print what they hold, mask training and sweeps, and refuse bad input?"""

from __future__ import annotations

import json
import re
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lossscope_cli.audit import _lines
from typer.testing import Result

from lossscope.audit.estimate.design import RARE, Counted
from lossscope.audit.estimate.rates import Estimate
from lossscope.audit.output.folder import FILES
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.run import audit
from lossscope.io.csv_tables import format_csv, read_csv
from tests.command_line import lossscope

SCENES = "scenes:train=40,val=8,test=10,size=16,ambiguity=0.6"
AUDIT = f"audit --data {SCENES} --out out --batch-size 16 --sheet 30"
OUT = Path("out")
pytestmark = pytest.mark.usefixtures("transferred")  # test_audit_states.py has the other states
SIGNAL = '''
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from lossscope.audit.base import Signal

@dataclass(frozen=True)
class Zero(Signal):
    """value = 0."""
    because: ClassVar[str] = "it is zero"

    def values(self, material, pairs):
        return np.zeros(len(pairs), np.float32)
'''


def succeed(words: str) -> Result:
    result = lossscope(words)
    assert result.exit_code == 0, result.stderr
    return result


def documents() -> None:
    """A dump of queries and documents, and labels of them."""
    random = np.random.default_rng(0)
    queries = random.normal(size=(20, 6))
    pairs = np.stack([np.arange(20), np.arange(20)], 1)
    np.savez("pairs.npz", queries=queries, documents=queries + random.normal(size=(20, 6)), positives=pairs)
    rows = [f"{q},{(q + 1) % 20},{'yes' if q % 3 else 'no'}\n" for q in range(20)]
    Path("labels.csv").write_text("query,document,answer\n" + "".join(rows))


def test_the_first_example_writes_everything_and_says_what_to_do() -> None:
    result = succeed(AUDIT)
    assert sorted(path.name for path in Path("out").iterdir()) == sorted(FILES)
    assert result.stdout.startswith("Transferred: probabilities are fitted on Flickr8k image-caption judgements")
    assert "false negatives among the negatives of a batch" in result.stdout
    assert "--mask out/mask.npz" in result.stdout
    assert "Label out/sheet.html, then give --labels labels.csv" in result.stdout
    assert result.stdout.splitlines()[-1] == "out/index.html"


def test_json_is_one_document_that_equals_the_file() -> None:
    result = succeed(f"{AUDIT} --format json")
    document = json.loads(result.stdout)
    assert document["schema"] == "lossscope.audit/1"
    assert document == json.loads(Path("out/audit.json").read_text())
    assert [row["threshold"] for row in document["thresholds"]] == [0.05, 0.1, 0.2, 0.5]
    assert document["worth"] is None


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', Path(page).read_text())
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("page", ["out/sheet.html", "out/index.html"])
def test_pages_keep_the_answers_that_were_given(page: str) -> None:
    """On the page, where the pair is of a stratum that is asked about, or beside it."""
    documents()
    succeed("audit pairs.npz --out out --batch-size 8 --split test --labels labels.csv")
    data = data_of(page)
    shown = [pair["given"] for pair in data["pairs"] if pair["given"]]
    assert len(shown) + len(data["others"]) == 20
    assert sorted([*shown, *data["otherAnswers"]]) == ["no"] * 7 + ["yes"] * 13


def answer_sheet(path: str, flip: int | None = None) -> None:
    """Answer the sheet of an audit; with `flip`, answer that row and the next the other way."""
    table = read_csv("out/sheet.csv").astype({"answer": object})
    words = ["no" if row % 4 else "yes" for row in range(len(table))]
    for row in () if flip is None else (flip, flip + 1):
        words[row] = "no" if words[row] == "yes" else "yes"
    table["answer"] = words
    Path(path).write_text(format_csv(table))


def test_a_rate_is_counted_beside_that_of_the_model_and_two_people_are_compared() -> None:
    succeed(AUDIT)
    answer_sheet("a.csv")
    answer_sheet("b.csv", flip=4)
    alone = succeed(f"{AUDIT} --labels a.csv")
    assert re.search(r"^counted from 2\d labels, no model: +\d+\.\d%", alone.stdout, re.MULTILINE)
    assert "kappa" not in alone.stdout
    both = succeed(f"{AUDIT} --labels a.csv --labels b.csv")
    assert "a.csv and b.csv answer 28 of 30 pairs alike: Cohen's kappa 0." in both.stdout
    assert both.stdout.startswith("Calibrated: probabilities are fitted on 28 labels of a.csv and b.csv.")
    assert "2 pairs are answered differently in a.csv and b.csv, and left out as unsure" in both.stderr
    facts = json.loads(Path("out/audit.json").read_text())
    assert (facts["agreements"][0]["pairs"], facts["agreements"][0]["alike"]) == (30, 28)
    assert facts["counted_rate"]["low"] <= facts["counted_rate"]["value"] <= facts["counted_rate"]["high"]


def test_a_file_is_not_two_people() -> None:
    result = lossscope(f"{AUDIT} --labels a.csv --labels a.csv")
    assert (result.exit_code, "must be files of different people; got a.csv twice" in result.stderr) == (2, True)


def test_old_labels_count_no_rate_and_it_is_said() -> None:
    documents()
    result = succeed("audit pairs.npz --out out --batch-size 8 --split test --labels labels.csv")
    assert "labels.csv has no strata, so that no rate is counted from it without a model" in result.stderr
    assert "counted from" not in result.stdout
    assert json.loads(Path("out/audit.json").read_text())["counted_rate"] is None


def test_rates_that_have_nothing_in_common_are_warned_of_in_the_first_lines() -> None:
    result = audit([], AuditOptions.of(SCENES, batch_size=16, sheet=30))
    for low, high, warns in ((0.4, 0.6, True), (0.2, 0.6, False), (0.0, 0.05, True)):
        counted = Counted(Estimate(low, low, high), 60, 20, True)
        lines = _lines(replace(result, rate=Estimate(0.2, 0.1, 0.3), counted=counted), OUT)
        assert any(line.startswith("Warning: the rate of the model") for line in lines[:3]) == warns


@pytest.mark.parametrize("opens", [True, False, "error"])
def test_the_sheet_is_opened_in_the_browser_and_its_path_is_printed(
    monkeypatch: pytest.MonkeyPatch, opens: bool | str
) -> None:
    seen: list[str] = []

    def open_page(address: str) -> bool:
        seen.append(address)
        if opens == "error":
            raise webbrowser.Error("no browser")
        return bool(opens)

    monkeypatch.setattr(webbrowser, "open", open_page)
    result = succeed(f"{AUDIT} --label")
    assert result.stdout.splitlines()[-2:] == ["out/index.html", "out/sheet.html"]
    assert seen == [Path("out/sheet.html").resolve().as_uri()]
    assert ("could not open a browser" in result.stderr) == (opens is not True)


def test_the_mask_leaves_negatives_out_of_training_and_of_counts() -> None:
    succeed(AUDIT)
    assert len(np.load("out/mask.npz")["left"]) > 20
    mask = "--mask out/mask.npz:threshold=0.05"
    recipe = "--encoder vsepp:dim=8,words=8,width=4 --objective ntxent --epochs 1 --batch-size 20 --quiet"
    for out, more in (("plain", ""), ("masked", mask)):
        succeed(f"train --data {SCENES} {recipe} --out {out} {more}")
    plain, masked = (read_csv(f"{out}/metrics.csv")["loss"].iloc[-1] for out in ("plain", "masked"))
    assert masked < plain  # of fewer negatives

    def negatives(words: str) -> float:
        sweep = f"cocos {words} --batch-size 20 --split train --objective ntxent --format json --quiet"
        rows = json.loads(succeed(sweep).stdout)["rows"]
        (number,) = (row["mean"] for row in rows if (row["direction"], row["statistic"]) == ("i2t", "C_neg"))
        return float(number)

    assert negatives(f"plain/best.pt {mask}") < negatives("plain/best.pt")
    other = lossscope(f"train --data {SCENES},seed=9 {recipe} --out other --mask pairs.npz")
    assert (other.exit_code, "pairs.npz" in other.stderr) == (1, True)


def test_pairs_across_splits_are_scored_into_a_file() -> None:
    Path("pairs.csv").write_text("image,caption\ntest-00001,train-00004-0\ntest-00000,test-00003-1\n")
    result = succeed(f"audit --data {SCENES} --split test --pairs pairs.csv --out out --batch-size 8")
    assert result.stdout.strip() == "out/scores.csv"
    assert "Note: transferred: probabilities are fitted on Flickr8k image-caption judgements" in result.stderr
    table = read_csv("out/scores.csv")
    assert list(table)[:3] == ["image", "caption", "probability"]
    assert list(table["caption"]) == ["train-00004-0", "test-00003-1"]
    assert not Path("out/index.html").exists()


def test_a_typed_plug_in_is_imported_and_its_column_is_written() -> None:
    Path("signal.py").write_text(SIGNAL)
    succeed(f"{AUDIT} --signal text_items --signal ./signal.py:Zero")
    document = json.loads(Path("out/audit.json").read_text())
    assert document["signals"] == ["text_items", "Zero"]


def test_a_named_signal_that_cannot_be_had_is_said() -> None:
    result = succeed(f"{AUDIT} --signal text_items --signal agreement")
    assert "--signal agreement is left out: agreement needs two sources or more" in result.stderr


def test_an_interrupted_audit_leaves_the_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    succeed(AUDIT)
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lossscope.audit.output.folder.write_pages", interrupt)
    result = lossscope(f"{AUDIT} --seed 1")
    assert result.exit_code == 130
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before


@pytest.mark.parametrize(
    ("threshold", "hint"), [("0.1", "--mask out/mask.npz"), ("0.01", "--mask out/mask.npz:threshold=0.01")]
)
def test_the_mask_leaves_out_what_the_table_says_of_the_threshold(threshold: str, hint: str) -> None:
    """Below 0.05 the mask had no pairs, and the hint was the default mask whatever the threshold."""
    lines = succeed(f"{AUDIT} --threshold {threshold}").stdout.splitlines()
    assert f"Train without them: {hint}" in lines
    assert np.load("out/mask.npz")["probability"].min() < min(0.06, float(threshold) + 0.01)


def test_weights_without_a_source_are_said_to_be_missing() -> None:
    assert "not weighed: weights need a SOURCE" in succeed(f"{AUDIT} --objective ntxent").stdout


def test_signals_are_listed_with_their_questions_and_sources() -> None:
    listed = {signal["name"]: signal for signal in json.loads(succeed("list signals --format json").stdout)}
    assert "Conneau" in listed["density"]["source"]
    assert listed["agreement"]["options"] == "share=0.95"
    assert all(signal["what"].endswith("?") for signal in listed.values())


def worth_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a dump of 60 pairs, two for each meaning, and labels of a few; shorten the trial."""
    monkeypatch.setattr("lossscope.audit.estimate.held_out_trial._STEPS", 10)
    monkeypatch.setattr("lossscope.audit.estimate.held_out_trial.SEEDS", 2)
    random, n = np.random.default_rng(0), 60
    concept = random.normal(size=(n // 2, 6)).repeat(2, 0)
    pairs = np.stack([np.arange(n)] * 2, 1)
    queries, answers = (concept + 0.3 * random.normal(size=(n, 6)) for _ in range(2))
    np.savez("pairs.npz", queries=queries, documents=answers, positives=pairs)
    rows = [f"{q},{q ^ 1},yes\n{q},{(q + 7) % n},no\n" for q in range(n)]
    Path("labels.csv").write_text("query,document,answer\n" + "".join(rows))


def test_what_the_mask_is_worth_is_printed_and_written(monkeypatch: pytest.MonkeyPatch) -> None:
    worth_data(monkeypatch)
    words = "audit pairs.npz --out out --batch-size 16 --split test --worth --objective ntxent:tau=0.1"
    lines = succeed(f"{words} --labels labels.csv").stdout.splitlines()
    worth = json.loads(Path("out/audit.json").read_text())["worth"]
    assert worth["trial"]["queries"] == 60
    [floor] = worth["floors"]
    assert floor["counted"]["low"] < floor["counted"]["value"] < floor["counted"]["high"]
    assert floor["masked"]["value"] < floor["counted"]["value"]
    assert [(difference["ranking"], difference["measure"]) for difference in worth["trial"]["differences"]][::3] == [
        ("by probability", "R@1"), ("left out", "R@1"), ("as labelled", "R@1"),
    ]  # fmt: skip
    assert worth["trial"]["verdict"] in Path("out/index.html").read_text()
    assert worth["trial"]["verdict"] in lines
    assert any(line.startswith("loss of a model that is right, ntxent ") for line in lines)
    [line] = [line for line in lines if line.startswith("Trial of p >= 0.1: heads on pairs.npz (6 dimensions)")]
    assert ", batches of 16, 60 queries, " in line
    [row] = [line for line in lines if line.startswith("as labelled")]
    assert row.count(" to ") == 3


def test_the_worth_that_cannot_be_had_is_said_with_its_reason() -> None:
    result = succeed(f"{AUDIT} --worth")
    assert "not known: trial: it needs vectors of both sides, and texts are of the second alone" in result.stdout
    assert "loss of a model that is right, ntxent:tau=0.05" in result.stdout
    assert json.loads(Path("out/audit.json").read_text())["worth"]["trial"] is None
    Path("pairs.csv").write_text("image,caption\n")
    refused = lossscope(f"{AUDIT} --worth --pairs pairs.csv")
    assert (refused.exit_code, "--pairs writes scores alone" in refused.stderr) == (2, True)


def test_where_false_negatives_are_rare_it_says_that_masks_did_harm() -> None:
    result = audit([], AuditOptions.of(SCENES, batch_size=16, sheet=30))
    for rate, says in ((RARE / 2, True), (RARE * 0.99, True), (RARE, False), (0.05, False)):
        lines = _lines(replace(result, rate=Estimate(rate)), OUT)
        assert any("compare with a training without a mask" in line for line in lines) == says
