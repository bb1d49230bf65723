"""Run a contract on every entry of a registry within one test: pytest collects one test and names every failure."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

Test = Callable[..., None]


def each(*names_and_values: Any) -> Callable[[Test], Test]:
    """Return a decorator that runs a test on each case, as `pytest.mark.parametrize` does, within one test.

    `@each("spec", SPECS, "seed", range(3))` is every seed of every spec; `@each("spec, count", [("triplet", 3)])` names
    several arguments of one case. A case that fails is a subtest with its values in its name, and the others run on; a
    test with skipped cases and no failed case counts as skipped. Each case has its own cache of embeddings, and
    its own `tmp_path`, `monkeypatch`, `capsys` and `caplog`: an empty folder, patches that are undone, and no output of
    earlier cases; all other fixtures are those of the test. Stands above hypothesis' `given`.
    """
    cases = list(_cases(names_and_values[::2], names_and_values[1::2]))
    assert cases, f"{names_and_values[::2]} must have values"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(subtests: pytest.Subtests, **fixtures: Any) -> None:
            failed, skipped = False, list[str]()
            for number, case in enumerate(cases):
                try:
                    with _fixtures_of_case(fixtures, str(number)) as copies:
                        test(**case, **copies)
                except pytest.skip.Exception as reason:
                    skipped.append(str(reason))
                except (Exception, pytest.fail.Exception):
                    failed = True
                    with subtests.test(**{name: _short(value) for name, value in case.items()}):
                        raise
            if skipped and not failed:
                pytest.skip(f"{len(skipped)} of {len(cases)} cases: {'; '.join(dict.fromkeys(skipped))}")

        for name in [name for name in vars(run) if "hypothesis" in name]:
            delattr(run, name)  # or pytest would assume that the loop draws examples
        kept = [
            parameter for parameter in inspect.signature(test).parameters.values() if parameter.name not in cases[0]
        ]
        fixture = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = inspect.Signature([fixture, *kept])  # type: ignore[attr-defined]
        return run

    return decorate


@contextmanager
def _fixtures_of_case(fixtures: dict[str, Any], number: str) -> Iterator[dict[str, Any]]:
    copies = dict(fixtures)
    for name in copies.keys() & {"capsys", "capfd"}:
        copies[name].readouterr()
    if "caplog" in copies:
        copies["caplog"].clear()
    if "tmp_path" in copies:
        copies["tmp_path"] = copies["tmp_path"] / number
        copies["tmp_path"].mkdir()
    with pytest.MonkeyPatch.context() as patch:
        for name in {"LOSSSCOPE_CACHE", "LOSSSCOPE_STATE"} & os.environ.keys():
            patch.setenv(name, os.path.join(os.environ[name], number))
        yield {**copies, "monkeypatch": patch} if "monkeypatch" in copies else copies


def _cases(names: Iterable[str], values: Iterable[Iterable[Any]]) -> Iterator[dict[str, Any]]:
    split = [[name.strip() for name in several.split(",")] for several in names]
    for chosen in product(*values):
        cells = [value if len(group) > 1 else (value,) for group, value in zip(split, chosen, strict=True)]
        yield {
            name: cell for group, row in zip(split, cells, strict=True) for name, cell in zip(group, row, strict=True)
        }


def _short(value: Any) -> str:
    """Return the name of a value in the name of a case."""
    name = getattr(value, "__name__", None) or getattr(value, "name", None)
    text = name if isinstance(name, str) else str(value)[:80]
    return text if text.isprintable() else ascii(text)
