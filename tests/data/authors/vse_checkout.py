"""Run the authors' code of VSE++ and VSRN on a CPU: it was written for Python 2, early torch and a GPU."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import types
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.append(str(Path(__file__).parents[3]))

from tests.authors.vse_files import Case, write_features

_ABSENT = ("pycocotools", "pycocotools.coco", "wandb", "tensorboard_logger", "misc.rewards", "losses")
"""Modules of training or of other data; the checkout lacks a module of the name `losses`."""


class _OldDict(OrderedDict):  # type: ignore[type-arg]
    def iteritems(self) -> Any:
        return self.items()


class _OldText(bytes):
    """Text of Python 2: bytes whose lower() changes ASCII letters only."""

    def lower(self) -> _OldText:
        return _OldText(super().lower())


class _Rows:
    """Rows of an array by a number that Python 3's division makes a float."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __getitem__(self, row: float) -> Any:
        return self.rows[int(row)]


class _Loader:
    """Batches whose fourth part, numbers of captions, is a list: today's numpy takes a tuple for one index an axis."""

    def __init__(self, loader: Any) -> None:
        self.loader, self.dataset = loader, loader.dataset

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Any:
        for images, ids, lengths, numbers, *further in self.loader:
            yield images, ids, lengths, list(numbers), *further


class Checkout:
    """The modules of one checkout, and its options.

    Args:
        paths: folders from which its modules are imported.
        name: of the model's class.
        package: in front of their names, as `VSRN.`.
        old: whether it is code for Python 2.
        further: names of further modules.
    """

    def __init__(
        self, paths: Sequence[Path], name: str, package: str = "", old: bool = False, further: Sequence[str] = ()
    ) -> None:
        _prepare()
        self.name = name
        names = ("vocab", "data", "model", "evaluation", "train")
        folders = [str(path.resolve()) for path in paths]
        sys.path[:0] = folders
        modules = [importlib.import_module(package + name) for name in names]
        self.further = {module: importlib.import_module(package + module) for module in further}
        self.vocab, self.data, self.model, self.evaluation, self.train = modules
        del sys.path[: len(folders)]
        for name in [n for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(folders[0])]:
            del sys.modules[name]  # the next checkout has modules of the same names
        if old:
            self.data.str = _OldText
            self.evaluation.OrderedDict = _OldDict
            self.model.Variable = lambda tensor, volatile=False: tensor

    def options(self, arguments: Sequence[str], **further: Any) -> dict[str, Any]:
        """Return the options with which train.py starts, and further ones that it sets."""
        parse, found = argparse.ArgumentParser.parse_args, {}

        def stop(parser: argparse.ArgumentParser) -> None:
            found.update(vars(parse(parser, list(arguments))))
            raise InterruptedError

        argparse.ArgumentParser.parse_args = stop  # type: ignore[method-assign, assignment]
        try:
            self.train.main()
        except InterruptedError:
            return {**found, "data_path": "data", "vocab_path": "vocab", **further}
        finally:
            argparse.ArgumentParser.parse_args = parse  # type: ignore[method-assign]
        raise AssertionError("train.py read no options")

    def build(self, options: Mapping[str, Any]) -> Any:
        """Return the authors' model."""
        return getattr(self.model, self.name)(argparse.Namespace(**options))

    def answer(self, case: Case, captions: Sequence[str], words: Sequence[str], folds: int) -> tuple[Any, Any, Any]:
        """Return the vectors of every caption's image and of every caption, and what the case is, with its recalls."""
        model = self.build(case.options)
        towers = (model.img_enc, model.txt_enc)
        case = replace(case, shapes=[{k: tuple(v.shape) for k, v in tower.state_dict().items()} for tower in towers])
        load(towers, case.states())
        with tempfile.TemporaryDirectory() as folder:
            images, texts = self.embed(model, case, captions, words, Path(folder))
        measure = str(case.options["measure"])
        known = {**asdict(case), "metrics": self.metrics(images, texts, measure)}
        if folds > 1:
            known["fold_metrics"] = self.metrics(images, texts, measure, folds)
        return images, texts, known

    def vocabulary(self, words: Sequence[str]) -> Any:
        """Return the authors' vocabulary of these words, by id."""
        vocabulary = self.vocab.Vocabulary()
        for word in words:
            vocabulary.add_word(word)
        return vocabulary

    def embed(self, model: Any, case: Case, captions: Sequence[str], words: Sequence[str], folder: Path) -> Any:
        """Return the vectors of every caption's image and of every caption, (M, d) each."""
        loader = self.loader(case, captions, words, folder)
        model.forward_loss = lambda *embeddings: None
        return self.evaluation.encode_data(model, loader, logging=lambda text: None)

    def loader(self, case: Case, captions: Sequence[str], words: Sequence[str], folder: Path) -> Any:
        """Return batches of the features and captions, which are written to the folder."""
        options = argparse.Namespace(**{**case.options, "data_path": str(folder), "batch_size": 16, "workers": 0})
        write_features(folder / str(case.options["data_name"]), case, captions)
        arguments = (self.vocabulary(words), options.crop_size, options.batch_size, options.workers, options)
        loader = self.data.get_test_loader("test", options.data_name, *arguments)
        loader.dataset.images = _Rows(loader.dataset.images)
        return _Loader(loader)

    def metrics(self, images: Any, captions: Any, measure: str, folds: int = 1) -> Mapping[str, Any]:
        """Return R@1, R@5, R@10, median and mean rank of both directions, averaged over folds."""
        size = len(images) // folds
        rows = [slice(start, start + size) for start in range(0, len(images), size)]
        found = {}
        for name in ("i2t", "t2i"):
            rank = getattr(self.evaluation, name)
            found[name] = np.mean([rank(images[r], captions[r], size // 5, measure)[:5] for r in rows], 0).tolist()
        return found


def load(towers: Sequence[torch.nn.Module], states: Sequence[Mapping[str, Any]]) -> None:
    """Put the weights into the authors' towers."""
    for tower, state in zip(towers, states, strict=True):
        tower.load_state_dict(OrderedDict(state))


def _prepare() -> None:
    """Make `.cuda()` do nothing, and put empty modules in place of packages that evaluation does not need."""
    torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *args, **kwargs: self  # type: ignore[method-assign, assignment]
    torch.cuda.synchronize = lambda *args: None  # type: ignore[assignment]
    for name in _ABSENT:
        sys.modules[name] = types.ModuleType(name)
    for name in ("COCO", "get_self_critical_reward", "init_cider_scorer", "order_sim"):
        for module in _ABSENT:
            setattr(sys.modules[module], name, None)
