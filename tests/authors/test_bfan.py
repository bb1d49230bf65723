"""BFAN: scores and recalls are those of its authors' code, on files and captions as ids as the authors wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

import lossscope
from tests.authors.score_answers import require_scores
from tests.authors.score_files import write_precaps
from tests.authors.vse_answers import VseAnswers
from tests.authors.vse_files import write_checkpoint, write_vocabulary

ANSWERS = VseAnswers("bfan")


@pytest.mark.parametrize("name", ANSWERS.content["cases"])
def test_scores_and_recalls_are_those_of_the_authors(name: str, tmp_path: Path) -> None:
    case, rows = ANSWERS.case(name), ANSWERS.content["ids"]
    write_precaps(tmp_path / "data", case, rows if name == "without_ends" else [[1, *row, 2] for row in rows])
    words = write_vocabulary(tmp_path / "f30k_precomp_vocab.json", ANSWERS.content["words"])
    path = write_checkpoint(tmp_path / "model_best.pth.tar", case)
    data = f"precaps:root={tmp_path / 'data'},vocab={words}"
    require_scores(ANSWERS, name, lossscope.load(path, data=data, split="test", cache=False))
