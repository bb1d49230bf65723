"""From the command line: every option of a sweep that is of any two sides, or of one labelled set, typed once."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.engine.sweep import Sweep
from lossscope.sources.base import load
from tests import command_line
from tests.command_line import lossscope
from tests.each import each

QUERIES, DOCUMENTS, WIDTH = 24, 40, 8
COCOS = ("cocos:eps=0.01,convention=corrected,unit=paper",)
SUMMARY_KEYS = (
    "source", "objective", "direction", "probe", "statistic", "mean", "std", "low", "high", "level", "method",
    "n", "n_defined", "n_spread",
    "short_batch", "unit", "weight_unit", "convention", "eps", "batch_size", "sampling", "seed",
)  # fmt: skip
OPTIONS_BEFORE = (
    "objectives", "probes", "sampling", "batch_size", "seed", "shuffle", "drop_last", "captions", "same_image",
    "per_query", "part", "engine", "precision",
)  # fmt: skip


def rows_of(words: str) -> pd.DataFrame:
    return pd.DataFrame(command_line.rows_of(lossscope(f"{words} --format json --quiet")))


@pytest.fixture(autouse=True)
def _dumps(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    pairs = np.unique(np.stack([random.integers(0, QUERIES, 30), random.integers(0, DOCUMENTS, 30)], 1), axis=0)
    sides = {"queries": random.normal(size=(QUERIES, WIDTH)), "documents": random.normal(size=(DOCUMENTS, WIDTH))}
    sides["documents"][pairs[:, 1]] += sides["queries"][pairs[:, 0]]
    arrays: dict[str, Any] = {
        "positives": pairs,
        "negatives": random.integers(0, DOCUMENTS, (QUERIES, 3)),
        "document_text": np.array([f"text {n % 15}" for n in range(DOCUMENTS)]),
        "query_id": np.array([f"q{n}" for n in range(QUERIES)]),
    }
    np.savez("pairs.npz", **sides, **arrays)
    other = {name: rows + random.normal(size=rows.shape) for name, rows in sides.items()}
    np.savez("guide.npz", **other, positives=pairs, query_id=arrays["query_id"])
    bare = {name.replace("queries", "users").replace("documents", "items"): rows for name, rows in sides.items()}
    np.savez("bare.npz", **bare, positives=pairs)
    np.savez("views.npz", queries=sides["queries"], documents=sides["documents"][:QUERIES])
    np.savez("set.npz", embeddings=random.normal(size=(40, WIDTH)), labels=np.arange(40) % 8)


def library_rows(source: str, changes: dict[str, Any], **request: Any) -> pd.DataFrame:
    """Return the rows of the library."""
    options = {"objectives": ("ntxent",), "probes": COCOS, "batch_size": 8, **changes}
    embedded = load(source, **request)
    guide = load("guide.npz") if "gist" in options.get("masks", ()) else None
    return Sweep(**options).run(embedded, guide=guide).summary


def require_equal(rows: pd.DataFrame, wanted: pd.DataFrame) -> None:
    columns = ["objective", "direction", "statistic", "mean", "std", "sampling", "sides"]
    pd.testing.assert_frame_equal(rows[columns], wanted[columns].reset_index(drop=True), check_dtype=False)


def typed(options: str, source: str = "pairs.npz") -> str:
    objective = "" if "--objective" in options else "--objective ntxent "
    return f"cocos {source} {objective}--batch-size 8 {options}"


SUPCON: dict[str, Any] = {"objectives": ("supcon",)}
EVERY_RULE: dict[str, Any] = {"masks": ("above", "same_item", "gist"), "terms": ("q2q", "d2d")}


@each(
    "source, options, changes, directions, sampling",
    [
        ("pairs.npz", "--negatives own --mined 2", {"negatives": "own", "mined": 2}, {"q2d", "d2q"},
         "pairs, own mined negatives, 2 mined"),
        ("pairs.npz", "--mask above --mask same-item --mask gist --guide guide.npz --terms q2q,d2d", EVERY_RULE,
         {"q2d"}, "pairs, mined negatives, terms q2q+d2d, mask above+same_item+gist"),
        ("views.npz", "--sampling views", {"sampling": "views"}, {"all"}, "views"),
        ("set.npz", "--objective supcon --per-class 2", {"per_class": 2, **SUPCON}, {"all"}, "classes of 2"),
    ],
)  # fmt: skip
def test_rows_are_those_of_the_library(
    source: str, options: str, changes: dict[str, Any], directions: set[str], sampling: str
) -> None:
    rows = rows_of(typed(options, source))
    require_equal(rows, library_rows(source, changes))
    assert set(rows["direction"]) == directions and set(rows["sampling"]) == {sampling}


CHANGES: list[dict[str, Any]] = [
    {"negatives": "own"}, {"negatives": "none"}, {"mined": 2}, {"masks": ("same_item",)}, {"masks": ("same_text",)},
    {"masks": ("above",)}, {"masks": ("above:margin=0.2",)}, {"masks": ("percent",)}, {"masks": ("above", "same_item")},
    {"masks": ("gist",)}, {"terms": ("q2q", "d2d")}, {"sampling": "views"}, {"sampling": "groups", **SUPCON},
]  # fmt: skip


def test_every_option_changes_the_numbers() -> None:
    plain = library_rows("pairs.npz", {})["mean"]
    for changes in CHANGES:
        means = library_rows("pairs.npz", changes)["mean"]
        assert len(means) != len(plain) or not np.array_equal(means, plain, equal_nan=True), changes


def test_prefixes_are_sources_of_their_own() -> None:
    rows = rows_of(typed("--dims 2,full"))
    whole = load("pairs.npz")
    for name, embedded in (("pairs.npz dims=2", whole.prefix(2)), ("pairs.npz", whole)):
        wanted = Sweep(("ntxent",), COCOS, batch_size=8).run(embedded).summary
        require_equal(rows[rows["source"] == name].reset_index(drop=True), wanted)
    assert list(rows["source"].unique()) == ["pairs.npz dims=2", "pairs.npz"]


def test_sides_are_called_as_typed() -> None:
    rows = rows_of(typed("--sides user/item", "bare.npz"))
    require_equal(rows, library_rows("bare.npz", {}, sides="user/item"))
    assert set(rows["direction"]) == {"u2i", "i2u"} and set(rows["sides"]) == {"user/item"}
    assert set(rows_of(typed("--sides product", "set.npz"))["sides"]) == {"product"}


OPTIONS = (
    "--negatives own", "--negatives none", "--mined 2", "--mask same-item", "--mask above", "--mask above:margin=0.2",
    "--mask above --mask same-item", "--mask gist --guide guide.npz", "--terms q2q,d2d", "--sampling views",
    "--same-image mask", "--seed 7", "--objective supcon --sampling groups",
)  # fmt: skip


def test_a_frame_resumes(tmp_path: Path) -> None:
    words = f"{typed('--mined 2 --mask above --mask gist --guide guide.npz')} --out frame --format json --quiet"
    first = lossscope(words)
    assert first.exit_code == 0, first.stderr
    parts = sorted((tmp_path / "frame").glob("part-*.parquet"))
    before = {part: (part.read_bytes(), part.stat().st_mtime_ns) for part in parts}
    assert parts and lossscope(words).stdout == first.stdout
    assert {part: (part.read_bytes(), part.stat().st_mtime_ns) for part in parts} == before


@each("options", OPTIONS)
def test_a_frame_of_other_options_is_refused(options: str) -> None:
    if not Path("frame").exists():
        assert lossscope(f"{typed('')} --out frame").exit_code == 0
    refused = lossscope(f"{typed(options)} --out frame --quiet")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "frame" in refused.stderr and refused.stderr.count("Error") == 1


def command_of(folder: str) -> dict[str, Any]:
    command: dict[str, Any] = json.loads(Path(folder, "manifest.json").read_text())["command"]
    return command


def test_a_frame_states_rules_in_full_and_what_the_guide_was() -> None:
    assert lossscope(f"{typed('--mask above --mask gist --guide guide.npz')} --out frame").exit_code == 0
    command = command_of("frame")
    assert command["masks"] == ["above:margin=0.1", "gist:margin=0,strategy=absolute"]
    assert (command["guide"], command["guide_origin"]) == ("guide.npz", load("guide.npz").fingerprint)
    again = typed("--mask above:margin=0.1 --mask gist:strategy=absolute --guide guide.npz")
    assert lossscope(f"{again} --out frame").exit_code == 0
    np.savez("guide.npz", **{**np.load("guide.npz"), "queries": np.random.default_rng(5).normal(size=(QUERIES, 3)),
                             "documents": np.random.default_rng(6).normal(size=(DOCUMENTS, 3))})  # fmt: skip
    result = lossscope(f"{again} --out frame")
    assert result.exit_code == 1 and "holds the frame of another command" in result.stderr


@pytest.mark.parametrize(
    ("dims", "folders"), [("2", ["frame"]), ("2,full", ["frame/dims-2", "frame/dims-full"])], ids=["one", "two"]
)
def test_every_prefix_has_a_frame(dims: str, folders: list[str]) -> None:
    """The frame of a single prefix was called dims-full."""
    assert lossscope(f"{typed(f'--dims {dims}')} --out frame").exit_code == 0
    assert sorted(str(file.parent) for file in Path().glob("**/manifest.json")) == folders
    assert command_of(folders[0])["origin"].endswith("-2")


def test_the_frame_of_images_and_captions_states_what_it_did_before(dump: Path) -> None:
    assert lossscope(f"cocos {dump} --objective ntxent --batch-size 8 --out frame").exit_code == 0
    assert command_of("frame").keys() == {"name", "source", "origin", "split", *OPTIONS_BEFORE}
    assert command_of("frame")["precision"] == "float32"  # an option of earlier versions, whose frames resume
    assert lossscope(f"{typed('--negatives own --mined 2 --mask above')} --out other").exit_code == 0
    more = ["negatives", "mined", "masks"]
    assert command_of("other").keys() == {"name", "source", "origin", "split", *OPTIONS_BEFORE, *more}
    assert {*OPTIONS_BEFORE} - {"precision"} < {field.name for field in dataclasses.fields(Sweep)}


def test_rows_of_images_and_captions_have_the_keys_they_had(dump: Path) -> None:
    report = json.loads(lossscope(f"cocos {dump} --objective ntxent --batch-size 8 --format json -q").stdout)
    assert list(report) == ["schema", "command", "rows"] and report["schema"] == "lossscope.summary/1"
    assert list(report["command"]) == ["name", "sources", "split", "convention", "unit"]
    assert {tuple(row) for row in report["rows"]} == {SUMMARY_KEYS}
    assert {row["direction"] for row in report["rows"]} == {"i2t", "t2i"}
    other = json.loads(lossscope(f"{typed('')} --format json -q").stdout)
    assert list(other) == list(report) and list(other["command"]) == list(report["command"])
    assert {tuple(row) for row in other["rows"]} == {(*SUMMARY_KEYS, "sides")}


def test_rows_of_both_kinds_stand_in_one_table(dump: Path) -> None:
    rows = rows_of(f"cocos {dump} pairs.npz --objective ntxent --batch-size 8")
    sides = rows.drop_duplicates("source").set_index("source")["sides"]
    assert sides["pairs.npz"] == "query/document" and pd.isna(sides[str(dump)])


def test_a_rule_for_texts_needs_the_inputs_of_both_sides() -> None:
    result = lossscope(f"{typed('--mask same-text', 'guide.npz')} --out frame --quiet")
    assert (result.exit_code, result.stdout) == (1, "") and not Path("frame").exists()
    assert (
        "lossscope cannot use --mask same-text: it needs the inputs (texts, pixels, ids) of both sides" in result.stderr
    )


@each("format", ["table", "csv", "markdown", "latex"])
def test_every_format_has_the_words_of_the_source(format: str) -> None:
    result = lossscope(f"{typed('--mined 2 --mask above')} --format {format} --quiet")
    assert result.exit_code == 0 and "q2d" in result.stdout
    assert "2 mined" in result.stdout and "i2t" not in result.stdout and "image" not in result.stdout


@each(
    "words, said",
    [
        ("cocos pairs.npz --mined 2", ""),
        ("cocos bare.npz --sides user/item --mined 2", "--mined is not used: bare.npz has no mined negatives."),
        (
            "cocos bare.npz --sides user/item --mined 2 --negatives own",
            "--negatives and --mined are not used: bare.npz has no mined negatives.",
        ),
        ("cocos pairs.npz --per-class 4", "--per-class is not used: pairs.npz is no labelled set."),
        ("cocos pairs.npz --split val", "--split is not used: pairs.npz is of one split already."),
        ("cocos set.npz --per-class 2", ""),
    ],
)
def test_an_option_of_another_kind_of_source_is_a_warning(words: str, said: str) -> None:
    result = lossscope(f"{words} --objective ntxent --batch-size 8 --quiet")
    assert result.exit_code == 0
    assert result.stderr.strip() == (f"Warning: {said}" if said else "")
