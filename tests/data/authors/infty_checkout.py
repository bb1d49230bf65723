"""Run the authors' code of VSE-infinity on a CPU, with a small BERT and without downloads."""

from __future__ import annotations

import argparse
import importlib
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

_MODULES = ("encoders", "evaluation", "vse", "loss", "datasets.image_caption", "modules.resnet")


class Checkout:
    """The modules of one branch. Needs a transformers with BERT's tokeniser in Python (before 5), cv2 and torchvision.

    Args:
        path: its folder.
        bert: options of the BERT that stands for bert-base-uncased, whose width is fixed.
    """

    def __init__(self, path: Path, bert: Mapping[str, int] | None = None) -> None:
        torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *args, **kwargs: self  # type: ignore[method-assign, assignment]
        sys.path.insert(0, str(path.resolve()))
        names = [*(["vocab"] if bert is None else []), *_MODULES]
        self.modules = {name: importlib.import_module(f"lib.{name}") for name in names}
        self.arguments = importlib.import_module("arguments")
        del sys.path[0]
        for name in [n for n in sys.modules if n == "arguments" or n.split(".")[0] == "lib"]:
            del sys.modules[name]  # the other branch has modules of the same names
        self.bert = bert
        if bert is not None:
            from transformers import BertConfig, BertModel

            build = lambda name: BertModel(BertConfig(**bert))  # noqa: E731
            self.modules["encoders"].BertModel = types.SimpleNamespace(from_pretrained=build)
        _build_networks(self.modules["modules.resnet"])

    def options(self, arguments: Sequence[str], **further: Any) -> dict[str, Any]:
        """Return the options with which train.py starts, and further ones that it sets."""
        found = vars(self.arguments.get_argument_parser().parse_args(list(arguments)))
        return {**found, "data_path": "data", "vocab_path": "vocab", **further}

    def build(self, case: Case) -> Any:
        """Return the authors' model, parallel where their train.py makes it so before it writes the file."""
        model = self.modules["vse"].VSEModel(argparse.Namespace(**case.options))
        if self.bert is not None or case.options["precomp_enc_type"] == "backbone":
            model.make_data_parallel()
        return model

    def shapes(self, model: Any) -> list[dict[str, tuple[int, ...]]]:
        """Return the shapes of the tensors of each tower."""
        return [{name: tuple(tensor.shape) for name, tensor in state.items()} for state in model.state_dict()]

    def scores(self, model: Any, case: Case, folder: Path, tokens: Any) -> Any:
        """Return S (N, 5N) of the split test of a folder, by the functions that the authors' evaluation calls.

        Args:
            model: built by `build`.
            case: of the model.
            folder: of the data.
            tokens: BERT's tokeniser, or the vocabulary.
        """
        for tower, state in zip((model.img_enc, model.txt_enc), case.states(), strict=True):
            assert not any(tower.load_state_dict(OrderedDict(state), strict=False)), "a tensor is missing or left over"
        model.forward_loss = lambda *embeddings: None
        options = argparse.Namespace(**{**case.options, "data_path": str(folder)})
        read = self.modules["datasets.image_caption"].get_test_loader
        loader = read("test", options.data_name, tokens, 16, 0, options)
        grid = options.precomp_enc_type == "backbone"
        with torch.no_grad():
            encode = self.modules["evaluation"].encode_data
            images, captions = encode(model, _Loader(loader), logging=lambda text: None, backbone=grid)
        return self.modules["evaluation"].compute_sim(images[::5], captions)

    def metrics(self, S: Any, folds: int = 1) -> Mapping[str, Any]:
        """Return R@1, R@5, R@10, median and mean rank of both directions, averaged over folds."""
        size = len(S) // folds
        parts = [S[start : start + size, 5 * start : 5 * (start + size)] for start in range(0, len(S), size)]
        return {
            name: np.mean([getattr(self.modules["evaluation"], name)(size, part) for part in parts], 0).tolist()
            for name in ("i2t", "t2i")
        }


class _Loader:
    """Batches whose last part, numbers of captions, is a list: today's numpy takes a tuple for one index an axis."""

    def __init__(self, loader: Any) -> None:
        self.loader, self.dataset, self.batch_size = loader, loader.dataset, loader.batch_size

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Any:
        for *parts, lengths, numbers in self.loader:
            yield *parts, torch.tensor(lengths), list(numbers)


def _build_networks(resnet: Any) -> None:
    """Make the authors' networks without weights, and ResNeXt, which they take from torch.hub, that of torchvision."""
    for name in ("resnet50", "resnet101", "resnet152"):
        build = getattr(resnet, name)
        setattr(resnet, name, lambda pretrained=False, build=build: build())

    def load(repository: str, name: str, pretrained: bool = False) -> Any:
        from torchvision.models import resnext101_32x8d

        assert name.removesuffix("_wsl") == "resnext101_32x8d"
        return resnext101_32x8d()

    torch.hub.load = load  # type: ignore[assignment]
