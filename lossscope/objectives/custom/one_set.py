"""dL/dS of a loss of one set of items, such as SimCLR over 2N views: S is what the user's code multiplies itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from lossscope.core.similarity import Mask, normalise
from lossscope.errors import InputError, UnsupportedLoss

from .user_call import UserCall

_EQUAL = 1e-8  # of numbers in float64 that are equal but for rounding
_NO_SPREAD = 1e-16  # of the squared differences of similarities that are all equal
_COMPLETE = 1e-6  # of the gradient of the embeddings, to which W must lead


@dataclass(frozen=True)
class _Similarities:
    """A tensor of the user's code with entries α + c s of known pairs of items."""

    tensor: Tensor
    slope: float  # c
    queries: Tensor  # of each entry, the row of an item
    candidates: Tensor


@dataclass(eq=False)
class SimilarityRecorder(TorchFunctionMode):
    """Keep the first tensors that are similarities of the items, up to a factor and a constant: (n, n), (b, b), (b,).

    The user's code gets a copy, which it may write into. The recorder keeps nothing that is computed of a kept tensor.
    """

    items: Tensor  # (n, d) unit vectors, the first views before the second
    found: list[_Similarities] = field(default_factory=list)
    _derived: dict[int, Tensor] = field(default_factory=dict)  # tensors that are computed of a kept one

    def __post_init__(self) -> None:
        super().__init__()
        self._products = (self.items @ self.items.T).detach()

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operation, and look at its result."""
        result = func(*args, **(kwargs or {}))
        inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        if any(id(x) in self._derived for x in inputs):
            self._derived |= {id(x): x for x in tree_leaves(result) if isinstance(x, Tensor)}
            return result
        if not inputs or not isinstance(result, Tensor) or not result.requires_grad or result.ndim not in (1, 2):
            return result
        similarities = self._similarities(result)
        if similarities is None:
            return result
        self.found.append(similarities)
        copied = result.clone()
        self._derived[id(copied)] = copied
        return copied

    def _similarities(self, x: Tensor) -> _Similarities | None:
        """Return which similarities a tensor has; None where it has others than those of the items."""
        n = len(self.items)
        everything, half = torch.arange(n, device=x.device), torch.arange(n // 2, device=x.device)
        views = [half, half + n // 2] if n % 2 == 0 else []
        shapes: list[tuple[Tensor, Tensor]] = []
        if x.shape == (n, n):
            shapes = [(everything[:, None].expand(n, n), everything[None, :].expand(n, n))]
        elif x.shape == (n // 2, n // 2):
            shapes = [(a[:, None].expand(x.shape), b[None, :].expand(x.shape)) for a in views for b in views]
        elif x.shape == (n // 2,) and views:
            shapes = [(views[0], views[1])]
        for slope_of in (_factor, _slope):  # a small block may have a slope with several others
            for queries, candidates in shapes:
                slope = slope_of(x.detach(), self._products[queries, candidates])
                if slope is not None:
                    return _Similarities(x, slope, queries, candidates)
        return None


def _factor(x: Tensor, s: Tensor) -> float | None:
    """Return c of x = c s; None where there is no such c."""
    x, s = x.double().flatten(), s.double().flatten()
    square = float(s.square().sum())
    factor = float((x * s).sum()) / square if square > _EQUAL else 0.0
    return _if_exact(factor, x - factor * s)


def _slope(x: Tensor, s: Tensor) -> float | None:
    """Return c of x = α + c s; None where there is no such c."""
    x, s = x.double().flatten(), s.double().flatten()
    x, s = x - x.mean(), s - s.mean()
    square = float(s.square().sum())
    slope = float((x * s).sum()) / square if square > _NO_SPREAD else 0.0
    return _if_exact(slope, x - slope * s)


def _if_exact(slope: float, rest: Tensor) -> float | None:
    """Return a slope that leaves no rest but rounding; None for any other, and for 0."""
    return slope if abs(slope) > _EQUAL and float(rest.abs().max()) <= _EQUAL * max(1.0, abs(slope)) else None


def is_one_set(mask: Mask) -> bool:
    """Whether queries and candidates are the same items, none of which is a candidate of itself."""
    return mask.match.shape[0] == mask.match.shape[1] and not bool(mask.valid.diagonal().any())


def mask_of_views(pairs: int) -> Mask:
    """Return the mask of 2 · pairs items as one set, first views before second: an item matches its other view."""
    partners = torch.eye(2 * pairs, dtype=torch.bool).roll(pairs, 0)
    return Mask(partners, ~torch.eye(2 * pairs, dtype=torch.bool))


def one_set_gradient(call: UserCall, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
    """Return F, () or (n,), and dF/dS (n, n), in float64, of a loss that is called with all items of a batch.

    Args:
        call: the loss; its form says with what it is called.
        S: (n, n) similarities of the items with each other.
        mask: of one set: an item is no candidate of itself. Its info has the items as `queries`, unless the form is S.

    Raises:
        UnsupportedLoss: the similarities that the code computes are not found, or carry not all of its gradient.
        InputError: an item without exactly one positive, for a loss of two views.
    """
    if call.form in ("S", "masked"):
        return _gradient_of_matrix(call, S.detach().double(), mask)
    order = _views_first(call, mask) if call.form in ("embeddings", "views") else torch.arange(len(S), device=S.device)
    items = normalise(mask.info["queries"].detach().double())[order].requires_grad_()
    recorder = SimilarityRecorder(items)
    with recorder:
        value = call(_arguments(call, items, mask, order))
    W = torch.zeros(len(S), len(S), dtype=torch.float64, device=S.device)
    tensors = [found.tensor for found in recorder.found]
    parts: Any = torch.autograd.grad(value.sum(), [*tensors, items], allow_unused=True)
    for found, gradient in zip(recorder.found, parts, strict=False):
        if gradient is None:
            continue
        pairs, weight = (found.queries, found.candidates), found.slope * gradient
        if weight.ndim == 1:  # the positive similarities, computed once for the queries of both views
            weight = weight / 2
            W.index_put_(pairs[::-1], weight, accumulate=True)
        W.index_put_(pairs, weight, accumulate=True)
    _require_complete(call, W, items, parts[-1])
    _require_both_ways(call, W, recorder.found)
    placed = torch.zeros_like(W)
    placed[order[:, None], order[None, :]] = W
    return value.detach(), placed


def _gradient_of_matrix(call: UserCall, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
    """Return F and dF/dS of a loss of S (n, n), or of S and the mask of its positives."""
    order = torch.arange(len(S), device=S.device) if call.form == "masked" else _views_first(call, mask)
    leaf = S[order][:, order].requires_grad_()
    arguments = (leaf.clone(),) if call.form == "S" else (leaf.clone(), mask.positives[order][:, order])
    value = call(arguments)
    (gradient,) = torch.autograd.grad(value.sum(), leaf, allow_unused=True)
    W = torch.zeros_like(S)
    if gradient is not None:
        if bool((gradient.diagonal() != 0).any()):
            raise UnsupportedLoss(
                f"{call.label} must leave out the similarity of an item with itself; dL/dS is not 0 on the diagonal. "
                "Write S = S.masked_fill(torch.eye(len(S), dtype=torch.bool), -torch.inf) in its first line"
            )
        W[order[:, None], order[None, :]] = gradient
    return value.detach(), W


def _arguments(call: UserCall, items: Tensor, mask: Mask, order: Tensor) -> tuple[Any, ...]:
    """Return the arguments of a call with all items, (n, d)."""
    inputs, half = items.clone(), len(items) // 2
    if call.form == "embeddings":
        return inputs[:half], inputs[half:]
    if call.form == "views":
        return call.arguments(inputs[:half], inputs[half:])
    linked = mask.positives[order][:, order] | torch.eye(len(items), dtype=torch.bool, device=items.device)
    return inputs, linked.to(torch.uint8).argmax(1)  # the first item of its class is the label of an item


def _views_first(call: UserCall, mask: Mask) -> Tensor:
    """Return the items in an order in which item i + n/2 is the other view of item i."""
    partner, rows = mask.first_positive.squeeze(1), torch.arange(len(mask.match), device=mask.match.device)
    if not bool((mask.positives.sum(1) == 1).all() and (partner[partner] == rows).all()):
        raise InputError(
            f"{call.label} takes two views of each item. Take --sampling views; for classes with more items write "
            "def loss(embeddings, labels), or def loss(S, mask) with the mask of positives"
        )
    first = rows[rows < partner]
    return torch.cat([first, partner[first]])


def _require_both_ways(call: UserCall, W: Tensor, found: Sequence[_Similarities]) -> None:
    """Raise UnsupportedLoss where a block of views is computed once, as nothing says how much is of which query."""
    blocks = [similarities for similarities in found if similarities.tensor.ndim == 2]
    known = torch.zeros_like(W, dtype=torch.bool)
    for block in blocks:
        known[block.queries, block.candidates] = True
    if bool((known & ~known.T).any()):
        raise UnsupportedLoss(
            f"{call.label} compares first views with second ones once, for the queries of both. Compute all items "
            "against all, z = torch.cat([z1, z2]); S = z @ z.T, or count it with --sampling pairs"
        )


def _require_complete(call: UserCall, W: Tensor, items: Tensor, gradient: Tensor | None) -> None:
    """Raise UnsupportedLoss unless W leads to the gradient of the embeddings, along the sphere."""
    if gradient is None:
        raise UnsupportedLoss(f"{call.label} must be differentiable in its embeddings; its result has no gradient")
    x = items.detach()
    expected, actual = ((g - (g * x).sum(1, keepdim=True) * x) for g in ((W + W.T) @ x, gradient))
    scale = max(float(actual.abs().max()), float(W.abs().max()))
    if float((expected - actual).abs().max()) > _COMPLETE * scale:
        raise UnsupportedLoss(
            f"{call.label} must compute similarities that lossscope finds: cosines or dot products of all items, or "
            "squared distances. Write the loss of similarities, def loss(S, mask): S (n, n) of all items, mask (n, n) "
            "True at positives"
        )
