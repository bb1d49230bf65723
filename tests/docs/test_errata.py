"""Does every entry of docs/errata.md have an example, and is the output below it what the example prints?"""

from __future__ import annotations

import re
from pathlib import Path

import make_errata
import pytest

DOCS = Path(__file__).parents[2] / "docs"
IDS = [f"E{number}" for number in range(1, 23)]
CORNERS = ["con, con", "nca, con", "cir, lin", "con, sig ", "con, sig-ms", "The other ten"]


@pytest.fixture(name="page", scope="module")
def read_page() -> str:
    return (DOCS / "errata.md").read_text(encoding="utf-8")


def entries(page: str) -> dict[str, str]:
    """Return heading -> text of each section of the second or third level."""
    parts = re.split(r"^#{2,3} (.+)\n", page, flags=re.M)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def entry(page: str, start: str) -> str:
    """Return the text of the one section whose heading begins so."""
    texts = [text for heading, text in entries(page).items() if f"{heading} ".startswith(start)]
    assert len(texts) == 1, start
    return texts[0]


@pytest.mark.parametrize("name", IDS)
def test_every_entry_says_what_is_published_what_is_right_and_what_changes(page: str, name: str) -> None:
    text = entry(page, f"{name} ")
    positions = [text.index(f"\n**{part}.** ") for part in ("Published", "Right", "Changes")]
    assert positions == sorted(positions)


@pytest.mark.parametrize("start", [*(f"{name} " for name in IDS), *CORNERS])
def test_every_entry_has_an_example_with_its_output(page: str, start: str) -> None:
    examples = re.findall(r"^```python\n(.+?)^```\n\n```text\n(.+?)^```\n", entry(page, start), re.M | re.S)
    assert len(examples) == 1
    assert all(output.strip() for _, output in examples)


def test_the_table_on_top_links_to_every_entry(page: str) -> None:
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in entries(page)}
    links = re.findall(r"\]\(#([^)]+)\)", page)
    assert set(links) <= slugs
    assert {slug for slug in slugs if re.match(r"e\d", slug)} <= set(links)


def test_each_example_runs_in_a_namespace_of_its_own() -> None:
    source = "# A\n\n```python\nx = 1\nprint(x)  \nprint('a ')\n```\n\n```python\nprint('x' in globals())\n```\nend\n"
    expected = source.replace("'a ')\n```\n", "'a ')\n```\n\n```text\n1\na\n```\n")
    expected = expected.replace("globals())\n```\n", "globals())\n```\n\n```text\nFalse\n```\n")
    assert make_errata.page(source) == make_errata.NOTE + expected


def test_an_example_that_fails_stops_the_page_and_names_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as error:
        make_errata.page("# A\n\n```python\nx = 1\nx / 0\n```\n")
    assert error.traceback[-1].lineno == 4  # counted from 0: the fifth line


def test_the_page_is_what_its_examples_print(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(DOCS)
    for name in ("OMP_NUM_THREADS", "LOSSSCOPE_CACHE"):
        monkeypatch.setenv(name, "")
    assert make_errata.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_a_page_that_differs_is_shown_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("OMP_NUM_THREADS", "LOSSSCOPE_CACHE"):
        monkeypatch.setenv(name, "")
    source = tmp_path / "docs" / "errata.in.md"
    source.parent.mkdir()
    source.write_text("```python\nprint(1 + 1)\n```\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(make_errata, "SOURCE", source)
    monkeypatch.setattr(make_errata, "PAGE", source.with_name("errata.md"))
    assert make_errata.main(["--check"]) == 1
    assert make_errata.main([]) == 0
    assert make_errata.main(["--check"]) == 0
    capsys.readouterr()
    make_errata.PAGE.write_text(make_errata.PAGE.read_text(encoding="utf-8").replace("2\n", "3\n"), encoding="utf-8")
    assert make_errata.main(["--check"]) == 1
    assert "-3\n+2\n" in capsys.readouterr().out
