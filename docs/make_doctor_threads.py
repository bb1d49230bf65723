"""tests/threads -> docs/doctor-threads.md: questions of public threads as small loops, and what lossscope prints.

The script runs each loop twice, with the poster's mistake and without: two minutes in all. `--check` writes nothing and
exits 1 with a diff if the page is out of date.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from generated_page import escape, write_or_compare

if TYPE_CHECKING:
    from tests.threads.base import Answer, Thread

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "doctor-threads.md"
MISSED = "**missed**"
NOTE = "<!-- Made by docs/make_doctor_threads.py from tests/threads. Change those, then `make docs`. -->\n\n"
_TOP = """# Threads, asked again

We rebuilt questions of public threads from their descriptions. Each is a loop of a few seconds in plain torch, with two
small towers and synthetic data. The loop leaves the files that its poster would have: a log, a dump, a file of rows, or
the file of a loss. We run `lossscope doctor`, `data lint` or `check` on them, as the poster could. Then we mend the
mistake and run the same command again. If a thread does not name the mistake, we chose a mistake with the same symptom.

[tests/threads](../tests/threads) has a file for each thread, and its test compares the loops with this page. The page
shows only the first finding.

"""


def page(answers: Mapping[str, tuple[Answer, Answer]]) -> str:
    """Return the page.

    Args:
        answers: name of a thread's file -> the answers with the mistake, and without it.
    """
    rows = ["| thread | symptom | first finding | after mending |", "|---|---|---|---|"]
    rows += [row(name, *both) for name, both in answers.items()]
    sections = "".join(section(name, *both) for name, both in answers.items())
    return NOTE + _TOP + _paragraph(tally(rows[2:])) + "\n" + "\n".join(rows) + "\n" + sections


def tally(rows: Sequence[str]) -> str:
    """Return how many threads have an answer and how many twins are clean, from the rows of the table."""
    missed = [row.split(" | ")[0].removeprefix("| ") for row in rows if MISSED in row]
    clean = [row for row in rows if not re.search(r", (?:error|warning|fail)\b", row.split(" | ")[-1])]
    still = f" The doctor misses {', '.join(missed)}." if missed else ""
    return (
        f"The first finding answers {len(rows) - len(missed)} of {len(rows)} threads. {len(clean)} of {len(rows)} "
        f"mended twins have nothing above a note.{still}"
    )


def row(name: str, sick: Answer, mended: Answer) -> str:
    """Return the row of a thread in the table."""
    thread, seen, _ = _read_thread(name)
    link = f"[{thread.reference}](#{_anchor(thread.reference)})"
    return f"| {link} | {escape(seen.rstrip('.'))} | {_format_first(thread, sick)} | {_format_after(mended)} |"


def _format_first(thread: Thread, sick: Answer) -> str:
    found = f"`{sick.findings[0][1]}`, {sick.findings[0][0]}" if sick.findings else "none"
    return f"{MISSED}: {found}" if thread.miss else found


def _format_after(mended: Answer) -> str:
    return ", ".join(f"`{id}`, {severity}" for severity, id in mended.findings) or "nothing"


def _anchor(heading: str) -> str:
    return "".join(letter for letter in heading.lower() if letter.isalnum() or letter in "-_")


def section(name: str, sick: Answer, mended: Answer) -> str:
    """Return the section of a thread.

    Args:
        name: name of the thread's file.
        sick: the answer with the mistake.
        mended: the answer without it.
    """
    thread, seen, rest = _read_thread(name)
    repository, _, number = thread.reference.partition("#")
    source = f"[{thread.reference}](https://github.com/{repository}/issues/{number})"
    parts = [
        f"\n## {thread.reference}\n",
        _paragraph(f"**{escape(seen)}** {escape(rest)} ({source})"),
        _paragraph(f"**The mistake**, in [{name}.py](../tests/threads/{name}.py): {escape(thread.mistake)}"),
        f"**Command**: `{thread.command}`\n",
        _block([*sick.summary, *sick.first]),
    ]
    if thread.miss:
        wanted = f"`{thread.first}` is the right answer" if thread.first else "no finding answers this question"
        parts.append(_paragraph(f"**Missed**: {wanted}; {escape(thread.miss)}"))
    parts += [_paragraph(f"**Mended**: {escape(thread.mended)}"), _block([*mended.summary, *mended.titles])]
    return "\n".join(parts)


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def _block(lines: list[str]) -> str:
    return "\n".join(["```text", *lines, "```\n"])


def _read_thread(name: str) -> tuple[Thread, str, str]:
    """Return a thread, its symptom in a line, and the rest of its description."""
    from tests.threads.base import docstring, module

    seen, rest = docstring(name)
    return module(name).THREAD, seen, " ".join(rest.split())


def main(arguments: list[str]) -> int:
    """Write the page, or compare the file with it."""
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is imported: one thread adds numbers in one order
    sys.path.insert(0, str(ROOT))
    from tests.threads.base import ask, names

    with tempfile.TemporaryDirectory(prefix="lossscope-") as home:
        answers = {
            name: (ask(name, Path(home, name, "sick"), False), ask(name, Path(home, name, "mended"), True))
            for name in names()
        }
    return write_or_compare(PAGE, page(answers), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
