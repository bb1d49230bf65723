"""Are tensors of TorchScript archives read by name, programs not run, and damaged archives refused?"""

from __future__ import annotations

import os
import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.encoders.released.containers import read_container
from lossscope.errors import InputError
from lossscope.io.pickles import torchscript
from lossscope.io.pickles.torch_zip import is_torchscript
from lossscope.io.pickles.torchscript import read_torchscript
from tests.each import each


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(6.0).reshape(2, 3))
        self.register_buffer("count", torch.tensor(7))
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.weight)  # type: ignore[no-any-return]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    with warnings.catch_warnings(action="ignore"):
        model = nn.Sequential(Inner(), Inner()).half().eval()
        model[1].weight = model[0].weight
        torch.jit.script(model).save(str(tmp_path / "model.pt"))
    return tmp_path / "model.pt"


def rewrite(path: Path, **contents: bytes) -> Path:
    """Write the archive again with new contents of parts, by the last part of their name."""
    out = path.with_name("other.pt")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, contents.get(name.split("/")[-1].replace(".", "_"), old.read(name)))
    return out


def test_the_tensors_are_those_of_the_state_dict(archive: Path) -> None:
    with warnings.catch_warnings(action="ignore"):
        expected = torch.jit.load(str(archive)).state_dict()
    ours = read_torchscript(archive)
    assert is_torchscript(archive)
    assert ours.keys() == expected.keys() and len(ours) == 14
    assert all(
        torch.equal(ours[name], tensor) and ours[name].dtype == tensor.dtype for name, tensor in expected.items()
    )


def test_other_files_are_no_archives(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(1)}, tmp_path / "a.pt")
    (tmp_path / "b.pt").write_bytes(b"PK\x03\x04 no zip")
    assert not any(is_torchscript(tmp_path / name) for name in ("a.pt", "b.pt", "absent.pt"))
    assert not is_torchscript(tmp_path)


