"""Do names and sentences keep the mechanical rules of docs/style.md?"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.each import each

ROOT = Path(__file__).parents[1]
PRONOUNS = {"one", "ones", "own", "some", "every", "place", "places"}  # which are no names of variables
STIFF = re.compile(
    r"\b((?<!\w )of which|that there (?:is|are)|(?:is|are|was|were) (?:said|told)|looked for|can not|by lot"
    r"|go(?:es)? on with)\b",
    re.IGNORECASE,
)
TEXTS = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
HELD = ("README.md", "CONTRIBUTING.md", "lossscope", "cli", "studies", "benchmarks", "docs", "tests")
SHOWS = ("style.md", "test_style.py")  # which name what they forbid


def _files(suffix: str) -> list[Path]:
    found = []
    for name in HELD:
        path = ROOT / name
        found += [path] if path.suffix == suffix else path.rglob(f"*{suffix}") if path.is_dir() else []
    return sorted(file for file in found if "__pycache__" not in file.parts and file.name not in SHOWS)


def _names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each variable, field and parameter, but `every: int`, a number of steps."""
    steps = {(node.lineno, node.arg) for node in ast.walk(tree) if isinstance(node, ast.arg) and _is_number(node)}
    steps |= {(node.lineno, "every") for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and _is_number(node)}
    for node in ast.walk(tree):
        name = node.arg if isinstance(node, ast.arg) else node.id if isinstance(node, ast.Name) else None
        is_bound = isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        if name is not None and is_bound and not (name == "every" and (node.lineno, name) in steps):
            yield node.lineno, name


def _is_number(node: ast.arg | ast.AnnAssign) -> bool:
    return (
        node.annotation is not None
        and re.match(r"(Annotated\[)?(int|float)\b", ast.unparse(node.annotation)) is not None
    )


def _prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment and each string: docstrings, messages, help."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in TEXTS:
            yield token.start[0], token.string


@each("file", _files(".py"))
def test_no_variable_is_a_pronoun(file: Path) -> None:
    """`one` had 1,220 uses, `own` 809: a reader had to find out what each stood for."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert [f"{file.relative_to(ROOT)}:{line}: {name}" for line, name in _names(tree) if name in PRONOUNS] == []


@each("file", _files(".py"))
def test_no_sentence_of_code_opens_with_a_noun_clause(file: Path) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line + text[: match.start()].count(chr(10))}: {match[0]}"
        for line, text in _prose(file.read_text(encoding="utf-8"))
        for match in STIFF.finditer(text)
    ]
    assert found == []


@each("file", _files(".md"))
def test_no_sentence_of_a_page_opens_with_a_noun_clause(file: Path) -> None:
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    found = [f"{file.name}:{number}: {match[0]}" for number, line in lines for match in STIFF.finditer(line)]
    assert found == []
