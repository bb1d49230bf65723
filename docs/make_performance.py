"""docs/performance.in.md -> docs/performance.md: the docstring of each benchmark and its results.

Results are benchmarks/results/NAME.txt, and NAME-DEVICE.txt of a GPU. The script runs no benchmark. `--check` writes
nothing and exits 1 with a diff if the page is out of date.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from generated_page import escape, write_or_compare

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "performance.in.md"
PAGE = ROOT / "docs" / "performance.md"
HOME = ROOT / "benchmarks"
NOTE = (
    "<!-- Made by docs/make_performance.py from docs/performance.in.md, the docstrings of benchmarks/ and what they "
    "printed (`make bench`). Change those, then `make docs`. -->\n\n"
)
REQUIRED = "required=True"  # marks a script that needs an argument
MARK = re.compile(r"^<!-- (\w+) -->$", re.M)


def page(source: str) -> str:
    """Return the page: the template with the section of each script.

    Raises ValueError if a script has no mark in the template, or two.
    """
    marks = MARK.findall(source)
    if sorted(marks) != (known := scripts()):
        raise ValueError(f"{SOURCE.name} must have one place for each of {', '.join(known)}; got {', '.join(marks)}")
    return NOTE + MARK.sub(lambda mark: section(mark[1]), source)


def scripts() -> list[str]:
    """Return the names of the benchmarks that run without an argument, as in `make bench`."""
    texts = {file.stem: file.read_text(encoding="utf-8") for file in sorted(HOME.glob("*.py"))}
    return [name for name, text in texts.items() if '\nif __name__ == "__main__":' in text and REQUIRED not in text]


def section(name: str) -> str:
    """Return the docstring and the results of a script."""
    docstring = ast.get_docstring(ast.parse((HOME / f"{name}.py").read_text(encoding="utf-8"))) or ""
    parts = [f"`benchmarks/{name}.py`: {escape(docstring)}", *(_block(file) for file in results(name))]
    return "\n\n".join(parts if len(parts) > 1 else [*parts, "not measured"])


def results(name: str) -> list[Path]:
    """Return the files with a script's output, the CPU's first."""
    folder = HOME / "results"
    return [file for file in (folder / f"{name}.txt", *sorted(folder.glob(f"{name}-*.txt"))) if file.is_file()]


def _block(file: Path) -> str:
    lines = [line.rstrip() for line in file.read_text(encoding="utf-8").strip("\n").splitlines()]
    return "\n".join(["```text", *lines, "```"])


def main(arguments: list[str]) -> int:
    """Write the page, or compare the file with it."""
    text = page(SOURCE.read_text(encoding="utf-8"))
    return write_or_compare(PAGE, text, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
