"""Torch files as torch of 2018 wrote them under Python 2: texts as bytes, states of ordered dicts as lists of lists."""

from __future__ import annotations

import argparse
import pickle
import types
from collections import OrderedDict
from pathlib import Path
from typing import Any, ClassVar

import torch

from tests.authors.vse_files import Case


class Python2Pickler(pickle._Pickler):  # type: ignore[name-defined, misc]
    """Protocol 2 with the texts of Python 2: SHORT_BINSTRING up to 255 bytes, BINSTRING above."""

    dispatch: ClassVar[dict[Any, Any]] = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def __init__(self, file: Any, protocol: int = 2) -> None:
        super().__init__(file, 2)

    def save_text(self, text: str) -> None:
        """Write a text as the bytes that Python 2 has for it."""
        content = text.encode()
        size = len(content).to_bytes(1, "little") if len(content) < 256 else len(content).to_bytes(4, "little")
        self.write((b"U" if len(content) < 256 else b"T") + size + content)
        self.memoize(text)

    dispatch[str] = save_text

    def reducer_override(self, value: Any) -> Any:
        """Return how Python 2 takes an ordered dict apart."""
        if type(value) is not OrderedDict:
            return NotImplemented
        items = [[key, member] for key, member in value.items()]
        return (OrderedDict, (items,), vars(value)) if vars(value) else (OrderedDict, (items,))


def write_python2_checkpoint(path: Path, case: Case, **further: Any) -> Path:
    """Write a checkpoint of the family with further options; each state dict has `_metadata`, as torch gives it."""
    model = []
    for state in case.states():
        tower = OrderedDict(state)
        tower._metadata = OrderedDict({"": OrderedDict(version=1)})  # type: ignore[attr-defined]
        model.append(tower)
    opt = argparse.Namespace(**case.options, **further)
    content = {"epoch": 30, "model": model, "best_rsum": 401.5, "opt": opt, "Eiters": 9000}
    module = types.ModuleType("python2_pickle")
    module.Pickler = Python2Pickler  # type: ignore[attr-defined]
    module.dump = lambda value, file, protocol: pickle.dump(value, file, 2)  # type: ignore[attr-defined]
    torch.save(content, path, pickle_module=module, _use_new_zipfile_serialization=False)
    return path
