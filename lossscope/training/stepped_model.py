"""A live model, the split that its steps are taken on, and a held-out split that judges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.request import Request
from lossscope.core.sides import plural
from lossscope.encoders.base import Encoder
from lossscope.errors import InputError
from lossscope.sources.base import read_source
from lossscope.sources.checkpoints.captions import CaptionBatcher
from lossscope.sources.checkpoints.layer_gradients import LayerGradients

_TRAINED = "train"  # name of the split that a training sees, in all data sets


@dataclass(frozen=True, eq=False)
class SteppedModel:
    """A model with both splits.

    Raises InputError where the held-out split is the training split, or that of the steps, or one labelled set.
    """

    model: Encoder  # on its device
    train: CaptionBatcher  # split of the steps
    held_out: CaptionBatcher  # another split of the same data
    recipe: Mapping[str, Any] = field(default_factory=dict)  # of the model's training; empty: unknown
    name: str = "model"  # in tables
    objective: str | None = None  # spec that it was trained with; None: unknown

    def __post_init__(self) -> None:
        steps, judge = self.train.split, self.held_out.split
        require_held_out(judge.name, steps.name)
        if steps.fingerprint == judge.fingerprint:
            raise InputError(f"splits {steps.name!r} and {judge.name!r} must have different items; they are the same")
        for split in (steps, judge):
            if split.relations.one_set:
                raise InputError(f"split {split.name!r} must have two sides; it is one labelled set")

    @property
    def held_out_items(self) -> str:
        """`100 images, 500 captions`."""
        relations = self.held_out.split.relations
        first, second = relations.sides.first, str(relations.sides.second)
        return f"{relations.first} {plural(first)}, {relations.second} {plural(second)}"


def open_stepped_model(
    path: Path | str,
    held_out: str = "val",
    request: Request = Request(),  # noqa: B008 - never changed
    read: Callable[[Path, Request], SplitEmbeddings] = read_source,
) -> SteppedModel:
    """Return the model of a checkpoint with the split of the request and a held-out one; no split is encoded.

    Args:
        path: checkpoint or run folder.
        held_out: name of the split that judges the steps.
        request: which data and split, and how they are read.
        read: returns the source of a path and a request, as `read_source` does.

    Raises:
        InputError: the source has no model, or a split is not there or is no held-out one.
    """
    require_held_out(held_out, request.named_split)
    steps, judge = (
        read(Path(path), replace(request, split=split, runs_model=False)) for split in (request.named_split, held_out)
    )
    model, train = _model_of(steps)
    _, captions = _model_of(judge)
    return SteppedModel(model, train, captions, steps.recipe, steps.name, steps.objective)


def require_held_out(held_out: str, steps: str) -> None:
    """Raise InputError for the name of a split that a training or a step sees."""
    if held_out in (_TRAINED, steps):
        what = "the training split" if held_out == _TRAINED else "the split of the steps"
        raise InputError(
            f"the held-out split must be one that no step and no training sees, such as val or test; got {held_out}, "
            f"{what}"
        )


def _model_of(embedded: SplitEmbeddings) -> tuple[Encoder, CaptionBatcher]:
    gradients = embedded.layer_gradients
    if not isinstance(gradients, LayerGradients):
        raise InputError(
            f"{embedded.name} must be a checkpoint, whose model takes the step; it has embeddings or similarities "
            "alone. Name a run folder or a .pt file"
        )
    return gradients.model_and_captions
