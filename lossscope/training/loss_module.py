"""An objective as a torch module: its value is that of `lossscope train`, its gradient the W that probes read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lossscope.core.similarity import Mask
from lossscope.core.weights import BatchLoss, reduction_scale
from lossscope.errors import InputError
from lossscope.io.trusted_code import trust
from lossscope.objectives.base import Objective
from lossscope.objectives.custom.wrapped_loss import WrappedLoss
from lossscope.registry import build, short_spec

from .forward import batch_loss
from .learnt_scale import learnt_scale_of
from .loss_batch import LossBatch, batch_of
from .sentence_loss import SentenceLoss


class Loss(nn.Module):
    """L of a batch, dL/dS = W of the objective: `Loss("unified:gamma=60")(queries, documents).backward()`.

    Both directions are reduced and added as in `lossscope train`, whose number it returns. S and L are computed in
    float32 at least, also under autocast and torch.compile. Embeddings are normalised: S is their cosine. Queries
    without a positive or without a negative are left out.

    A scale or bias that the objective learns (`siglip`, `infonce:learn=true`) are the parameters `learnt.log_scale` and
    `learnt.bias`. An objective that states its gradient alone (`goal`) has no loss: the value is Σ W∘S, whose gradient
    is W, and a warning says so once.

    Args:
        objective: a spec, or an objective of lossscope.

    Raises:
        InputError: a loss of yours, which trains by itself; or arguments of a call that do not fit.
    """

    def __init__(self, objective: str | Objective) -> None:
        super().__init__()
        with trust([objective] if isinstance(objective, str) else []):
            built: Any = build("objectives", objective) if isinstance(objective, str) else objective
        if isinstance(built, WrappedLoss) or Objective not in type(built).__mro__:
            raise InputError(
                'Loss must be given a spec such as "unified:gamma=60", or an objective; got '
                f"{objective if isinstance(objective, str) else type(built).__name__}. A function or module that "
                "computes a loss trains by itself"
            )
        self._objective: Objective = built
        self.learnt = learnt_scale_of(built)
        self._told: set[str] = set()

    @property
    def objective(self) -> Objective:
        """The objective at the present scale and bias."""
        return self._objective if self.learnt is None else self.learnt.with_learnt(self._objective)

    def forward(
        self,
        first: Tensor,
        second: Tensor | None = None,
        indices_tuple: Sequence[Tensor] | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
        *,
        mask: Mask | Tensor | None = None,
    ) -> Tensor:
        """Return L, ().

        Args:
            first: (b, d) embeddings of queries; or S (q, c), where it stands alone.
            second: (b, d) documents, document i matches query i; (b (1 + k), d) with mined negatives behind them; or
                (b,) labels of one set, whose items of one label match.
            indices_tuple: pairs or triplets of a miner of pytorch-metric-learning.
            ref_emb: (m, d) candidates of the embeddings `first` in place of one another, as in that library.
            ref_labels: (m,) their labels; None: those of `first`.
            mask: which entries of S match and count: a lossscope.Mask, or bool, True where a candidate is a positive;
                None: entry i of query i, or equal labels.

        Raises:
            InputError: shapes or types that do not fit, or similarities that are not finite.
        """
        value: Tensor = _outside_of_compilation(self, first, second, (indices_tuple, ref_emb, ref_labels), mask)
        return value

    def of_batch(self, batch: LossBatch) -> Tensor:
        """Return L, (), of similarities and their mask."""
        objective, S = self.objective, batch.S
        loss = self._weigh(objective, batch)
        value = (S.detach() * loss.gradient).sum() if loss.value is None else loss.value
        self._tell_once(objective, loss.value is None)
        if self.learnt is None:
            return _stated_gradient(value, [loss.gradient], S)
        gradients = [loss.gradient, *self.learnt.gradients(S, loss.gradient, objective)]
        return _stated_gradient(value, gradients, S, *self.learnt.parameters())

    def for_sentence_transformers(self, model: nn.Module) -> SentenceLoss:
        """Return the loss of a SentenceTransformerTrainer: `loss=Loss("unified").for_sentence_transformers(model)`."""
        return SentenceLoss(model, self)

    def extra_repr(self) -> str:
        """Return the spec of the objective."""
        return short_spec(self._objective)

    def _weigh(self, objective: Objective, batch: LossBatch) -> BatchLoss:
        if batch.is_mutual:
            return batch_loss(objective, batch.S.detach(), batch.mask, None, batch.pairs)
        weights = objective(batch.S.detach(), batch.mask)
        factor = reduction_scale(weights, objective.traits.reduction, batch.pairs)
        return BatchLoss(None if weights.values is None else weights.values.sum() * factor, weights.W * factor)

    def _tell_once(self, objective: Objective, is_stated: bool) -> None:
        """Warn, at the first call, of what the number or the training lacks."""
        spec = short_spec(self._objective)
        if is_stated and "value" not in self._told:
            self._told.add("value")
            warnings.warn(
                f"{spec} states its gradient and has no loss value: the number that Loss returns is the sum of W∘S, "
                "whose gradient is W. It need not fall while the model learns; watch recall in its place",
                stacklevel=2,
            )
        if objective.network() is not None and "network" not in self._told:
            self._told.add("network")
            warnings.warn(
                f"{spec} learns its network in an outer step, which lossscope train takes; Loss leaves the network "
                "as it is. Give it a trained one, net=FILE",
                stacklevel=2,
            )


# objectives choose by their numbers, and differentiate inside
@torch.compiler.disable  # type: ignore[untyped-decorator]
def _outside_of_compilation(
    loss: Loss, first: Tensor, second: Tensor | None, of_library: tuple[Any, Any, Any], mask: Mask | Tensor | None
) -> Tensor:
    device = first.device.type if isinstance(first, Tensor) else "cpu"
    with torch.autocast(device, enabled=False):
        return loss.of_batch(batch_of(loss.objective, first, second, of_library, mask))


class _StatedGradient(torch.autograd.Function):
    """A number with given gradients; a second derivative is refused, since W is a constant here."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: Sequence[Tensor], *inputs: Tensor) -> Tensor:
        ctx.save_for_backward(*gradients)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise InputError("Loss must be differentiated once; got create_graph=True. W is a constant of its graph")
        return (None, None, *(G * upstream for G in ctx.saved_tensors))


def _stated_gradient(value: Tensor, gradients: Sequence[Tensor], *inputs: Tensor) -> Tensor:
    """Return the number, (), with these gradients to the inputs."""
    number: Tensor = _StatedGradient.apply(value, gradients, *inputs)  # type: ignore[no-untyped-call]
    return number
