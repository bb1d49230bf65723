"""What is one step with this loss worth? The change of a held-out split after a step along each loss's gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lossscope.core.batches import Batch, Sampling
from lossscope.core.distributed import ProcessGroup
from lossscope.core.float32_products import float32_products
from lossscope.core.masks.base import NegativeMask
from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, both_masks
from lossscope.core.types import DIRECTIONS, Progress, SameImage, WeightUnit
from lossscope.core.weights import both
from lossscope.encoders.base import Encoder
from lossscope.engine.false_negatives import build_rule
from lossscope.engine.options import trained_options
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.units import answer_unit, require_unit
from lossscope.objectives.custom.as_objective import ObjectiveLike, as_objective
from lossscope.probes.views.view import BatchShape, DenseRows, View
from lossscope.registry import short_spec, spec_of
from lossscope.sources.checkpoints.captions import CaptionBatcher
from lossscope.sources.checkpoints.input_keys import input_keys
from lossscope.spec import Spec

from .batching import epoch_batches
from .data_parallel import StepSeed
from .false_negatives import hide_by_rules_of_batch
from .forward import BatchInputs, Forward, batch_loss
from .held_out import UNITS, held_out_metrics
from .parameter_step import norm_of, one_step, trained_parameters
from .stepped_model import SteppedModel
from .utility_options import UtilityOptions

_USUAL_BATCH_SIZE = 128  # of a model whose training is not known
_HALVED = 3  # first batches, on which half a step is taken too: they show whether utility grows in proportion to h
SETTINGS = (
    "step", "batch_size", "sampling", "split", "held_out", "held_out_items", "eps", "weight_unit", "seed",
)  # fmt: skip
COLUMNS = (
    "source", "objective", "batch", "direction", "metric", "unit", "before", "after", "change", "counted",
    "queries_with_weight", "queries", "per_counted", "per_query", "gradient_norm", "no_gradient", "half_change",
    *SETTINGS,
)  # fmt: skip


Metrics = Mapping[tuple[str, str], float]  # (direction, metric) -> value


@float32_products()
def one_step_utility(
    stepped: SteppedModel,
    objectives: Sequence[ObjectiveLike],
    options: UtilityOptions = UtilityOptions(),  # noqa: B008 - never changed
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Return a row for each objective, batch, direction and metric: the metric before and after one step.

    For each batch and objective θ' = θ − h · |θ| · g / |g|, g the gradient of the training loss of both directions with
    respect to all trained parameters, h the `step` of the options. All objectives get the same batches, so that their
    differences are paired. After each step the parameters get their bits back. The model is in eval mode: without
    dropout, and with the learnt statistics of batch norm, which no step changes. A further loss of the model
    (`extra_loss`) is not included. Columns COLUMNS:

    - change: after − before of a metric of `held_out_metrics`; 0 where the loss has no gradient.
    - counted: negatives per query whose counted weight is above eps (C_neg of `cocos`), mean over both directions.
    - queries_with_weight, queries: of both directions, those whose W is not all 0, and all with a positive and a
      negative.
    - per_counted, per_query: change / counted, change / queries_with_weight; NaN where that is 0.
    - gradient_norm: |g|. no_gradient: whether it is 0.
    - half_change: change after half a step, on the first 3 batches, else NaN; half of `change` where a step is short.

    Args:
        stepped: the model, which stays in the mode it was in and unchanged, and both splits. Its recipe decides the
            batch size, mined negatives, rules for false negatives and same_image, as far as it is known.
        objectives: specs, objectives or losses; different ones.
        options: of the step, the batches and the counts.
        progress: called after each step.

    Raises:
        InputError: an objective that needs what a batch does not have, equal objectives, batches that do not fit, or
            numbers that are not finite.
    """
    losses = [as_objective(objective) for objective in objectives]
    model, train, held_out = stepped.model, stepped.train, stepped.held_out
    _require_objectives(losses, model)
    batching = StepBatching.of(losses, options, stepped)
    unit = options.unit or answer_unit(losses)
    for objective in losses:
        require_unit(objective, unit, "corrected")
    settings = {
        "step": options.step, "batch_size": batching.sampling.batch_size, "sampling": batching.label,
        "split": train.split.name, "held_out": held_out.split.name, "held_out_items": stepped.held_out_items,
        "eps": options.eps, "weight_unit": unit, "seed": options.seed,
    }  # fmt: skip
    was_training = model.training
    model.eval()
    rows: list[dict[str, Any]] = []
    try:
        parameters = trained_parameters(model)
        before, done = held_out_metrics(model, held_out), 0
        for number, batch in enumerate(batching.batches(train, options.batches)):
            steps = _steps(model, train, batch, batching, losses, (options.eps, unit))
            for objective, step in zip(losses, steps, strict=True):
                after = half = before
                if step.norm > 0:
                    with one_step(parameters, step.gradient, options.step):
                        after = held_out_metrics(model, held_out)
                if step.norm > 0 and number < _HALVED:
                    with one_step(parameters, step.gradient, options.step / 2):
                        half = held_out_metrics(model, held_out)
                constant = {"source": stepped.name, "objective": spec_of(objective), "batch": number}
                changes = step.rows(before, after, half if number < _HALVED else None)
                rows += [{**constant, **row, **settings} for row in changes]
                done += 1
                if progress:
                    progress("one step of each loss", done, options.batches * len(losses))
    finally:
        model.train(was_training)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def with_learnt_values(specs: Sequence[str], trained_with: str | None) -> tuple[str, ...]:
    """Return the specs; the bare name of the objective that a model was trained with gets its learnt scale and bias.

    >>> with_learnt_values(("infonce", "triplet"), "infonce:tau=0.02,learn=true,scale_max=100.0")
    ('infonce:tau=0.02,learn=true,scale_max=100.0', 'triplet')

    Args:
        specs: as typed.
        trained_with: spec that the model's file states; None: unknown.
    """
    if trained_with is None:
        return tuple(specs)
    bare = Spec.parse(trained_with).name.replace("-", "_").lower()
    is_bare = [spec.replace("-", "_").lower() == bare for spec in specs]
    if not any(is_bare) or not as_objective(trained_with).learnable:  # a file that nobody typed is not imported
        return tuple(specs)
    return tuple(trained_with if bare_name else spec for spec, bare_name in zip(specs, is_bare, strict=True))


