"""Files of BFAN, SGRAF and VSE-infinity as their authors wrote them, with weights and features by rule."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.authors.rule import network_by_rule, weights_by_rule, write_pictures
from tests.authors.vse_files import Case, States, write_features


@dataclass(frozen=True)
class SgrafCase(Case):
    """A model of SGRAF: its third tower has larger weights, without which all scores are nearly the same."""

    def states(self) -> States:
        """Return the state dict of each tower, by rule."""
        *towers, similarity = self.shapes
        scale = 0.5 if self.options["module_name"] == "SGR" else 1.5
        return [
            *(weights_by_rule(shapes, self.seed) for shapes in towers),
            weights_by_rule(similarity, self.seed, scale),
        ]


_NETWORK = {"base.0.": "conv1.", "base.1.": "bn1.", "base.4.": "layer1.", "base.5.": "layer2.", "base.6.": "layer3."}


@dataclass(frozen=True)
class InftyCase(Case):
    """A model of VSE-infinity, whose BERT and network of pictures need weights of their own."""

    def states(self) -> States:
        """Return the state dict of each tower, by rule; the network is there twice, with equal tensors."""
        image, text = self.shapes
        network = {name: shape for name, shape in image.items() if "backbone." in name}
        once = network_by_rule({_resnet_name(name): shape for name, shape in network.items()}, self.seed)
        head = weights_by_rule({name: shape for name, shape in image.items() if name not in network}, self.seed)
        bert = {name: shape for name, shape in text.items() if "bert." in name}
        words = weights_by_rule({name: shape for name, shape in text.items() if name not in bert}, self.seed)
        images = {name: once[_resnet_name(name)] if name in network else head[name] for name in image}
        return [images, {**weights_by_rule(bert, self.seed, 0.05), **words}]


def _resnet_name(name: str) -> str:
    """Return the name of a tensor of the network among those of `resnet`, for `base` and `top` too."""
    rest = name.removeprefix("module.").removeprefix("backbone.").replace("top.0.", "layer4.")
    start = next((start for start in _NETWORK if rest.startswith(start)), "")
    return (_NETWORK.get(start, "") + rest.removeprefix(start)).removeprefix("resnet.")


def write_precaps(folder: Path, case: Case, ids: Sequence[Sequence[int]]) -> None:
    """Write features and captions as ids of the split test."""
    write_features(folder, case, [])
    lines = [",".join(map(str, row)) for row in ids]
    (folder / "test_precaps.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_grids(folder: Path, sizes: Sequence[tuple[int, int]], captions: Sequence[str]) -> None:
    """Write pictures of (width, height) each, their ids and five captions for each, of the split test."""
    (folder / "precomp").mkdir(parents=True)
    (folder / "flickr30k-images").mkdir()
    files = write_pictures(folder / "flickr30k-images", sizes)
    ids = [str(70 + number) for number in range(len(files))]
    mapping = {id: file.name for id, file in zip(ids, files, strict=True)}
    (folder / "id_mapping.json").write_text(json.dumps(mapping), encoding="utf-8")
    (folder / "precomp" / "test_ids.txt").write_text("".join(f"{id}\n" for id in ids), encoding="utf-8")
    (folder / "precomp" / "test_caps.txt").write_text("".join(f"{text}\n" for text in captions), encoding="utf-8")
