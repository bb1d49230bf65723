"""Are files of other programs read whole under their own names, with nothing in them built or run?"""

from __future__ import annotations

import argparse
import pickle
import sys
import tarfile
import types
import zipfile
from collections import OrderedDict
from pathlib import Path, PosixPath
from typing import Any

import numpy as np
import pytest
import torch

from lossscope.encoders.released.checkpoint_file import read_released
from lossscope.encoders.released.signs import looks_released
from lossscope.errors import InputError
from lossscope.io.pickles.legacy_torch import read_legacy_torch
from tests.each import each

TOWERS = [OrderedDict(a=torch.ones(2, 3)), OrderedDict(b=torch.zeros(1))]


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('ran')",))


def options(**more: Any) -> argparse.Namespace:
    return argparse.Namespace(data_path="/nfs/data", margin=0.2, max_violation=True, **more)


def write(path: Path, zipped: bool, **change: Any) -> Path:
    content = {"epoch": 3, "model": TOWERS, "best_rsum": 381.5, "opt": options(), "Eiters": 9} | change
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


both = each("zipped", [True, False])


@both
def test_the_five_keys_of_the_vse_family(tmp_path: Path, zipped: bool) -> None:
    released = read_released(write(tmp_path / "model_best.pth.tar", zipped))
    assert [list(tower) for tower in released.towers] == [["a"], ["b"]]
    assert torch.equal(released.towers[0]["a"], torch.ones(2, 3))
    assert released.options == {"data_path": "/nfs/data", "margin": 0.2, "max_violation": True}
    assert (released.epoch, released.metrics) == (3, {"rsum": 381.5})


@both
def test_a_prefix_is_dropped_where_every_name_has_it(tmp_path: Path, zipped: bool) -> None:
    towers = [
        {"module.a": torch.ones(1), "module.b.module.c": torch.ones(1)},
        {"module.a": torch.ones(1), "b": torch.ones(1)},
    ]
    released = read_released(write(tmp_path / "a.pth", zipped, model=towers))
    assert list(released.towers[0]) == ["a", "b.module.c"]
    assert list(released.towers[1]) == ["module.a", "b"]


