"""Does the reader of legacy torch files return their data, and refuse crafted files that try to run code?"""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lossscope.encoders.released.checkpoint_file import read_released
from lossscope.errors import InputError
from lossscope.io.pickles.legacy_torch import read_legacy_torch
from lossscope.io.pickles.stubs import ConfigStub
from tests.each import each

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
KINDS = ["float16", "bfloat16", "float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"]


def text(content: str) -> bytes:
    return b"X" + len(content.encode()).to_bytes(4, "little") + content.encode()


def legacy(path: Path, body: bytes, keys: list[str] | None = None, raw: bytes = b"") -> Path:
    """Write a file of torch's first container with a main pickle by hand, without its protocol mark."""
    first = [pickle.dumps(part, 2) for part in (MAGIC, PROTOCOL, SYSTEM)]
    path.write_bytes(b"".join(first) + b"\x80\x02" + body + pickle.dumps(keys or [], 2) + raw)
    return path


def whole(number: int) -> bytes:
    return b"\x8a\x08" + struct.pack("<q", number)


def tensor_dict(
    offset: int, size: int, stride: int, total: int = 4, kind: str = "FloatStorage", view: bytes = b"N"
) -> bytes:
    """Return a dict with one tensor of the storage '0', as the opcodes of a pickle."""
    storage = (
        b"(" + text("storage") + f"ctorch\n{kind}\n".encode() + text("0") + text("cpu") + whole(total) + view + b"tQ"
    )
    shape = whole(offset) + b"(" + whole(size) + b"t(" + whole(stride) + b"t"
    return b"}" + text("a") + b"ctorch._utils\n_rebuild_tensor\n(" + storage + shape + b"tRs."


def numbers(*values: float) -> bytes:
    return struct.pack("<q", len(values)) + struct.pack(f"<{len(values)}f", *values)


@each("zipped", [True, False])
def test_tensors_of_every_kind_and_layout_come_back(tmp_path: Path, zipped: bool) -> None:
    tensors = {kind: torch.tensor([[0, 1, 2], [3, 0, 5]]).to(getattr(torch, kind)) for kind in KINDS}
    matrix = torch.arange(12.0).reshape(3, 4)
    tensors |= {"turned": matrix.T, "part": matrix[1:, 2], "empty": torch.zeros(0, 3), "scalar": torch.tensor(2.5)}
    tensors["parameter"] = torch.nn.Parameter(torch.ones(2))
    torch.save(OrderedDict(tensors), tmp_path / "a.pth", _use_new_zipfile_serialization=zipped)
    read = read_legacy_torch(tmp_path / "a.pth")
    assert list(read) == list(tensors)
    for name, tensor in tensors.items():
        assert (read[name].dtype, read[name].shape) == (tensor.dtype, tensor.shape)
        assert torch.equal(read[name], tensor)


def test_files_of_python_2_with_bytes_for_texts_and_long_numbers_are_read(tmp_path: Path) -> None:
    storage = b"(U\x07storagectorch\nFloatStorage\nU\x010U\x03cpuL4L\nNtQ"
    body = b"}U\x01actorch._utils\n_rebuild_tensor\n(" + storage + b"L1L\n(L2L\nt(L1L\nttRs."
    read = read_legacy_torch(legacy(tmp_path / "a.pth", body, ["0"], numbers(1, 2, 3, 4)))
    assert read["a"].tolist() == [2, 3]


def test_a_view_of_a_storage_is_the_part_it_names(tmp_path: Path) -> None:
    view = b"(" + text("1") + whole(1) + whole(2) + b"t"
    path = legacy(tmp_path / "a.pth", tensor_dict(0, 2, 1, view=view), ["0"], numbers(1, 2, 3, 4))
    assert read_legacy_torch(path)["a"].tolist() == [2, 3]
    outside = b"(" + text("1") + whole(3) + whole(2) + b"t"
    with pytest.raises(InputError, match="one reaches outside"):
        read_legacy_torch(legacy(tmp_path / "a.pth", tensor_dict(0, 2, 1, view=outside), ["0"], numbers(1, 2, 3, 4)))


@each("offset, size, stride, message", [
    (2, 3, 1, "must hold its tensors; one of shape .3,. reaches outside"),
    (0, 2, 4, "reaches outside"),
    (4, 1, 1, "reaches outside"),
    (0, 5, 0, "reaches outside"),
    (0, 1 << 61, 0, "reaches outside"),
    (0, 2, -1, "no list of whole numbers >= 0"),
    (-1, 2, 1, "no list of whole numbers >= 0"),
    (0, -2, 1, "no list of whole numbers >= 0"),
])  # fmt: skip
def test_a_tensor_outside_of_its_storage_is_refused(
    tmp_path: Path, offset: int, size: int, stride: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_legacy_torch(legacy(tmp_path / "a.pth", tensor_dict(offset, size, stride), ["0"], numbers(1, 2, 3, 4)))


def test_a_storage_shorter_than_stated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be of 16 bytes; got 8"):
        read_legacy_torch(legacy(tmp_path / "a.pth", tensor_dict(0, 4, 1), ["0"], numbers(1, 2)))
    for claimed in (1 << 40, -1):
        with pytest.raises(InputError, match="cut off or damaged"):
            read_legacy_torch(
                legacy(tmp_path / "a.pth", tensor_dict(0, 4, 1), ["0"], struct.pack("<q", claimed) + bytes(16))
            )
    torch.save({"a": torch.ones(4)}, tmp_path / "whole.pth")
    with zipfile.ZipFile(tmp_path / "whole.pth") as old, zipfile.ZipFile(tmp_path / "cut.pth", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name)[:8] if name.endswith("data/0") else old.read(name))
    with pytest.raises(InputError, match="must be of 16 bytes; got 8"):
        read_legacy_torch(tmp_path / "cut.pth")


