"""TorchScript archives: their tensors are read by name, their program is not, and damaged ones are refused."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.errors import InputError
from lossscope.io.pickles.torchscript import is_torchscript, read_torchscript


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
    """Write the archive again with other contents of some parts, by the last part of their name."""
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(Call(print, "x"), 2), "it holds __builtin__.print, which is never loaded"),
        (pickle.dumps(Call(getattr, "x", "y"), 2), "it holds __builtin__.getattr, which is never loaded"),
        (pickle.dumps({"a": 1}, 2), "it holds no module but dict"),
        (b"\x80\x02c__torch__.A\nB\n)\x81}X\x01\x00\x00\x00ah\x00s.", "whole TorchScript archive"),
        (b"\x80\x02c__torch__.A\nB\n)\x81q\x00}X\x01\x00\x00\x00ah\x00sb.", "its modules must be at most"),
        (b"\x80\x02c__torch__.A\nB\n)\x81]b.", "attributes are no dict"),
        (b"", "must be a whole TorchScript archive"),
    ],
)
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
    with pytest.raises(InputError, match="its tensors must lie in it uncompressed"):
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
    with pytest.raises(InputError, match="with the lowest byte first"):
        read_torchscript(rewrite(archive, byteorder=b"big"))
