"""Is the summary of a finished frame what the sweep returned, and is any other folder refused?"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.sweep import Sweep
from lossscope.errors import InputError
from lossscope.io.frame_summary import read_measurement
from lossscope.io.frames import Frame
from lossscope.io.manifests import read_manifest, write_manifest
from lossscope.sources.base import from_arrays

SWEEP = Sweep(("triplet:margin=0.2",), probes=("cocos", "hubness"), batch_size=16)


def make_split() -> SplitEmbeddings:
    random = np.random.default_rng(0)
    arrays = {"queries": random.normal(size=(40, 4)), "documents": random.normal(size=(40, 4))}
    return from_arrays(arrays)


def write_frame(path: Path) -> pd.DataFrame:
    return SWEEP.run(make_split(), Frame.open(path, {"name": "cocos"})).summary


def test_a_finished_frame_holds_the_summary_to_the_last_bit(tmp_path: Path) -> None:
    summary = write_frame(tmp_path / "frame")
    measured = read_measurement(tmp_path / "frame")
    pd.testing.assert_frame_equal(measured.rows, summary, check_dtype=False, rtol=0, atol=0)
    assert measured.items == {"queries": 40, "documents": 40} and measured.command == {"name": "cocos"}
    assert measured.data is None and measured.rows["low"].notna().any()


def test_the_same_command_again_adds_the_summary_of_a_frame_that_lacks_it(tmp_path: Path) -> None:
    summary = write_frame(tmp_path / "frame")
    manifest = read_manifest(tmp_path / "frame" / "manifest.json")
    write_manifest(tmp_path / "frame" / "manifest.json", {k: v for k, v in manifest.items() if k != "summary"})
    with pytest.raises(InputError, match="Run the same command again"):
        read_measurement(tmp_path / "frame")
    write_frame(tmp_path / "frame")
    pd.testing.assert_frame_equal(read_measurement(tmp_path / "frame").rows, summary, check_dtype=False)


def test_the_version_is_that_of_the_parts_whoever_runs_the_command_again(tmp_path: Path) -> None:
    current = importlib.metadata.version("lossscope")
    write_frame(tmp_path)
    assert read_measurement(tmp_path).versions == (current,)
    manifest = tmp_path / "manifest.json"
    entries = read_manifest(manifest)
    of_parts = [{**part, "version": "0.0.9"} for part in entries["parts"]]
    write_manifest(manifest, {**entries, "parts": of_parts})
    write_frame(tmp_path)
    assert read_measurement(tmp_path).versions == ("0.0.9",)


def test_a_frame_whose_parts_state_no_version_keeps_its_own(tmp_path: Path) -> None:
    write_frame(tmp_path)
    manifest = tmp_path / "manifest.json"
    entries = read_manifest(manifest)
    parts = [{name: value for name, value in part.items() if name != "version"} for part in entries["parts"]]
    write_manifest(manifest, {**entries, "parts": parts, "version": "0.0.9"})
    write_frame(tmp_path)
    assert read_measurement(tmp_path).versions == ("0.0.9",)
    write_manifest(manifest, {**entries, "parts": parts})
    write_frame(tmp_path)
    assert read_measurement(tmp_path).versions == ("",)


def test_what_is_damaged_changed_unfinished_or_no_frame_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "frame"
    write_frame(path)
    with pytest.raises(InputError, match="it is a file"):
        read_measurement(path / "manifest.json")
    (part,) = path.glob("part-*.parquet")
    whole = part.read_bytes()
    part.write_bytes(whole[:-9] + b"x" + whole[-8:])
    with pytest.raises(InputError, match="part-00000"):
        read_measurement(path)
    part.write_bytes(whole)
    manifest = path / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"mean": ', '"mean": 1', 1))
    with pytest.raises(InputError, match="SHA-256"):
        read_measurement(path)
    manifest.write_text(text)
    entries = read_manifest(manifest)
    write_manifest(manifest, {**entries, "done": False})
    with pytest.raises(InputError, match="finished frame"):
        read_measurement(path)
    for broken in ([1], [{"mean": "x"}], {}):
        write_manifest(manifest, {**entries, "summary": broken})
        with pytest.raises(InputError):
            read_measurement(path)
    rows = [{**row, "mean": "many"} for row in entries["summary"]]
    write_manifest(manifest, {**entries, "summary": rows})
    with pytest.raises(InputError, match="column mean"):
        read_measurement(path)
    with pytest.raises(InputError):
        read_measurement(tmp_path / "absent")
