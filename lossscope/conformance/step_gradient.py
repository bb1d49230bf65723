"""One call of a step: its value and the gradients with respect to embeddings and parameters, of all processes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from lossscope.core.distributed import process_group
from lossscope.errors import InputError

from .trainers.base import Trainer
from .trial_embeddings import TrialEmbeddings

Layout = Literal["stacked", "flat", "single"]  # of mined negatives: (b, k, d), (b k, d) query by query, (b, d)
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


@dataclass(frozen=True)
class StepCall:
    """How a step is called."""

    dtype: torch.dtype = torch.float64  # of the embeddings
    autocast: torch.dtype | None = None  # type in which torch.autocast multiplies; None: no autocast
    chunk_size: int | None = None
    micro_batches: int | None = None
    seed: int = 0
    device: str = "cpu"
    layout: Layout = "stacked"  # of mined negatives


@dataclass(frozen=True)
class StepGradient:
    """The result of a call, on the CPU: as the trainer reduces it over processes."""

    value: float  # mean of what the processes returned; NaN where the step called backward itself
    queries: Tensor  # (B, d)
    candidates: Tensor  # (B, d)
    negatives: Tensor | None = None  # (B, k, d)
    parameters: dict[str, Tensor] = field(default_factory=dict)  # of the step, where it is a module
    dtype: torch.dtype = torch.float64  # of the value

    @property
    def is_finite(self) -> bool:
        """Whether all gradients are."""
        return all(bool(x.isfinite().all()) for x in self.tensors.values())

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Every gradient by what it is of: queries, candidates, negatives, and parameters by their names."""
        sides = {"queries": self.queries, "candidates": self.candidates}
        mined = {} if self.negatives is None else {"negatives": self.negatives}
        return {**sides, **mined, **self.parameters}


def step_gradient(trainer: Trainer, trial: TrialEmbeddings, call: StepCall, mean: bool = True) -> StepGradient:
    """Run a new step on this process's share of a trial; the gradients of all processes are returned in all.

    Args:
        trainer: builds the step.
        trial: the whole batch.
        call: how the step is called.
        mean: whether the trainer averages gradients of parameters over processes; else it adds them up. An embedding
            is that of one process, whose gradient is then divided by their number as those of the parameters behind it.

    Raises:
        InputError: a step that returns no scalar, or one that depends on no embedding.
    """
    group = process_group()
    made = _call(trainer, trial, call)
    number = _backward(made.value)
    if all(x.grad is None for x in made.leaves.values()):
        raise InputError("a step must return a scalar that depends on its embeddings; none got a gradient")
    parts = group.gather({name: _gradient(x) for name, x in made.leaves.items()})
    reduced = 1 / group.size if mean else 1.0
    whole = {name: torch.cat([part[name] for part in parts]) * reduced for name in made.leaves}
    parameters = {name: group.sum(_gradient(x)) * reduced for name, x in _parameters(made.step)}
    return StepGradient(
        _mean(number),
        whole["queries"],
        whole["candidates"],
        None if trial.negatives is None else whole["negatives"].reshape(trial.negatives.shape),
        parameters,
        made.value.dtype if isinstance(made.value, Tensor) else torch.float64,
    )


def step_value(trainer: Trainer, trial: TrialEmbeddings, call: StepCall) -> float:
    """Return the mean of what a new step returns in all processes, without calling backward; see `step_gradient`."""
    value = _call(trainer, trial, call).value
    return _mean(float("nan") if value is None else float(value.detach().double()))


@dataclass(frozen=True)
class _Called:
    """A step that was called."""

    step: Any
    leaves: dict[str, Tensor]  # of this process
    value: Any


def _call(trainer: Trainer, trial: TrialEmbeddings, call: StepCall) -> _Called:
    """Build a step and call it with this process's share of a trial."""
    group = process_group()
    _seed(call.seed)
    step = trainer.build(call.chunk_size, call.micro_batches)
    _prepare(step, call)
    share = trial.share(group.rank, group.size)
    negatives = _arranged(share.negatives, call.layout)
    sides = {"queries": share.queries, "candidates": share.candidates}
    sides |= {} if negatives is None else {"negatives": negatives}
    leaves = {name: x.detach().to(call.device, call.dtype).clone().requires_grad_() for name, x in sides.items()}
    mined = {"negatives": leaves["negatives"]} if "negatives" in leaves else {}
    kind, half = torch.device(call.device).type, call.autocast
    _seed(call.seed)
    with torch.autocast(kind, half or torch.bfloat16, enabled=half is not None):
        return _Called(step, leaves, step(leaves["queries"], leaves["candidates"], **mined))


def _mean(number: float) -> float:
    """Return the mean over processes."""
    group = process_group()
    return float(group.sum(torch.tensor(number, dtype=torch.float64))) / group.size


def _arranged(negatives: Tensor | None, layout: Layout) -> Tensor | None:
    """(b, k, d) mined negatives -> the shape that the step takes."""
    return negatives if negatives is None or layout == "stacked" else negatives.flatten(0, 1)


def _backward(value: Any) -> float:
    """Call backward, unless the step has; return the value."""
    if value is None:
        return float("nan")
    if not isinstance(value, Tensor) or value.numel() != 1:
        got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise InputError(f"a step must return the scalar that its trainer calls backward on, or None; got {got}")
    if value.requires_grad:
        value.reshape(()).backward()  # type: ignore[no-untyped-call]
    return float(value.detach().double())


def _gradient(x: Tensor) -> Tensor:
    return (torch.zeros_like(x) if x.grad is None else x.grad).detach().double().cpu()


def _module(step: Any) -> Any:
    return step.func if isinstance(step, partial) else step


def _prepare(step: Any, call: StepCall) -> None:
    """Move the parameters of a module to the device; in float64, unless the step runs in half precision."""
    module = _module(step)
    if isinstance(module, nn.Module):
        module.to(call.device)
        if call.autocast is None:
            module.to(call.dtype)


def _parameters(step: Any) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield the parameters of a step that are trained, by name."""
    module = _module(step)
    named = module.named_parameters() if hasattr(module, "named_parameters") else ()
    yield from ((name, x) for name, x in named if x.requires_grad)


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - what a step draws from
    torch.manual_seed(seed)
