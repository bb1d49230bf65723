"""Is an evaluation of another version made again, instead of being read beside new ones?"""

from __future__ import annotations

import json
from pathlib import Path

from lossscope.studies.evaluation import SCHEMA, evaluation_state


def test_only_an_evaluation_of_this_version_is_read(tmp_path: Path) -> None:
    assert evaluation_state(tmp_path) == "trained, but its evaluation is missing"
    manifest = tmp_path / "evaluation" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text(json.dumps({"schema": "lossscope.evaluation/1"}), encoding="utf-8")
    assert evaluation_state(tmp_path) == "trained, but evaluated by another version of lossscope"
    manifest.write_text(json.dumps({"schema": SCHEMA}), encoding="utf-8")
    assert evaluation_state(tmp_path) is None
