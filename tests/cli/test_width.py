"""Does the output of every command fit a terminal of 80 and of 100 columns, without a broken cell?"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from tests import command_line

SIX = ("triplet", "triplet_sh", "ntxent:tau=0.1", "ntxent:tau=0.05", "unified:gamma=20", "goal:triplet=cir,pair=sig-ms")
SWEEP = ("--split", "val", "--batch-size", "16", "--quiet")
COMMANDS = {
    "one objective": ("cocos", "best.pt", *SWEEP),
    "three objectives": (
        "cocos", "best.pt", *SWEEP, "--objective=triplet", "--objective=ntxent", "--objective=smoothap", "--unit=paper",
    ),
    "own loss": ("cocos", "best.pt", *SWEEP, "--objective=./own.py:clip", "--objective=ntxent", "--trust-code"),
    "six objectives, three eps": (
        "cocos", "best.pt", *SWEEP, *(f"--objective={spec}" for spec in SIX), "--eps=0.001", "--eps=0.01", "--eps=0.1",
    ),
    "two sources": ("cocos", "best.pt", "dump.npz", *SWEEP, "--objective=ntxent"),
    "eval": ("eval", "best.pt", "--split=val", "--quiet"),
    "eval of two": ("eval", "best.pt", "dump.npz", "--split=val", "--quiet"),
    "all probes": ("probe", "best.pt", *SWEEP, "--probes=all", "--objective=ntxent", "--objective=triplet"),
    "similarity": ("similarity", "best.pt", *SWEEP),
    "tangent": ("tangent", "best.pt", *SWEEP),
    "influence": ("influence", "best.pt", *SWEEP),
    "compare": ("compare", "dump.npz", "another-dump-with-long-name.npz", "--metric=all", "--resamples=99", "--quiet"),
    "verify": ("verify", "best.pt", "dump.npz"),
    "check": ("check", "triplet_sh", "--processes=1"),
    "check of a long spec": (
        "check", "goal:triplet=cir,pair=sig-ms,tau=11,margin=0.3,alpha=3,beta=11,lam=0.4", "--processes=1",
    ),
    "list of objectives": ("list", "objectives"),
    "list of probes": ("list", "probes"),
}  # fmt: skip

OWN = """
import torch
from torch.nn.functional import cross_entropy

def clip(S, tau=0.07, symmetric=True):
    target = torch.arange(len(S))
    return (cross_entropy(S / tau, target) + cross_entropy(S.T / tau, target)) / 2
"""


@pytest.fixture(autouse=True)
def _sources(tiny_checkpoint: Path) -> None:
    """Write a checkpoint, two dumps of pairs, and a loss."""
    shutil.copy(tiny_checkpoint, "best.pt")
    Path("own.py").write_text(OWN, encoding="utf-8")
    rng = np.random.default_rng(0)
    images = rng.standard_normal((40, 8))
    for name in ("dump.npz", "another-dump-with-long-name.npz"):
        np.savez(name, images=images, captions=images + rng.standard_normal((40, 8)), caption_image=np.arange(40))


def lossscope(words: tuple[str, ...], width: int | None) -> Result:
    result = command_line.lossscope(*words, columns=width)
    assert result.exit_code == 0, result.stderr
    return result


@pytest.mark.parametrize("width", [80, pytest.param(100, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_no_line_is_wider_than_the_terminal(words: tuple[str, ...], width: int) -> None:
    lines = lossscope(words, width).stdout.splitlines()
    assert all(len(line) <= width for line in lines), max(lines, key=len)
    assert not [line for line in lines if line.rstrip().endswith("±") and re.search(r"\d ±$", line.rstrip())]


def test_every_number_is_the_one_that_a_wide_terminal_shows() -> None:
    words = (*COMMANDS["six objectives, three eps"], "--out", "frame")
    wide, narrow = (re.findall(r"\d[\d.]* ± [\d.]+", lossscope(words, width).stdout) for width in (1000, 80))
    assert len(wide) > 100 and sorted(narrow) == sorted(wide)


def test_a_caption_has_two_lines_and_explains_each_column_once() -> None:
    text = lossscope(COMMANDS["three objectives"], 80).stdout
    blocks = text.split("\n\n")
    captions = [block for block in blocks if block.startswith("cocos: ")]
    assert len(captions) == 3 and all(len(caption.splitlines()) <= 2 for caption in captions)
    assert text.count("\nC_0: ") == 1 == text.count("\nC_neg: negatives with weight above eps, per query\n")


def test_quiet_keeps_caption_legend_and_meaning_on_stdout() -> None:
    result = lossscope(COMMANDS["one objective"], 80)
    assert "C_neg: negatives with weight above eps, per query" in result.stdout
    assert re.search(r"On average [\d.]+.* of at most 15 negatives carry", result.stdout.replace("\n", " "))
    assert result.stderr == ""


def test_a_pipe_that_does_not_say_columns_has_120(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr("os.get_terminal_size", lambda *_: (_ for _ in ()).throw(OSError("no terminal")))
    lines = lossscope(COMMANDS["six objectives, three eps"], None).stdout.splitlines()
    assert 100 < max(map(len, lines)) <= 120


def test_defaults_of_a_loss_are_not_printed_and_csv_has_them() -> None:
    words = ("cocos", "best.pt", *SWEEP, "--objective=unified:gamma=20", "--objective=unified:gamma=60")
    text = lossscope(words, 100).stdout
    assert "unified:gamma=20" in text and "margin" not in text
    assert "unified:margin=0.2,gamma=20" in lossscope((*words, "--format=csv"), 100).stdout


def test_defaults_of_an_own_loss_are_read_from_its_file() -> None:
    text = lossscope(COMMANDS["own loss"], 100).stdout
    assert "clip" in text and "own.py" not in text and "symmetric" not in text


def test_one_batch_has_no_deviation() -> None:
    text = lossscope(("cocos", "best.pt", "--split=val", "--batch-size=all", "--quiet"), 100).stdout
    assert "±" not in text and "one measurement" in text


@pytest.mark.parametrize("format", ["markdown", "latex"])
def test_captions_of_files_are_not_wrapped(format: str) -> None:
    lines = lossscope((*COMMANDS["one objective"], f"--format={format}"), 80).stdout.splitlines()
    (caption,) = [line for line in lines if "cocos: " in line]
    assert len(caption) > 80 and "sd over " in caption


def test_units_of_retrieval() -> None:
    rows = lossscope((*COMMANDS["eval"], "--format=csv"), 80).stdout.splitlines()
    units = {line.split(",")[4]: line for line in rows}
    assert ",sum of %," in units["rsum"] and ",1," in units["mAP@5"] and ",rank," in units["medr"]


@pytest.mark.parametrize("name", ["verify", "check", "check of a long spec"])
def test_lines_of_verify_and_check_are_broken_between_words_and_after_commas(name: str) -> None:
    """On a pipe `check` had lines of any length, and `verify` everywhere."""
    narrow, wide = (lossscope(COMMANDS[name], width).stdout for width in (80, 1000))
    assert len(narrow.splitlines()) > len(wide.splitlines())

    def words(text: str) -> list[str]:
        return [word for word in re.split(r"[\s]+|(?<=,)(?!\d)", text) if word]

    assert words(narrow) == words(wide)
