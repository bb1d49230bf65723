"""Watch ClipLoss and SigLipLoss of open_clip by their logits, also with rows of one process against all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.types import DIRECTIONS, Direction
from lossscope.engine.batch_masks import offset_mask
from lossscope.engine.direction_rows import DirectionRows
from lossscope.registry import build

from .observed import Observed, Result
from .recording import record_calls

_PARAMETERS = ("image_features", "text_features", "logit_scale", "logit_bias")


@dataclass(frozen=True)
class ClipLoss:
    """S = (logits − bias) / scale of a loss of open_clip, at the scale of the step.

    With local_loss, rows belong to this process and columns to all processes, in both directions. With several
    processes, SigLipLoss compares its images with the texts of each process in turn: one direction,
    other texts after its own.
    """

    loss: Any
    sides: Sides | None = None

    def call(self, loss: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Result:
        """Return the result of the loss, and what it saw."""
        observed: list[Observed] = []
        logits: list[tuple[Any, dict[str, Any]]] = []

        def on_logits(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
            logits.append((result, dict(zip(_PARAMETERS, args, strict=False)) | dict(kwargs)))

        def on_loss(args: tuple[Any, ...], kwargs: Mapping[str, Any], value: Any) -> None:
            observed.append(self._observed(logits, value))
            logits.clear()

        with record_calls(self.loss, "get_logits", on_logits), record_calls(self.loss, "forward", on_loss):
            return loss(*args, **kwargs), observed

    def _observed(self, logits: Sequence[tuple[Any, dict[str, Any]]], value: Any) -> Observed:
        result, arguments = logits[0]
        scale, bias = (_number(arguments.get(name)) for name in _PARAMETERS[2:])
        scale, bias = 1.0 if scale is None else scale, bias or 0.0
        value = value.get("contrastive_loss") if isinstance(value, Mapping) else value
        value = value.detach() if isinstance(value, Tensor) and self._is_plain else None
        if isinstance(result, tuple):
            seen = self._of_softmax(result[0], result[1], scale, bias, value)
        else:
            seen = self._of_sigmoids([block for block, _ in logits], scale, bias, value)
        return replace(seen, embeddings=_features(seen, arguments)).limited()

    def _of_softmax(self, images: Tensor, texts: Tensor, scale: float, bias: float, value: Tensor | None) -> Observed:
        rows, second = self._rows(images, scale, bias), self._rows(texts, scale, bias, "t2i")
        objective, pairs_at = build("objectives", f"ntxent:tau={1 / scale!r}"), self._offset(rows.S)
        offset = pairs_at if getattr(self.loss, "local_loss", False) else None
        return Observed(
            rows, self.sides or IMAGE_TEXT, DIRECTIONS, second, objective, value, offset=offset, pairs_at=pairs_at
        )

    def _of_sigmoids(self, blocks: list[Tensor], scale: float, bias: float, value: Tensor | None) -> Observed:
        """Return the rows of blocks of texts, those of this process first; a single block is both directions."""
        rows, is_alone = self._rows(torch.cat(blocks, 1), scale, bias), len(blocks) == 1
        objective = build("objectives", f"siglip:scale={scale!r},bias={bias!r},learn=false")
        directions, value = (DIRECTIONS, value) if is_alone else (DIRECTIONS[:1], None)
        return Observed(rows, self.sides or IMAGE_TEXT, directions, None, objective, value)

    def _rows(self, logits: Tensor, scale: float, bias: float, direction: Direction = "i2t") -> DirectionRows:
        S = (logits.detach().float() - bias) / scale
        return DirectionRows(S, offset_mask(*S.shape, self._offset(S), S.device, direction))

    def _offset(self, S: Tensor) -> int:
        """Return the column of the first row's positive; SigLipLoss has its own texts first."""
        is_local = getattr(self.loss, "local_loss", False) and len(S) < S.shape[1]
        return int(self.loss.rank) * len(S) if is_local else 0

    @property
    def _is_plain(self) -> bool:
        """Whether the value is the contrastive loss alone; CoCaLoss adds a captioning loss."""
        return type(self.loss).__name__ in ("ClipLoss", "SigLipLoss")


def is_clip_loss(loss: Any) -> bool:
    """Return whether a loss has the methods of open_clip that are read."""
    return callable(getattr(loss, "get_logits", None)) and isinstance(loss, torch.nn.Module)


def _features(seen: Observed, arguments: Mapping[str, Any]) -> tuple[Tensor, Tensor] | None:
    """Return the features of both sides; None where rows and columns differ from them, as with several processes."""
    images, texts = (arguments.get(name) for name in _PARAMETERS[:2])
    if not isinstance(images, Tensor) or not isinstance(texts, Tensor):
        return None
    return (images.detach(), texts.detach()) if (len(images), len(texts)) == seen.shape else None


def _number(x: Any) -> float | None:
    return None if x is None else float(x.detach() if isinstance(x, Tensor) else x)
