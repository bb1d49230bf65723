"""Does a message name options that a source cannot use, and sources that a command does not read?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.command_line import lossscope


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--split", "train"), "--split is not used"),  # though it is the default
        (("--data", "scenes"), "--data is not used"),
        (("--data", "scenes", "--split", "val"), "--data and --split are not used"),
    ],
)
def test_options_that_a_dump_cannot_use_are_named_even_when_quiet(
    typed: tuple[str, ...], said: str, dump: Path
) -> None:
    result = lossscope("cocos", dump, "--objective", "triplet", "-q", *typed)
    assert result.exit_code == 0
    assert result.stderr == f"Warning: {said}: {dump} is of one split already.\n"


def test_nothing_is_said_of_options_that_are_used_or_were_not_typed(dump: Path) -> None:
    assert lossscope("cocos", dump, "--objective", "triplet", "-q").stderr == ""
    assert lossscope("eval", "tiny", "--split", "val", "-q").stderr == ""


def test_the_caption_of_a_whole_split_says_over_how_many_queries(dump: Path) -> None:
    shown = " ".join(lossscope("eval", dump).stdout.split())
    assert f"source {dump}; over n = 12 to 24 queries." in shown and "full size" not in shown


def test_verify_describes_a_dump(dump: Path) -> None:
    result = lossscope("verify", dump)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:5] == [
        f"{dump}: good",
        "  kind              dump",
        "  images            12 x 6 float64",
        "  captions          24 x 6 float64",
        "  captions an image 2",
    ]
    assert "normalised" in result.stdout


def test_verify_of_a_dump_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    similarity = np.ones((3, 3))
    similarity[1, 2] = np.nan
    np.savez(tmp_path / "bad.npz", similarity=similarity)
    result = lossscope("verify", tmp_path / "bad.npz")
    assert result.exit_code == 1
    assert "similarity of" in result.stderr and "must be finite; row 1 is not" in result.stderr