def test_a_storage_of_two_kinds_is_refused(tmp_path: Path) -> None:
    two = b"(" + tensor_dict(0, 1, 1)[:-1] + tensor_dict(0, 1, 1, kind="DoubleStorage")[:-1] + b"l."
    with pytest.raises(InputError, match="must be of one kind and size; the file gives it two"):
        read_legacy_torch(legacy(tmp_path / "a.pth", two, ["0"], numbers(1, 2, 3, 4)))


@each("old", [True, False], "inside", ["constants.pkl", "code/__torch__.py"])
def test_a_torchscript_archive_is_refused_before_it_is_read(tmp_path: Path, inside: str, old: bool) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"a": 1}))
        archive.writestr(f"archive/{inside}", b"")
    with pytest.raises(InputError, match="it is a TorchScript program, which is never loaded because that runs code"):
        read_released(tmp_path / "a.pt", old_pickle=old)


def test_a_file_cannot_change_the_stubs(tmp_path: Path) -> None:
    before = dict(vars(ConfigStub))
    for named in (b"cargparse\nNamespace\n", b"ccollections\nOrderedDict\n", b"ctorch._utils\n_rebuild_tensor\n"):
        slots = b"N}" + text("dump_patches") + b"\x88s" + text("__name__") + text("pwned") + b"s\x86b"
        for state in (slots, b"}" + text("__name__") + text("pwned") + b"sb"):
            with pytest.raises(InputError):
                read_legacy_torch(legacy(tmp_path / "a.pth", named + state + b"0}."))
    assert dict(vars(ConfigStub)) == before


def test_a_module_in_place_of_a_storage_is_refused_and_writes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = b"(" + text("module") + b"cargparse\nNamespace\n" + text("f.py") + text("a line\n") + b"tQ0}."
    with pytest.raises(InputError, match="refers to an object that is no storage of numbers"):
        read_legacy_torch(legacy(tmp_path / "a.pth", module))
    assert os.listdir(tmp_path) == ["a.pth"]


def test_an_object_array_by_a_patched_dtype_is_refused(tmp_path: Path) -> None:
    class Patched:
        def __reduce__(self) -> Any:
            return np.dtype, ("O", False, True), (3, "|", None, None, None, -1, -1, 0)

    class Scalar:
        def __reduce__(self) -> Any:
            return np.float64(0).__reduce__()[0], (Patched(), bytes(8))

    torch.save({"model": {"a": torch.zeros(1)}, "x": Scalar()}, tmp_path / "a.pth", pickle_protocol=4)
    with pytest.raises(InputError):
        read_released(tmp_path / "a.pth")
    with pytest.raises(InputError, match="it holds an object as one"):
        read_legacy_torch(tmp_path / "a.pth")


def test_a_configuration_keeps_attributes_named_like_those_of_the_stub(tmp_path: Path) -> None:
    state = b"}" + text("attributes") + text("x") + b"s" + text("__setstate__") + text("y") + b"s"
    namespace = b"cargparse\nNamespace\n)\x81" + state + b"b"
    read = read_legacy_torch(legacy(tmp_path / "a.pth", b"}" + text("opt") + namespace + b"s."))
    assert read["opt"] == {"attributes": "x", "__setstate__": "y"}
    with pytest.raises(InputError, match="a configuration whose attributes are no dict"):
        read_legacy_torch(legacy(tmp_path / "a.pth", b"}" + text("opt") + b"cargparse\nNamespace\n)\x81]bs."))


def test_no_dict_and_a_container_nested_in_itself_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must hold a checkpoint; it holds list"):
        read_legacy_torch(legacy(tmp_path / "a.pth", b"]."))
    with pytest.raises(InputError, match="inside itself"):
        read_legacy_torch(legacy(tmp_path / "a.pth", b"}q\x00" + text("a") + b"h\x00s."))
    doubled = b"]q\x00" + b"".join(b"]q%c(h%ch%ce" % (n, n - 1, n - 1) for n in range(1, 40))
    read = read_legacy_torch(legacy(tmp_path / "a.pth", doubled + b"}" + text("a") + b"h\x27s."))
    assert len(read["a"]) == 2


def test_big_endian_numbers_and_compressed_parts_are_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(4)}, tmp_path / "a.pth")
    for change in ("order", "compressed"):
        content = io.BytesIO()
        packing = zipfile.ZIP_DEFLATED if change == "compressed" else zipfile.ZIP_STORED
        with zipfile.ZipFile(tmp_path / "a.pth") as old, zipfile.ZipFile(content, "w", packing) as new:
            for name in old.namelist():
                order = change == "order" and name.endswith("byteorder")
                new.writestr(name, b"big" if order else old.read(name))
        (tmp_path / "b.pth").write_bytes(content.getvalue())
        with pytest.raises(InputError, match="lowest byte first" if change == "order" else "uncompressed"):
            read_legacy_torch(tmp_path / "b.pth")


def test_files_cut_off_anywhere_are_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(4), "b": [1, "x"]}, tmp_path / "a.pth", _use_new_zipfile_serialization=False)
    content = (tmp_path / "a.pth").read_bytes()
    for length in range(1, len(content)):
        (tmp_path / "b.pth").write_bytes(content[:length])
        with pytest.raises(InputError):
            read_legacy_torch(tmp_path / "b.pth")
