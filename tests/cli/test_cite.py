"""`lossscope cite`, and `--interval` of the commands whose numbers it cites."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command_line import lossscope, message


def rows(*words: str | Path) -> list[dict[str, Any]]:
    result = lossscope("cocos", *words, "--batch-size", "8", "--format", "json", "--quiet")
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
    return found


@pytest.fixture
def frame(dump: Path, tmp_path: Path) -> Path:
    words = ("--objective", "ntxent", "--objective", "triplet", "--batch-size", "8", "--out", tmp_path / "frame")
    assert lossscope("cocos", dump, *words).exit_code == 0
    return tmp_path / "frame"


def test_text_has_a_paragraph_of_each_number_and_of_each_paper(frame: Path) -> None:
    result = lossscope("cite", frame, "--statistic", "N_eff", "--direction", "i2t")
    assert result.exit_code == 0, result.stderr
    numbers, papers = result.stdout.split("\n\n")[:2], result.stdout.split("\n\n")[2:]
    assert all(text.startswith("N_eff (i2t) = ") and "two-way over 12 images" in text for text in numbers)
    assert "objective ntxent:tau=0.1;" in " ".join(numbers[0].split())
    assert [text.partition("]")[0] for text in papers] == ["[kish1965", "[bleeker2022", "[faghri2018", "[lossscope"]


def test_json_has_what_the_frame_and_the_command_have(dump: Path, frame: Path) -> None:
    document = json.loads(lossscope("cite", frame, "--format", "json").stdout)
    computed = rows(dump, "--objective", "ntxent", "--objective", "triplet")
    assert document["schema"] == "lossscope.citation/1" and len(document["citations"]) == len(computed)
    assert set(document["papers"]) == {"bleeker2022", "kish1965", "faghri2018", "lossscope"}
    assert all(f"{{{key}," in document["bibtex"] for key in document["papers"])


def test_a_file_gets_what_stdout_would_get(frame: Path, tmp_path: Path) -> None:
    assert lossscope("cite", frame, "--format", "bibtex", "--out", tmp_path / "papers.bib").stdout == ""
    text = (tmp_path / "papers.bib").read_text(encoding="utf-8")
    assert text == lossscope("cite", frame, "--format", "bibtex").stdout


def test_a_json_file_and_a_damaged_frame_are_refused(dump: Path, frame: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(lossscope("cocos", dump, "--format", "json").stdout)
    assert "with --out FOLDER" in " ".join(lossscope("cite", tmp_path / "rows.json").stderr.split())
    (part,) = frame.glob("part-*.parquet")
    part.write_bytes(part.read_bytes()[:-1])
    result = lossscope("cite", frame)
    assert result.exit_code == 1 and "part-00000.parquet" in result.stderr


def test_a_folder_of_frames_names_the_frames(dump: Path, tmp_path: Path) -> None:
    """`cocos a b --out fr` makes a frame of each source, and `cite fr` said that fr/manifest.json must exist."""
    words = ("--objective", "ntxent", "--batch-size", "8", "--out", tmp_path / "both frames")
    assert lossscope("cocos", dump, dump, *words).exit_code == 0
    result = lossscope("cite", tmp_path / "both frames")
    assert result.exit_code == 1 and "it is a folder of 2" in message(result)
    named = shlex.split(str(result.stderr).partition("that you mean: ")[2].replace("\n", ""))
    assert len(named) == 2 and lossscope("cite", *named, "--statistic", "C_neg").exit_code == 0


def test_the_level_of_intervals(dump: Path) -> None:
    by_level = {text: rows(dump, "--objective", "ntxent", "--interval", text)[0] for text in ("90", "0.9", "90%", "99")}
    assert by_level["90"] == by_level["0.9"] == by_level["90%"] and by_level["90"]["level"] == 0.9
    assert (
        by_level["99"]["low"]
        < by_level["90"]["low"]
        < by_level["90"]["mean"]
        < by_level["90"]["high"]
        < by_level["99"]["high"]
    )
    without = rows(dump, "--objective", "ntxent", "--interval", "none")
    assert all(row["low"] is row["high"] is row["level"] is row["method"] is None for row in without)
    assert [row["mean"] for row in without] == [row["mean"] for row in rows(dump, "--objective", "ntxent")]


def test_a_sample_has_the_level_that_is_typed(dump: Path) -> None:
    words = (dump, "--objective", "ntxent", "--queries", "9", "--batch-size", "all", "--format", "json", "--quiet")

    def sampled(*more: str) -> dict[str, Any]:
        result = lossscope("cocos", *words, *more)
        assert result.exit_code == 0, result.stderr
        row: dict[str, Any] = json.loads(result.stdout)["rows"][0]
        return row

    usual, wide, none = sampled(), sampled("--interval", "99"), sampled("--interval", "none")
    assert wide["low"] < usual["low"] < usual["high"] < wide["high"] and (usual["level"], wide["level"]) == (0.95, 0.99)
    assert none["low"] is None and none["mean"] == usual["mean"]


def test_a_note_says_once_what_has_no_interval_and_why(dump: Path, tmp_path: Path) -> None:
    result = lossscope("hubness", dump, "--batch-size", "8")
    assert "Note: no interval: hubness: an interval takes means over queries" in result.stderr
    assert "no interval" not in lossscope("hubness", dump, "--batch-size", "8", "--interval", "none").stderr
    random = np.random.default_rng(0)
    np.savez(tmp_path / "few.npz", images=random.normal(size=(6, 4)), captions=random.normal(size=(6, 4)))
    few = lossscope("cocos", tmp_path / "few.npz", "--objective", "ntxent", "--objective", "triplet")
    assert few.stderr.count("no interval: an interval takes 10 images or more; there are 6") == 1
    assert "interval" not in few.stdout
