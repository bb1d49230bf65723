"""A model that is still there: from dL/dS of a batch to the gradient of every layer, without changing the model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lossscope.core.batches import Rows
from lossscope.core.pair import Pair
from lossscope.encoders.base import Encoder
from lossscope.encoders.types import on_device
from lossscope.probes.views.view import Gradients

from .captions import CaptionBatcher


@dataclass(frozen=True, eq=False)
class LayerGradients:
    """A frozen model over a split. make: gives both, and is asked once, when the first gradient is.

    Called with the rows of a batch, it gives both directions' `gradients`: dL/dS, queries as rows, -> |dL/dθ| of every
    layer. The batch goes through the model once, in eval mode, for all that is asked of it. A layer is what
    parameters have in common in the first two parts of their names, the last part left out: `image.fc` of
    `image.fc.weight`. Parameters that are not trained are left out, those that S does not depend on have 0.
    A loss of the model's own (`extra_loss`) has no part in it.
    """

    make: Callable[[], tuple[Encoder, CaptionBatcher]]

    @cached_property
    def made(self) -> tuple[Encoder, CaptionBatcher]:
        """The model and the split's captions."""
        return self.make()

    def __call__(self, image_rows: Rows, caption_rows: Rows) -> Pair[Gradients]:
        batch = _Batch(self, image_rows, caption_rows)
        return Pair(lambda G: batch.norms(G, "i2t"), lambda G: batch.norms(G, "t2i"))


@dataclass(frozen=True, eq=False)
class _Batch:
    layer_gradients: LayerGradients
    image_rows: Rows
    caption_rows: Rows

    @cached_property
    def similarities(self) -> Pair[Tensor]:
        """S of both directions, queries as rows, with its graph."""
        model, sentences = self.layer_gradients.made
        device = next(model.parameters()).device
        training = model.training
        model.eval()
        try:
            images = model.encode_images(on_device(sentences.split.images.take(self.image_rows), device))
            S = model.score(images, model.encode_texts(*sentences.take(self.caption_rows, device)))
        finally:
            model.train(training)
        return S if isinstance(S, Pair) else Pair(S, S.T)

    def norms(self, G: Tensor, direction: str) -> Mapping[str, Tensor]:
        """Layer -> () norm of its gradient."""
        with torch.inference_mode(False), torch.enable_grad(), _plain_recurrence():
            S: Tensor = getattr(self.similarities, direction)
            named = [(name, p) for name, p in self.layer_gradients.made[0].named_parameters() if p.requires_grad]
            parameters = [p for _, p in named]
            found = torch.autograd.grad(S, parameters, G.to(S).clone(), retain_graph=True, allow_unused=True)
        squares: dict[str, Tensor] = {}
        for (name, _), gradient in zip(named, found, strict=True):
            norm = G.new_zeros(()) if gradient is None else gradient.norm().to(G.device)
            squares[layer_of(name)] = squares.get(layer_of(name), 0) + norm.double().square()
        return {name: square.sqrt() for name, square in squares.items()}


def layer_of(parameter: str) -> str:
    """The layer that a parameter is part of.

    >>> layer_of("text.rnn.weight_ih_l0"), layer_of("image.features.0.weight"), layer_of("scale")
    ('text.rnn', 'image.features', 'scale')
    """
    parts = parameter.split(".")
    return ".".join(parts[: min(2, max(len(parts) - 1, 1))])


def _plain_recurrence() -> contextlib.AbstractContextManager[None]:
    """Recurrent layers without cuDNN, which goes backwards in training mode only."""
    return torch.backends.cudnn.flags(enabled=False)
