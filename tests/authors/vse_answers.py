"""Known answers of VSE++ and VSRN, and their input files, opened as a user opens them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import lossscope
from lossscope.core.embedded import SplitEmbeddings
from tests.authors.answers import Answers
from tests.authors.rule import Floats
from tests.authors.vse_files import Case, write_checkpoint, write_features, write_vocabulary


class VseAnswers(Answers):
    """The known answers of one family, with the files of its models."""

    def case(self, name: str) -> Case:
        """Return a model and what it reads."""
        known = self.content["cases"][name]
        return Case(known["options"], tuple(known["features"]), known["shapes"], known["seed"], known["times"])

    def write(self, name: str, folder: Path, captions: str = "captions", pickled: bool = False) -> tuple[Path, Path]:
        """Write checkpoint, vocabulary beside it, and data of a case; return the checkpoint and the data's folder."""
        folder.mkdir(parents=True, exist_ok=True)
        case, content = self.case(name), self.content
        data = folder / str(case.options["data_name"])
        write_features(data, case, content[captions])
        suffix = "pkl" if pickled else "json"
        write_vocabulary(folder / f"{case.options['data_name']}_vocab.{suffix}", content["words"])
        return write_checkpoint(folder / "model_best.pth.tar", case), data

    def open(self, name: str, folder: Path, captions: str = "captions", pickled: bool = False) -> SplitEmbeddings:
        """Return the split test of a case as `lossscope eval` reads it."""
        path, data = self.write(name, folder, captions, pickled)
        return lossscope.load(path, data=f"precomp:root={data}", split="test", cache=False)


def order_similarities(images: Floats, captions: Floats) -> Floats:
    """−|max(0, t − v)| of the authors' vectors, a pair at a time."""
    return np.array([[-np.linalg.norm(np.maximum(0, t - v)) for t in captions] for v in images], dtype=np.float32)


def feature_cases(answers: VseAnswers) -> Sequence[str]:
    """Return the names of cases with features and five folds."""
    return [name for name, case in answers.content["cases"].items() if "fold_metrics" in case]
