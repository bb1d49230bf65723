"""Is docs/probes.md what its script generates, and do its examples run?"""

from __future__ import annotations

import re
from pathlib import Path

import make_probes
import pytest
from lossscope_cli import app
from typer.main import get_command

from lossscope.registry import build, names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "probes.md").read_text(encoding="utf-8")
NAMES = [name for name in names("probes") if (ROOT / "lossscope" / "probes" / f"{name}.py").is_file()]
SECTIONS = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", PAGE, re.M | re.S))


def test_the_page_is_what_the_script_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_probes.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_a_page_that_differs_is_shown_and_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "probes.md"
    old.write_text(PAGE.replace("# Probes", "# Questions", 1), encoding="utf-8")
    monkeypatch.setattr(make_probes, "PAGE", old)
    monkeypatch.setattr(make_probes, "page", lambda source: PAGE)
    assert make_probes.main(["--check"]) == 1
    assert "-# Questions\n+# Probes\n" in capsys.readouterr().out


def test_every_probe_has_a_row_and_a_section() -> None:
    assert list(SECTIONS) == NAMES
    assert re.findall(r"^\| \[`(\w+)`\]\(#\1\) \|", PAGE, re.M) == NAMES
    for name, text in SECTIONS.items():
        for statistic in build("probes", name).statistics(build("objectives", "ntxent")):
            assert f"`{statistic.name}` ({statistic.unit})" in text


def test_python_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    run = [text for text in examples if "lightning" not in text and "transformers" not in text]
    for text in run:
        exec(compile(text, "probes.md", "exec"), {})
    assert len(run) == 1 and len(examples) == 3
    assert len((tmp_path / "scope.csv").read_text().splitlines()) == 11


def test_commands_have_the_options_of_the_page() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    lines = re.findall(r"^lossscope (.+?)(?: +#.*)?$", PAGE, re.M)
    assert len(lines) >= 7
    for line in lines:
        name, *words = line.split()
        with commands[name].make_context(name, words) as context:
            assert context.params.get("sources") or context.params["probe"] == ["cocos", "tangent"]
