"""Does every family refuse options in no list, also from the command line?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lossscope.encoders.base import EncoderSpec
from lossscope.encoders.released.option_table import OptionTable, Refusal, flatten
from lossscope.errors import InputError
from lossscope.registry import load
from lossscope.sources.checkpoints.conversion import open_released
from tests.authors.answers import Answers
from tests.authors.vse_answers import VseAnswers
from tests.authors.vse_files import write_checkpoint, write_features, write_vocabulary
from tests.authors.xvlm_files import CONFIG
from tests.each import each
from tests.encoders.released.files import Release
from tests.encoders.released.releases import RELEASES

pytest.importorskip("transformers")

FILE = Path("model_best.pth.tar")
TABLE = OptionTable(
    done={"measure": "measure", "experts.*_dim": "widths"},
    refused={
        "gate": Refusal(unless=(False, None), why="The gate is not built here"),
        "beam": Refusal(unless=(), why="Beams are not searched here"),
    },
    without_effect={"lr": "training only", "data.*": "a path"},
)
WITH_OPTIONS = [release for release in RELEASES if release.options and not release.slow]
FIRST = {release.name: release for release in reversed(WITH_OPTIONS)}
LISTED = {name: load("encoders", name).released_options for name in sorted(FIRST)}


def require_known(options: dict[str, Any], *accepted: str) -> None:
    TABLE.require_known(options, accepted, FILE)


def names_of(table: OptionTable) -> list[str]:
    return [*table.done, *table.refused, *table.without_effect]


@each("release", FIRST.values())
def test_an_option_in_no_list_is_refused_by_every_family(release: Release, tmp_path: Path) -> None:
    file = replace(release, options={**release.options, "a_new_switch": 3})
    with pytest.raises(InputError, match=r"got a_new_switch=3, which .* pass --accept-option a_new_switch"):
        open_released(file.write(tmp_path))


@each("release", FIRST.values())
def test_the_options_of_the_releases_are_in_the_lists(release: Release) -> None:
    for other in (other for other in WITH_OPTIONS if other.name == release.name):
        LISTED[release.name].require_known(other.options, (), FILE)


@each("family", LISTED)
def test_a_name_is_in_one_list_with_a_reason(family: str) -> None:
    names = names_of(LISTED[family])
    assert names
    assert len(names) == len(set(names))
    table = LISTED[family]
    reasons = [*table.done.values(), *table.without_effect.values(), *(r.why for r in table.refused.values())]
    assert all(reasons)


def test_a_family_without_a_list_knows_no_option() -> None:
    with pytest.raises(InputError, match=r"got margin=0\.2"):
        EncoderSpec.released_options.require_known({"margin": 0.2}, (), FILE)
    EncoderSpec.released_options.require_known({}, (), FILE)


def test_options_of_the_lists_pass() -> None:
    require_known({"measure": "order", "lr": 0.1, "gate": False})
    require_known({"gate": None})


@each("value", [True, 0, "no"])
def test_a_refused_option_must_have_a_value_that_changes_nothing(value: Any) -> None:
    with pytest.raises(InputError, match=r"option gate of .* must be False or None; got .*\. The gate is not built"):
        require_known({"gate": value})


def test_a_refused_option_without_such_a_value_must_not_be_there() -> None:
    with pytest.raises(InputError, match=r"option beam of .* must not be there; got 1\. Beams are not searched here"):
        require_known({"beam": 1})


def test_names_may_be_patterns_and_parts_of_others() -> None:
    require_known({"experts": {"face_dim": 512}, "data": {"root": "/d", "deep": {"er": 1}}})
    with pytest.raises(InputError, match=r"got experts\.order=2"):
        require_known({"experts": {"face_dim": 512, "order": 2}})


def test_accepted_names_pass() -> None:
    require_known({"new": 1}, "new")
    require_known({"part": {"new": 1, "other": 2}}, "part.new", "part.other")


@each("name", ["ne", "gate", "lr", "part.*"])
def test_a_name_that_is_not_there_or_known_cannot_be_accepted(name: str) -> None:
    with pytest.raises(InputError, match=rf"--accept-option is for unknown options of .*; got '{re.escape(name)}'"):
        require_known({"new": 1, "gate": True, "lr": 1, "part": {"new": 1}}, "new", name)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(InputError) as error:
        require_known({"new": "n" * 5000})
    assert len(str(error.value)) < 500


@each("options, expected", [
    ({}, []),
    ({"a": {}}, [("a", {})]),
    ({"a": [], "b": [1]}, [("a", []), ("b", [1])]),
    ({"a": [{"b": 1}, {"b": 2, "c": 3}]}, [("a.b", 1), ("a.b", 2), ("a.c", 3)]),
    ({"a": {"b": {"c": None}}}, [("a.b.c", None)]),
])  # fmt: skip
def test_options_inside_others_have_names_with_dots(options: dict[str, Any], expected: list[tuple[str, Any]]) -> None:
    assert list(flatten(options)) == expected


@each("family", ["vsepp", "vsrn", "scan", "bfan", "sgraf", "vse_infty", "ce", "mmt", "open_clip"])
def test_every_option_of_the_authors_is_in_a_list(family: str) -> None:
    table = LISTED["clip" if family == "open_clip" else family]
    for options in options_of_files(Answers(family).content):
        assert options
        table.require_known(options, (), FILE)


def options_of_files(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the options in the authors' files of each model with known answers."""
    models = [*content.get("cases", {}).values(), *content.get("grids", {}).values()]
    if models:
        return [model["options"] if "options" in model else model["config"] for model in models]
    return [content["config"] if "config" in content else {"arch": content["arch"]}]


def test_every_option_of_xvlms_authors_is_in_a_list() -> None:
    LISTED["xvlm"].require_known(CONFIG, (), FILE)


def test_an_option_is_accepted_from_the_command_line(tmp_path: Path) -> None:
    from lossscope_cli import app

    answers = VseAnswers("vsepp")
    case = answers.case("cosine")
    case = replace(case, options={**case.options, "a_new_switch": True})
    path = write_checkpoint(tmp_path / "model_best.pth.tar", case)
    write_vocabulary(tmp_path / "f30k_precomp_vocab.json", answers.content["words"])
    write_features(tmp_path / "data", case, answers.content["captions"])
    words = ["convert", str(path), str(tmp_path / "own.pt"), "--data", f"precomp:root={tmp_path / 'data'}"]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code != 0
    assert not (tmp_path / "own.pt").exists()
    accepted = CliRunner().invoke(app, [*words, "--accept-option", "a_new_switch"])
    assert accepted.exit_code == 0, accepted.output
    assert (tmp_path / "own.pt").exists()
