"""Does lossscope answer the threads, is it silent once they are mended, and does docs/doctor-threads.md show it?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lengths import thorough
from tests.threads.base import Answer, ask, module, names

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "doctor-threads.md").read_text(encoding="utf-8")
LONGEST = {  # take seconds each, and resemble another thread
    "deep_person_reid_357", "flag_embedding_1094", "flag_embedding_891", "moco_43", "open_clip_815",
    "open_reid_24", "recommenders_219", "recommenders_231", "recommenders_537", "sentence_transformers_3756",
    "tf_similarity_233",
}  # fmt: skip
Both = tuple[str, Answer, Answer]


@pytest.fixture(
    name="both",
    scope="module",
    params=[*(name for name in names() if name not in LONGEST), *thorough(*sorted(LONGEST))],
)
def ask_twice(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Return the name of a thread, and what lossscope prints with its mistake and without."""
    name = request.param
    if name == "triplet_reid_30":
        pytest.importorskip("tensorboard")
    home = tmp_path_factory.mktemp(name)
    return name, ask(name, home / "sick", False), ask(name, home / "mended", True)


def test_the_first_finding_answers_the_thread(both: Both, request: pytest.FixtureRequest) -> None:
    name, sick, _ = both
    thread = module(name).THREAD
    if not thread.first:  # no mistake, or no answer: no finding may look like an answer
        assert {severity for severity, _ in sick.findings} <= {"note"}
        return
    if thread.miss:
        request.applymarker(pytest.mark.xfail(strict=True, reason=thread.miss))
    assert [id for _, id in sick.findings[:1]] == [thread.first]


def test_the_mended_loop_has_no_finding_above_a_note(both: Both) -> None:
    _, _, mended = both
    assert {severity for severity, _ in mended.findings} <= {"note"}
    assert not any(line.startswith("Cannot explain") for line in mended.summary)


def test_the_page_shows_what_doctor_prints(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import make_doctor_threads

    name, sick, mended = both
    shown = PAGE[PAGE.index(f"\n## {module(name).THREAD.reference}\n") :]
    end = shown.find("\n## ", 1)
    made = make_doctor_threads.section(name, sick, mended)
    assert words(shown[: end if end > 0 else None]) == words(made), "run `make docs`"
    assert make_doctor_threads.row(name, sick, mended) in PAGE


def test_the_page_has_every_thread_once_and_no_other() -> None:
    references = [module(name).THREAD.reference for name in names()]
    assert re.findall(r"^## (.+)$", PAGE, re.M) == references
    assert len(references) == len(set(references)) >= 10


def test_the_page_counts_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import make_doctor_threads

    rows = re.findall(r"^\| \[.+$", PAGE, re.M)
    assert len(rows) == len(names())
    assert make_doctor_threads.tally(rows) in " ".join(PAGE.split())
    missed = [row for row in rows if make_doctor_threads.MISSED in row]
    assert len(missed) == sum(bool(module(name).THREAD.miss) for name in names())


def test_the_page_names_no_folder_of_a_machine() -> None:
    assert not re.findall(r"(?<![\w.])/(?:tmp|home|work|root|Users)\b", PAGE)


def words(text: str) -> list[str]:
    """Return the words of a text, numbers as #: processors differ in the order of sums."""
    return re.sub(r"[+-]?\d+(?:\.\d+)?(?:e-?\d+)?", "#", text).split()
