"""Add pages of the repository to the site: CONTRIBUTING.md, the gallery, the reports, the tutorial, linked files.

MkDocs knows the files of docs/. CONTRIBUTING.md, the gallery and the reports keep their paths and become pages, too. A
link to another file or folder of the repository leads to a page that shows it. A link to a missing file stops the
build.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "figures/README.md": "figures/index.md",
    "reports/README.md": "reports/index.md",
    "reports/objectives/README.md": "reports/objectives/index.md",
    "docs/tutorial.ipynb": "tutorial.md",
}
"""Pages of the site by their path in the repository."""
SOURCES = {uri: path for path, uri in PAGES.items()}
LANGUAGES = {".py": "python", ".toml": "toml", ".cff": "yaml"}
CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.M | re.S)
LINK = re.compile(r"""(\]\(|<img src=")([^)"\s]+)""")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages and pictures of the repository, and every file that a page links."""
    for path, uri in ((path, uri) for path, uri in PAGES.items() if path.endswith(".md")):
        files.append(File.generated(config, uri, content=(ROOT / path).read_text("utf-8")))
    for file in [*ROOT.glob("figures/**/*.png"), *ROOT.glob("reports/**/*")]:
        if file.is_file() and file.suffix != ".md":
            files.append(File.generated(config, file.relative_to(ROOT).as_posix(), abs_src_path=str(file)))
    _add_tutorial(files, config)
    pages = {file.src_uri: file.content_string for file in files.documentation_pages()}
    for target in sorted({target for uri, text in pages.items() for target in _targets(uri, text)}):
        _add_source(target, files, config)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to files of the repository as links to their pages of the site."""
    uri = page.file.src_uri

    def rewrite(found: re.Match[str]) -> str:
        target, anchor = _target(uri, found[2]), urlsplit(found[2]).fragment
        if target is None:
            return found[0]
        path = posixpath.relpath(site_uri(target), posixpath.dirname(uri) or ".")
        return f"{found[1]}{path}{f'#{anchor}' if anchor else ''}"

    return _outside_code(markdown, lambda text: LINK.sub(rewrite, text))


def site_uri(path: str) -> str:
    """Return the source file in the site for a path of the repository."""
    if (ROOT / path).is_dir():
        names = [f"{path}/{name}" for name in ("README.md", "index.html") if (ROOT / path / name).is_file()]
        return site_uri(names[0]) if names else f"source/{path}/index.md"
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return path if path.startswith(("figures/", "reports/")) else f"source/{path}.md"


def _outside_code(markdown: str, change: Callable[[str], str]) -> str:
    parts = CODE.split(markdown)
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def _targets(uri: str, markdown: str) -> Iterator[str]:
    """Yield the paths in the repository that a page links."""
    for text in CODE.split(markdown)[::2]:
        for _, link in LINK.findall(text):
            if (target := _target(uri, link)) is not None:
                yield target


def _target(uri: str, link: str) -> str | None:
    """Return the target of a page's link as a path of the repository; None for a link elsewhere or within the page.

    Raises PluginError if the target does not exist.
    """
    parts = urlsplit(link)
    if parts.scheme or not parts.path or uri.startswith("source/") or link.startswith("tutorial_files/"):
        return None
    source = SOURCES.get(uri, f"docs/{uri}")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), parts.path))
    if not (ROOT / target).exists():
        raise PluginError(f"link of {source} must lead to a file of the repository; got {link}")
    return target


def _add_source(path: str, files: Files, config: MkDocsConfig) -> None:
    """Add a page that shows a file or the names in a folder, unless the site has it."""
    uri, file = site_uri(path), ROOT / path
    if uri in files.src_uris:
        return
    if file.is_dir():
        inside = [child for child in sorted(file.iterdir()) if child.suffix in LANGUAGES or child.is_dir()]
        text = "\n".join(f"- {_link(uri, child, files, config)}" for child in inside if child.name != "__pycache__")
    else:
        language = LANGUAGES.get(file.suffix, "text")
        text = f"````{language}\n{file.read_text('utf-8')}````"
    head = "---\nsearch: { exclude: true }\n---\n\n"
    files.append(File.generated(config, uri, content=f"{head}# `{path}`\n\n{text}\n"))


def _link(uri: str, path: Path, files: Files, config: MkDocsConfig) -> str:
    """Add a child of a folder to the site, and return a link from the folder's page."""
    name = path.relative_to(ROOT).as_posix()
    _add_source(name, files, config)
    return f"[{path.name}]({posixpath.relpath(site_uri(name), posixpath.dirname(uri))})"


def _add_tutorial(files: Files, config: MkDocsConfig) -> None:
    """Add docs/tutorial.ipynb with its stored outputs, as a page and its pictures."""
    notebook = nbformat.read(ROOT / "docs" / "tutorial.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    resources = {"output_files_dir": "tutorial_files", "unique_key": "tutorial"}
    text, made = MarkdownExporter().from_notebook_node(notebook, resources)  # type: ignore[no-untyped-call]
    files.append(File.generated(config, "tutorial.md", content=text))
    for name, picture in made["outputs"].items():
        files.append(File.generated(config, name, content=picture))
