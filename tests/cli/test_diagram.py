"""Does `lossscope diagram` draw the papers' pictures, any objective, and the data on top?"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lossscope_cli.diagram import _around
from PIL import Image
from typer.testing import Result

from tests.command_line import lossscope

FEW = ["--points", "11"]


def diagram(*words: str | Path) -> Result:
    return lossscope("diagram", *words)


def printed_names(*words: str | Path) -> list[str]:
    """Return the names of the printed pictures; every file must exist."""
    result = diagram(*words, *FEW, "--quiet")
    assert result.exit_code == 0, result.stderr
    names = result.stdout.split()
    assert all(Path(name).stat().st_size > 1000 for name in names)
    return names


def test_arrows_are_a_picture_of_their_own() -> None:
    assert printed_names("--objective", "ntxent", "--arrows", "-o", "a.png") == ["a.png", "a-arrows.png", "a-pairs.png"]


def test_words_are_in_the_pictures() -> None:
    printed_names("--triplet", "nca")
    with Image.open("diagram-nca.png") as picture:
        assert "NCA triplet weight, scale τ = 10: largest weight 1" in picture.text["Description"]  # type: ignore[attr-defined]


def test_the_paper_style_is_smaller() -> None:
    printed_names("--triplet", "nca", "-o", "screen.png")
    printed_names("--triplet", "nca", "-o", "paper.png", "--style", "paper")
    with Image.open("screen.png") as screen, Image.open("paper.png") as paper:
        assert paper.size[0] < 0.8 * screen.size[0]


def test_an_overlay_is_on_the_field_and_the_curves(tiny_checkpoint: Path) -> None:
    over = ["--overlay", tiny_checkpoint, "--overlay", tiny_checkpoint, "--split", "val", "--batch-size", "16"]
    assert printed_names("--triplet", "nca", *over, "-o", "a.png") == ["a.png", "a-weights.png"]
    with Image.open("a.png") as picture:
        words = picture.text["Description"]  # type: ignore[attr-defined]
    assert f"{tiny_checkpoint}: median positive similarity" in words
    assert f"{tiny_checkpoint} (2): median" in words
    assert printed_names("--pair", "lin", *over[:2], "-o", "b.pdf") == ["b.pdf"]


def test_a_picture_with_an_overlay_shows_what_its_queries_span_unless_told_otherwise(tiny_checkpoint: Path) -> None:
    """The axes were -1 to 1, and the cloud filled a tenth of them."""
    cloud = pd.DataFrame({"s_pos": [0.42, 0.77], "s_neg": [0.31, 0.58]})
    assert _around(cloud) == (pytest.approx(0.2), pytest.approx(0.9))
    line = (
        "--triplet",
        "nca",
        "--overlay",
        tiny_checkpoint,
        "--split",
        "val",
        "--points",
        "5",
        "--format",
        "csv",
        "-q",
    )
    assert {"-1.0", "1.0"} <= set(diagram(*line).stdout.replace("\n", ",").split(","))  # numbers are of the whole field


def test_the_numbers_of_an_overlay_are_printed(tiny_checkpoint: Path) -> None:
    result = diagram("--objective", "triplet", "--overlay", tiny_checkpoint, *FEW, "--format", "csv", "--quiet")
    tables = [pd.read_csv(io.StringIO(text)) for text in result.stdout.split("\n\n")]
    _, cloud, curves, weights = tables
    shares = f"(other: s₋ {cloud['s_neg'].median():.2f}, s₊ {cloud['s_pos'].median():.2f})"
    assert curves["label"].str.endswith(shares).all()
    assert set(cloud["split"]) == {"train"}
    assert len(weights) == len(cloud)
    violating = weights["s_neg"] - weights["s_pos"] + 0.2 > 0
    np.testing.assert_array_equal(weights["w_neg"], violating.astype(float))


def test_the_path_of_a_run(tiny_run: Path) -> None:
    assert printed_names("--triplet", "nca", "--overlay", tiny_run, "--path", "-o", "p.svg") == [
        "p.svg",
        "p-weights.svg",
    ]
    words = Path("p.svg").read_text(encoding="utf-8")
    assert "after epoch 1" in words
    assert "after epoch 2" in words


def test_pair_weights_begin_at_0_or_where_low_says() -> None:
    """`--low -1` began at 0 without a word."""
    starts = []
    for low in ([], ["--low", "-1"]):
        rows = pd.read_csv(io.StringIO(diagram("--pair", "lin", *low, *FEW, "--format", "csv", "-q").stdout))
        starts.append(rows.loc[rows["side"] == "negative", ["s", "weight"]].iloc[0].tolist())
    assert starts == [[0.0, 0.0], [-1.0, -1.0]]


LOSSES = ("--objective", "triplet-sh", "--objective", "unified:gamma=5")


def test_a_query_on_the_circle() -> None:
    assert printed_names(*LOSSES, "--on-circle", "0.5,0.7,0.2", "-o", "a.png") == [
        "a.png", "a-pairs.png", "a-circle.png"
    ]  # fmt: skip
    with Image.open("a-circle.png") as picture:
        assert "it moves the negatives at similarity 0.7" in picture.text["Description"]  # type: ignore[attr-defined]
    wrong = diagram("--on-circle", "near")
    assert wrong.exit_code == 2 and "similarities with commas" in wrong.stderr


def test_tangents_of_the_epochs_of_a_run_are_a_picture_and_numbers_that_render_draws(tiny_run: Path) -> None:
    line = (*LOSSES, "--overlay", tiny_run, "--path", "--tangent")
    assert printed_names(*line, "-o", "a.svg")[-1] == "a-tangent.svg"
    words = Path("a-tangent.svg").read_text(encoding="utf-8")
    assert "after epoch 1: median" in words and "after epoch 2: median" in words
    Path("rows.csv").write_text(diagram(*line, *FEW, "--format", "csv", "-q").stdout.split("\n\n")[-1])
    assert lossscope("render", "tangent_cloud", "rows.csv", "-o", "b.png").exit_code == 0
    assert pd.read_csv("rows.csv").groupby("objective")["epoch"].unique().map(list).tolist() == [[1.0, 2.0]] * 2
    assert lossscope("render", "vanishing_map", "rows.csv", "-o", "c.png").exit_code == 0
    missing = diagram(*LOSSES, "--tangent")
    assert missing.exit_code == 2 and "--tangent needs an --overlay" in missing.stderr


def test_of_all_objectives_a_map_stands_for_the_other_pictures(tiny_run: Path) -> None:
    line = ("--objective", "all", "--overlay", tiny_run, "--path", "--tangent", "--batch-size", "32")
    result = diagram(*line, "-o", "m.svg")
    assert (result.exit_code, result.stdout) == (0, "m.svg\n"), result.stderr
    assert "a map of what turns hardest negatives stands for the other pictures" in result.stderr
    assert "ncr runs without the labels that its training estimates" in result.stderr
    words = Path("m.svg").read_text(encoding="utf-8")
    assert "after epoch 1" in words and "NT-Xent" in words and "Circle" in words
    alone = diagram("--objective", "all")
    assert alone.exit_code == 2 and "--objective all needs --tangent" in alone.stderr
