"""Do released files open, pass probes and convert with their models' scores, and are misfits refused?"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

from lossscope.encoders.base import Encoder
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.conversion import open_released
from lossscope.text.vocabulary import SPECIAL, Vocabulary
from tests.each import each

WORDS = (*SPECIAL, "a", "red", "dog", "cat", "runs", "sleeps", "on", "grass")
CAPTIONS = [
    f"a {colour} {animal} {verb}" for animal in ("dog", "cat") for colour in ("red", "blue") for verb in ("runs", "x")
]
THREE = ("image.", "text.", "similarity.")
COMMON = {"margin": 0.2, "max_violation": True, "data_path": "/nfs/work/data", "vocab_path": "/nfs/work/vocab"}


@dataclass(frozen=True)
class Family:
    """An encoder family and the form of its released files."""

    spec: str  # of a small model
    options: dict[str, Any]  # further options in the released file
    shape: tuple[int, ...] = (36, 6)  # of one item
    added: tuple[str, ...] = ()  # words added to the vocabulary
    prefix: str = ""  # of the names of tensors
    towers: tuple[str, ...] = ("image.", "text.")  # prefixes of the state dicts


FAMILIES = {
    "vsepp": Family("vsepp:image=linear,dim=8,words=4", {}, (6,)),
    "vsrn": Family("vsrn:dim=6,words=4,blocks=2,region_norm_axis=regions", {"data_name": "f30k_precomp"}),
    "vse_infty": Family(
        "vse_infty:image=regions,text=bigru,dim=8,words=4,bn_ignore_padding=false",
        {"precomp_enc_type": "basic"},
        (36, 6),
        ("<mask>",),
        "module.",
    ),
    "scan": Family(
        "scan:direction=t2i,dim=8,words=4",
        {"cross_attn": "t2i", "lambda_softmax": 9, "agg_func": "Mean", "lambda_lse": 6,
         "raw_feature_norm": "clipped_l2norm", "bi_gru": True},
    ),
    "bfan": Family("bfan:focal=prob,dim=8,words=4", {"focal_type": "prob", "lambda_softmax": 20}),
    "saf": Family("sgraf:module=saf,dim=8,words=4,sim_dim=6", {"module_name": "SAF"}, towers=THREE),
    "sgr": Family("sgraf:module=sgr,dim=8,words=4,sim_dim=6", {"module_name": "SGR"}, towers=THREE),
}  # fmt: skip
families = each("family", FAMILIES.values())


def model(family: Family) -> Encoder:
    torch.manual_seed(0)
    encoder: Encoder = build("encoders", family.spec).build(family.shape, len(WORDS) + len(family.added))
    for name, tensor in encoder.state_dict().items():
        if tensor.is_floating_point() and name.endswith(("running_mean", "weight", "bias")):
            tensor.add_(0.05 * torch.randn_like(tensor))
    return encoder.eval()


def write(path: Path, family: Family, zipped: bool = True, **change: Any) -> Path:
    """Write a file as the authors' training script: five keys, a list of state dicts, a Namespace."""
    state = model(family).state_dict()
    towers = [
        {family.prefix + k.removeprefix(tower): v for k, v in state.items() if k.startswith(tower)}
        for tower in family.towers
    ]
    options = argparse.Namespace(**COMMON, **family.options, vocab_size=len(WORDS))
    content = {"epoch": 12, "model": towers, "best_rsum": 401.5, "opt": options, "Eiters": 99} | change
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


def vocabulary(path: Path, words: tuple[str, ...] = WORDS) -> Path:
    ids = {word: row for row, word in enumerate(words)}
    content = {"word2idx": ids, "idx2word": {str(row): word for word, row in ids.items()}, "idx": len(ids)}
    path.write_text(json.dumps(content))
    return path


def folder(path: Path, family: Family) -> Path:
    path.mkdir()
    rng = np.random.default_rng(0)
    np.save(path / "test_ims.npy", rng.normal(size=(4, *family.shape)).astype("f"))
    (path / "test_caps.txt").write_text("\n".join(CAPTIONS[i % 8] for i in range(20)) + "\n")
    return path


def expected(family: Family, data: Path) -> Tensor:
    """Return S from the model itself, one caption at a time."""
    encoder, words = model(family), Vocabulary((*WORDS, *family.added))
    images = torch.from_numpy(np.load(data / "test_ims.npy"))
    columns = []
    for i in range(20):
        ids = torch.tensor([words.encode(CAPTIONS[i % 8])])
        with torch.no_grad():
            texts = encoder.encode_texts(ids, torch.tensor([ids.shape[1]]))
            S = encoder.score(encoder.encode_images(images), texts)
        assert isinstance(S, Tensor)
        columns.append(S)
    return torch.cat(columns, 1)


@each("family, zipped", [*((family, True) for family in FAMILIES.values()), (FAMILIES["vse_infty"], False)])
def test_a_released_file_is_probed_and_converted_with_its_scores(tmp_path: Path, family: Family, zipped: bool) -> None:
    file = write(tmp_path / "model_best.pth.tar", family, zipped)
    words, data = vocabulary(tmp_path / "words.json"), folder(tmp_path / "data", family)
    S = expected(family, data)
    rows = (np.arange(4), np.arange(20))
    direct = load(file, data=f"precomp:root={data}", split="test", vocabulary=words)
    torch.testing.assert_close(direct.similarity_block(*rows), S, atol=1e-5, rtol=1e-5)
    assert direct.objective == "triplet_sh:margin=0.2"
    for out in (tmp_path / "ours.pt", tmp_path / "ours.safetensors"):
        checkpoint, _ = open_released(file, words, f"precomp:root={data}")
        checkpoint.save(out)
        converted = load(out, split="test")
        torch.testing.assert_close(converted.similarity_block(*rows), S, atol=1e-5, rtol=1e-5)
    checkpoint_read = Checkpoint.load(tmp_path / "ours.pt")
    assert (checkpoint_read.epoch, checkpoint_read.metrics) == (12, {"rsum": 401.5})
    assert checkpoint_read.training["converted_from"] == "model_best.pth.tar"