@dataclass(frozen=True)
class StepBatching:
    """How the batches of the steps are made: as in the model's training, as far as that is known."""

    sampling: Sampling
    same_image: SameImage = "keep"
    rules: tuple[NegativeMask, ...] = ()  # that leave out negatives

    @classmethod
    def of(cls, objectives: Sequence[Objective], options: UtilityOptions, stepped: SteppedModel) -> StepBatching:
        """Return the batching that all objectives share. Raises InputError for one that an objective cannot take."""
        single = [short_spec(objective) for objective in objectives if objective.traits.positives == "one"]
        mode = options.sampling or ("pairs" if single else "images")
        if mode in ("images", "groups") and single:
            raise InputError(f"--sampling must be pairs or single for {', '.join(single)}, of one positive; got {mode}")
        recipe = stepped.recipe
        trained = trained_options(recipe, stepped.name)
        size = options.batch_size or int(recipe.get("batch_size") or _USUAL_BATCH_SIZE)
        sampling = Sampling(
            mode, size, options.seed, drop_last=True, min_batch_size=2,
            negatives=trained.get("negatives", "batch"), mined=trained.get("mined"),
        )  # fmt: skip
        rules = tuple(build_rule(spec) for spec in trained.get("masks", ()))
        return cls(sampling, recipe.get("same_image") or "keep", rules)

    @property
    def label(self) -> str:
        """The mode, and the rules for false negatives."""
        rules = "+".join(short_spec(rule) for rule in self.rules)
        return self.sampling.mode + (f", mask {rules}" if rules else "")

    def batches(self, captions: CaptionBatcher, number: int) -> list[Batch]:
        """Return full batches, from as many passes over the split as they need. Raises InputError if none is full."""
        relations = captions.split.relations
        if not self.sampling.count(relations):
            raise InputError(
                f"batches must fit split {captions.split.name!r}; it has fewer items than --batch-size "
                f"{self.sampling.batch_size}. Use a smaller one"
            )
        return list(epoch_batches(self.sampling, relations, 0, 0, number))


@dataclass(frozen=True)
class _Step:
    """The gradient of a loss on a batch, and which samples it comes from."""

    gradient: list[Tensor | None]  # of each trained parameter
    counted: float  # negatives above eps per query
    queries_with_weight: int
    queries: int

    @cached_property
    def norm(self) -> float:
        """|g|."""
        return norm_of(self.gradient)

    def rows(self, before: Metrics, after: Metrics, half: Metrics | None) -> list[dict[str, Any]]:
        """Return a row for each direction and metric; `half`: after half a step, where one was taken."""
        rows = []
        for (direction, metric), value in before.items():
            change = after[direction, metric] - value
            rows.append({
                "direction": direction, "metric": metric, "unit": UNITS[metric], "before": value,
                "after": after[direction, metric], "change": change, "counted": self.counted,
                "queries_with_weight": self.queries_with_weight, "queries": self.queries,
                "per_counted": change / self.counted if self.counted else math.nan,
                "per_query": change / self.queries_with_weight if self.queries_with_weight else math.nan,
                "gradient_norm": self.norm, "no_gradient": self.norm == 0,
                "half_change": math.nan if half is None else half[direction, metric] - value,
            })  # fmt: skip
        return rows


