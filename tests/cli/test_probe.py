"""`lossscope probe` and a command for each probe: options of its file, numbers of the sweep, tables of many."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lossscope_cli import app
from lossscope_cli._progress import progress_lines
from typer import Context

from lossscope.declarations import declarations
from lossscope.io.frames import SUMMARY, Frame
from lossscope.probes.base import Probe
from lossscope.registry import build, load, names
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from tests.command_line import lossscope, plain, rows_of, tree
from tests.each import each

HAND = ["check", "cocos", "convert", "data", "demo", "diagram", "eval", "list", "mine", "probe", "train", "trajectory"]
PROBES = [name for name in names("probes") if name != "cocos"]
COMMANDS = {name: tree(app).commands[name.replace("_", "-")] for name in names("probes")}  # type: ignore[attr-defined]
OF_SIMILARITIES = [n for n in PROBES if not {"gradients", "embeddings", "keys"} & build("probes", n).reads]
LINE = ["--objective", "triplet", "--batch-size", "8"]


@pytest.fixture
def similarities(tmp_path: Path) -> Path:
    S = np.random.default_rng(0).uniform(-0.5, 0.9, size=(12, 24))
    np.savez(tmp_path / "S.npz", similarity=S, caption_image=np.repeat(np.arange(12), 2))
    return tmp_path / "S.npz"


def test_every_probe_has_a_command_of_its_own_and_takes_no_name_away() -> None:
    assert not set(HAND) & {name.replace("_", "-") for name in PROBES}
    commands = list(tree(app).commands)  # type: ignore[attr-defined]
    assert len(commands) == len(set(commands))
    assert {name.replace("_", "-") for name in names("probes")} | set(HAND) <= set(commands)


@each("name", PROBES)
def test_the_options_of_a_command_are_the_fields_of_the_probe(name: str) -> None:
    shared = {parameter.name for parameter in COMMANDS["cocos"].params}
    defaults = {
        p.name: p.default
        for p in COMMANDS[name].params
        if p.name not in shared - {"eps", "convention", "curve", "unit"}
    }
    probe = load("probes", name)
    expected = {field.name: None if field.name == "curve" else field.default for field in fields(probe)}
    assert defaults == {
        name: default for name, default in expected.items() if name != "audit"
    }  # an option of all sweeps
    assert not expected.keys() & (shared - {"eps", "convention", "curve", "unit", "audit"})


@each("name", PROBES)
def test_what_is_read_from_the_text_is_what_is_imported(name: str) -> None:
    (item,) = (item for item in declarations("probes") if item.name == name)
    probe = load("probes", name)
    assert {field.name: field.default for field in item.fields} == {f.name: f.default for f in fields(probe)}
    assert item.text.split() == (probe.__doc__ or "").split()
    assert item.constants.get("cheap", Probe.cheap) is probe.cheap


@each("name", PROBES)
def test_help_shows_examples_and_the_question(name: str) -> None:
    text = plain(lossscope(name.replace("_", "-"), "--help").stdout)
    assert f"lossscope probe {name.replace('_', '-')} ckpt.pt" in text
    assert plain(question_of(name)) in text


def question_of(name: str) -> str:
    return next(item.question for item in declarations("probes") if item.name == name)


def test_names_are_completed_from_the_files() -> None:
    command = tree(app).commands["probe"]  # type: ignore[attr-defined]
    (option,) = (option for option in command.params if "--probes" in option.opts)
    context = Context(command)
    completed = {typed: [item.value for item in option.shell_complete(context, typed)] for typed in ("", "c")}
    assert completed[""] == ["all", "cheap", *names("probes")]
    assert completed["c"][:2] == ["cheap", "cocos"]


@each("name", OF_SIMILARITIES)
def test_a_command_gives_what_its_probe_computes(name: str, similarities: Path) -> None:
    words = [name.replace("_", "-"), similarities, *LINE, "--format", "json"]
    rows = rows_of(lossscope(*words))
    assert all(set(row) == set(SUMMARY) for row in rows)
    assert {row["probe"] for row in rows} == {name}
    needs_objective = load("probes", name).needs_objective
    assert {row["objective"] for row in rows} == {"triplet:margin=0.2" if needs_objective else None}
    assert {row["direction"] for row in rows} == {"i2t", "t2i"}


def test_no_objective_is_used_by_a_probe_that_weighs_none(dump: Path) -> None:
    result = lossscope("similarity", dump)
    assert result.exit_code == 0
    assert "counting for" not in result.stderr
    assert not re.search(r"^(objective|probe .*objective)", result.stdout, re.M)
    assert "counting for triplet" in lossscope("contributors", dump).stderr


def test_cheap_is_the_default_and_all_is_all(tiny_checkpoint: Path) -> None:
    def probes_of(*words: str) -> set[str]:
        source = (tiny_checkpoint, "--split", "val", "--batch-size", "16")
        return {row["probe"] for row in rows_of(lossscope("probe", *source, *words, "--format", "json"))}

    cheap = {name for name in names("probes") if load("probes", name).cheap}
    assert probes_of() == probes_of("--probes", "cheap") == cheap
    assert probes_of("--probes", "all") == set(names("probes"))
    assert probes_of("--probes", "tangent", "--probes", "cheap") == {"tangent"} | cheap
    assert cheap < set(names("probes"))


def test_probes_that_cannot_run_are_left_out_of_a_group_and_refused_by_name(similarities: Path) -> None:
    result = lossscope("probe", similarities, *LINE, "--probes", "all", "--format", "json")
    ran = {row["probe"] for row in rows_of(result)}
    assert "tangent" not in ran
    assert {"cocos", "similarity"} <= ran
    assert "Note: tangent is left out: this probe needs embeddings" in result.stderr
    named = lossscope("probe", similarities, *LINE, "--probes", "tangent")
    assert (named.exit_code, named.stdout) == (1, "")
    assert "this probe needs embeddings" in named.stderr


def test_several_probes_are_one_sweep_with_the_numbers_of_each(dump: Path, tmp_path: Path) -> None:
    words = [dump, *LINE, "--objective", "ntxent", "--format", "json"]
    probes = ["similarity", "cocos:eps=0.1", "weight_mass:eps=0.1"]
    together = rows_of(lossscope("probe", *words, *(w for p in probes for w in ("--probes", p)), "--out", "frame"))
    alone = rows_of(lossscope("similarity", *words))
    alone += rows_of(lossscope("cocos", *words, "--eps", "0.1"))
    alone += rows_of(lossscope("weight-mass", *words, "--eps", "0.1"))
    key = ("objective", "direction", "probe", "statistic")
    assert len(together) == len(alone)
    order = {tuple(row[k] for k in key): row for row in together}
    for row in alone:
        assert order[tuple(row[k] for k in key)] == pytest.approx(row)
    frame = Frame(tmp_path / "frame").manifest()
    assert frame["done"] and frame["command"]["probes"] == [
        "similarity", "cocos:eps=0.1,convention=corrected,curve=false,unit=relative",
        "weight_mass:eps=0.1,convention=corrected,unit=relative",
    ]  # fmt: skip


def test_two_probes_of_one_name_are_distinguished(dump: Path) -> None:
    words = ["--probes", "false-negatives", "--probes", "false-negatives:near=-0.9", "--format", "json"]
    rows = [row for row in rows_of(lossscope("probe", dump, *words)) if row["statistic"] == "near"]
    means = {(row["probe"], row["direction"]): row["mean"] for row in rows}
    assert means["false_negatives", "i2t"] < means["false_negatives:near=-0.9", "i2t"]
    assert len(means) == 4


@each("format", ["table", "markdown", "latex"])
def test_tables_of_all_probes_are_narrow_and_keep_groups_apart(
    format: str, tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    objectives = [word for spec in ("triplet", "ntxent:tau=0.05", "unified", "vlc") for word in ("--objective", spec)]
    words = (tiny_checkpoint, "--split", "val", *objectives, "--out", "frame")
    result = lossscope("probe", *words, "--format", format)
    assert result.exit_code == 0, result.stderr
    assert "nan" not in result.stdout
    if format == "table":
        long = [line for line in result.stdout.splitlines() if len(line) > 120 and str(tiny_checkpoint) not in line]
        assert long == []
    assert result.stdout.count("s_pos_q50".replace("_", {"table": "_"}.get(format, r"\_"))) == 1


def test_csv_and_json_have_the_same_rows(dump: Path) -> None:
    table = lossscope("probe", dump, *LINE, "--format", "csv")
    (Path("rows.csv")).write_text(table.stdout)
    read = pd.read_csv("rows.csv")
    rows = rows_of(lossscope("probe", dump, *LINE, "--format", "json"))
    assert len(read) == len(rows)
    assert read["objective"].isna().sum() == sum(row["objective"] is None for row in rows) > 0


@pytest.mark.parametrize(
    "suffix", ["csv", "png", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in ("svg", "pdf"))]
)
def test_the_curve_of_cocos_is_written(suffix: str, dump: Path) -> None:
    words = ("--objective", "ntxent:tau=0.05..0.2/3", "--batch-size", "8")
    result = lossscope("cocos", dump, *words, "--curve", f"deep/curve.{suffix}")
    assert result.exit_code == 0, result.stderr
    assert f"Wrote deep/curve.{suffix}." in result.stderr
    assert Path(f"deep/curve.{suffix}").stat().st_size > 1000


def test_the_curve_says_at_eps_what_the_counts_say(dump: Path) -> None:
    words = ["cocos", dump, "--objective", "ntxent", "--batch-size", "8", "--eps", "0.01", "--eps", "0.1"]
    rows = rows_of(lossscope(*words, "--curve", "curve.csv", "--format", "json"))
    curve = pd.read_csv("curve.csv")
    for row in rows:
        if row["statistic"] == "C_neg":
            near = curve[(curve["direction"] == row["direction"]) & np.isclose(curve["eps"], row["eps"])]
            assert near["mean"].tolist() == pytest.approx([row["mean"]])
            assert near["std"].tolist() == pytest.approx([row["std"]])
            assert near["n"].tolist() == [3]
    assert rows == rows_of(lossscope(*words, "--format", "json"))


@each("name", ["fidelity", "by-rank"])
def test_the_curves_of_a_probe_are_written_as_numbers_and_drawn_from_them(name: str, dump: Path) -> None:
    words = ("probe", name, dump, "--objective", "ntxent", "--batch-size", "8", "--interval", "none")
    numbers = lossscope(*words, "--curve", "deep/curves.csv", "--format", "json")
    assert numbers.exit_code == 0, numbers.stderr
    assert "Wrote deep/curves.csv." in numbers.stderr
    curves = pd.read_csv("deep/curves.csv")
    singles = curves[curves["x"].isna()].set_index(["direction", "statistic"])["mean"].to_dict()
    means = {
        (row["direction"], row["statistic"]): float("nan") if row["mean"] is None else row["mean"]
        for row in rows_of(numbers)
    }
    assert singles == pytest.approx({key: mean for key, mean in means.items() if key in singles}, nan_ok=True)
    drawn = lossscope(*words, "--curve", "curves.svg")
    assert drawn.exit_code == 0, drawn.stderr
    again = lossscope("render", name.replace("-", "_"), "deep/curves.csv", "--out", "again.svg")
    assert again.exit_code == 0, again.stderr
    assert Path("again.svg").read_text() == Path("curves.svg").read_text()


@each("name", ["fidelity", "by-rank"])
def test_curves_go_to_a_picture_or_csv_alone(name: str, dump: Path) -> None:
    result = lossscope("probe", name, dump, "--curve", "curves.txt")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--curve must end in .csv, .pdf, .png or .svg; got 'curves.txt'" in plain(result.stderr)


@each("words, message", [
    (["fidelity", "--share", "1"], "share must be a number between 0 and 1, as 0.95; got 1"),
    (["fidelity", "--of", "parameters"], "needs the model itself"),
    (["by-rank", "--near", "0"], "near must be a number above 0, as 0.1; got 0"),
])  # fmt: skip
def test_what_a_probe_cannot_do_is_refused(words: list[str], message: str, dump: Path) -> None:
    result = lossscope("probe", words[0], dump, *words[1:], "--objective", "ntxent", "--batch-size", "8")
    assert result.exit_code != 0 and result.stdout == ""
    assert message in plain(result.stderr)


def test_verbose_shows_progress_without_a_terminal(dump: Path) -> None:
    result = lossscope("similarity", dump, "--batch-size", "2", "--verbose")
    assert re.search(r"^pairs batches 12/12(, .*/s)?$", result.stderr, re.M)
    assert "batches" not in lossscope("similarity", dump, "--batch-size", "2").stderr
    assert lossscope("similarity", dump, "--verbose", "--quiet").stderr == ""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def print_reports(capsys: pytest.CaptureFixture[str], *reports: tuple[float, int, int]) -> list[str]:
    """Return the lines that reports (seconds, done, of) print, each written at once."""
    clock = Clock()
    report = progress_lines(0, clock)
    for clock.now, done, total in reports:
        report("batches", done, total)
    return capsys.readouterr().err.splitlines()


def test_the_rate_counts_only_work_that_was_done_in_this_run(capsys: pytest.CaptureFixture[str]) -> None:
    lines = print_reports(capsys, (0, 1000, 1100), (10, 1020, 1100), (100, 1100, 1100))
    assert lines == ["batches 1000/1100", "batches 1020/1100, 2/s, 0:00:40 left", "batches 1100/1100, 1/s"]


def test_slow_work_is_shown_in_seconds_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert print_reports(capsys, (0, 0, 10), (20, 2, 10))[-1] == "batches 2/10, 10 s each, 0:01:20 left"


def test_another_run_under_the_same_name_begins_anew(capsys: pytest.CaptureFixture[str]) -> None:
    lines = print_reports(capsys, (0, 0, 100), (10, 100, 100), (20, 50, 100), (30, 60, 100))
    assert lines[2:] == ["batches 50/100", "batches 60/100, 1/s, 0:00:40 left"]


def test_lines_come_at_intervals_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    report = progress_lines(30, clock)
    for done in range(1, 11):
        clock.now += 10
        report("batches", done, 10)
    assert capsys.readouterr().err.splitlines() == [
        "batches 4/10, 10 s each, 0:01:00 left",
        "batches 7/10, 10 s each, 0:00:30 left",
        "batches 10/10, 10 s each",
    ]


def test_a_curve_is_drawn_where_eps_is_zero(dump: Path) -> None:
    result = lossscope("cocos", dump, "--objective", "triplet", "--eps", "0", "--curve", "curve.png")
    assert (result.exit_code, "Warning" in result.stderr) == (0, False)
    assert Path("curve.png").stat().st_size > 1000


def trained_with(source: Path, objective: str, path: Path) -> Path:
    """Write a checkpoint that says it was trained with another objective."""
    stored = Checkpoint.load(source)
    training = {**stored.training, "objective": objective}
    Checkpoint(**{**vars(stored), "objective": objective, "training": training}).save(path)
    return path


def test_sources_that_were_trained_apart_are_counted_in_one_unit(tiny_checkpoint: Path, tmp_path: Path) -> None:
    a, b, c = (
        trained_with(tiny_checkpoint, spec, tmp_path / f"{number}.pt")
        for number, spec in enumerate(("ntxent:tau=0.05", "ntxent:tau=0.1", "supcon:tau=0.05"))
    )
    line = ("--split", "val", "--batch-size", "16", "--sampling", "pairs", "--interval", "none")
    for sources, unit in (((a,), "paper"), ((a, b), "paper"), ((a, c), "relative")):
        for name in ("cocos", "probe", "weight-mass"):
            document = json.loads(lossscope(name, *sources, *line, "--format", "json").stdout)
            units = {row["weight_unit"] for row in document["rows"] if row["probe"] in ("cocos", "weight_mass")}
            assert units == {unit}, (name, sources)
            assert name == "probe" or document["command"]["unit"] == unit
    counts = [rows_of(lossscope("cocos", a, c, *line, *more, "--format", "json")) for more in ((), ("--unit", "paper"))]
    numbers = [[row["mean"] for row in rows if row["statistic"] == "C_neg"] for rows in counts]
    assert numbers[0][:2] == pytest.approx(numbers[0][2:])  # one model, one function
    assert numbers[1][:2] != pytest.approx(numbers[1][2:])
    assert {row["weight_unit"] for row in counts[1]} == {"paper"}


def test_a_table_says_its_unit_and_a_mixed_one_that_of_each_row(dump: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import torch\n\n\ndef own(S):\n    return torch.nn.functional.cross_entropy(S / 0.1, torch.arange(len(S)))\n"
    )
    both = ("--objective", "./own.py:own", "--objective", "ntxent", "--interval", "none", "--sampling", "pairs")
    usual = plain(lossscope("cocos", dump, "--interval", "none").stdout)
    assert usual.count("weight unit relative;") == usual.count("cocos: ")  # the usual objectives are three
    assert "weight unit paper;" in plain(lossscope("cocos", dump, "--objective", "ntxent").stdout)
    mixed = lossscope("cocos", dump, *both, "--unit", "paper").stdout
    assert "weight unit" not in mixed.partition("\n\n")[0]
    lines = (line.split() for line in mixed.splitlines() if line.startswith(("own", "ntxent")))
    assert {line[2] for line in lines} >= {"relative", "paper"}
    assert "weight unit relative;" in plain(lossscope("cocos", dump, *both).stdout)
    several = lossscope("probe", dump, *both, "--probes", "cocos:unit=paper", "--probes", "similarity").stdout
    assert "cocos, weight unit relative" in several
    assert "cocos, weight unit paper" in several