@families
def test_a_vocabulary_of_another_size_is_refused(tmp_path: Path, family: Family) -> None:
    file = write(tmp_path / "a.pth.tar", family)
    with pytest.raises(
        InputError, match=rf"the vocabulary must have \d+ words, .* got {len(WORDS) - 1 + len(family.added)}"
    ):
        open_released(file, vocabulary(tmp_path / "other.json", WORDS[:-1]))
    with pytest.raises(InputError, match="--vocabulary is needed"):
        open_released(file)


@each("family", FAMILIES.values(), "change", ["missing", "left over", "must be"])
def test_a_tensor_that_does_not_fit_is_refused_by_name(tmp_path: Path, family: Family, change: str) -> None:
    state = torch.load(write(tmp_path / "a.pth.tar", family), weights_only=False)
    tower = state["model"][1]
    name = next(k for k in tower if k.endswith("weight_hh_l0"))
    if change == "missing":
        del tower[name]
    elif change == "left over":
        tower[name + "_extra"] = tower[name]
    else:
        tower[name] = tower[name][:-1]
    torch.save(state, tmp_path / "b.pth.tar")
    with pytest.raises(InputError, match=name.removeprefix(family.prefix)):
        open_released(tmp_path / "b.pth.tar", vocabulary(tmp_path / "words.json"))


def test_weights_that_are_not_finite_are_refused_by_name(tmp_path: Path) -> None:
    state = torch.load(write(tmp_path / "a.pth.tar", FAMILIES["scan"]), weights_only=False)
    state["model"][0]["fc.bias"][0] = torch.nan
    torch.save(state, tmp_path / "b.pth.tar")
    with pytest.raises(InputError, match=r"fc\.bias"):
        open_released(tmp_path / "b.pth.tar", vocabulary(tmp_path / "words.json"))


@families
def test_a_prefix_on_some_names_only_is_no_match(tmp_path: Path, family: Family) -> None:
    state = torch.load(write(tmp_path / "a.pth.tar", family), weights_only=False)
    tower = state["model"][1]
    first = next(iter(tower))
    other = first.removeprefix("module.") if family.prefix else f"module.{first}"
    state["model"][1] = {other if k == first else k: v for k, v in tower.items()}
    torch.save(state, tmp_path / "b.pth.tar")
    with pytest.raises(InputError):
        open_released(tmp_path / "b.pth.tar", vocabulary(tmp_path / "words.json"))


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('ran')",))


@each("zipped", [True, False])
def test_a_pickle_that_would_run_something_is_refused(tmp_path: Path, zipped: bool) -> None:
    file = write(tmp_path / "a.pth.tar", FAMILIES["scan"], zipped, opt=Evil())
    with pytest.raises(InputError, match=r"must hold plain data; it holds .*exec"):
        load(file, data="scenes", vocabulary=vocabulary(tmp_path / "words.json"))


def test_a_file_of_no_family_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    torch.save({"state_dict": {"layer.weight": torch.ones(1)}}, tmp_path / "a.pth")
    with pytest.raises(InputError, match=r"must be of a known family \(bfan, .*; it holds 1 state dict"):
        open_released(tmp_path / "a.pth")


@each("subfolder", ["{}", "vocab"])
def test_a_vocabulary_beside_the_file_is_read(tmp_path: Path, subfolder: str) -> None:
    file = write(tmp_path / "a.pth.tar", FAMILIES["vsrn"])
    home = tmp_path / subfolder.format("")
    home.mkdir(exist_ok=True)
    vocabulary(home / "f30k_precomp_vocab.json")
    assert open_released(file)[0].vocabulary == list(WORDS)


def run(*words: str) -> Any:
    from lossscope_cli import app

    return CliRunner().invoke(app, list(words))


def test_convert_and_cocos_from_the_command_line(tmp_path: Path) -> None:
    family = FAMILIES["scan"]
    file, words = write(tmp_path / "model_best.pth.tar", family), vocabulary(tmp_path / "words.json")
    data, out = folder(tmp_path / "data", family), tmp_path / "scan.pt"
    common = ["--data", f"precomp:root={data}", "--vocabulary", str(words)]
    converted = run("convert", str(file), str(out), *common)
    assert converted.exit_code == 0, converted.output
    assert "scan:direction=t2i" in converted.stderr
    again = run("convert", str(file), str(out), *common)
    assert again.exit_code == 2 and "pass --force" in again.stderr
    direct = run("cocos", str(file), *common, "--split", "test", "--format", "json")
    of_checkpoint = run("cocos", str(out), "--split", "test", "--format", "json")
    assert direct.exit_code == of_checkpoint.exit_code == 0, direct.output
    values = [[row["mean"] for row in json.loads(result.stdout)["rows"]] for result in (direct, of_checkpoint)]
    assert values[0] == values[1]
    assert run("verify", str(out)).exit_code == 0
    without_data = run("cocos", str(file), "--vocabulary", str(words))
    assert without_data.exit_code == 1 and "--data is needed" in without_data.stderr
