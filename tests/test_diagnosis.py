"""`lossscope.diagnose`: the numbers of a sweep, from a path or from arrays, and what a notebook shows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import lossscope
from lossscope.core.embedded import SplitEmbeddings
from lossscope.diagnosis import Diagnosis
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.sources.base import load

RNG = np.random.default_rng(0)
IMAGES, CAPTIONS = (RNG.normal(size=(n, 6)) for n in (12, 24))
UNIT = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (IMAGES, CAPTIONS)]
OWNER = np.repeat(np.arange(12), 2)


def test_a_checkpoint_gives_the_numbers_of_a_sweep(tiny_checkpoint: Path) -> None:
    result = lossscope.diagnose(tiny_checkpoint, ["cocos", "similarity"], batch_size=16, seed=3, split="test")
    sweep = Sweep(("ntxent:tau=0.1",), ("cocos:eps=0.01,convention=corrected", "similarity"), batch_size=16, seed=3)
    expected = sweep.run(load(tiny_checkpoint, split="test"))
    pd.testing.assert_frame_equal(result.rows, expected.summary)
    pd.testing.assert_frame_equal(result.batches, expected.batches)
    assert result.notes == ()


def test_arrays_tensors_and_embeddings_of_one_kind_are_one_source() -> None:
    ids = [str(i) for i in range(12)], [str(i) for i in range(24)]
    sides = [torch.from_numpy(x) for x in UNIT]
    sources: list[Any] = [
        tuple(UNIT),
        tuple(x.requires_grad_() for x in sides),
        [x.tolist() for x in UNIT],
        SplitEmbeddings("arrays", *(x.detach() for x in sides), None, OWNER, *ids, "f"),
    ]
    result = [lossscope.diagnose(source, "cocos", "ntxent", caption_image=OWNER).rows for source in sources]
    for other in result[1:]:
        pd.testing.assert_frame_equal(result[0], other)
    assert result[0]["mean"].notna().any()


def test_who_captions_belong_to_changes_the_numbers() -> None:
    stated, reversed_owners = (
        lossscope.diagnose(tuple(UNIT), "similarity", caption_image=owner).rows.set_index(["direction", "statistic"])
        for owner in (OWNER, OWNER[::-1])
    )
    expected = (UNIT[0][OWNER] * UNIT[1]).sum(1).mean()
    assert stated["mean"]["t2i", "s_pos"] == pytest.approx(expected)
    assert reversed_owners["mean"]["t2i", "s_pos"] != pytest.approx(expected)


def test_the_default_is_the_usual_objectives_and_cheap_probes_and_a_note_says_so() -> None:
    result = lossscope.diagnose((IMAGES, CAPTIONS[:12]))
    specs = ["triplet:margin=0.2", "triplet_sh:margin=0.2", "ntxent:tau=0.1"]
    assert list(result.rows["objective"].dropna().unique()) == specs
    assert {"cocos", "similarity", "recall"} <= set(result.rows["probe"])
    assert "the source does not say what it was trained with: probed under triplet, triplet-sh, ntxent" in (
        result.notes
    )
    assert any("all 12 images were normalised to unit length" in note for note in result.notes)


def test_a_probe_that_cannot_run_is_named_and_the_others_run() -> None:
    result = lossscope.diagnose((IMAGES, CAPTIONS[:12]), "all", "ntxent")
    assert "parameter_gradients" not in set(result.rows["probe"])
    assert any(note.startswith("parameter_gradients is left out: ") for note in result.notes)


def test_ranges_of_objectives_are_written_out() -> None:
    result = lossscope.diagnose((IMAGES, CAPTIONS[:12]), "cocos", "ntxent:tau=0.1..0.3/3")
    assert list(result.rows["objective"].unique()) == ["ntxent:tau=0.1", "ntxent:tau=0.2", "ntxent:tau=0.3"]


def test_a_notebook_shows_tables_and_a_terminal_a_line() -> None:
    result = lossscope.diagnose((IMAGES, CAPTIONS[:12]), ["cocos", "similarity"], ["ntxent", "triplet"])
    assert isinstance(result, Diagnosis)
    first = repr(result).splitlines()[0]
    assert first == (
        f"<Diagnosis of arrays: {len(result.rows)} statistics of similarity, cocos; objectives ntxent:tau=0.1, "
        "triplet:margin=0.2>"
    )
    page = result._repr_html_()
    assert page.count("<table") == len(result.tables()) == 2
    assert "<p>all 12 images were normalised" in page
    shown = {row.plain() for table in result.tables() for line in table.rows for row in line[1:2]}
    assert shown == set(result.rows["statistic"]) - {"skipped"}


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        (
            (IMAGES, CAPTIONS),
            {},
            "caption_image must be given, .* unless they are pairs; got 24 captions for 12 images",
        ),
        (
            (IMAGES, CAPTIONS),
            {"caption_image": OWNER[:5]},
            r"caption_image must be 24 integers, .*; got \(5,\) of int64",
        ),
        ((IMAGES, CAPTIONS), {"caption_image": OWNER * 1.0}, "must be 24 integers, .* of float64"),
        ((IMAGES, CAPTIONS), {"caption_image": OWNER + 1}, r"must be rows 0..11; got 1..12"),
        ((IMAGES, CAPTIONS[:12, :3]), {}, r"must have one width; got \(12, 6\) and \(12, 3\)"),
        ((IMAGES[0], CAPTIONS), {}, r"images must be a matrix \(items, width\) of floats; got \(6,\)"),
        ((IMAGES, OWNER[:, None]), {}, "captions must be a matrix .* of torch.int64"),
        ((IMAGES * np.nan, CAPTIONS[:12]), {}, "images must be finite; row 0 is not"),
        ((IMAGES, CAPTIONS[:12]), {"split": "test"}, "split must be left out unless source is a path"),
        (IMAGES, {}, r"source must be a path, loaded embeddings, \(images, captions\) or arrays by name; got ndarray"),
        ("gone.pt", {}, "source must exist; there is nothing at gone.pt"),
        ((IMAGES, CAPTIONS[:12]), {"probes": ["parameter_gradients"]}, "parameter_gradients|gradients of"),
        ((IMAGES, CAPTIONS[:12]), {"objectives": ["nonsense"]}, "nonsense"),
    ],
)
def test_input_that_cannot_be_diagnosed_is_refused(source: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lossscope.diagnose(source, **more)


def test_a_function_is_an_objective_like_any_other() -> None:
    def rows(S: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(S / 0.1, torch.arange(len(S)))

    result = lossscope.diagnose((UNIT[0], UNIT[0]), "cocos", [rows, "ntxent:tau=0.1"]).rows
    theirs, ours = (result[result["objective"] == name] for name in ("rows", "ntxent:tau=0.1"))
    assert set(theirs["direction"]) == {"i2t"} and set(theirs["weight_unit"]) == {"relative"}
    assert theirs["mean"].tolist() == pytest.approx(ours[ours["direction"] == "i2t"]["mean"].tolist(), rel=1e-5)
    alone = lossscope.diagnose((UNIT[0], UNIT[0]), "cocos", rows).rows
    pd.testing.assert_frame_equal(alone, theirs.reset_index(drop=True), check_dtype=False)
    with pytest.raises(InputError, match="objectives must have different names; got lambda twice"):
        lossscope.diagnose((UNIT[0], UNIT[0]), "cocos", [lambda S: rows(S), lambda S: rows(2 * S)])
    with pytest.raises(InputError, match="objective must be a spec such as"):
        lossscope.diagnose((UNIT[0], UNIT[0]), "cocos", [3])  # type: ignore[list-item]


def test_the_word_all_means_one_batch() -> None:
    rows = [lossscope.diagnose((IMAGES, IMAGES), "similarity", batch_size=size).rows for size in ("all", None)]
    pd.testing.assert_frame_equal(*rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": "64"}, "batch_size must be a whole number or \"all\"; got '64'"),
        ({"seed": 0.5}, "seed must be a whole number; got 0.5"),
        ({"objective": "ntxent"}, "got 'objective'; did you mean 'objectives'"),
        ({"splitt": "test"}, "got 'splitt'; did you mean 'split'"),
    ],
)
def test_options_that_there_are_none_of_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lossscope.diagnose((IMAGES, IMAGES), "similarity", **options)


def test_a_misspelt_option_of_a_source_is_refused() -> None:
    with pytest.raises(InputError, match="got 'splitt'; did you mean 'split'"):
        load("any.npz", splitt="test")


def test_queries_and_documents_by_name() -> None:
    rng = np.random.default_rng(0)
    queries, documents = rng.standard_normal((40, 6)), rng.standard_normal((60, 6))
    arrays = {
        "queries": torch.from_numpy(queries),
        "documents": documents,
        "positives": np.stack([np.arange(40), np.arange(40) + 5], 1),
        "negatives": rng.integers(0, 60, (40, 2)),
    }
    found = lossscope.diagnose(arrays, "cocos", "ntxent:tau=0.05", batch_size=16)
    assert set(found.rows["direction"]) == {"q2d", "d2q"}
    assert set(found.rows["sides"]) == {"query/document"}


def test_a_labelled_set_by_name() -> None:
    X = np.random.default_rng(1).standard_normal((48, 6))
    found = lossscope.diagnose({"embeddings": X, "labels": np.arange(48) // 4}, "all", "supcon", batch_size=16)
    assert set(found.rows["direction"]) == {"all"}
    assert {"cocos", "recall", "tangent"} <= set(found.rows["probe"])
    with pytest.raises(InputError, match="arrays must be of two sides, or of one labelled set; got x"):
        lossscope.diagnose({"x": X})


def test_several_objectives_are_counted_in_one_unit() -> None:
    """Cheap probes beside `cocos` too, and the usual objectives where none is named."""
    several = ["ntxent", "supcon"]
    for objectives, unit in ((None, "relative"), (several, "relative"), ("ntxent:tau=0.05..0.2/3", "paper")):
        rows = lossscope.diagnose(tuple(UNIT), "cheap", objectives, caption_image=OWNER, interval=None).rows
        assert set(rows["weight_unit"].dropna()) == {unit}, objectives
        assert {"cocos", "weight_mass"} <= set(rows.loc[rows["weight_unit"].notna(), "probe"])
    stated = lossscope.diagnose(tuple(UNIT), "cocos:unit=paper", several, caption_image=OWNER).rows
    assert set(stated["weight_unit"]) == {"paper"}
