"""docs/conformance.in.md -> docs/conformance.md: checks, planted bugs, and findings in released libraries.

The script runs the example of the page (10 seconds); studies/conformance/libraries.py made the other results. `--check`
writes nothing and exits 1 with a diff if the page is out of date.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from generated_page import escape, markdown_table, write_or_compare

ROOT = Path(__file__).parents[1]
SOURCE, PAGE = ROOT / "docs" / "conformance.in.md", ROOT / "docs" / "conformance.md"
CHECKS = ROOT / "lossscope" / "conformance" / "checks"
PLANTED = ROOT / "tests" / "conformance" / "planted_steps.py"
RESULTS = ROOT / "studies" / "conformance" / "results" / "libraries.csv"
THREAD = re.compile(r"\b(issues?|PR) \d")
COMMAND = "lossscope check --trainer ./train.py:step --processes 2"
NOTE = (
    "<!-- Made by docs/make_conformance.py from docs/conformance.in.md, the checks, the planted bugs and the results "
    "of studies/conformance. Change those, then `make docs`. -->\n\n"
)


def page(source: str, example: str) -> str:
    """Return the page.

    Args:
        source: text of docs/conformance.in.md.
        example: output of the command for the step of the page.
    """
    shown = f"```console\n$ {COMMAND}\n{example}```"
    parts = {"example": shown, "checks": checks(), "bugs": bugs(), "libraries": libraries(read_results())}
    for name, text in parts.items():
        source = source.replace(f"<!-- {name} -->", text)
    return NOTE + source


def run_example(source: str) -> str:
    """Return the output of the command for the step of the page."""
    code = re.search(r"```python\n(.*?)```", source, re.DOTALL)
    assert code is not None, "the page must show a step"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(code.group(1), encoding="utf-8")
        words = [sys.executable, "-m", "lossscope_cli", *COMMAND.split()[1:]]
        environment = {**os.environ, "COLUMNS": "120", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return done.stdout


def checks() -> str:
    """Return a table of the checks, in the order of `PLACE`."""
    found = []
    for file in CHECKS.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        values = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}  # type: ignore[attr-defined]
        if "PLACE" in values:
            text = ast.get_docstring(tree) or ""
            source = " ".join(text.partition("Source: ")[2].split()).rstrip(".")
            found.append((ast.literal_eval(values["PLACE"]), file.stem.replace("_", "-"), text.splitlines()[0], source))
    lines = [(f"`{name}`", escape(question), escape(source) or "–") for _, name, question, source in sorted(found)]
    return markdown_table(("check", "question", "source"), lines)


def bugs() -> str:
    """Return a table of the planted bugs, with the check that finds each."""
    tree = ast.parse(PLANTED.read_text(encoding="utf-8"))
    texts = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}
    tables = [node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FOUND_BY"]
    lines = []
    for name, check in ast.literal_eval(tables[0].value).items():
        text = " ".join(texts[name].split()).rstrip(".")
        source, _, what = text.partition(": ") if THREAD.search(text.partition(": ")[0]) else ("–", "", text)
        lines.append((f"`{name}`", escape(what[0].upper() + what[1:]), escape(source), f"`{check}`"))
    return markdown_table(("step", "what is wrong", "after", "found by"), lines)


def read_results() -> pd.DataFrame:
    """Return the rows of studies/conformance."""
    return pd.read_csv(RESULTS, keep_default_na=False)


def libraries(rows: pd.DataFrame) -> str:
    """Return a table of trainers: failures and notes on one and on two processes."""
    lines = []
    for (trainer, version), group in rows.groupby(["trainer", "version"], sort=False):
        plain = group["plain"].iloc[0]
        named = f"`{trainer}`" + (f", against `{plain}`" if plain else "")
        by_processes = [_summarise(group[group["processes"] == number]) for number in (1, 2)]
        lines.append((named, str(version), *by_processes))
    return markdown_table(("trainer", "version", "1 process", "2 processes"), lines)


def _summarise(rows: pd.DataFrame) -> str:
    """Return `10 passed; **fails** check: evidence; notes: check, check`."""
    failed = [
        f"**fails** `{row.check}`: {escape(str(row.evidence))}" for row in rows.itertuples() if row.outcome == "fail"
    ]
    noted = [f"`{row.check}`" for row in rows.itertuples() if row.outcome == "note"]
    notes = [f"notes: {', '.join(dict.fromkeys(noted))}"] if noted else []
    return "; ".join([f"{rows['pass'].iloc[0]} passed", *failed, *notes])


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    source = SOURCE.read_text(encoding="utf-8")
    return write_or_compare(PAGE, page(source, run_example(source)), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