@both
def test_a_foreign_configuration_comes_as_plain_values(
    tmp_path: Path, zipped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a class of a module that exists only while the file is written, as the authors' own classes do."""
    module = types.ModuleType("parse_config")
    module.ConfigParser = type("ConfigParser", (), {"__module__": "parse_config"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "parse_config", module)
    config = module.ConfigParser()
    config._config = OrderedDict(arch=OrderedDict(type="CENet"), path=PosixPath("/a/b"))
    config._args = options()
    config._save_dir = PosixPath("/x/y")
    path = tmp_path / "trained_model.pth"
    torch.save({"state_dict": TOWERS[0], "config": config, "epoch": 5}, path, _use_new_zipfile_serialization=zipped)
    monkeypatch.delitem(sys.modules, "parse_config")
    released = read_released(path)
    assert released.options == {"arch": {"type": "CENet"}, "path": "/a/b"}
    assert list(released.towers[0]) == ["a"]


@each("zipped", [True, False], "number", [np.float64(2.5), np.float32(2.5)])
def test_numpy_numbers_are_data(tmp_path: Path, zipped: bool, number: Any) -> None:
    assert read_released(write(tmp_path / "a.pth", zipped, best_rsum=number)).options["margin"] == 0.2


@both
def test_an_object_that_is_not_data_is_named_and_not_built(tmp_path: Path, zipped: bool) -> None:
    path = write(tmp_path / "a.pth.tar", zipped, opt=Evil())
    with pytest.raises(InputError, match=r"must hold plain data; it holds .*exec.*, which are never loaded"):
        read_released(path)
    with pytest.raises(InputError, match=r"must hold plain data; it holds \w+\.exec, which is never loaded"):
        read_legacy_torch(path)


@both
def test_the_restricted_reader_gives_what_torch_gives(tmp_path: Path, zipped: bool) -> None:
    path = write(tmp_path / "a.pth.tar", zipped)
    restricted, unpickled = read_released(path), read_released(path, old_pickle=True)
    assert torch.equal(restricted.towers[0]["a"], unpickled.towers[0]["a"])
    assert restricted.options == unpickled.options


def test_long_texts_of_python_2_are_read_on_request(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pth.tar", zipped=False, opt=options(note="n" * 300))
    text = pickle.dumps("n" * 300, 2)[2:].split(b"q")[0][:305]
    old = b"T" + (300).to_bytes(4, "little") + b"n" * 300
    content = path.read_bytes()
    assert text in content
    path.write_bytes(content.replace(text, old))
    with pytest.raises(InputError):
        read_released(path)
    assert read_released(path, old_pickle=True).options["note"] == "n" * 300


@each("content, fragment", [
    ([1, 2], "must hold a checkpoint; it holds list"),
    ({"epoch": 1, "opt": 2}, "must hold weights"),
    ({"model": [], "opt": 2}, "must hold weights"),
    ({"model": [{"a": 1}]}, "must hold weights"),
    ({"state_dict": {1: torch.ones(1)}}, "must hold weights"),
])  # fmt: skip
def test_a_file_without_weights_is_refused(tmp_path: Path, content: Any, fragment: str) -> None:
    torch.save(content, tmp_path / "a.pth")
    with pytest.raises(InputError, match=fragment):
        read_released(tmp_path / "a.pth")


@both
def test_a_file_cut_off_is_refused(tmp_path: Path, zipped: bool) -> None:
    path = write(tmp_path / "a.pth.tar", zipped)
    path.write_bytes(path.read_bytes()[:-20])
    for old in (False, True):
        with pytest.raises(InputError, match=r"cut off or damaged|is damaged"):
            read_released(path, old_pickle=old)


@both
def test_which_files_look_released(tmp_path: Path, zipped: bool) -> None:
    assert looks_released(write(tmp_path / "a.pth", zipped), "lossscope.checkpoint")
    assert looks_released(write(tmp_path / "a.pth.tar", zipped), "lossscope.checkpoint")
    torch.save({"format": "lossscope.checkpoint", "state_dict": {}}, tmp_path / "own.pt")
    assert not looks_released(tmp_path / "own.pt", "lossscope.checkpoint")
    torch.save({"x": 1}, tmp_path / "other.pt")
    assert not looks_released(tmp_path / "other.pt", "lossscope.checkpoint")
    (tmp_path / "text.pt").write_text("state_dict")
    assert not looks_released(tmp_path / "text.pt", "lossscope.checkpoint")
    assert not looks_released(tmp_path / "none.pt", "lossscope.checkpoint")


@each("files, fragment", [
    ({}, "config.json must exist"),
    ({"config.json": "{"}, "must be whole JSON"),
    ({"config.json": "[]"}, "must be an object; got"),
    ({"config.json": "{}"}, "must hold model.safetensors or pytorch_model.bin"),
])  # fmt: skip
def test_an_incomplete_folder_is_refused(tmp_path: Path, files: dict[str, str], fragment: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=fragment):
        read_released(tmp_path)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    (tmp_path / "config.json").write_text("{}")
    save_file({"a": torch.ones(1)}, tmp_path / "model-00001-of-00002.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "x", "b": "y"}}')
    with pytest.raises(InputError, match=r"must hold every shard .*; b \(1\) is missing"):
        read_released(tmp_path)


@each("text, fragment", [
    ("not json", "must be whole JSON"),
    ("[]", r"must be an object; got \[\]"),
    ("{}", "must have the key 'weight_map'"),
    ('{"weight_map": []}', r"'weight_map' of .* must be an object; got \[\]"),
])  # fmt: skip
def test_an_invalid_index_is_refused(tmp_path: Path, text: str, fragment: str) -> None:
    from safetensors.torch import save_file

    (tmp_path / "config.json").write_text("{}")
    save_file({"a": torch.ones(1)}, tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(InputError, match=fragment):
        read_released(tmp_path)


def test_two_models_in_one_folder_are_not_mixed(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    (tmp_path / "config.json").write_text("{}")
    save_file({"a": torch.ones(1)}, tmp_path / "model.safetensors")
    save_file({"a": torch.zeros(1), "b": torch.ones(1)}, tmp_path / "model_old.safetensors")
    with pytest.raises(InputError, match="must hold each weight once; two files of it hold the same"):
        read_released(tmp_path)


@each("text, fragment", [
    ("[" * 100_000, "must be JSON of ordinary depth"),
    ('{"a": ' + "[" * 80 + "]" * 80 + "}", "more than 64 levels deep"),
    ('{"a": ' + "1" * 5000 + "}", "must be JSON of ordinary numbers"),
    ('{"a": ' + "1" * 100 + "}", "it holds a whole number of 330 bits"),
])  # fmt: skip
def test_a_configuration_too_deep_or_with_too_large_numbers_is_refused(
    tmp_path: Path, text: str, fragment: str
) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=fragment):
        read_released(tmp_path)


@each("zipped", [True, False], "old", [True, False])
def test_options_nested_in_themselves_are_refused(tmp_path: Path, zipped: bool, old: bool) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InputError, match="a container inside itself"):
        read_released(write(tmp_path / "a.pth", zipped, opt={"l": endless}), old_pickle=old)


@each("zipped", [True, False], "old", [True, False], "number", [10**400, float("nan"), float("inf"), np.float64("nan")])
def test_metrics_that_are_no_numbers_are_dropped(tmp_path: Path, zipped: bool, old: bool, number: Any) -> None:
    path = write(tmp_path / "a.pth", zipped, best_rsum=number, epoch=10**400)
    released = read_released(path, old_pickle=old)
    assert (released.metrics, released.epoch) == ({}, 0)


def test_a_dict_with_values_on_its_methods_is_read_as_any_other(tmp_path: Path) -> None:
    class Covered:
        def __reduce__(self) -> Any:
            return OrderedDict, (), {"items": 5, "keys": 5, "get": 5}, None, iter({"a": torch.ones(1)}.items())

    torch.save({"model": [Covered()]}, tmp_path / "a.pth")
    for old in (True, False):
        assert list(read_released(tmp_path / "a.pth", old_pickle=old).towers[0]) == ["a"]


@each("tensor", [torch.eye(2).to_sparse(), torch.ones(2, device="meta")])
def test_tensors_that_are_no_ordinary_ones_are_named(tmp_path: Path, tensor: torch.Tensor) -> None:
    torch.save({"model": [{"a": torch.ones(1), "odd": tensor}]}, tmp_path / "a.pth")
    with pytest.raises(
        InputError, match=r"a\.pth must hold plain data; its tensors must hold all their numbers; one is"
    ):
        read_released(tmp_path / "a.pth")


@both
def test_a_released_file_is_seen_by_its_structure_however_long_its_names_are(tmp_path: Path, zipped: bool) -> None:
    tower = {f"layer{row}.{'x' * 200}": torch.zeros(1) for row in range(2000)}
    content = {"model": [tower], "epoch": 1, "best_rsum": 1.0, "opt": argparse.Namespace(margin=0.2)}
    path = tmp_path / "model_best.pth"
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    assert path.read_bytes().find(b"best_rsum") > 1 << 18
    assert looks_released(path, "lossscope.checkpoint")


def test_a_torchscript_archive_is_taken_to_be_released_so_that_every_command_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "ViT-B-32.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("clip/constants.pkl", pickle.dumps(()))
        archive.writestr("clip/data.pkl", pickle.dumps("a module", protocol=2))
    assert looks_released(path, "lossscope.checkpoint")


def test_a_tape_archive_is_not_released(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "shard-0000.tar", "w") as archive:
        archive.add(__file__, "state_dict")
    assert not looks_released(tmp_path / "shard-0000.tar", "lossscope.checkpoint")


@each("name", ["args", "hparams", "config"])
def test_options_under_another_name_are_read(name: str, tmp_path: Path) -> None:
    content = {"model": TOWERS, name: options()}
    torch.save(content, tmp_path / "a.pth")
    assert read_released(tmp_path / "a.pth").options["max_violation"] is True


@each(
    "more, got",
    [({"args": {"measure": "order"}}, "opt, args"), ({"settings": options()}, "opt, settings"), ({"opt": [1]}, "list")],
)
def test_options_that_are_not_in_one_known_place_are_refused(more: dict[str, Any], got: str, tmp_path: Path) -> None:
    torch.save({"model": TOWERS, "opt": options(), **more}, tmp_path / "a.pth")
    with pytest.raises(InputError, match=f"must hold (its options once|options by name).*{got}"):
        read_released(tmp_path / "a.pth")
