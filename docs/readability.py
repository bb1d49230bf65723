"""How long, how passive and how nominal are the sentences of README, docs/, help and messages?

    python docs/readability.py                                           # the working tree
    python docs/readability.py --revision v0.1.0                         # a revision of git
    python docs/readability.py --revision HEAD~40 --sample 60 --seed 42  # sentences to read aloud

The script counts prose, without tables and code. A passive is a form of "be" before a participle. tests/test_style.py
lists the nominal openings.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = re.compile(r"^(README|CONTRIBUTING)\.md$|^docs/.*\.md$")
CODE = re.compile(r"^(cli|lossscope)/.*\.py$")
IRREGULAR = (
    "begun|bound|broken|brought|built|chosen|counted|cut|done|drawn|found|given|held|hidden|hit|kept|known|laid|learnt|"
    "left|lent|lost|made|meant|met|paid|put|read|run|said|seen|sent|set|shown|spent|split|spread|stood|taken|taught|told|"
    "understood|won|written|shuffled"
)
PASSIVE = re.compile(rf"\b(?:is|are|was|were|be|been|being)\s+(?:\w+ly\s+|not\s+)?(?:\w+ed|{IRREGULAR})\b", re.I)
NOMINAL = re.compile(
    r"(?<!\w )\bof which\b|\bthat there (?:is|are)\b|\b(?:is|are|was|were) (?:said|told)\b|\blooked for\b|"
    r"^(?:What|Of|Whether) [^?]*[.:]$",
    re.I,
)
MESSAGES = {"InputError", "OptionError", "notice", "message", "usage", "warn", "Choice"}


def files(revision: str | None) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page, and of each Python file with help or messages."""
    if revision is None:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    else:
        command = ["git", "ls-tree", "-r", "--name-only", revision]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if (PAGES.search(name) and not name.endswith(".in.md")) or CODE.search(name):
            if revision is None:
                yield name, (ROOT / name).read_text(encoding="utf-8") if (ROOT / name).is_file() else ""
            else:
                command = ["git", "show", f"{revision}:{name}"]
                yield name, subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def sentences(name: str, text: str) -> list[str]:
    """Return the sentences of a page, or of the help and the messages of a Python file."""
    prose = page_prose(text) if name.endswith(".md") else list(code_prose(text))
    found = (part.strip() for block in prose for part in re.split(r"(?<=[.!?])\s+(?=[A-Z`\d])", block))
    return [" ".join(part.split()) for part in found if len(part.split()) >= 4]


def page_prose(text: str) -> list[str]:
    """Return the paragraphs and list items of a page, without code, tables and headings."""
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.M | re.S)
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n|\n(?=\s*[-*] )", text):
        lines = [line for line in block.splitlines() if not re.match(r"\s*(\||#|!\[|<)", line)]
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(lines)).strip(" -*")
        if plain:
            blocks.append(plain)
    return blocks


def code_prose(source: str) -> Iterator[str]:
    """Yield the texts of errors, notices and options, and the docstrings of commands; `...` stands for a value."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in MESSAGES:
            for argument in node.args:
                if (text := _text(argument)) and " " in text:
                    yield text
        elif isinstance(node, ast.FunctionDef) and any("command" in ast.unparse(mark) for mark in node.decorator_list):
            yield from page_prose(ast.get_docstring(node) or "")


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "..." for part in node.values)
    return ""


def main() -> None:
    """Print the measures of each kind of text, or a random sample of sentences."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--revision", help="revision of git; default: the working tree")
    parser.add_argument("--sample", type=int, default=0, help="print this many random sentences")
    parser.add_argument("--seed", type=int, default=42, help="seed of the sample")
    options = parser.parse_args()
    kinds: dict[str, list[str]] = {"README": [], "docs": [], "help and messages": []}
    for name, text in files(options.revision):
        kind = "README" if name == "README.md" else "docs" if name.endswith(".md") else "help and messages"
        kinds[kind] += sentences(name, text)
    if options.sample:
        pool = sorted({sentence for found in kinds.values() for sentence in found})
        print("\n".join(random.Random(options.seed).sample(pool, options.sample)))
        return
    print(f"{'':<18} {'sentences':>9} {'words each':>10} {'over 25':>8} {'passive':>8} {'nominal':>8}")
    for kind, found in kinds.items():
        words = [len(sentence.split()) for sentence in found]
        shares = [
            sum(size > 25 for size in words),
            sum(bool(PASSIVE.search(sentence)) for sentence in found),
            sum(bool(NOMINAL.search(sentence)) for sentence in found),
        ]
        cells = " ".join(f"{100 * share / max(len(found), 1):7.1f}%" for share in shares)
        print(f"{kind:<18} {len(found):>9,} {sum(words) / max(len(found), 1):>10.1f} {cells}")


if __name__ == "__main__":
    main()
