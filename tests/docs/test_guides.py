"""Does the Python of README, of "start" and of "concepts" run, block after block?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import lossscope

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("start/*.md")),
    *sorted((ROOT / "docs").glob("concepts/*.md")),
]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
WITH_PYTHON = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


def test_guides_have_python() -> None:
    assert {page.stem for page in WITH_PYTHON} >= {"README", "my-loop", "my-embeddings", "my-bi-encoder", "weights"}


DUMPS = {  # that a page writes, and the number of rows of their second side
    "my-embeddings": {"embeddings": 2000, "qa": 500, "products": 500},
    "my-bi-encoder": {"model": 3},
    "retrieval": {"texts": 200},
}


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_python_of_a_guide_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """README assumes S, and that lossscope is imported."""
    monkeypatch.chdir(tmp_path)
    names = {"lossscope": lossscope, "S": torch.eye(8)} if page.stem == "README" else {}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, page.name, "exec"), names)
    if page.stem == "my-loop":
        assert len((tmp_path / "scope.csv").read_text(encoding="utf-8").splitlines()) == 11
    dumps = {path.stem: lossscope.load(str(path)) for path in tmp_path.glob("*.npz")}
    assert {name: len(split.caption_ids) for name, split in dumps.items()} == DUMPS.get(page.stem, {})
