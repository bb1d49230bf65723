"""Do generated pages write or compare their file, and escape text for Markdown?"""

from __future__ import annotations

from pathlib import Path

import generated_page
import pytest


def test_a_page_is_written_or_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    assert generated_page.write_or_compare(page, "a\nb\n", ["--check"]) == 1
    assert not page.exists()
    assert generated_page.write_or_compare(page, "a\nb\n", []) == 0
    assert page.read_text(encoding="utf-8") == "a\nb\n"
    capsys.readouterr()
    assert generated_page.write_or_compare(page, "a\nb\n", ["--check"]) == 0
    assert capsys.readouterr().out == ""
    assert generated_page.write_or_compare(page, "a\nc\n", ["--check"]) == 1
    assert capsys.readouterr().out.endswith(" a\n-b\n+c\n")
    assert page.read_text(encoding="utf-8") == "a\nb\n"


def test_formulas_are_shown_unchanged() -> None:
    text = "N* = {n: d_n < a} (`a*b`), <b>[x](y)"
    assert generated_page.escape(text) == r"N\* = {n: d_n < a} (`a*b`), \<b>[x]\(y)"
    assert generated_page.escape("Σ_{p} s_p _x_") == r"Σ\_{p} s_p \_x\_"
