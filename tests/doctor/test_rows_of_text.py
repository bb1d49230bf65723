"""Does the doctor open rows of any format, and does its error name the fault in the file?"""

from __future__ import annotations

from pathlib import Path

import pytest

import lossscope
from lossscope.datasets.lint.suite import lint
from lossscope.datasets.lint.targets import lint_sources
from lossscope.datasets.rows.row_files import READERS
from lossscope.errors import InputError
from tests.each import each


@each("suffix", READERS, "packed", ["", ".gz"])
def test_a_damaged_file_of_any_format_is_refused_as_the_file_of_rows_that_it_is(
    suffix: str, packed: str, tmp_path: Path
) -> None:
    """An array in a .json file was called no dump and no checkpoint; `data lint` named the fault."""
    file = tmp_path / f"rows{suffix}{packed}"
    file.write_bytes(b'[{"query": "a", "positive": "b"}')
    with pytest.raises(InputError) as of_lint:
        lint(lint_sources(str(file)), {})
    with pytest.raises(InputError) as of_doctor:
        lossscope.doctor(str(file))
    assert str(of_doctor.value) == str(of_lint.value)


def test_what_is_wrong_in_a_folder_of_rows_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"query": 3')
    with pytest.raises(InputError, match=r"must be one of: .*; rows of text, for which line 1 of .*a\.jsonl"):
        lossscope.doctor(str(tmp_path))
