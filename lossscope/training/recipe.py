"""A recipe holds all choices of a training that change a number, as plain values."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from lossscope.core.choices import Choice
from lossscope.core.types import MINED_NEGATIVES, REDUCTIONS, MinedNegatives, Reduction, SameImage, TrainingMode
from lossscope.errors import InputError

Precision = Literal["fp32", "bf16", "fp16"]
Schedule = Literal["step", "linear"]
Optimiser = Literal["adam", "adamw", "ranger"]
SelectBy = Literal["rsum", "r1_r5", "geometric", "last"]
_SEEDS = 1 << 40  # the seed of an epoch is a million times as large, and must fit 64 bits
_LEAST = {
    "epochs": 0, "warmup": 0, "lr_step": 1, "min_count": 1, "batch_size": 2, "loss_ramp_epoch": 0, "steps": 0,
    "val_images": 0,
}  # fmt: skip

MODEL, DATA, OBJECTIVE, BATCHES, OPTIMISATION = "Model", "Data", "Objective", "Batches", "Optimisation"
WARMUP = "Warm-up"
RENAMED = {"rates": "lr_groups", "ramp": "loss_ramp_epoch", "select": "select_by"}
"""Former name of a choice -> its name today, for older runs and checkpoints."""


@dataclass(frozen=True)
class Recipe:
    """All choices of a training. Raises InputError for values out of range.

    data, encoder and objective are specs. The papers train large pretrained towers with lr 2e-4; 1e-3 is for small
    towers from scratch.
    """

    data: Annotated[str, Choice(DATA, "Data set spec.", shown=False, names="datasets")] = "scenes"
    encoder: Annotated[str, Choice(MODEL, "Encoder spec.", shown=False, names="encoders")] = "vsepp"
    objective: Annotated[str, Choice(OBJECTIVE, "Objective spec.", shown=False, names="objectives")] = "ntxent"
    epochs: Annotated[int, Choice(OPTIMISATION, "Passes over the training split.")] = 30
    batch_size: Annotated[int, Choice(BATCHES, "Pairs per batch, or images with all their captions.")] = 128
    lr: Annotated[float, Choice(OPTIMISATION, "Learning rate.")] = 1e-3
    lr_step: Annotated[int, Choice(OPTIMISATION, "Epochs after which a step schedule lowers the rate.")] = 15
    lr_gamma: Annotated[float, Choice(OPTIMISATION, "Factor of a step schedule.")] = 0.1
    clip: Annotated[float, Choice(OPTIMISATION, "Largest norm of the gradient; 0: no clipping.")] = 2.0
    warmup: Annotated[int, Choice(WARMUP, "Epochs of the objective's warm-up loss (all negatives), if it has one.")] = 1
    best_in_warmup: Annotated[
        bool, Choice(WARMUP, "Let the best epoch lie in the warm-up, which trains another loss.")
    ] = False
    reduction: Annotated[
        Reduction | None,
        Choice(OBJECTIVE, "Reduction of the query losses to a single number.", shown="the objective's"),
    ] = None
    sampling: Annotated[
        TrainingMode | None, Choice(BATCHES, "Content of a batch.", shown="what the objective needs")
    ] = None
    same_image: Annotated[
        SameImage, Choice(OBJECTIVE, "Keep other captions of the image as negatives, or mask them.")
    ] = "keep"
    negatives: Annotated[
        MinedNegatives,
        Choice(BATCHES, "Give mined negatives to the whole batch, to their own query alone, or to none."),
    ] = "batch"
    mined: Annotated[int, Choice(BATCHES, "Mined negatives per query; 0: all of the data.")] = 0
    mask: Annotated[
        str,
        Choice(
            OBJECTIVE,
            "Leave out negatives that are probably relevant, by rules with semicolons: same-item;above:margin=0.1.",
        ),
    ] = ""
    precision: Annotated[
        Precision, Choice(MODEL, "Precision of the encoder; similarities and weights stay float32.")
    ] = "fp32"
    min_count: Annotated[int, Choice(DATA, "Captions that must contain a word before it enters the vocabulary.")] = 4
    seed: Annotated[int, Choice(BATCHES, "Seed of initial weights and of batches.")] = 0
    init: Annotated[str | None, Choice(MODEL, "Checkpoint of the same encoder to begin with.")] = None
    info: Annotated[
        str | None,
        Choice(
            DATA,
            "File .npz with a number per training caption: label (ncr; else training estimates it), margin, weight "
            "(unified).",
        ),
    ] = None
    offline: Annotated[str | None, Choice(DATA, "Folder of `lossscope mine`, from which aoq draws candidates.")] = None
    optimiser: Annotated[Optimiser, Choice(OPTIMISATION, "Optimiser; ranger needs the extra lossscope[ranger].")] = (
        "adam"
    )
    weight_decay: Annotated[float, Choice(OPTIMISATION, "Weight decay.")] = 0.0
    beta2: Annotated[float, Choice(OPTIMISATION, "Second decay rate of Adam and AdamW.")] = 0.999
    schedule: Annotated[
        Schedule, Choice(OPTIMISATION, "Schedule of the learning rate; linear rises, then falls to 0.")
    ] = "step"
    lr_warmup: Annotated[float, Choice(OPTIMISATION, "Share of all steps in which a linear schedule rises.")] = 0.0
    lr_groups: Annotated[
        str, Choice(OPTIMISATION, "Factors on --lr for groups of parameters: bert=0.1,backbone=0.01.")
    ] = ""
    freeze: Annotated[str, Choice(OPTIMISATION, "Epochs for which groups stay frozen: backbone=1.")] = ""
    loss_ramp_epoch: Annotated[
        int, Choice(OPTIMISATION, "Epoch (first: 1) in which the loss grows from 0 to full; 0: none.")
    ] = 0
    drop_last: Annotated[
        bool, Choice(BATCHES, "Drop or keep the last, shorter batch of an epoch.", flags="--drop-last/--keep-last")
    ] = False
    steps: Annotated[int, Choice(BATCHES, "Batches per epoch; 0: the whole split.")] = 0
    select_by: Annotated[
        SelectBy,
        Choice(
            OPTIMISATION,
            "Metric that the best epoch maximises (rsum, or nDCG@10 for other sides; r1_r5: R@1 and R@5; "
            "geometric: mean of t2i recalls).",
        ),
    ] = "rsum"
    val_images: Annotated[int, Choice(DATA, "Validate on the first N images; 0: on all.")] = 0

    def __post_init__(self) -> None:
        for name, low in _LEAST.items():
            if getattr(self, name) < low:
                raise InputError(f"{name.replace('_', '-')} must be at least {low}; got {getattr(self, name)}")
        finite = math.isfinite(self.lr) and math.isfinite(self.clip) and math.isfinite(self.lr_gamma)
        if not (finite and 0 < self.lr <= 1e30 and self.clip >= 0 and self.lr_gamma > 0):
            raise InputError(
                f"lr and lr-gamma must be > 0, finite, and clip >= 0; got {self.lr}, {self.lr_gamma} and {self.clip}"
            )
        if not 0 <= self.seed < _SEEDS:
            raise InputError(f"seed must be in 0..{_SEEDS - 1}; got {self.seed}")
        if not (0 <= self.weight_decay < math.inf and 0 < self.beta2 < 1 and 0 <= self.lr_warmup < 1):
            got = f"{self.weight_decay}, {self.beta2} and {self.lr_warmup}"
            raise InputError(f"weight-decay must be >= 0, beta2 in (0, 1) and lr-warmup in [0, 1); got {got}")
        _ = self.lr_factors, self.frozen_epochs
        if self.loss_ramp_epoch > self.epochs > 0:
            raise InputError(
                f"loss-ramp-epoch must be an epoch of the run, at most {self.epochs}; got {self.loss_ramp_epoch}"
            )
        if self.optimiser == "ranger" and self.beta2 != 0.999:
            raise InputError(f"beta2 is for adam and adamw; ranger has its own. Got {self.beta2}")
        _one_of("optimiser", self.optimiser, typing.get_args(Optimiser))
        _one_of("schedule", self.schedule, typing.get_args(Schedule))
        _one_of("select-by", self.select_by, typing.get_args(SelectBy))
        _one_of("reduction", self.reduction, (*REDUCTIONS, None))
        _one_of("sampling", self.sampling, (*typing.get_args(TrainingMode), None))
        _one_of("negatives", self.negatives, MINED_NEGATIVES)
        _one_of("same-image", self.same_image, typing.get_args(SameImage))
        _one_of("precision", self.precision, typing.get_args(Precision))

    @property
    def specs(self) -> tuple[str, str, str]:
        """The specs of data, encoder and objective."""
        return self.data, self.encoder, self.objective

    @property
    def lr_factors(self) -> Mapping[str, float]:
        """Factor on lr of every named group of parameters."""
        return _named_numbers("lr-groups", self.lr_groups)

    @property
    def frozen_epochs(self) -> Mapping[str, float]:
        """Epochs for which every named group of parameters stays frozen."""
        epochs = _named_numbers("freeze", self.freeze)
        if any(number % 1 for number in epochs.values()):
            raise InputError(f"freeze must be whole epochs; got {self.freeze!r}")
        return epochs


def _named_numbers(what: str, text: str) -> dict[str, float]:
    """Parse `name=number,...` into a dict. Raises InputError."""
    numbers: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, value = (piece.strip() for piece in part.partition("="))
        try:
            number = float(value)
        except ValueError:
            raise InputError(f"{what} must be name=number,...; got {text!r}") from None
        if not name or name in numbers or not 0 <= number < math.inf:
            raise InputError(f"{what} must be name=number,..., each name once, numbers >= 0 and finite; got {text!r}")
        numbers[name] = number
    return numbers


def _one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(str(k) for k in choices if k)}; got {value!r}")
