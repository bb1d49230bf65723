"""Is the folder of an audit whole, with all files of the same audit, whatever happens during the writing?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.audit.output import folder
from lossscope.audit.output.folder import FILES, write_audit
from lossscope.audit.steps import run
from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.result import AuditResult
from lossscope.audit.steps.run import audit
from lossscope.core.known_pairs import read_known_pairs
from lossscope.datasets.scenes import Scenes
from lossscope.errors import InputError, WriteError
from lossscope.io.csv_tables import read_csv
from lossscope.io.parquet_tables import read_parquet
from tests.audit.small import vectors

DATA = "scenes:train=24,val=4,test=4,size=16,ambiguity=0.6"
pytestmark = pytest.mark.usefixtures("transferred")  # the tests need probabilities


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return audit((), AuditOptions.of(data=DATA, batch_size=12, sheet=20))


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def test_every_file_is_of_the_audit(result: AuditResult, tmp_path: Path) -> None:
    page = write_audit(result, tmp_path / "out", 50)
    assert page == tmp_path / "out" / "index.html"
    assert set(contents(tmp_path / "out")) == set(FILES)
    suspects = read_parquet(tmp_path / "out" / "suspects.parquet")
    assert len(suspects) == len(result.suspects.pairs)
    np.testing.assert_allclose(suspects["probability"], result.suspects.probability)
    assert list(suspects["image"][:3]) == [result.material.image_ids[row] for row in suspects["image_row"][:3]]
    facts = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert facts["schema"] == "lossscope.audit/1"
    assert facts["suspects"] == len(suspects)


def test_the_place_among_the_suspects_of_a_query_is_no_signal(tmp_path: Path) -> None:
    """The column of the signal `rank` overwrote it."""
    owners = np.repeat(np.arange(8), 2)
    np.savez(tmp_path / "a.npz", images=vectors(8, 0), captions=vectors(16, 1), caption_image=owners)
    found = audit([tmp_path / "a.npz"], AuditOptions.of(split="test", batch_size=8, keep=0.0))
    write_audit(found, tmp_path / "out", 5)
    suspects = read_parquet(tmp_path / "out" / "suspects.parquet")
    for _, rows in suspects.groupby("image"):
        assert rows["place"].tolist() == list(range(1, len(rows) + 1))
        assert rows["probability"].is_monotonic_decreasing
    assert (suspects["rank"] <= 0).all()


def test_the_mask_gives_every_suspect_its_probability_by_id(result: AuditResult, tmp_path: Path) -> None:
    write_audit(result, tmp_path / "out", 5)
    known = read_known_pairs(tmp_path / "out")
    images, captions = result.material.image_ids, result.material.caption_ids
    whole = known.probabilities(images, captions, np.arange(24), np.arange(120))
    expected = np.zeros((24, 120), np.float32)
    expected[result.suspects.pairs.left, result.suspects.pairs.right] = result.suspects.probability
    np.testing.assert_allclose(whole, expected)
    turned = known.probabilities(images[::-1], captions, np.arange(24), np.arange(120))
    np.testing.assert_allclose(turned[::-1], expected)


def test_a_mask_that_is_cut_off_says_from_where_it_lists_pairs(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lower threshold would leave out fewer pairs than it states."""
    number = len(result.suspects.pairs) // 2
    monkeypatch.setattr(run, "_MOST", number)
    cut = audit((), AuditOptions.of(data=DATA, batch_size=12, sheet=20, threshold=0.05))
    assert len(cut.suspects.pairs) == number
    assert cut.least is not None
    assert 0.05 < cut.least - 1e-6 <= cut.suspects.probability.min() <= cut.least
    assert any("lacks some" in text and f"{cut.least:g}" in text for text in cut.notices)
    write_audit(cut, tmp_path / "out", 5)
    known = read_known_pairs(tmp_path / "out")
    known.require_threshold(cut.least)
    with pytest.raises(InputError, match=f"lists pairs from {cut.least:g} on"):
        known.require_threshold(0.05)
    assert result.least == 0.05


def test_the_sheet_has_what_both_say_and_no_answer(result: AuditResult, tmp_path: Path) -> None:
    write_audit(result, tmp_path / "out", 5)
    sheet = read_csv(tmp_path / "out" / "sheet.csv")
    assert list(sheet) == ["image", "caption", "answer", "stratum", "share", "image_text", "caption_text"]
    assert len(sheet) == 20
    assert sheet["answer"].isna().all()
    captions = Scenes(train=24, val=4, test=4, size=16, ambiguity=0.6).split("train").captions
    assert list(sheet["caption_text"]) == [captions[row] for row in result.sheet.pairs.right]


def fail_with(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(28, "No space left on device"), WriteError),
        (RuntimeError("x"), RuntimeError),
    ],
)
@pytest.mark.parametrize("step", ["write_parquet", "mask_of", "sheet_table", "write_pages", "document"])
def test_an_audit_that_fails_leaves_the_earlier_one_whole(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException,
    raised: type[BaseException], step: str,
) -> None:  # fmt: skip
    out = tmp_path / "out"
    write_audit(result, out, 5)
    before = contents(out)
    monkeypatch.setattr(folder, step, fail_with(error))
    with pytest.raises(raised):
        write_audit(result, out, 6)
    assert contents(out) == before


def test_a_mask_goes_with_an_audit_that_is_ranked_only_and_stays_where_that_fails(
    result: AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write_audit(result, out, 5)
    before = contents(out)
    ranked = replace(result, state="ranked only", rate=None, per_query=None, least=None, weights=(), accuracy=())
    with monkeypatch.context() as patch:
        patch.setattr(folder, "document", fail_with(RuntimeError("x")))
        with pytest.raises(RuntimeError):
            write_audit(ranked, out, 5)
    assert contents(out) == before
    write_audit(ranked, out, 5)
    assert set(contents(out)) == set(FILES) - {"mask.npz"}


def test_what_a_killed_audit_left_is_removed(result: AuditResult, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / ".part").mkdir(parents=True)
    (out / ".part" / "mask.npz").write_text("half")
    write_audit(result, out, 5)
    assert set(contents(out)) == set(FILES)


def test_hostile_ids_are_no_formulas_in_the_sheet(tmp_path: Path) -> None:
    owners = np.repeat(np.arange(6), 2)
    ids = np.array(['=HYPERLINK("x")', "@a", "+b", "-c", "plain", "<script>"])
    arrays = {"images": vectors(6, 0), "captions": vectors(12, 1), "caption_image": owners, "image_id": ids}
    np.savez(tmp_path / "a.npz", **arrays)  # type: ignore[arg-type]
    found = audit([tmp_path / "a.npz"], AuditOptions.of(split="test", batch_size=6, sheet=30))
    write_audit(found, tmp_path / "out", 30)
    text = (tmp_path / "out" / "sheet.csv").read_text()
    assert not any(line[:1] in "=+-@" for line in text.splitlines())
    assert set(read_csv(tmp_path / "out" / "sheet.csv")["image"]) <= set(ids.tolist())
    assert set(read_parquet(tmp_path / "out" / "suspects.parquet")["image"]) <= set(ids.tolist())
