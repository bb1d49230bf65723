"""CHANGELOG.md -> the notes of a release, if the files that state its version agree.

`python docs/release_notes.py v0.2.0` prints the newest section of CHANGELOG.md. If the tag, pyproject.toml,
CITATION.cff and CHANGELOG.md disagree, it prints the needed changes and exits 1. It needs only the standard library.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTION = re.compile(r"^## (?P<version>\S+) \((?P<date>[^)]+)\)\n(?P<text>.*?)(?=^## |\Z)", re.M | re.S)


def project_version(root: Path) -> str:
    """Return the version in pyproject.toml."""
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def newest_section(root: Path) -> re.Match[str]:
    """Return the first section of CHANGELOG.md: version, date and text."""
    section = SECTION.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if section is None:
        raise ValueError("CHANGELOG.md must have a heading `## VERSION (DATE)`; got none")
    return section


def disagreements(root: Path, tag: str | None = None) -> list[str]:
    """Return a sentence for each disagreement with the version in pyproject.toml.

    Between releases the version is X.Y.Z.dev0, and the first heading of CHANGELOG.md is `## X.Y.Z (unreleased)`.

    Args:
        root: folder of the repository.
        tag: tag of the release; None before the release.
    """
    version, section = project_version(root), newest_section(root)
    final = version.removesuffix(".dev0")
    cited = re.findall(r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    date = "unreleased" if final != version else r"\d{4}-\d\d-\d\d"
    problems = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", final):
        problems.append(f"version of pyproject.toml must be X.Y.Z or X.Y.Z.dev0; got {version}")
    if cited != [version]:
        problems.append(f"version of CITATION.cff must be {version}, as in pyproject.toml; got {', '.join(cited)}")
    if section["version"] != final or not re.fullmatch(date, section["date"]):
        wanted = f"## {final} ({'unreleased' if final != version else 'YYYY-MM-DD'})"
        problems.append(f"first heading of CHANGELOG.md must be `{wanted}`; got `{section[0].splitlines()[0]}`")
    if tag is not None and tag != f"v{version}":
        problems.append(f"tag must be v{version}, as pyproject.toml says; got {tag}")
    if tag is not None and final != version:
        problems.append(f"version of a release must be X.Y.Z; got {version}")
    return problems


def main(arguments: list[str]) -> int:
    (tag,) = arguments
    problems = disagreements(ROOT, tag)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(newest_section(ROOT)["text"].strip())
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
