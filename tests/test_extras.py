"""An error about a missing package names an extra that exists, always in the same form."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import lossscope_cli
import pytest

import lossscope
from lossscope.errors import InputError, needing

LIBRARY, COMMANDS = Path(lossscope.__file__).parent, Path(str(lossscope_cli.__file__)).parent


def calls_of_needing() -> dict[str, str]:
    """Return the position of each call that names an extra -> the extra's name."""
    found = {}
    for file in (*LIBRARY.rglob("*.py"), *COMMANDS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "needing":
                extra = node.args[0]
                assert isinstance(extra, ast.Constant)
                found[f"{file}:{node.lineno}"] = str(extra.value)
    return found


def test_every_extra_that_a_message_names_can_be_installed_and_each_is_named() -> None:
    project = tomllib.loads((LIBRARY.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - {"dev"}
    assert set(calls_of_needing().values()) == extras


def test_no_other_file_words_the_line_that_installs_an_extra() -> None:
    files = [file for folder in (LIBRARY, COMMANDS) for file in folder.rglob("*.py")]
    worded = [file.name for file in files if "install lossscope[" in file.read_text(encoding="utf-8")]
    assert not worded


def test_what_cannot_be_imported_is_named_with_its_reason_and_the_line_to_type() -> None:
    with (
        pytest.raises(InputError, match=r"^A needs tokens, whose import fails \(No module named 'tokens_'\): "),
        needing("hf", "A needs tokens"),
    ):
        import tokens_  # type: ignore[import-not-found]  # noqa: F401
    with pytest.raises(InputError, match=r"pip install 'lossscope\[hf\]'$"), needing("hf", "CLIP needs tokens"):
        raise ImportError("broken")


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), needing("hf", "CLIP needs tokens"):
        raise KeyError("x")
