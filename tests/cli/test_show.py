"""--show: which queries carry the gradient, and which of their negatives, below the table, in JSON and in a CSV."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lossscope.core.known_pairs import KnownPairs
from lossscope.io.csv_tables import read_csv
from tests.command_line import document, lossscope, message
from tests.farm import run_command

LINE = "--objective ntxent --batch-size 8"


@pytest.fixture
def texts(dump: Path) -> Path:
    """Write the same dump with the texts of its captions and the names of its images."""
    arrays = dict(np.load(dump))
    names = [f"photo{row}.jpg" for row in range(12)]
    captions = [f"caption {row} that\nis longer than the others, word by word" for row in range(24)]
    np.savez(dump.parent / "texts.npz", **arrays, image_id=names, caption=captions)
    return dump.parent / "texts.npz"


def test_the_lists_of_tiny_are_these() -> None:
    result = lossscope("cocos tiny --show 1 -q", columns=90)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout[result.stdout.index("The 1 of 600") :].splitlines()
    assert lines[:7] == [
        "The 1 of 600 queries with the most gradient (tiny, i2t, ntxent:tau=0.1, unit paper):",
        "  train-00454  weight 2.00  positive's similarity 0.08",
        "     weight 0.306  similarity 0.87  train-00540-0  a big green triangle on the right and…",
        "     weight 0.295  similarity 0.87  train-00433-0  a small orange box in the centre and a…",
        "     weight 0.130  similarity 0.78  train-00257-2  a tiny red plus sign at the bottom rig…",
        "     weight 0.0757  similarity 0.73  train-00597-3  there is a big blue thing, a yellow d…",
        "     weight 0.0375  similarity 0.66  train-00077-3  a tiny green square is seen, a big ho…",
    ]
    assert [line for line in lines if line.startswith("The ")] == [
        f"The 1 of {number} queries with the {name} gradient (tiny, {direction}, ntxent:tau=0.1, unit paper):"
        for direction, number in (("i2t", 600), ("t2i", 3000))
        for name in ("most", "least")
    ]
    assert lines[-1] == "All queries: add --out DIR."


def test_the_document_has_what_is_printed(texts: Path) -> None:
    printed = lossscope(f"cocos texts.npz {LINE} --show 2").stdout
    shown = document(lossscope(f"cocos texts.npz {LINE} --show 2 --format json"))["shown"]
    assert [(of["direction"], of["queries"]) for of in shown] == [("i2t", 12), ("t2i", 24)]
    for of in shown:
        assert [len(of["most"]), len(of["least"])] == [2, 2]
        assert (
            of["most"][0]["weight"] >= of["most"][1]["weight"] >= of["least"][1]["weight"] >= of["least"][0]["weight"]
        )
        for query in (*of["most"], *of["least"]):
            assert query["query_id"] in printed
            assert len(query["negatives"]) == 5
            assert sum(negative["share"] for negative in query["negatives"]) <= 1
            for negative in query["negatives"]:
                line = f"{negative['negative_weight']:#.3g}  similarity {negative['similarity']:.2f}  "
                assert f"weight {line}{negative['candidate_id']}" in printed
    assert "photo" in shown[0]["most"][0]["query_id"]
    assert shown[1]["most"][0]["query_text"].startswith("caption ")
    assert "that is longer" in printed  # on one line
    assert "Texts:" not in printed


def test_lines_are_as_wide_as_the_terminal(texts: Path) -> None:
    for columns in (60, 90):
        printed = lossscope(f"cocos texts.npz {LINE} --show 3", columns=columns).stdout
        listed = [line for line in printed.splitlines() if re.match(r" +(photo|weight|\d)", line)]
        assert len(listed) > 20
        assert max(map(len, printed[printed.index("The 3 of") :].splitlines()[1:])) <= columns
        assert columns - 8 <= max(map(len, listed))
        assert any(line.endswith("…") for line in listed)


def test_a_source_without_texts_says_how_to_state_them(dump: Path) -> None:
    printed = lossscope(f"cocos dump.npz {LINE} --show 1").stdout
    assert "Texts: the source has none. A dump states them as `caption`" in printed


def test_ties_are_counted_and_queries_without_gradient_are_said_to_have_none(dump: Path) -> None:
    line = "cocos dump.npz --objective triplet:margin=0.01 --batch-size 24 --captions first --show 1"
    shown = document(lossscope(f"{line} --format json"))["shown"]
    printed = lossscope(line).stdout
    for of in shown:
        (query,) = of["most"]
        assert query["as_heavy"] == query["weight_negatives"] - 5
        assert f"and {query['as_heavy']} more of weight 1.00" in printed
    idle = [of for of in shown if of["without_weight"]]
    assert idle
    for of in idle:
        assert (
            f"{of['without_weight']} of 12 queries have no gradient in any batch (dump.npz, {of['direction']}"
            in printed
        )
    assert "no negative has weight" in printed


def test_out_has_the_rows_of_all_queries(texts: Path) -> None:
    result = lossscope(f"cocos texts.npz {LINE} --objective triplet --show 1 --out frame")
    assert result.exit_code == 0, result.stderr
    assert "All queries: heaviest_negatives.csv in frame." in result.stdout
    rows = read_csv(Path("frame/heaviest_negatives.csv"))
    first = rows.drop_duplicates(["objective", "direction", "batch", "batch_row"])
    counts = first.groupby(["objective", "direction"]).size()
    assert counts.tolist() == [24] * 4  # every pair is a query of each direction
    assert rows.groupby(["objective", "direction", "batch", "batch_row"])["rank"].max().between(0, 5).all()
    listed = document(lossscope(f"cocos texts.npz {LINE} --objective triplet --show 1 --format json"))["shown"]
    shown = [of for of in listed if of["objective"].startswith("ntxent")]
    softmax = rows[rows["objective"].str.startswith("ntxent")]
    for of in shown:
        direction_rows = softmax[softmax["direction"] == of["direction"]]
        assert direction_rows["weight"].max() == pytest.approx(of["most"][0]["weight"], rel=1e-12)
        assert direction_rows["weight"].min() == pytest.approx(of["least"][0]["weight"], rel=1e-12)
    before = Path("frame/heaviest_negatives.csv").read_bytes()
    assert lossscope(f"cocos texts.npz {LINE} --objective triplet --show 1 --out frame").exit_code == 0
    assert Path("frame/heaviest_negatives.csv").read_bytes() == before


def test_an_audit_marks_what_it_suspects(texts: Path) -> None:
    ids = tuple(f"photo{row}.jpg" for row in range(12)), tuple(str(row) for row in range(24))
    first, second = (grid.ravel() for grid in np.meshgrid(np.arange(12), np.arange(24), indexing="ij"))
    probability = np.where(second % 2 == 0, 0.83, 0.06).astype(np.float32)
    Path("audit").mkdir()
    KnownPairs(first, second, probability, *ids, status="calibrated by 200 labels").write("audit/mask.npz")
    for words in (f"cocos texts.npz {LINE}", f"probe texts.npz {LINE}", f"false-negatives texts.npz {LINE}"):
        printed = lossscope(f"{words} --show 1 --audit audit").stdout
        assert "(audit: suspected, p = 0.83)" in printed or "; audit: suspected, p = 0.83)" in printed
        assert "audit: p = 0.06)" in printed
        assert "Audit: calibrated by 200 labels." in printed
    found = document(lossscope(f"cocos texts.npz {LINE} --show 1 --audit audit --format json"))
    assert found["audit"] == "calibrated by 200 labels"
    for of in found["shown"]:
        for negative in of["most"][0]["negatives"]:
            row = negative["candidate"] if of["direction"] == "i2t" else of["most"][0]["query"]
            assert negative["probability"] == pytest.approx(0.06 if row % 2 else 0.83, rel=1e-6)


def test_the_audit_of_false_negatives_is_still_its_own(texts: Path) -> None:
    ids = tuple(f"photo{row}.jpg" for row in range(12)), tuple(str(row) for row in range(24))
    KnownPairs(np.arange(12), np.arange(12), np.full(12, 0.5, np.float32), *ids).write("mask.npz")
    found = document(lossscope("false-negatives texts.npz --batch-size 8 --audit mask.npz --format json"))
    assert "suspected" in {row["statistic"] for row in found["rows"]}
    assert found["command"]["audit"] == "mask.npz"
    assert "shown" not in found


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (f"cocos dump.npz {LINE} --audit audit", 2, "--audit marks the negatives that --show lists; add --show 10"),
        ("cocos dump.npz --objective ntxent --queries 4 --show 2", 1, "got a sample of queries"),
        (f"cocos dump.npz {LINE} --terms q2q --show 2", 1, "got further candidates of both (--terms)"),
        (f"cocos dump.npz {LINE} --show 2 --audit missing.npz", 1, "missing.npz"),
        (f"cocos dump.npz {LINE} --show 0", 2, "--show"),
        (f"diff dump.npz {LINE} --b-eps 0.2 --show 2 --top 3", 2, "--top and --show both limit the list"),
        ("diff dump.npz --epochs --show 2", 2, "--show is not of diff --epochs"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(dump: Path, words: str, code: int, text: str) -> None:
    result = lossscope(words)
    assert result.exit_code == code
    assert text in message(result)


@pytest.mark.parametrize("format", ["csv", "markdown", "latex"])
def test_other_formats_have_the_numbers_alone_and_say_so(dump: Path, format: str) -> None:
    result = lossscope(f"cocos dump.npz {LINE} --show 2 --format {format}")
    assert result.stdout == lossscope(f"cocos dump.npz {LINE} --format {format}").stdout
    assert f"{format} has the numbers alone" in message(result)


def test_every_probe_lists_queries_under_the_objectives(dump: Path) -> None:
    for words in (f"similarity dump.npz {LINE}", f"probe dump.npz {LINE} --probes contributors"):
        assert "queries with the most gradient (dump.npz, i2t, ntxent:tau=0.1, unit paper)" in (
            lossscope(f"{words} --show 1").stdout
        )
    counted = "weight-mass dump.npz --batch-size 8 --objective ntxent --unit relative --show 1"
    assert "unit relative" in lossscope(counted).stdout


def test_several_sources_and_widths_have_lists_of_their_own(dump: Path) -> None:
    shown = document(lossscope(f"cocos dump.npz dump.npz {LINE} --dims 3,full --show 1 --format json --out f"))["shown"]
    assert len({of["source"] for of in shown}) == 2  # the width is in the name
    assert sorted(str(path.parent) for path in Path("f").rglob("heaviest_negatives.csv")) == [
        "f/00-dump/dims-3", "f/00-dump/dims-full", "f/01-dump/dims-3", "f/01-dump/dims-full",
    ]  # fmt: skip


def test_diff_lists_what_carries_the_gradient_on_both_sides(texts: Path) -> None:
    line = f"diff texts.npz {LINE} --b-objective ntxent:tau=0.5 --show 2"
    found = document(lossscope(f"{line} --format json"))
    assert len(found["queries"]) == len(found["shown"]) == 2
    printed = lossscope(f"{line} --page page").stdout
    assert "The heaviest negatives of each, in the batch where it changed most:" in printed
    for query, row in zip(found["shown"], found["queries"], strict=True):
        assert {**query, **row} == query
        for side, unit in (("heaviest", "A"), ("b_heaviest", "B")):
            assert query[side]["query"] == row["query"]
            assert f"   {unit}  weight {query[side]['weight']:#.3g}" in printed
            assert len(query[side]["negatives"]) == 5
    page = Path("page/index.html").read_text(encoding="utf-8")
    assert "The heaviest negatives of the queries that changed most" in page
    assert found["shown"][0]["heaviest"]["negatives"][0]["candidate_id"] in page
    csv = pd.read_csv("page/csv/diff_negatives.csv")
    assert len(csv) == 2 * 2 * 5


@pytest.mark.parametrize("words", ["cocos dump.npz", "diff dump.npz --b-eps 0.2"], ids=["cocos", "diff"])
def test_of_many_processes_the_first_one_lists_all(dump: Path, words: str) -> None:
    line = f"{words} {LINE} --show 2 --format json".split()
    alone, together = (run_command(*line, cwd=dump.parent, ranks=ranks) for ranks in (1, 2))
    assert together.returncode == 0, together.stderr[-2000:]
    assert json.loads(together.stdout)["shown"] == json.loads(alone.stdout)["shown"] != []


def test_diff_without_show_has_its_document_as_before(dump: Path) -> None:
    found = json.loads(lossscope(f"diff dump.npz {LINE} --b-eps 0.2 --format json").stdout)
    assert "shown" not in found
    assert not {"batch", "batch_row"} & found["queries"][0].keys()
