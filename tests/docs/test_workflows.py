"""Do workflows, hooks and forms match the repository?"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import site_hooks
import yaml
from console_lines import all_lines

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z][\w-]*):(?!=)", MAKEFILE, re.M))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]
MAKE = re.compile(r"(?:^|&&|;)\s*make ([^;&|#\n]+)", re.M)


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _jobs(path: Path) -> dict[str, Any]:
    return dict(_read(path)["jobs"])


def _commands(path: Path) -> Iterator[str]:
    """Yield the commands that the steps of a workflow run."""
    for job in _jobs(path).values():
        yield from (step["run"] for step in job.get("steps", ()) if "run" in step)


def _make_targets(text: str) -> set[str]:
    """Return the targets in the make lines of a text."""
    words = {word for line in MAKE.findall(text) for word in line.split()}
    return {word for word in words if "=" not in word and not word.startswith("-")}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_that_exist(path: Path) -> None:
    assert set().union(*map(_make_targets, _commands(path))) <= TARGETS


def test_the_workflows_make_what_a_person_makes() -> None:
    targets = {path.stem: set().union(*map(_make_targets, _commands(path))) for path in WORKFLOWS}
    assert targets["tests"] == {"lint", "types", "test", "site"} and targets["all"] == {"test-all"}


def test_pages_show_targets_that_exist() -> None:
    assert set().union(*map(_make_targets, all_lines())) <= TARGETS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_and_each_job_ends(path: Path) -> None:
    assert _read(path)["permissions"] == {"contents": "read"}
    for name, job in _jobs(path).items():
        assert "uses" in job or job["timeout-minutes"] <= 180, name
        assert "uses" not in job or (ROOT / job["uses"]).is_file(), name


def test_the_pythons_begin_at_the_oldest_that_is_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    for name in ("tests", "all"):
        for job in _jobs(ROOT / ".github" / "workflows" / f"{name}.yml").values():
            if "strategy" in job:
                pythons = job["strategy"]["matrix"]["python"]
                assert pythons[0] == oldest and pythons == sorted(pythons, key=lambda text: int(text.split(".")[1]))
    alone = {
        step["with"]["python-version"]
        for path in WORKFLOWS
        for job in _jobs(path).values()
        for step in job.get("steps", ())
        if "python-version" in step.get("with", {})
    }
    assert alone == {oldest, "${{ matrix.python }}"}


def test_the_hooks_are_what_lint_and_types_run() -> None:
    (repo,) = _read(ROOT / ".pre-commit-config.yaml")["repos"]
    entries = {hook["entry"].removesuffix(" --force-exclude") for hook in repo["hooks"]}
    assert entries == {f".venv/bin/{tool}" for tool in re.findall(r"\$\(BIN\)/(ruff \w+|mypy)", MAKEFILE)}
    assert {hook["language"] for hook in repo["hooks"]} == {"system"}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_the_version_and_the_line(path: Path) -> None:
    fields = {field["id"]: field["attributes"] for field in _read(path)["body"] if field["type"] != "markdown"}
    assert "`lossscope --version`" in fields["version"]["description"]
    assert fields["line"]["label"].startswith("What you typed")
    asked = " ".join(field["label"] for field in fields.values()).lower()
    assert "what you expected" in asked and "what came" in asked


@pytest.mark.parametrize("page", ["SECURITY.md", "CHANGELOG.md", ".github/PULL_REQUEST_TEMPLATE.md"])
def test_a_page_beside_the_site_links_what_exists(page: str) -> None:
    for _, link in site_hooks.LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        parts = urlsplit(link)
        target = (ROOT / page).parent / parts.path
        assert parts.scheme or target.exists(), link
        if parts.fragment and target.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            assert parts.fragment in {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}, link
