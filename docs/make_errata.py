"""docs/errata.in.md -> docs/errata.md: run every Python example and insert its output below it.

`--check` writes nothing and exits 1 with a diff when the page is not what would be written.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

from generated_page import write_or_compare

SOURCE = Path(__file__).with_name("errata.in.md")
PAGE = Path(__file__).with_name("errata.md")
NOTE = (
    "<!-- Made by docs/make_errata.py from docs/errata.in.md, examples run. Change that file, then `make docs`. -->\n\n"
)
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n", re.M | re.S)


def page(source: str) -> str:
    """Return the page: the source with the output of each example below it."""
    return NOTE + EXAMPLE.sub(lambda example: f"{example[0]}\n```text\n{run_example(example)}```\n", source)


def run_example(example: re.Match[str]) -> str:
    """Run an example in a namespace of its own; return its output.

    Its lines keep their numbers, so that a traceback points into the source.
    """
    lines_before = example.string.count("\n", 0, example.start(1))
    code = compile("\n" * lines_before + example[1], str(SOURCE), "exec")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {"__name__": "__main__"})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def main(arguments: list[str]) -> int:
    """Write the page, or compare the file with it."""
    # read when an example first imports torch; one thread adds numbers in one order
    os.environ["OMP_NUM_THREADS"] = "1"
    os.chdir(SOURCE.parents[1])
    with tempfile.TemporaryDirectory(prefix="lossscope-") as cache:
        os.environ["LOSSSCOPE_CACHE"] = cache
        text = page(SOURCE.read_text(encoding="utf-8"))
    return write_or_compare(PAGE, text, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
