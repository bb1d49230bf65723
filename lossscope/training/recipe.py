"""How a model is trained: every choice that changes a number, as one frozen dataclass."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lossscope.core.batches import Batch, Rows, Sampling, SamplingMode
from lossscope.core.similarity import SameImage
from lossscope.core.weights import REDUCTIONS, Reduction
from lossscope.errors import InputError
from lossscope.registry import build, spec_of

Precision = Literal["fp32", "bf16", "fp16"]
Schedule = Literal["step", "linear"]
Optimiser = Literal["adam", "adamw", "ranger"]
Select = Literal["rsum", "r1_r5", "geometric", "last"]
_SEEDS = 1 << 40  # each epoch's seed, a million times as large, must fit 64 bits


@dataclass(frozen=True)
class Recipe:
    """data, encoder, objective: specs. `optimiser` at `lr`, times `lr_gamma` every `lr_step` epochs (schedule=step), or
    rising to lr over the part `lr_warmup` of all steps and falling to 0 at the last (linear); gradients clipped to
    norm `clip` (0: never); the first `warmup` epochs train the objective's own warm-up objective, if it has one.

    The papers train large pretrained towers with lr 2e-4; 1e-3 is for small ones from scratch.
    reduction, sampling: None takes the objective's own. min_count: captions a word must be seen in. precision:
    of the encoder; similarities and weights are float32 always. init: checkpoint of the same encoder to begin with.
    info: .npz with one number for each training caption by name (label for ncr; margin and weight for unified).
    offline: folder of `lossscope rank`, which aoq draws from.
    rates: factors on lr for named groups of the encoder's parameters, `bert=0.1,backbone=0.01`. freeze: epochs that
    such groups wait, `backbone=1`. ramp: epoch (1 is the first; 0: none) in which the loss grows from 0 to whole.
    drop_last: leave out the last, shorter batch. steps: batches of an epoch (0: the whole split).
    select: what the best epoch has most of: `rsum`; `r1_r5`, the recalls at 1 and 5 of both directions (VSRN);
    `geometric`, the geometric mean of t2i R@1, R@5, R@10 (video); `last`, the last epoch whatever it is.
    val_images: validate on the first so many images (0: all), for models that score pairs.
    Raises InputError for values out of range.
    """

    data: str = "scenes"
    encoder: str = "vsepp"
    objective: str = "ntxent"
    epochs: int = 30
    batch_size: int = 128
    lr: float = 1e-3
    lr_step: int = 15
    lr_gamma: float = 0.1
    clip: float = 2.0
    warmup: int = 1
    reduction: Reduction | None = None
    sampling: SamplingMode | None = None
    same_image: SameImage = "keep"
    precision: Precision = "fp32"
    min_count: int = 4
    seed: int = 0
    init: str | None = None
    info: str | None = None
    offline: str | None = None
    optimiser: Optimiser = "adam"
    weight_decay: float = 0.0
    beta2: float = 0.999
    schedule: Schedule = "step"
    lr_warmup: float = 0.0
    rates: str = ""
    freeze: str = ""
    ramp: int = 0
    drop_last: bool = False
    steps: int = 0
    select: Select = "rsum"
    val_images: int = 0

    def __post_init__(self) -> None:
        least = {"epochs": 0, "warmup": 0, "lr_step": 1, "min_count": 1, "batch_size": 2, "ramp": 0, "steps": 0}
        for name, low in (*least.items(), ("val_images", 0)):
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
        _ = self.factors, self.waits
        if self.ramp > self.epochs > 0:
            raise InputError(f"ramp must be an epoch of the run, at most {self.epochs}; got {self.ramp}")
        if self.optimiser == "ranger" and self.beta2 != 0.999:
            raise InputError(f"beta2 is of adam and adamw; ranger has its own. Got {self.beta2}")
        _one_of("optimiser", self.optimiser, typing.get_args(Optimiser))
        _one_of("schedule", self.schedule, typing.get_args(Schedule))
        _one_of("select", self.select, typing.get_args(Select))
        _one_of("reduction", self.reduction, (*REDUCTIONS, None))
        _one_of("sampling", self.sampling, ("pairs", "images", "single", None))
        _one_of("same-image", self.same_image, ("keep", "mask"))
        _one_of("precision", self.precision, ("fp32", "bf16", "fp16"))

    def canonical(self) -> Recipe:
        """The same with every spec written in full, so that it means the same after defaults change."""
        return dataclasses.replace(
            self,
            data=spec_of(build("datasets", self.data)),
            encoder=spec_of(build("encoders", self.encoder)),
            objective=spec_of(build("objectives", self.objective)),
        )

    def objective_of(self, epoch: int, main: Any) -> Any:
        """What epoch `epoch` (from 0) trains with: the objective, or its warm-up."""
        if epoch < self.warmup and main.warmup is not None:
            return build("objectives", main.warmup)
        return main

    def batches(self) -> Sampling:
        """How the training split is cut into batches."""
        objective = build("objectives", self.objective)
        how = self.sampling or ("images" if objective.positives == "many" else "pairs")
        if how == "images" and objective.positives == "one":
            what = f"{self.objective}, which takes one positive"
            raise InputError(f"sampling must be pairs or single for {what}; got images")
        return Sampling(how, self.batch_size, self.seed, drop_last=self.drop_last, min_batch_size=2)

    def steps_of(self, batches: int) -> int:
        """Steps of an epoch when the split has so many batches."""
        return self.steps or batches

    def epoch_of(self, sampling: Sampling, caption_image: Rows, epoch: int, start: int) -> Iterator[Batch]:
        """Batches of an epoch from step `start` on; passes over the split follow each other where `steps` is stated."""
        number = sampling.count(caption_image)
        if not self.steps or not number:
            yield from sampling.batches(caption_image, epoch, start)
            return
        step, end = epoch * self.steps + start, (epoch + 1) * self.steps
        while step < end:
            for batch in sampling.batches(caption_image, step // number, step % number):
                yield batch
                step += 1
                if step == end:
                    return

    def rate(self, epoch: int, step: int = 0, steps: int = 1) -> float:
        """Learning rate of a step of an epoch of `steps`: lr · lr_gamma^⌊epoch / lr_step⌋, or the rise and fall."""
        if self.schedule == "step":
            return float(self.lr * self.lr_gamma ** (epoch // self.lr_step))
        total = self.epochs * steps
        done, rise = epoch * steps + step, self.lr_warmup * total
        return float(self.lr * min((done + 1) / rise if rise else 1.0, (total - done) / max(total - rise, 1)))

    def ramped(self, epoch: int, step: int, steps: int) -> float:
        """Factor on the loss of a step: from 0 to 1 over the epoch `ramp`, 1 in every other."""
        return step / steps if self.ramp == epoch + 1 else 1.0

    @property
    def factors(self) -> Mapping[str, float]:
        """Factor on lr of every named group of parameters."""
        return _named("rates", self.rates)

    @property
    def waits(self) -> Mapping[str, float]:
        """Epochs that every named group waits."""
        found = _named("freeze", self.freeze)
        if any(epochs % 1 for epochs in found.values()):
            raise InputError(f"freeze must be whole epochs; got {self.freeze!r}")
        return found

    def score(self, metrics: Mapping[str, float], epoch: int) -> float:
        """What the best epoch has most of."""
        if self.select == "last":
            return float(epoch)
        if self.select == "r1_r5":
            return sum(metrics[f"{side}_R@{k}"] for side in ("i2t", "t2i") for k in (1, 5))
        if self.select == "geometric":
            return math.prod(metrics[f"t2i_R@{k}"] for k in (1, 5, 10)) ** (1 / 3)
        return metrics["rsum"]


def _named(what: str, text: str) -> dict[str, float]:
    """`name=number,...` as a dict. Raises InputError."""
    found: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, _, value = (piece.strip() for piece in part.partition("="))
        try:
            number = float(value)
        except ValueError:
            raise InputError(f"{what} must be name=number,...; got {text!r}") from None
        if not name or name in found or not 0 <= number < math.inf:
            raise InputError(f"{what} must be name=number,..., each name once, numbers >= 0 and finite; got {text!r}")
        found[name] = number
    return found


def _one_of(name: str, value: Any, known: tuple[Any, ...]) -> None:
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(str(k) for k in known if k)}; got {value!r}")
