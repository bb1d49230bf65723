"""Files as the authors of VSE++ and VSRN wrote them: checkpoint, vocabulary and data, by rule."""

from __future__ import annotations

import argparse
import json
import pickle
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.authors.rule import features_by_rule, weights_by_rule

States = Sequence[Mapping[str, Tensor]]


@dataclass(frozen=True)
class Case:
    """A model of the authors' code and what it reads."""

    options: Mapping[str, Any]  # opt of the file
    features: tuple[int, ...]  # shape of test_ims.npy
    shapes: Sequence[Mapping[str, Sequence[int]]] = field(default_factory=tuple)  # of the tensors of each tower
    seed: int = 0
    times: int = 1  # how often each row of the features stands in the file

    def states(self) -> States:
        """Return the state dict of each tower, by rule."""
        return [weights_by_rule(shapes, self.seed) for shapes in self.shapes]


def write_features(folder: Path, case: Case, captions: Sequence[str]) -> None:
    """Write a folder of precomputed features with the split test."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "test_ims.npy", np.repeat(features_by_rule(case.features, case.seed), case.times, axis=0))
    (folder / "test_caps.txt").write_text("".join(f"{caption}\n" for caption in captions), encoding="utf-8")


def write_checkpoint(path: Path, case: Case, states: States | None = None, legacy: bool = False) -> Path:
    """Write a checkpoint with the five keys of the family.

    Args:
        path: of the file.
        case: of the options and the weights.
        states: the weights, where they are not those of the case.
        legacy: in the container of torch before 1.6.
    """
    model = [OrderedDict(state) for state in (states or case.states())]
    opt = argparse.Namespace(**case.options)
    content = {"epoch": 30, "model": model, "best_rsum": 401.5, "opt": opt, "Eiters": 9000}
    torch.save(content, path, _use_new_zipfile_serialization=not legacy)
    return path


def write_vocabulary(path: Path, words: Sequence[str]) -> Path:
    """Write a vocabulary as JSON, or for `.pkl` as Python 2 pickled the class of the script that made it."""
    fields = {"word2idx": {w: i for i, w in enumerate(words)}, "idx2word": dict(enumerate(words)), "idx": len(words)}
    if path.suffix == ".json":
        path.write_text(json.dumps(fields), encoding="utf-8")
        return path
    main = sys.modules["__main__"]
    kind = type("Vocabulary", (), {"__module__": "__main__"})
    vocabulary = kind()
    vars(vocabulary).update(fields)
    before = vars(main).get("Vocabulary")
    main.Vocabulary = kind  # type: ignore[attr-defined]
    try:
        path.write_bytes(pickle.dumps(vocabulary, 2))
    finally:
        del main.Vocabulary
        if before is not None:
            main.Vocabulary = before
    return path
