"""Can a name of a file become a folder outside of its own?"""

from __future__ import annotations

from lossscope.io.folder_names import LONGEST_NAME, is_folder_name
from tests.each import each


@each("name", ["a", "scenes--vsepp-dim-8--ntxent--seed0", "0.5_x", "ä", "x" * LONGEST_NAME])
def test_a_name_of_letters_digits_and_marks_is_one(name: str) -> None:
    assert is_folder_name(name)


@each("name", [
    "", ".", "..", "../a", "a/b", "/a", "a\\b", "-a", ".a", "a b", "a\n", "a\0", "a:b", "x" * (LONGEST_NAME + 1),
    "ä" * (LONGEST_NAME // 2 + 1), "\ud800" * (LONGEST_NAME + 1),
])  # fmt: skip
def test_a_name_that_leads_elsewhere_is_none(name: str) -> None:
    assert not is_folder_name(name)
