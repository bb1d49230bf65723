"""Does the site build without a warning, open from disk without a network, and have no broken link?"""

from __future__ import annotations

import os
import posixpath
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import site_hooks
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[2]


class _Page(HTMLParser):
    """The ids and links of a page, and the files that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        target = values.get("href") or values.get("src")
        if target is not None:
            (self.links if tag == "a" else self.loaded).add(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; mkdocs.yml makes every warning an error."""
    folder = tmp_path_factory.mktemp("site")
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout + result.stderr) == (0, "")
    return folder


@cache
def _read(file: Path) -> _Page:
    return _Page(file.read_text(encoding="utf-8"))


def _pages(site: Path) -> list[Path]:
    """Return the pages that MkDocs made, without 404.html and the pages of reports."""
    return [file for file in site.rglob("*.html") if "lossscope-report" not in file.parts and _is_made(file)]


def _is_made(file: Path) -> bool:
    return file.name != "404.html" and "mkdocs" in file.read_text(encoding="utf-8")[:2000].lower()


def test_no_link_is_broken_and_no_anchor(site: Path) -> None:
    broken = []
    for file in _pages(site):
        for link in _read(file).links | _read(file).loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = Path(posixpath.normpath(file.parent / unquote(parts.path))) if parts.path else file
            found = target.is_file() and (
                not parts.fragment or unquote(parts.fragment) in {*_read(target).ids, "__codelineno"}
            )
            broken += [] if found else [f"{file.relative_to(site)}: {link}"]
    assert broken == []


def test_pages_load_nothing_from_a_network(site: Path) -> None:
    pages = _pages(site)
    assert len(pages) > 60
    assert {url for file in pages for url in _read(file).loaded if urlsplit(url).netloc} == set()


def test_every_page_of_docs_is_there_and_no_source_of_one(site: Path) -> None:
    docs = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    made = {page.with_suffix(".html") for page in docs if not page.name.endswith(".in.md")}
    assert {page for page in made if not (site / page).is_file()} == set()
    assert not [*site.rglob("*.in.html"), *site.rglob("*.in.md"), *site.glob("*.py"), *site.rglob("*.ipynb")]


def test_the_tutorial_has_its_outputs(site: Path) -> None:
    text = (site / "tutorial.html").read_text(encoding="utf-8")
    assert "600 images, 3000 captions, vectors of 64" in text and len(list(site.glob("tutorial_files/*.png"))) == 4


def test_the_search_knows_the_pages(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert "concepts/counts.html" in index and "source/lossscope" not in index


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("docs/probes.md", "probes.md"),
        ("figures", "figures/index.md"),
        ("reports/bleeker2022-small", "reports/bleeker2022-small/index.html"),
        ("studies", "source/studies/index.md"),
        ("lossscope/objectives/aoq.py", "source/lossscope/objectives/aoq.py.md"),
    ],
)
def test_a_path_of_the_repository_has_a_place_in_the_site(path: str, uri: str) -> None:
    assert site_hooks.site_uri(path) == uri


def test_a_link_to_nothing_stops_the_build() -> None:
    with pytest.raises(
        PluginError, match=r"link of docs/probes.md must lead to a file of the repository; got nothing.md"
    ):
        list(site_hooks._targets("probes.md", "[a](nothing.md)"))


def test_links_in_code_are_left_alone() -> None:
    assert list(site_hooks._targets("probes.md", "`[a](nothing.md)`\n```\n[b](nothing.md)\n```\n")) == []
