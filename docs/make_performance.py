"""docs/performance.in.md -> docs/performance.md: what each benchmark says of itself, and what it has printed.

Results are benchmarks/results/NAME.txt, and NAME-DEVICE.txt of a GPU; nothing is run. `--check` writes nothing and
exits 1 with a diff when the page is not what would be written.
"""

from __future__ import annotations

import ast
import difflib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "performance.in.md"
PAGE = ROOT / "docs" / "performance.md"
HOME = ROOT / "benchmarks"
NOTE = (
    "<!-- Made by docs/make_performance.py from docs/performance.in.md, the docstrings of benchmarks/ and what they "
    "printed (`make bench`). Change those, then `make docs`. -->\n\n"
)
PLACE = re.compile(r"^<!-- (\w+) -->$", re.M)


def page(source: str) -> str:
    """The template with each script in its place. Raises ValueError for a script without one, or with two."""
    places = PLACE.findall(source)
    if sorted(places) != (known := scripts()):
        raise ValueError(f"{SOURCE.name} must have one place for each of {', '.join(known)}; got {', '.join(places)}")
    return NOTE + PLACE.sub(lambda found: section(found[1]), source)


def scripts() -> list[str]:
    """Benchmarks that can be run, by name."""
    files = sorted(HOME.glob("*.py"))
    return [file.stem for file in files if '\nif __name__ == "__main__":' in file.read_text(encoding="utf-8")]


def section(name: str) -> str:
    """What a script does, in its own words, and its results."""
    told = ast.get_docstring(ast.parse((HOME / f"{name}.py").read_text(encoding="utf-8"))) or ""
    parts = [f"`benchmarks/{name}.py`: {_text(told)}", *(_block(file) for file in results(name))]
    return "\n\n".join(parts if len(parts) > 1 else [*parts, "not measured"])


def results(name: str) -> list[Path]:
    """What a script has printed, that of the CPU first."""
    folder = HOME / "results"
    return [file for file in (folder / f"{name}.txt", *sorted(folder.glob(f"{name}-*.txt"))) if file.is_file()]


def _block(file: Path) -> str:
    lines = [line.rstrip() for line in file.read_text(encoding="utf-8").strip("\n").splitlines()]
    return "\n".join(["```text", *lines, "```"])


def _text(text: str) -> str:
    """Formulas in plain text, so that Markdown shows them as they are."""
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [re.sub(r"\*|(?<!\w)_|_(?!\w)|<(?=\w)", r"\\\g<0>", piece) for piece in pieces[::2]]
    return "".join(pieces)


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    made = page(SOURCE.read_text(encoding="utf-8"))
    if "--check" not in arguments:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    found = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    labels = (f"{PAGE.name} as it is", f"{PAGE.name} as the results have it")
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), made.splitlines(True), *labels))
    return int(found != made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
