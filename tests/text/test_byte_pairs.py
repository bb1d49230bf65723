"""Are damaged files of CLIP's byte pairs refused by name?"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from lossscope.errors import InputError
from lossscope.text.subwords import Subwords
from tests.each import each

pytest.importorskip("tokenizers")
PACKED = gzip.compress(("#version\n" + "".join(f"{chr(97 + k % 26)} {k}\n" for k in range(2000))).encode())


@each(
    "content, message",
    [
        (b"no gzip", "must be packed UTF-8 text, a merge per line; Not a gzipped file"),
        (PACKED[:200], "must be packed UTF-8 text, a merge per line; Compressed file ended"),
        (PACKED[:40] + bytes(40 * [255]) + PACKED[80:], "must be packed UTF-8 text, a merge per line; Error -3"),
        (gzip.compress(b"\xff"), "must be packed UTF-8 text, a merge per line; 'utf-8' codec"),
        (gzip.compress(b"#version\na b c\n"), "a merge of two parts on each line"),
        (gzip.compress(b"#version\na b\na b\n"), "must hold each merge once"),
    ],
)
def test_damaged_merges_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "merges.txt.gz").write_bytes(content)
    with pytest.raises(InputError, match=message):
        Subwords.from_merges(tmp_path / "merges.txt.gz")
