"""SGRAF: scores and recalls are those of its authors' code, on files as the authors wrote them, ensembles too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from lossscope_cli import app
from typer.testing import CliRunner

import lossscope
from lossscope.errors import InputError
from tests.authors.answers import STATISTICS
from tests.authors.score_answers import require_recalls, require_scores
from tests.authors.score_files import SgrafCase
from tests.authors.vse_answers import VseAnswers
from tests.authors.vse_files import write_features


class SgrafAnswers(VseAnswers):
    """The known answers of SGRAF."""

    def case(self, name: str) -> SgrafCase:
        known = self.content["cases"][name]
        return SgrafCase(known["options"], tuple(known["features"]), known["shapes"], known["seed"])


ANSWERS = SgrafAnswers("sgraf")


@pytest.mark.parametrize("name", ANSWERS.content["cases"])
def test_scores_and_recalls_are_those_of_the_authors(name: str, tmp_path: Path) -> None:
    require_scores(ANSWERS, name, ANSWERS.open(name, tmp_path))


def test_the_ensemble_has_the_recalls_of_the_mean_of_the_authors_scores(tmp_path: Path) -> None:
    sources = [ANSWERS.open(name, tmp_path / name) for name in ("sgr", "saf")]
    require_recalls(ANSWERS.content["ensemble"], sources)


@pytest.mark.parametrize(("folds", "metrics"), [(1, "metrics"), (5, "fold_metrics")])
def test_the_command_line_gives_the_recalls_of_the_ensemble(folds: int, metrics: str, tmp_path: Path) -> None:
    (sgr, data), (saf, _) = (ANSWERS.write(name, tmp_path / name) for name in ("sgr", "saf"))
    options = [
        "--data",
        f"precomp:root={data}",
        "--split",
        "test",
        "--folds",
        str(folds),
        "--format",
        "json",
        "--no-cache",
    ]
    result = CliRunner().invoke(app, ["eval", str(sgr), str(saf), "--ensemble", *options])
    assert result.exit_code == 0, result.output
    rows = {(row["direction"], row["statistic"]): row["mean"] for row in json.loads(result.stdout)["rows"]}
    for direction, values in ANSWERS.content["ensemble"][metrics].items():
        assert [rows[direction, name] for name in STATISTICS] == pytest.approx(values)


def test_another_number_of_regions_than_that_of_the_batch_norm_is_refused(tmp_path: Path) -> None:
    path, data = ANSWERS.write("saf", tmp_path)
    write_features(data, replace(ANSWERS.case("saf"), features=(20, 10, 6)), ANSWERS.content["captions"])
    with pytest.raises(InputError, match=r"items must have the shape .* was trained on, \(36, 6\); got \(10, 6\)"):
        lossscope.load(path, data=f"precomp:root={data}", split="test", cache=False)
