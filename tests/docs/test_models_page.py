"""Is docs/models.md what its script generates, with a row for every option of every family?"""

from __future__ import annotations

from pathlib import Path

import make_models
import pytest

from lossscope.encoders.released.option_table import OptionTable, Refusal


def test_the_page_is_what_the_script_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_models.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_every_option_of_a_family_is_on_the_page_with_what_becomes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = OptionTable({"a": "size"}, {name: Refusal((False, 0), "not built") for name in "zb"}, {"c|d": "a path"})
    bfan = OptionTable({"b": "done here"})
    families = {"scan": scan, "bfan": bfan, "clip": OptionTable(refused={"e": Refusal((), "no")})}
    monkeypatch.setattr(make_models, "tables", lambda: families)
    monkeypatch.setattr(make_models, "RELATED", ("scan", "bfan"))
    page = make_models.page(f"# A\n\n{make_models.MARK}\n")
    for row in (
        "| `a` | done | – |",
        "| `b` | refused unless `False` or `0` | done |",
        "| `c\\|d` | no effect | – |",
        "| refused unless `False` or `0` | not built | `b`, `z` |",
        "<summary><code>clip</code>: 1 options</summary>",
        "| refused | no | `e` |",
    ):
        assert row in page


def test_a_page_without_the_place_is_refused() -> None:
    with pytest.raises(ValueError, match="must have one line <!-- options -->; got 0"):
        make_models.page("# A\n")


def test_families_with_options_have_tables() -> None:
    assert set(make_models.RELATED) < make_models.tables().keys()
    assert Path(make_models.SOURCE).is_file()
