"""Known answers of VSE++ and VSRN, and the files that they were computed from, opened as a user opens them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import lossscope
from lossscope.core.embedded import SplitEmbeddings
from lossscope.retrieval.evaluate import evaluate
from tests.authors.vse_files import Case, write_checkpoint, write_features, write_vocabulary

DATA = Path(__file__).parents[1] / "data" / "authors"
TOLERANCE = 1e-5
STATISTICS = ("R@1", "R@5", "R@10", "medr", "meanr")


@dataclass(frozen=True)
class Answers:
    """The known answers of one family."""

    name: str  # of its files

    @property
    def content(self) -> dict[str, Any]:
        """Words, captions, and what each case is."""
        content: dict[str, Any] = json.loads((DATA / f"{self.name}.json").read_text(encoding="utf-8"))
        return content

    def array(self, name: str) -> npt.NDArray[np.float32]:
        """Return vectors by the authors' code."""
        with np.load(DATA / f"{self.name}.npz") as arrays:
            answer: npt.NDArray[np.float32] = arrays[name]
            return answer

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


def recalls(embedded: Sequence[SplitEmbeddings], folds: int = 1) -> Mapping[str, list[float]]:
    """Return R@1, R@5, R@10, median and mean rank of both directions, of one source or an ensemble."""
    frame = evaluate(embedded, folds).set_index(["direction", "statistic"])["mean"]
    return {direction: [float(frame[direction, name]) for name in STATISTICS] for direction in ("i2t", "t2i")}


def similarities(embedded: SplitEmbeddings) -> npt.NDArray[np.float32]:
    """Return S of all images and captions."""
    rows = np.arange(len(embedded.image_ids)), np.arange(len(embedded.caption_ids))
    scores: npt.NDArray[np.float32] = embedded.similarities(*rows).i2t.numpy()
    return scores


def order_similarities(images: npt.NDArray[np.float32], captions: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """−|max(0, t − v)| of the authors' vectors, a pair at a time."""
    return np.array([[-np.linalg.norm(np.maximum(0, t - v)) for t in captions] for v in images], dtype=np.float32)


def difference(ours: torch.Tensor | npt.NDArray[np.float32] | None, theirs: npt.NDArray[np.float32]) -> float:
    """Return the greatest absolute difference."""
    assert ours is not None
    assert tuple(ours.shape) == theirs.shape
    return float(np.abs(np.asarray(ours) - theirs).max())


def feature_cases(answers: Answers) -> Sequence[str]:
    """Return the names of cases with features and five folds."""
    return [name for name, case in answers.content["cases"].items() if "fold_metrics" in case]
