"""From dL/dS of a batch to the gradient norm of every layer of a model, which stays unchanged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.types import Direction, Gradients, Rows
from lossscope.encoders.types import on_device

if TYPE_CHECKING:
    from lossscope.encoders.base import Encoder

    from .captions import CaptionBatcher


@dataclass(frozen=True, eq=False)
class LayerGradients:
    """|dL/dθ| of every layer of a frozen model over a split, from dL/dS of a batch.

    Called with the rows of a batch, it returns for both directions a function of dL/dS, queries as rows, that returns
    |dL/dθ| by layer, and whose `vectors` returns dL/dθ. The batch goes through the model once, in eval mode, however
    many gradients are computed. A layer is the parameters whose names begin with the same two parts, the last part left
    out: `image.fc` of `image.fc.weight`. Parameters without requires_grad are left out, those that S does not depend on
    have norm 0. A further loss of the model (`extra_loss`) is not included.
    """

    load: Callable[[], tuple[Encoder, CaptionBatcher]]  # called once, when the first gradient is computed

    @cached_property
    def model_and_captions(self) -> tuple[Encoder, CaptionBatcher]:
        """The model and the captions of the split."""
        return self.load()

    def __call__(self, image_rows: Rows, caption_rows: Rows) -> Pair[Gradients]:
        batch = _Batch(self, image_rows, caption_rows)
        return Pair(_OfDirection(batch, "i2t"), _OfDirection(batch, "t2i"))


@dataclass(frozen=True, eq=False)
class _OfDirection:
    """The gradients of a batch, from dL/dS of one direction."""

    batch: _Batch
    direction: Direction

    def __call__(self, G: Tensor) -> Mapping[str, Tensor]:
        """Return layer -> () norm of its gradient, for dL/dS = G."""
        squares: dict[str, Tensor] = {}
        for name, _, gradient in self.batch.gradients(G, self.direction):
            norm = G.new_zeros(()) if gradient is None else gradient.norm().to(G.device)
            squares[layer_name(name)] = squares.get(layer_name(name), 0) + norm.double().square()
        return {name: square.sqrt() for name, square in squares.items()}

    def vectors(self, G: Tensor) -> Mapping[str, Tensor]:
        """Return layer -> (n,) its gradient in one vector, for dL/dS = G."""
        parts: dict[str, list[Tensor]] = {}
        for name, parameter, gradient in self.batch.gradients(G, self.direction):
            of_parameter = torch.zeros_like(parameter) if gradient is None else gradient
            parts.setdefault(layer_name(name), []).append(of_parameter.detach().flatten().to(G.device))
        return {name: torch.cat(vectors) for name, vectors in parts.items()}


@dataclass(frozen=True, eq=False)
class _Batch:
    """A batch and the graph of its similarities."""

    layer_gradients: LayerGradients
    image_rows: Rows
    caption_rows: Rows

    @cached_property
    def similarities(self) -> Pair[Tensor]:
        """S of both directions, queries as rows, with its graph."""
        model, captions = self.layer_gradients.model_and_captions
        device = next(model.parameters()).device
        training = model.training
        model.eval()
        try:
            images = model.encode_images(on_device(captions.split.images.take(self.image_rows), device))
            S = model.score(images, model.encode_texts(*captions.take(self.caption_rows, device)))
        finally:
            model.train(training)
        return S if isinstance(S, Pair) else Pair(S, S.T)

    def gradients(self, G: Tensor, direction: Direction) -> list[tuple[str, Tensor, Tensor | None]]:
        """Return name, value and gradient of each parameter that is trained; None where S does not depend on it."""
        with torch.inference_mode(False), torch.enable_grad(), _without_cudnn():
            S: Tensor = getattr(self.similarities, direction)
            model = self.layer_gradients.model_and_captions[0]
            trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
            parameters = [p for _, p in trained]
            gradients = torch.autograd.grad(S, parameters, G.to(S).clone(), retain_graph=True, allow_unused=True)
        return [(*named, gradient) for named, gradient in zip(trained, gradients, strict=True)]


def layer_name(parameter: str) -> str:
    """Return the name of the layer of a parameter.

    >>> layer_name("text.rnn.weight_ih_l0"), layer_name("image.features.0.weight"), layer_name("scale")
    ('text.rnn', 'image.features', 'scale')
    """
    parts = parameter.split(".")
    return ".".join(parts[: min(2, max(len(parts) - 1, 1))])


def _without_cudnn() -> contextlib.AbstractContextManager[None]:
    """Turn off cuDNN, whose recurrent layers have gradients in training mode only."""
    return torch.backends.cudnn.flags(enabled=False)
