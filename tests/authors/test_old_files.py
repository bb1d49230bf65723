"""Do files of old torch and of Python 2 open as today's files do, with and without `--old-pickle`?"""

from __future__ import annotations

import pickletools
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import lossscope
from lossscope.encoders.released.checkpoint_file import read_released
from lossscope.errors import InputError
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.conversion import open_released
from tests.authors.answers import TOLERANCE, difference
from tests.authors.python2_files import write_python2_checkpoint
from tests.authors.vse_answers import VseAnswers
from tests.authors.vse_files import write_checkpoint

LONG_PATH = "/data" * 60  # more bytes than SHORT_BINSTRING takes
CASES = [("vsepp", "cosine"), ("vsepp", "no_imgnorm"), ("vsrn", "f30k"), ("vsrn", "coco_no_imgnorm_use_abs")]
every_case = pytest.mark.parametrize(("family", "name"), CASES)


@every_case
def test_the_container_of_torch_before_1_6_is_read_without_being_asked_for(
    family: str, name: str, tmp_path: Path
) -> None:
    answers = VseAnswers(family)
    path, data = answers.write(name, tmp_path)
    write_checkpoint(path, answers.case(name), legacy=True)
    assert path.read_bytes()[:2] != b"PK"
    embedded = lossscope.load(path, data=f"precomp:root={data}", split="test", cache=False)
    assert difference(embedded.images, answers.array(f"{name}/images")) <= TOLERANCE
    assert difference(embedded.captions, answers.array(f"{name}/captions")) <= TOLERANCE


@every_case
@pytest.mark.parametrize("further", [{}, {"resume": LONG_PATH}], ids=["short", "long"])
def test_a_file_of_python_2_is_converted_to_the_same_model(
    family: str, name: str, further: dict[str, str], tmp_path: Path
) -> None:
    from lossscope_cli import app

    answers = VseAnswers(family)
    path, data = answers.write(name, tmp_path)
    case = answers.case(name)
    case = type(case)({**case.options, **further}, case.features, case.shapes, case.seed)
    words = ["convert", str(write_python2_checkpoint(path, case)), str(tmp_path / "own.pt"), "--old-pickle"]
    result = CliRunner().invoke(app, [*words, "--data", f"precomp:root={data}"])
    assert result.exit_code == 0, result.output
    embedded = lossscope.load(tmp_path / "own.pt", split="test", cache=False)
    assert difference(embedded.images, answers.array(f"{name}/images")) <= TOLERANCE
    assert difference(embedded.captions, answers.array(f"{name}/captions")) <= TOLERANCE
    state = {k: v for tower in case.states() for k, v in tower.items()}
    weights = {k.partition(".")[2]: v for k, v in Checkpoint.load(tmp_path / "own.pt").weights.items()}
    assert [key for key, tensor in weights.items() if not torch.equal(tensor, state[key])] == []


@every_case
def test_short_texts_of_python_2_need_no_option_and_long_ones_name_it(family: str, name: str, tmp_path: Path) -> None:
    case = VseAnswers(family).case(name)
    path = write_python2_checkpoint(tmp_path / "model_best.pth.tar", case)
    restricted, unpickled = read_released(path), read_released(path, old_pickle=True)
    assert restricted.options == unpickled.options
    assert (restricted.epoch, restricted.metrics) == (unpickled.epoch, unpickled.metrics) == (30, {"rsum": 401.5})
    for ours, expected in zip(restricted.towers, case.states(), strict=True):
        assert [key for key, tensor in expected.items() if not torch.equal(ours[key], tensor)] == []
    path = write_python2_checkpoint(path, case, note=LONG_PATH)
    with pytest.raises(InputError, match="as Python 2 wrote them; convert it with --old-pickle"):
        read_released(path)
    assert read_released(path, old_pickle=True).options["note"] == LONG_PATH


def test_the_written_files_have_the_texts_of_python_2(tmp_path: Path) -> None:
    case = VseAnswers("vsepp").case("cosine")
    path = write_python2_checkpoint(tmp_path / "model_best.pth.tar", case, note=LONG_PATH)
    with open(path, "rb") as file:
        names = [[code.name for code, _, _ in pickletools.genops(file)] for _ in range(4)][3]
    assert {"SHORT_BINSTRING", "BINSTRING", "NEWOBJ", "BUILD"} <= set(names)
    assert "BINUNICODE" not in names


def test_a_file_of_python_2_lowers_ascii_capitals_only(tmp_path: Path) -> None:
    answers = VseAnswers("vsepp")
    path, _ = answers.write("cosine", tmp_path)
    words = [open_released(path, old_pickle=True)[0].word_tokeniser]
    write_python2_checkpoint(path, answers.case("cosine"))
    words.append(open_released(path, old_pickle=True)[0].word_tokeniser)
    assert words == ["treebank", "treebank-ascii"]
