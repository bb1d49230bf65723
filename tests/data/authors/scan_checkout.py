"""Run the authors' code of SCAN, BFAN and SGRAF on a CPU: it was written for Python 2, early torch and a GPU."""

from __future__ import annotations

import argparse
import re
import sys
import types
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.append(str(Path(__file__).parents[3]))

from tests.authors.vse_files import Case

COLUMNS = [*range(15), *range(15, 100, 5)]
"""Captions whose scores are kept: all with punctuation, and a part of the others."""
_ABSENT = ("torchvision", "torchvision.models", "torchvision.transforms", "tensorboard_logger")
"""Modules of training, which evaluation imports but does not use."""
_TODAY = (
    (r"\.iteritems\(\)", ".items()"),
    (r"\.size\(2\)/2", ".size(2)//2"),
    (r"\bindex/self", "index//self"),
    (r"\)/shard_size", ")//shard_size"),
    (r"\bstr\(caption\)", "bytes(caption)"),
    (r"caption\.split\(','\)", "caption.decode().split(',')"),
    (r"= map\(int, caps\)", "= list(map(int, caps))"),
)
"""Code of Python 2 -> the same in Python 3."""


class _Loader:
    """Batches whose fourth part, numbers of captions, is a list: today's numpy takes a tuple for one index an axis."""

    def __init__(self, loader: Any) -> None:
        self.loader, self.dataset = loader, loader.dataset

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Any:
        for images, ids, lengths, numbers in self.loader:
            yield images, ids, lengths, list(numbers)


class Checkout:
    """The modules of one checkout.

    Args:
        path: its folder.
        network: name of its model.
    """

    def __init__(self, path: Path, network: str) -> None:
        torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *args, **kwargs: self  # type: ignore[method-assign, assignment]
        for name in _ABSENT:
            sys.modules[name] = types.ModuleType(name)
        sys.modules["torchvision"].__path__ = []
        torch.nn.utils.clip_grad.clip_grad_norm = torch.nn.utils.clip_grad_norm_  # type: ignore[attr-defined]
        names = ("vocab", "data", "model", "evaluation", *(["opts"] if (path / "opts.py").is_file() else []), "train")
        self.modules = {name: _load(path / f"{name}.py") for name in names}
        for name in names:
            del sys.modules[name]  # the next checkout has modules of the same names
        self.network = network

    def options(self, arguments: Sequence[str], **further: Any) -> dict[str, Any]:
        """Return the options with which train.py starts, and further ones that it sets."""
        parse, found = argparse.ArgumentParser.parse_args, {}

        def stop(parser: argparse.ArgumentParser) -> None:
            found.update(vars(parse(parser, list(arguments))))
            raise InterruptedError

        argparse.ArgumentParser.parse_args = stop  # type: ignore[method-assign, assignment]
        try:
            self.modules["train"].main()
        except InterruptedError:
            return {**found, "data_path": "data", "vocab_path": "vocab", **further}
        finally:
            argparse.ArgumentParser.parse_args = parse  # type: ignore[method-assign]
        raise AssertionError("train.py read no options")

    def build(self, case: Case) -> Any:
        """Return the authors' model."""
        return getattr(self.modules["model"], self.network)(argparse.Namespace(**case.options))

    def shapes(self, model: Any) -> list[dict[str, tuple[int, ...]]]:
        """Return the shapes of the tensors of each tower."""
        return [{name: tuple(tensor.shape) for name, tensor in state.items()} for state in model.state_dict()]

    def scores(self, model: Any, case: Case, folder: Path, words: Sequence[str]) -> Any:
        """Return S (N, 5N) of the split test of a folder, by the functions that the authors' evaluation calls."""
        model.load_state_dict([OrderedDict(state) for state in case.states()])
        model.forward_loss = lambda *embeddings: None
        options = argparse.Namespace(**{**case.options, "data_path": str(folder), "batch_size": 16, "workers": 0})
        vocabulary = self.modules["vocab"].Vocabulary()
        for word in words:
            vocabulary.add_word(word)
        evaluation = self.modules["evaluation"]
        loader = self.modules["data"].get_test_loader("test", options.data_name, vocabulary, 16, 0, options)
        with torch.no_grad():
            images, captions, lengths = evaluation.encode_data(model, _Loader(loader), logging=lambda text: None)
            return self._shards(model, options)(images[::5], captions, lengths, options)

    def _shards(self, model: Any, options: argparse.Namespace) -> Any:
        evaluation = self.modules["evaluation"]
        if self.network == "SCAN":
            return getattr(evaluation, f"shard_xattn_{options.cross_attn}")
        if self.network == "BFAN":
            return evaluation.shard_xattn
        return lambda *arguments: evaluation.shard_attn_scores(model, *arguments)

    def metrics(self, S: Any, folds: int = 1) -> Mapping[str, Any]:
        """Return R@1, R@5, R@10, median and mean rank of both directions, averaged over folds."""
        size = len(S) // folds
        starts = range(0, len(S), size)
        parts = [S[start : start + size, 5 * start : 5 * (start + size)] for start in starts]
        return {
            name: np.mean([self._metrics(name, part) for part in parts], 0).astype(float).tolist()
            for name in ("i2t", "t2i")
        }

    def _metrics(self, name: str, S: Any) -> Any:
        function = getattr(self.modules["evaluation"], name)
        return function(len(S), S) if self.network == "BFAN" else function(S, None, None, S)


def _load(path: Path) -> types.ModuleType:
    """Return a module of the authors, made to run today."""
    text = path.read_text(encoding="utf-8")
    for old, new in _TODAY:
        text = re.sub(old, new, text)
    module = sys.modules[path.stem] = types.ModuleType(path.stem)
    exec(compile(text, str(path), "exec"), module.__dict__)
    if "Variable" in module.__dict__:
        module.Variable = lambda tensor, volatile=False: tensor  # type: ignore[attr-defined]
    return module
