"""SCAN: scores and recalls are those of its authors' code, on files as the authors wrote them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import lossscope
from lossscope.errors import InputError
from lossscope.sources.checkpoints.conversion import describe, open_released
from tests.authors.score_answers import require_scores
from tests.authors.vse_answers import VseAnswers
from tests.authors.vse_files import write_checkpoint, write_vocabulary

ANSWERS = VseAnswers("scan")


@pytest.mark.parametrize("name", ANSWERS.content["cases"])
def test_scores_and_recalls_are_those_of_the_authors(name: str, tmp_path: Path) -> None:
    require_scores(ANSWERS, name, ANSWERS.open(name, tmp_path))


def test_a_converted_file_takes_any_number_of_regions_of_its_width(tmp_path: Path) -> None:
    path, data = ANSWERS.write("ten_regions", tmp_path)
    checkpoint, _ = open_released(path)
    assert describe(checkpoint)["items"] == "(any, 6)"
    checkpoint.save(tmp_path / "scan.pt")
    require_scores(
        ANSWERS, "ten_regions", lossscope.load(tmp_path / "scan.pt", data=f"precomp:root={data}", split="test")
    )
    with pytest.raises(InputError, match=r"trained on, \(any, 6\); got \(16, 16\)"):
        checkpoint.for_items((16, 16), "it was trained on")


@pytest.mark.parametrize("norm", ["l1norm", "clipped_l1norm"])
def test_a_norm_that_the_authors_code_cannot_compute_is_refused(norm: str, tmp_path: Path) -> None:
    case = ANSWERS.case("t2i_Mean")
    path = write_checkpoint(tmp_path / "a.pth.tar", replace(case, options={**case.options, "raw_feature_norm": norm}))
    with pytest.raises(InputError, match=f"raw_feature_norm of the file must be one of .*; got '{norm}'"):
        open_released(path)


def test_an_option_that_the_authors_code_does_not_have_is_refused_unless_accepted(tmp_path: Path) -> None:
    case = ANSWERS.case("t2i_Mean")
    words = write_vocabulary(tmp_path / "words.json", ANSWERS.content["words"])
    path = write_checkpoint(tmp_path / "a.pth.tar", replace(case, options={**case.options, "use_glove": True}))
    with pytest.raises(InputError, match="must have a known effect; got use_glove=True"):
        open_released(path, words)
    assert open_released(path, words, accepted_options=["use_glove"])[0].encoder.startswith("scan:")


def test_the_length_of_a_weight_norm_may_be_a_vector_of_one_as_torch_wrote_it_once(tmp_path: Path) -> None:
    path, data = ANSWERS.write("weight_norm", tmp_path)
    image, text = ANSWERS.case("weight_norm").states()
    old = [{**image, "fc.weight_g": image["fc.weight_g"].reshape(1)}, text]
    write_checkpoint(path, ANSWERS.case("weight_norm"), old, legacy=True)
    require_scores(ANSWERS, "weight_norm", lossscope.load(path, data=f"precomp:root={data}", split="test", cache=False))