def _steps(
    model: Encoder,
    captions: CaptionBatcher,
    batch: Batch,
    batching: StepBatching,
    objectives: Sequence[Objective],
    counting: tuple[float, WeightUnit],
) -> list[_Step]:
    """Return the step of each objective on a batch, which goes through the model once. The graph is gone then."""
    split, device = captions.split, next(model.parameters()).device
    mask = batch.mask(split.relations, batching.same_image).to(device)
    forward = Forward(model, type(model).__name__, device, "fp32", ProcessGroup())
    embeddings = any(objective.traits.needs_embeddings for objective in objectives)
    parameters = trained_parameters(model)
    with torch.inference_mode(False), torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        # cuDNN's recurrent layers have gradients in training mode only
        S, mask, _ = forward.run(BatchInputs(captions, batch, mask), StepSeed(0, 0, 0), embeddings)
        detached = S.detach()
        if not bool(torch.isfinite(detached).all()):
            raise InputError("similarities of a batch must be finite; the training diverged. Take another checkpoint")
        masks = hide_by_rules_of_batch(batching.rules, batch, detached, mask, split, lambda: input_keys(split))
        steps = []
        for objective in objectives:
            G = batch_loss(objective, detached, masks, None, batch.pairs).gradient
            gradient = torch.autograd.grad(S, parameters, G.to(S.dtype), retain_graph=True, allow_unused=True)
            if not math.isfinite(norm_of(gradient)):
                raise InputError(f"the gradient of {short_spec(objective)} must be finite; it is not, on a batch")
            steps.append(_Step(list(gradient), *_counts(objective, detached, both_masks(masks), batch, *counting)))
    return steps


def _counts(
    objective: Objective, S: Tensor, masks: Pair[Mask], batch: Batch, eps: float, unit: WeightUnit
) -> tuple[float, int, int]:
    """Return negatives above eps per query, queries with weight, and usable queries, of both directions."""
    sides = (batch.images, batch.captions), (batch.captions, batch.images)
    above, queries_with_weight, queries = 0.0, 0, 0
    for direction, scores, mask, W, (rows, columns) in zip(
        DIRECTIONS, (S, S.T.contiguous()), masks, both(objective, S, masks), sides, strict=True
    ):
        if direction not in objective.counted_directions and (
            direction == "t2i" or "both" not in objective.counted_directions
        ):
            continue  # one gradient of both directions is that of i2t
        shape = BatchShape(1, direction, torch.from_numpy(rows), torch.from_numpy(columns)[None])
        info = mask.info
        dense = DenseRows(shape, scores, mask, info.get("queries"), info.get("candidates"))
        counts = View(dense, objective).counts(eps, unit=unit)
        above += float(counts.above[~counts.skipped].sum())
        queries_with_weight += int((W.W != 0).any(1).sum())
        queries += int((~counts.skipped).sum())
    return above / queries if queries else 0.0, queries_with_weight, queries


def _require_objectives(objectives: Sequence[Objective], model: Encoder) -> None:
    """Raise InputError unless there are objectives, all different, whose inputs a batch of the model has."""
    if not objectives:
        raise InputError("objectives must be one or more; got none. Name them: --objective ntxent")
    specs = [spec_of(objective) for objective in objectives]
    if len(set(specs)) < len(specs):
        raise InputError(f"objectives must be different; got {', '.join(specs)}")
    for objective in objectives:
        name, needed = short_spec(objective), objective.traits.required_info
        if needed:
            raise InputError(
                f"objectives must read a batch alone; {name} also needs {' and '.join(needed)} information, which a "
                "checkpoint does not have. Leave it out"
            )
        if getattr(objective, "needs_one_set", False):
            raise InputError(f"objectives must compare two sides; {name} takes the views of one set. Leave it out")
        if objective.traits.needs_embeddings and model.pairwise:
            raise InputError(f"{name} must be given embeddings; the model scores pairs and has none. Leave it out")
