"""Does a study rank in folds and by ensembles, after the runs that these need, and refuse what is none?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.io.evaluation_folder import read_frame
from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load
from lossscope.studies.launchers.local import Local
from lossscope.studies.report import read_runs
from lossscope.studies.study import Study, write_status
from lossscope.studies.study_file import StudyRun, read_study_file
from lossscope.studies.verify import verify
from lossscope.studies.worker import work
from lossscope.tables import li2022_1
from tests.each import each
from tests.tiny import begin_study

STUDY = """
name = "tiny"
paper = "li2022"
[recipe]
epochs = 1
batch_size = 8
[[data]]
name = "Flickr30k"
spec = "scenes:train=16,val=8,test=10,size=16"
published = "flickr30k"
[[data]]
name = "scenes"
spec = "scenes:train=16,val=8,test=10,size=16,seed=1"
published = "mscoco"
folds = 5
[[encoders]]
name = "A"
spec = "vsepp:width=4,dim=8,words=8"
[[encoders]]
name = "B"
spec = "vsepp:width=4,dim=16,words=8"
[[ensembles]]
name = "BFAN*"
of = ["A", "B"]
published = "BFAN*"
[[objectives]]
name = "Unified"
spec = "unified:margin=0.2,gamma=50"
[examine]
probes = ["cocos"]
what_if = ""
singles = []
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Return a study of two data sets, one in folds, two encoders and their ensemble, all done."""
    begun = begin_study(tmp_path_factory.mktemp("ensembles"), STUDY)
    for run in begun.grid.runs:
        work(begun.path, run.key)
    return begun


def of(study: Study, data: str, encoder: str) -> StudyRun:
    (run,) = [run for run in study.grid.runs if (run.data, run.encoder) == (data, encoder)]
    return run


def test_an_ensemble_ranks_by_the_mean_of_its_members(study: Study) -> None:
    run = of(study, "scenes", "BFAN*")
    assert run.key == "scenes--bfan-star--unified--seed0" and run.method == "BFAN*"
    assert run.needs == (of(study, "scenes", "A").key, of(study, "scenes", "B").key)
    rows = read_frame(study.folder(run) / "run", "rows")
    assert rows is not None and set(rows["probe"]) == {"recall"}
    members = [load(study.path / "runs" / key / "run", split="test") for key in run.members]
    for folds, sampling in ((1, "test split"), (5, "5 folds")):
        expected = evaluate(members, folds)
        measured = rows[rows["sampling"] == sampling]
        pd.testing.assert_series_equal(
            measured["mean"].reset_index(drop=True), expected["mean"].reset_index(drop=True), check_exact=True
        )
    ranks = read_frame(study.folder(run) / "run", "retrieval")
    assert ranks is not None and len(ranks) == 60
    first = rows[(rows["sampling"] == "test split") & (rows["statistic"] == "R@1") & (rows["direction"] == "i2t")]
    assert float(first["mean"].iloc[0]) == pytest.approx(100 * (ranks[ranks["direction"] == "i2t"]["rank"] < 1).mean())


def test_folds_are_of_the_data_that_asks_for_them(study: Study) -> None:
    for data, expected in (("Flickr30k", {"test split"}), ("scenes", {"test split", "5 folds"})):
        rows = read_frame(study.folder(of(study, data, "A")) / "run", "rows")
        assert rows is not None and set(rows.loc[rows["probe"] == "recall", "sampling"]) == expected
    assert {status.status for status in study.statuses()} == {"done"}
    score = study.status(of(study, "scenes", "A")).rsum
    whole = evaluate([load(study.folder(of(study, "scenes", "A")) / "run", split="test")])
    assert score == float(whole.loc[whole["statistic"] == "rsum", "mean"].iloc[0])  # not the mean over folds


def test_the_papers_table_shows_both_as_what_they_are(study: Study) -> None:
    results = read_runs([study.path])
    (i2t, _) = li2022_1.build(results.rows)
    lines = [[row[k].plain() for k in (0, 1, 3)] for row in i2t.rows]
    assert lines == [[data, name, how] for data, how in (("Flickr30k", "test split"), ("scenes", "5 folds"))
                     for name in ("A", "B", "BFAN*")]  # fmt: skip
    assert "BFAN* ranks by the mean of the similarities of A, B." in i2t.notes
    published = [row[i2t.headings.index("i2t R@1 published")].plain() for row in i2t.rows]
    assert published == ["–", "–", "–", "–", "–", "76.2"]  # Flickr30k of 10 images stands apart, other data does not
    assert any("the paper ranks 1,000 images, ours 10" in note for note in i2t.notes)
    assert len(results.epochs["run"].unique()) == 4  # of what trained


def test_an_ensemble_is_verified_by_its_evaluation(study: Study) -> None:
    kinds = [facts["kind"] for path, facts in verify(study.path) if "bfan-star" in str(path)]
    assert kinds == ["evaluation", "evaluation"]


def test_an_ensemble_of_failed_members_waits_and_says_for_whom(tmp_path: Path) -> None:
    broken = begin_study(tmp_path, STUDY)
    for run in broken.grid.runs:
        if not run.members:
            write_status(broken.folder(run), "failed", "out of memory")
    waiting = [status for status in broken.run(Local()) if status.run.members]
    assert [status.status for status in waiting] == ["waiting", "waiting"]
    assert waiting[1].reason == "averages scenes--a--unified--seed0, failed: out of memory"


@each("old, new, message", [
    ('of = ["A", "B"]', 'of = ["A"]', r"ensemble 'BFAN\*' .* must be two or more encoders \(A, B\); got A"),
    ('of = ["A", "B"]', 'of = ["A", "C"]', r"must be two or more encoders \(A, B\); got A, C"),
    ('name = "BFAN*"', 'name = "A"', r"names of ensembles .* must differ from those of encoders; got 'A'"),
    ('dim=8,words=8"\n', 'dim=8,words=8"\nonly = { data = ["scenes"] }\n', None),
    ("folds = 5", "folds = 0", r"folds must be a number of at least 1; got 0"),
])  # fmt: skip
def test_what_is_no_ensemble_is_refused(old: str, new: str, message: str | None, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY.replace(old, new, 1), encoding="utf-8")
    if message is None:  # a member that one of the data sets lacks: an ensemble of the other alone
        assert [run.data for run in read_study_file(file).runs if run.members] == ["scenes"]
        return
    with pytest.raises(InputError, match=message):
        read_study_file(file)
