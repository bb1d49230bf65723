"""Does a manifest return the entries that were written, or refuse, whatever happened to the file since?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.io.manifests import read_manifest, write_manifest
from tests.each import each

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=60)
@given(entries=st.dictionaries(st.text(max_size=4).filter(lambda name: name != "sha256"), VALUES, max_size=4))
def test_entries_come_back(entries: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("manifest") / "manifest.json"
    write_manifest(file, entries)
    assert read_manifest(file) == entries
    write_manifest(file, {**entries, "sha256": "of before"})
    assert read_manifest(file) == entries


@each("name, value", [("eps", 0.02), ("eps", "0.01"), ("parts", [2, 1]), ("done", 0), ("more", None), ("none", False)])
def test_a_changed_entry_is_refused(name: str, value: object, tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    write_manifest(file, {"eps": 0.01, "parts": (1, 2), "done": False, "none": None, 1: "one"})  # type: ignore[dict-item]
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, name: value}), encoding="utf-8")
    with pytest.raises(InputError, match=r"entries of .*manifest\.json must match the SHA-256"):
        read_manifest(file)


def test_a_manifest_of_before_is_read(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"schema": "some/1"}', encoding="utf-8")
    assert read_manifest(tmp_path / "manifest.json") == {"schema": "some/1"}