class Call:
    """An object whose pickle calls a function."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call[0], self.call[1:]


@each("content, message", [
    (pickle.dumps(Call(print, "x"), 2), "it holds __builtin__.print, which is never loaded"),
    (pickle.dumps(Call(getattr, "x", "y"), 2), "it holds __builtin__.getattr, which is never loaded"),
    (pickle.dumps({"a": 1}, 2), "it holds no module but dict"),
    (b"\x80\x02c__torch__.A\nB\n)\x81}X\x01\x00\x00\x00ah\x00s.", "whole TorchScript archive"),
    (
        b"\x80\x02c__torch__.A\nB\n)\x81q\x00}X\x01\x00\x00\x00ah\x00sb.",
        "its modules must be in one place each; 'a' is in two",
    ),
    (
        b"\x80\x02c__torch__.A\nB\n)\x81}(X\x01\x00\x00\x00ac__torch__.C\nD\n)\x81}bq\x00X\x01\x00\x00\x00bh\x00ub.",
        "its modules must be in one place each; 'b' is in two",
    ),
    (b"\x80\x02c__torch__.A\nB\n)\x81]b.", "attributes are no dict"),
    (b"", "must be a whole TorchScript archive"),
])  # fmt: skip
def test_anything_but_modules_and_tensors_is_refused(archive: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_torchscript(rewrite(archive, data_pkl=content))


def test_a_program_is_not_read(archive: Path) -> None:
    out = archive.with_name("other.pt")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, b"no program" if "/code/" in name else old.read(name))
    assert read_torchscript(out).keys() == read_torchscript(archive).keys()


def test_packed_and_missing_tensors_are_refused(archive: Path) -> None:
    packed = archive.with_name("packed.pt")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(InputError, match="its parts must lie in it uncompressed"):
        read_torchscript(packed)
    missing = archive.with_name("missing.pt")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(missing, "w") as new:
        for name in old.namelist():
            if "/data/" not in name:
                new.writestr(name, old.read(name))
    with pytest.raises(InputError, match="must be a whole TorchScript archive"):
        read_torchscript(missing)
    cut = archive.with_name("cut.pt")
    cut.write_bytes(archive.read_bytes()[:200])
    with pytest.raises(InputError, match="must be a whole TorchScript archive"):
        read_torchscript(cut)


def test_the_numbers_must_be_in_the_order_of_this_machine(archive: Path) -> None:
    with pytest.raises(InputError, match="must have the lowest byte first"):
        read_torchscript(rewrite(archive, byteorder=b"big"))


def text(content: str) -> bytes:
    return b"X" + len(content.encode()).to_bytes(4, "little") + content.encode()


STORAGE = b"(" + text("storage") + b"ctorch\nBoolStorage\n" + text("0") + text("cpu") + b"K\x01tQ"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + b"K\x00(K\x01t(K\x01t\x89NtR"


def module(*attributes: tuple[str, bytes]) -> bytes:
    """Return the opcodes of a module."""
    return b"c__torch__.A\nB\n)\x81}" + b"".join(text(name) + value + b"s" for name, value in attributes) + b"b"


def test_a_packed_mark_of_the_byte_order_is_refused_before_it_is_unpacked(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, read = archive.with_name("bomb.pt"), []
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            bomb = name.endswith("byteorder")
            packing = zipfile.ZIP_DEFLATED if bomb else zipfile.ZIP_STORED
            new.writestr(name, bytes(1 << 22) if bomb else old.read(name), packing)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda _, name: read.append(name))
    with pytest.raises(InputError, match="its parts must lie in it uncompressed"):
        read_torchscript(out)
    assert not read


def test_parts_that_lie_in_each_other_are_refused(archive: Path) -> None:
    content = rewrite(archive, byteorder=b"little").read_bytes()
    start = content.rindex(b"PK\x01\x02", 0, content.rindex(b"byteorder"))
    entry = bytearray(content[start:])
    entry[20:28] = 2 * len(content).to_bytes(4, "little")  # its sizes in the file's list of parts
    archive.write_bytes(content[:start] + entry)
    with pytest.raises(InputError, match="its parts must lie in it uncompressed"):
        read_torchscript(archive)


def test_a_packed_program_is_no_obstacle(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        packed = [entry.filename for entry in opened.infolist() if entry.compress_type]
    assert packed and all("/code/" in name for name in packed)


def test_tensors_are_counted_as_modules_are(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"\x80\x02" + module(*((f"t{k}", TENSOR) for k in range(20))) + b"."
    path = rewrite(archive, data_pkl=content)
    assert len(read_torchscript(path)) == 20
    monkeypatch.setattr(torchscript, "_MAX_PARTS", 19)
    with pytest.raises(InputError, match="its modules and tensors must be at most 19; they are more"):
        read_torchscript(path)


def test_names_are_of_ordinary_length_and_depth(archive: Path) -> None:
    deep = TENSOR
    for _ in range(66):
        deep = module(("a", deep))
    for content in (module((2000 * "a", TENSOR)), deep):
        with pytest.raises(InputError, match="its names must be of at most 1024 letters and 64 dots"):
            read_torchscript(rewrite(archive, data_pkl=b"\x80\x02" + content + b"."))


def test_booleans_share_the_memory_of_their_storage(archive: Path) -> None:
    ours = read_torchscript(rewrite(archive, data_pkl=b"\x80\x02" + module(("a", TENSOR), ("b", TENSOR)) + b"."))
    assert ours["a"].dtype == torch.bool
    assert ours["a"].data_ptr() == ours["b"].data_ptr()


def test_an_archive_without_a_pickle_is_refused_by_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("a/code/__torch__.py", "")
        archive.writestr("a/model.json", "{}")
    assert is_torchscript(tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"it must have a folder with data\.pkl; it has none"):
        read_torchscript(tmp_path / "a.pt")


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    """The reader waited for a writer."""
    os.mkfifo(tmp_path / "model_best.pth.tar")
    assert not is_torchscript(tmp_path / "model_best.pth.tar")
    for read in (read_torchscript, read_container):
        with pytest.raises(InputError, match=r"model_best\.pth\.tar must be an ordinary file; it is a pipe"):
            read(tmp_path / "model_best.pth.tar")
