"""Do the examples in docstrings print what they say?"""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

from tests.each import each

ROOT = Path(__file__).parents[1]
PACKAGES = {"lossscope": "lossscope", "cli": "lossscope_cli"}
MODULES = [
    ".".join([name, *path.relative_to(ROOT / folder).with_suffix("").parts]).removesuffix(".__init__")
    for folder, name in PACKAGES.items()
    for path in sorted((ROOT / folder).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@each("name", MODULES)
def test_the_examples_of_a_module_print_what_they_say(name: str) -> None:
    printed: list[str] = []
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False)
    tests = [test for test in doctest.DocTestFinder().find(module, name) if test.examples]
    assert tests, f"{name} has >>> outside of its docstrings"
    for test in tests:
        runner.run(test, out=printed.append)
    assert not printed, "".join(printed)
