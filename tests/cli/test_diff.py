"""From the command line: two sources, or one under another condition, on the same batches."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.io.frames import read_rows
from lossscope.sources.base import load
from lossscope.sources.checkpoints.train_mode import TrainMode, starts_of
from tests.command_line import lossscope, message


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run, tmp_path / "run"))


@pytest.fixture
def other(dump: Path) -> Path:
    """Write the items of the dump under a model whose captions lie elsewhere."""
    arrays = dict(np.load(dump))
    arrays["captions"] = arrays["captions"] + np.random.default_rng(1).normal(size=arrays["captions"].shape)
    np.savez(dump.parent / "other.npz", **arrays)
    return dump.parent / "other.npz"


def test_differences_are_those_of_the_two_commands(dump: Path, other: Path) -> None:
    result = lossscope("diff dump.npz other.npz --objective triplet --batch-size 8 --format json --top 3")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["schema"] == "lossscope.diff/1"
    alone = []
    for source in ("dump.npz", "other.npz"):
        words = f"probe {source} --probes cocos --probes similarity --objective triplet --batch-size 8 --format json"
        alone.append(json.loads(lossscope(words).stdout)["rows"])
    assert len(document["rows"]) == len(alone[0])
    for row, a, b in zip(document["rows"], *alone, strict=True):
        assert (row["statistic"], row["direction"]) == (a["statistic"], a["direction"])
        assert (row["mean"], row["b_mean"], row["difference"]) == (a["mean"], b["mean"], b["mean"] - a["mean"])
        assert row["low"] is None or row["low"] <= row["difference"] <= row["high"]
        assert (row["source"], row["b_source"]) == ("dump.npz", "other.npz")
    assert any(row["low"] is not None for row in document["rows"])
    assert 0 < len(document["queries"]) <= 3
    assert document["queries"][0]["difference"] == document["queries"][0]["b"] - document["queries"][0]["a"]


def test_the_table_marks_what_excludes_0_and_says_what_the_interval_is(dump: Path) -> None:
    rows = pd.read_csv(io.StringIO(lossscope("diff dump.npz --objective ntxent --b-eps 0.2 --format csv").stdout))
    text = lossscope("diff dump.npz --objective ntxent --b-eps 0.2 --top 0").stdout
    marked = int(((rows["low"] > 0) | (rows["high"] < 0)).sum())
    assert text.count("[†]") == marked > 0
    assert "paired, two-way over 12 images" in text
    assert "not of training" in text
    assert "same batches and masks" in text


def test_a_source_against_itself_is_equal(dump: Path) -> None:
    result = lossscope("diff dump.npz dump.npz --objective triplet --format json")
    rows = json.loads(result.stdout)["rows"]
    assert {row["method"] for row in rows} == {"equal"}
    assert {row["low"] for row in rows} == {None}


def test_another_threshold_is_another_condition(dump: Path) -> None:
    result = lossscope("diff dump.npz --objective ntxent --eps 0.01 --b-eps 0.2 --format csv --probes cocos")
    rows = pd.read_csv(io.StringIO(result.stdout)).set_index(["direction", "statistic"])
    assert set(rows["eps"]) == {0.01}
    assert set(rows["b_eps"]) == {0.2}
    assert rows.loc[("i2t", "C_neg"), "difference"] < 0
    assert rows.loc[("i2t", "N_eff"), "method"] == "equal"


def test_another_objective_leaves_out_what_only_one_has(dump: Path) -> None:
    result = lossscope("diff dump.npz --objective triplet --b-objective ntxent --probes cocos --format csv")
    assert set(pd.read_csv(io.StringIO(result.stdout))["statistic"]) == {"C_0", "N_eff", "skipped"}
    assert "C_q, C_q_all, C_B: only A has" in message(result)


def test_queries_are_listed_by_losses_that_count_the_same(dump: Path, other: Path) -> None:
    words = "diff dump.npz other.npz --objective ntxent --b-objective triplet --probes cocos --top 4 --format json"
    result = lossscope(words)
    assert json.loads(result.stdout)["queries"] == []
    assert "none of ntxent:tau=0.1 → triplet:margin=0.2" in message(result)
    typed = lossscope(f"{words} --by count")
    assert len(json.loads(typed.stdout)["queries"]) == 4
    assert "none of" not in message(typed)
    table = lossscope(words.replace("json", "table") + " --by count").stdout
    assert "ntxent:tau=0.1 → triplet:margin=0.2" in table.partition("changed most")[2]
    alike = lossscope(words.replace("triplet", "ntxent:tau=0.3"))
    assert len(json.loads(alike.stdout)["queries"]) == 4


def test_csv_notes_that_it_lists_no_queries(dump: Path, other: Path) -> None:
    words = "diff dump.npz other.npz --objective triplet --probes cocos --format csv"
    assert "CSV has the differences alone" in message(lossscope(f"{words} --top 5"))
    assert "CSV" not in message(lossscope(words))
    assert "CSV" not in message(lossscope(f"{words} --top 0"))


def test_without_intervals_there_is_no_column_of_them(dump: Path, other: Path) -> None:
    text = lossscope("diff dump.npz other.npz --objective triplet --probes cocos --interval none --top 0").stdout
    header = next(line for line in text.splitlines() if line.startswith("direction"))
    assert header.split() == ["direction", "statistic", "A", "B", "B", "−", "A"]
    assert "interval" not in text


@pytest.mark.usefixtures("blank_pictures")
def test_the_record_says_what_was_measured(dump: Path, other: Path) -> None:
    words = "diff dump.npz other.npz --objective triplet --b-objective ntxent --same-image mask --captions first"
    words += " --no-shuffle --drop-last --batch-size 6 --seed 3 --mask above:margin=0.1 --probes cocos --page page"
    record = json.loads(lossscope(f"{words} --format json").stdout)["command"]
    expected = {
        "same_image": "mask", "captions": "first", "shuffle": False, "drop_last": True, "batch_size": 6, "seed": 3,
        "masks": ["above:margin=0.1"], "objectives": ["triplet:margin=0.2"], "b_objectives": ["ntxent:tau=0.1"],
        "origin": load(dump).fingerprint, "b_origin": load(other).fingerprint,
    }  # fmt: skip
    assert {name: record[name] for name in expected} == expected
    provenance = json.loads(Path("page/index.json").read_text(encoding="utf-8"))["provenance"]
    assert provenance["sources"] == "dump.npz, other.npz"
    assert provenance["same image"] == "mask"
    assert provenance["b origin"] == load(other).fingerprint
    assert not any("[" in text for text in provenance.values())


def test_items_without_ids_are_paired_by_their_places_with_a_note(dump: Path, other: Path, tmp_path: Path) -> None:
    words = "diff dump.npz other.npz --objective triplet --probes cocos --top 0"
    note = "neither source states ids of images and captions: diff takes item i of A as item i of B"
    assert note in message(lossscope(words))
    assert "neither source" not in message(lossscope(words.replace("other", "dump")))
    for name in ("dump", "other"):
        arrays = dict(np.load(tmp_path / f"{name}.npz"))
        ids = {"image_id": [f"i{n}" for n in range(12)], "caption_id": [f"c{n}" for n in range(24)]}
        np.savez(tmp_path / f"{name}.npz", **arrays, **ids)
    assert "neither source" not in message(lossscope(words))


def test_no_loss_fills_the_list_of_queries(dump: Path, other: Path) -> None:
    words = "diff dump.npz other.npz --objective ntxent --objective triplet --probes cocos --top 6 --format json"
    rows = json.loads(lossscope(words).stdout)["queries"]
    assert [row["objective"].partition(":")[0] for row in rows] == 3 * ["ntxent"] + 3 * ["triplet"]
    for listed in (rows[:3], rows[3:]):
        sizes = [abs(row["difference"]) for row in listed]
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("probes", "values"),
    [
        ("--probes cocos:eps=0.01 --probes cocos:eps=0.1", {"0.01", "0.1"}),
        ("--probes cocos --probes cocos:convention=released", {"corrected", "released"}),
        ("--probes cocos --probes cocos:unit=relative", {"paper", "relative"}),
    ],
)
def test_rows_of_several_settings_do_not_look_alike(dump: Path, other: Path, probes: str, values: set[str]) -> None:
    words = f"diff dump.npz other.npz --objective triplet {probes} --top 200 --format markdown"
    text = lossscope(words).stdout
    differences, _, queries = text.partition("The queries whose")
    for part, keys in ((differences, ("direction", "statistic")), (queries, ("query",))):
        lines = [[cell.strip() for cell in line.split("|")] for line in part.splitlines() if line.startswith("|")]
        name = next(name for name in ("eps", "convention", "weight unit") if name in lines[0])
        assert values <= {line[lines[0].index(name)] for line in lines[2:]}
        kept = [
            lines[0].index(heading) for heading in (*keys, name, *(["direction"] if "direction" in lines[0] else []))
        ]
        labels = [tuple(line[column] for column in kept) for line in lines[2:]]
        assert len(set(labels)) == len(labels)
    assert ("eps 0.01;" in differences) == ("eps" not in probes)


def test_train_mode_is_drawn_with_a_seed_and_changes_nothing(run: Path) -> None:
    words = "diff run --b-mode train --batch-size 16 --probes similarity --format json --device cpu --top 0"
    first, again = (json.loads(lossscope(words).stdout)["rows"] for _ in range(2))
    assert first == again
    assert any(row["method"] != "equal" for row in first)
    alone = json.loads(lossscope("similarity run --batch-size 16 --format json --device cpu").stdout)["rows"]
    assert [row["mean"] for row in first] == [row["mean"] for row in alone]
    assert {row["b_source"] for row in first} == {"run in train mode"}


def test_the_model_is_what_it_was_after_train_mode() -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5)).eval()
    x, before = torch.randn(8, 4), {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.random.get_rng_state()
    outputs = []
    for seed in (0, 0, 1):
        with TrainMode(seed).of(model):
            outputs.append(model(x))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])
    assert not any(module.training for module in model.modules())
    assert torch.equal(state, torch.random.get_rng_state())
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("items", [1, 5, 32, 33, 63, 64, 65])
def test_no_batch_is_smaller_than_asked_for_in_train_mode(items: int) -> None:
    ends = starts_of(items, 32, True)
    assert [start for start, _ in ends] == [0, *(end for _, end in ends[:-1])]
    assert ends[-1][1] == items
    assert all(end - start >= min(32, items) for start, end in ends)


def test_epochs_of_a_run_are_compared(run: Path) -> None:
    result = lossscope("diff run --epoch 1 --b-epoch 2 --batch-size 16 --probes cocos --format csv")
    assert result.exit_code == 0, result.stderr
    rows = pd.read_csv(io.StringIO(result.stdout))
    assert {Path(name).name for name in rows["source"]} == {"epoch-01.pt"}
    assert {Path(name).name for name in rows["b_source"]} == {"epoch-02.pt"}
    missing = lossscope("diff run --epoch 1 --b-epoch 7")
    assert missing.exit_code == 1
    assert "it has 1, 2" in message(missing)


def test_counts_over_epochs_are_those_of_each_epoch(run: Path) -> None:
    result = lossscope("diff run --epochs --batch-size 16 --probes cocos --format csv -o counts.png")
    assert result.exit_code == 0, result.stderr
    rows = pd.read_csv(io.StringIO(result.stdout))
    assert Path("counts.png").stat().st_size > 0
    for epoch in (1, 2):
        epoch_rows = rows[rows["epoch"] == epoch]
        path = f"run/checkpoints/epoch-{epoch:02d}.pt"
        alone = pd.read_csv(io.StringIO(lossscope(f"cocos {path} --batch-size 16 --format csv").stdout))
        np.testing.assert_array_equal(epoch_rows["mean"], alone["mean"])
        np.testing.assert_array_equal(epoch_rows["low"], alone["low"])
    assert "epoch" in lossscope("diff run --epochs --batch-size 16 --probes cocos").stdout


def test_epochs_under_two_thresholds_are_told_apart_and_drawn(run: Path) -> None:
    words = (
        "diff run --epochs --batch-size 16 --probes cocos:eps=0.01 --probes cocos:eps=0.1 --format markdown -o c.png"
    )
    result = lossscope(words)
    assert result.exit_code == 0, result.stderr
    lines = [[cell.strip() for cell in line.split("|")] for line in result.stdout.splitlines() if line.startswith("|")]
    assert {line[lines[0].index("eps")] for line in lines[2:]} == {"0.01", "0.1"}
    assert Path("c.png").stat().st_size > 0
    plain = lossscope("diff run --epochs --batch-size 16 --probes cocos --interval none").stdout
    assert "interval" not in plain


@pytest.mark.usefixtures("blank_pictures")
def test_the_page_has_the_table_and_ids_as_text(dump: Path, tmp_path: Path) -> None:
    arrays = dict(np.load(dump))
    ids = [f"<script>alert({n})</script>" for n in range(24)]
    arrays["caption_id"] = np.array(ids)
    np.savez(tmp_path / "a.npz", **arrays)
    np.savez(tmp_path / "b.npz", **{**arrays, "captions": -arrays["captions"]})
    result = lossscope("diff a.npz b.npz --objective triplet --page page -o picture.svg")
    assert result.exit_code == 0, result.stderr
    html = Path("page/index.html").read_text(encoding="utf-8")
    assert "<script>alert(" not in html
    assert "&lt;script&gt;alert(" in html
    assert "What differs" in html
    assert Path("picture.svg").stat().st_size > 0
    rows = read_rows("page/numbers/differences.parquet")
    rows.to_csv("rows.csv", index=False)
    drawn = lossscope("plot differences rows.csv -o again.png")
    assert drawn.exit_code == 0, drawn.stderr


@pytest.mark.usefixtures("blank_pictures")
def test_a_page_leaves_the_files_of_a_user_alone(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "diff dump.npz --objective ntxent --b-eps 0.2 --probes cocos --top 0 --page mine"
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "index.html").write_text("precious")
    (tmp_path / "file").write_text("precious")
    with monkeypatch.context() as patched:
        patched.setattr("lossscope_cli.diff.load_side", lambda *_: pytest.fail("sources are read"))
        result, of_file = lossscope(words), lossscope(words.replace("mine", "file"))
    assert (result.exit_code, of_file.exit_code) == (1, 1)
    assert "mine must be new, empty, or an earlier report; it holds other files. Choose another --page" in message(
        result
    )
    assert "file must be a folder; it is a file" in message(of_file)
    assert (mine / "index.html").read_text() == (tmp_path / "file").read_text() == "precious"
    for _ in range(2):  # an earlier page of diff is replaced
        again = lossscope(words.replace("mine", "page"))
        assert again.exit_code == 0, again.stderr


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("diff dump.npz", "needs B"),
        ("diff dump.npz dump.npz dump.npz", "got 3 sources"),
        ("diff dump.npz dump.npz --queries 5", "--queries is not of diff"),
        ("diff dump.npz dump.npz --out x", "--out is not of diff"),
        ("diff dump.npz dump.npz -o x.txt", "must end in"),
        ("diff dump.npz --b-eps 0.1 --probes similarity", "--b-eps is for probes that count"),
        ("diff dump.npz dump.npz --epochs", "a single run folder"),
        ("diff dump.npz dump.npz --b-epoch 1", "leave B out"),
        ("diff dump.npz dump.npz --out x", "it writes no frame"),
        ("diff dump.npz --epochs --out x", "--out is not of diff --epochs: it writes no frame"),
        ("diff dump.npz --epochs --per-query", "--per-query is not of diff --epochs"),
        ("diff dump.npz --epochs --top 3", "--top is not of diff --epochs: it lists no single queries"),
        ("diff dump.npz --epochs --by count", "--by is not of diff --epochs"),
        ("diff dump.npz --epochs --dims 2", "--dims is not of diff --epochs"),
        ("diff dump.npz --epochs --probes recall -o c.png", "--picture of --epochs draws C_q"),
        ("diff dump.npz dump.npz --by nonsense", "--by must be one of count, mass_high"),
        ("diff dump.npz dump.npz --interval none -o x.png", "--interval none leaves them out"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(
    dump: Path, words: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("diff", "_epoch_counts"):
        monkeypatch.setattr(f"lossscope_cli.{module}.load_side", lambda *_: pytest.fail("sources are read"))
    result = lossscope(words)
    assert result.exit_code == 2
    assert what in message(result)


def test_two_objectives_are_compared_in_one_unit_and_the_heading_says_it(dump: Path) -> None:
    line = "diff dump.npz --objective ntxent:tau=0.05 --b-objective supcon:tau=0.05 --sampling pairs --batch-size 8"
    texts = {unit: lossscope(f"{line}{unit}").stdout for unit in ("", " --unit paper", " --unit cosine")}
    for unit, said in (("", "relative"), (" --unit paper", "paper"), (" --unit cosine", "cosine")):
        assert f"on both sides; weight unit {said}; eps 0.01;" in " ".join(texts[unit].split())
    rows = [row for row in json.loads(lossscope(f"{line} --format json").stdout)["rows"] if row["probe"] == "cocos"]
    assert {row["weight_unit"] for row in rows} == {"relative"}
    assert [row["difference"] for row in rows] == pytest.approx([0.0] * len(rows), abs=1e-6)
    printed = lossscope("diff dump.npz --objective ntxent --b-objective ntxent:tau=0.05 --batch-size 8").stdout
    assert "weight unit paper;" in " ".join(printed.split())


def test_a_unit_is_of_probes_that_count(dump: Path) -> None:
    result = lossscope("diff dump.npz --objective ntxent --b-objective supcon --probes similarity --unit paper")
    assert result.exit_code == 2
    assert "--unit is for probes that count, such as cocos; got similarity" in message(result)


def test_the_heading_of_epochs_says_the_unit(run: Path) -> None:
    for more, unit in (("", "paper"), ("--unit relative", "relative")):
        text = " ".join(lossscope(f"diff run --epochs --probes cocos --batch-size 16 {more}").stdout.split())
        assert f"after each epoch, on the same batches; weight unit {unit}." in text
