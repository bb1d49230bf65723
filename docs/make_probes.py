"""docs/probes.in.md -> docs/probes.md: a row and a section for every probe, from its file.

The docstring of a probe begins with the formula in one line. Explanations follow, then the meaning of each statistic
under `Statistics:`, one a line, and `Source:`. The meaning of an option is the comment beside its field.
`--check` writes nothing and exits 1 with a diff if the page is out of date.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from textwrap import dedent

from generated_page import escape, write_or_compare

from lossscope.declarations import OptionField, declarations
from lossscope.probes.base import Probe, Statistic
from lossscope.registry import build, names, spec_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "probes.in.md"
PAGE = ROOT / "docs" / "probes.md"
HOME = ROOT / "lossscope" / "probes"
NOTE = (
    "<!-- Made by docs/make_probes.py from docs/probes.in.md and the docstrings of lossscope/probes. Change those, "
    "then `make docs`. -->\n\n"
)
OBJECTIVES = ("triplet", "ntxent", "smoothap")  # the page lists their statistics where these differ


def page(source: str) -> str:
    """Return the page: the template with its table and sections."""
    probes = {name: build("probes", name) for name in names("probes") if (HOME / f"{name}.py").is_file()}
    filled = source.replace("<!-- table -->", table(probes))
    sections = "\n".join(section(name, probe) for name, probe in probes.items())
    return NOTE + filled.replace("<!-- sections -->", sections.rstrip("\n"))


def table(probes: dict[str, Probe]) -> str:
    """Return a table of the probes: name, question, axis, whether it needs an objective, whether it is cheap."""
    rows = ["| probe | question | for each | of W | cheap |", "|---|---|---|---|---|"]
    for name, probe in probes.items():
        marks = ("yes" if probe.needs_objective else "", "yes" if probe.cheap else "")
        cells = (f"[`{name}`](#{name})", escape(question(probe)), probe.axis, *marks)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def question(probe: Probe) -> str:
    """Return the first line of the probe's file, without the name."""
    first = (inspect.getdoc(inspect.getmodule(type(probe))) or "").splitlines()[0]
    text = first.partition(": ")[2] or first
    return text[:1].upper() + text[1:]


def section(name: str, probe: Probe) -> str:
    """Return the section of a probe: formula, explanation, statistics, options and source."""
    formula, _, rest = (inspect.getdoc(type(probe)) or "").partition("\n")
    text, _, source = rest.partition("Source: ")
    explanation, _, meanings = text.partition("\nRaises")[0].partition("\nStatistics:\n")
    reported = ", ".join(f"`{statistic.name}` ({statistic.unit})" for statistic in statistics(probe))
    (fields,) = (item.fields for item in declarations("probes") if item.name == name)
    options = [_option(field) for field in fields]
    parts = {
        "Statistics": "\n".join([reported, *(f"    - {line}" for line in _meanings(meanings))]),
        "Options": "\n".join([f"`{spec_of(probe)}`", *(f"    - {escape(line)}" for line in options)])
        if options
        else "",
        "Source": escape(" ".join(source.split())),
    }
    lines = [f"### `{name}`", escape(question(probe)), f"`{formula}`", escape(" ".join(explanation.split()))]
    lines.append("\n".join(f"- **{label}** {text}" for label, text in parts.items() if text))
    return "\n\n".join(line for line in lines if line) + "\n"


def _option(field: OptionField) -> str:
    choices = f" ({', '.join(field.choices)})" if field.choices else ""
    return f"`{field.name}`: {field.help}{choices}"


def _meanings(text: str) -> list[str]:
    """Return the lines of a `Statistics:` block, `name, name: text`, with the names as code."""
    lines = re.sub(r"\n +", " ", dedent(text)).strip().splitlines()
    pairs = [line.split(": ", 1) for line in lines if line.strip()]
    return [f"{', '.join(f'`{name}`' for name in names.split(', '))}: {escape(meaning)}" for names, meaning in pairs]


def statistics(probe: Probe) -> list[Statistic]:
    """Return all statistics that the probe reports, of any objective."""
    objectives = [build("objectives", spec) for spec in OBJECTIVES] if probe.needs_objective else [None]
    return list(dict.fromkeys(statistic for objective in objectives for statistic in probe.statistics(objective)))


def main(arguments: list[str]) -> int:
    """Write the page, or compare the file with it."""
    text = page(SOURCE.read_text(encoding="utf-8"))
    return write_or_compare(PAGE, text, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
