"""Is docs/objectives.md up to date, do its links and pictures exist, and do its examples run?"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import make_objectives
import pytest
from PIL import Image

from lossscope.errors import InputError
from lossscope.registry import build, names

ROOT = Path(__file__).parents[2]
LINKED = ("errata.md", "concepts/counts.md", "sources.md", "trainers.md")  # pages whose headings are linked
PAGE = (ROOT / "docs" / "objectives.md").read_text(encoding="utf-8")
NAMES = [name for name in names("objectives") if (ROOT / "lossscope" / "objectives" / f"{name}.py").is_file()]
SECTIONS = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", PAGE, re.M | re.S))
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
FILES = {match[1]: text for text in EXAMPLES if (match := re.match(r"# (\w+\.py)\n", text))}
GOOD = "l_q = 0.\n\nExplained.\nW: 0.\nCounted: 0.\nDefaults: x\n1.\nSource: A 2000."


def test_the_page_is_what_the_script_makes(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_objectives.main(["--check"]) == 0, f"run `make docs`\n{capsys.readouterr().out}"


def test_a_page_that_differs_is_shown_and_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "objectives.md"
    old.write_text(PAGE.replace("# Objectives", "# Losses"), encoding="utf-8")
    monkeypatch.setattr(make_objectives, "PAGE", old)
    monkeypatch.setattr(make_objectives, "page", lambda source: PAGE)
    assert make_objectives.main(["--check"]) == 1
    assert "-# Losses\n+# Objectives\n" in capsys.readouterr().out
    assert old.read_text(encoding="utf-8").count("# Losses") == 1


def test_every_objective_has_a_row_and_a_section() -> None:
    assert list(SECTIONS) == NAMES
    assert re.findall(r"^\| \[`(\w+)`\]\(#\1\) \|", PAGE, re.M) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_section_has_every_part_and_a_picture(name: str) -> None:
    text = SECTIONS[name]
    for part in ("W", "Counted", "Training", "Options", "Source", "Files"):
        assert f"\n- **{part}** " in text
    assert f"](../tests/oracles/{name}.py)" in text
    assert f'src="../figures/objectives/{name}.png" width="700" alt="Heat maps' in text
    picture = ROOT / "figures" / "objectives" / f"{name}.png"
    assert picture.stat().st_size <= 60_000
    with Image.open(picture) as image:
        assert image.width >= 1000


def test_pictures_are_of_objectives_and_small_together() -> None:
    pictures = list((ROOT / "figures" / "objectives").iterdir())
    assert {path.stem for path in pictures} == set(NAMES)
    assert sum(path.stat().st_size for path in pictures) < 1_200_000


def test_every_link_has_a_target() -> None:
    targets = set(re.findall(r"\]\(([^)\s]+)\)", PAGE)) | set(re.findall(r'src="([^"]+)"', PAGE))
    headings = {
        page: {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.+)$", text, re.M)}
        for page, text in {
            "": PAGE,
            **{name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in LINKED},
        }.items()
    }
    for target in targets:
        path, _, anchor = target.partition("#")
        assert not path or (ROOT / "docs" / path).is_file(), target
        assert not anchor or anchor in headings[path], target


def test_options_are_specs_that_build() -> None:
    for name, text in SECTIONS.items():
        spec = re.search(rf"\*\*Options\*\* `({name}[^`]*)`", text)
        assert spec is not None
        assert build("objectives", spec[1]) == build("objectives", name)


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = [text for text in EXAMPLES if text not in FILES.values()]
    for text in run:
        exec(compile(text, "objectives.md", "exec"), {})
    assert len(run) == 3
    assert (tmp_path / "labels.npz").is_file()


@pytest.mark.usefixtures("typed", "stand_ins")
@pytest.mark.parametrize("spec", sorted(set(re.findall(r"(?<=--objective )\./[^\s`]+", PAGE))))
def test_losses_in_files_work_unchanged(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = spec.split(":")[0].removeprefix("./")
    Path(file).write_text(FILES[file], encoding="utf-8")
    with warnings.catch_warnings(action="ignore"):  # of the imported package
        if "pytorch_metric_learning" in FILES[file]:
            pytest.importorskip("pytorch_metric_learning")
        objective = build("objectives", spec)
    assert objective.traits.directions in (0.5, 1.0)


def test_a_docstring_is_read_into_its_parts() -> None:
    formula, explanation, parts = make_objectives.parse_docstring(GOOD, "zero")
    assert (formula, explanation) == ("l_q = 0", "Explained.")
    assert parts == {"W": "0.", "Counted": "0.", "Defaults": "x 1.", "Source": "A 2000."}


@pytest.mark.parametrize("line", ["W: 0.\n", "Counted: 0.\n", "Source: A 2000."])
@pytest.mark.parametrize("moved", [False, True])
def test_a_docstring_with_a_part_missing_or_misplaced_is_refused(line: str, moved: bool) -> None:
    wrong = GOOD.replace(line, "")
    if moved:
        wrong = wrong.replace("Defaults:", f"{line.strip()}\nDefaults:") + ("" if "Source" in line else f"\n{line}")
    with pytest.raises(InputError, match="docstring of zero must have W, Counted, Defaults, Source, in this order"):
        make_objectives.parse_docstring(wrong, "zero")


def test_a_docstring_with_another_training_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        make_objectives, "parse_docstring", lambda text, name: ("", "", {"Training": "the mean of both."})
    )
    with pytest.raises(InputError, match=r"Training of vlc must begin with 'sum i2t \+ sum t2i'"):
        make_objectives.entry("vlc")


def test_entries_of_the_errata_are_linked() -> None:
    assert make_objectives._markdown("the first (E11)") == "the first ([E11](errata.md#e11-equal-hardest-negatives))"
    with pytest.raises(InputError, match="must have a heading E99"):
        make_objectives._markdown("none (E99)")
