"""A checkpoint: weights and the specs that rebuild everything, as a plain dict that is read without running code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from lossscope.encoders.base import Encoder, encoder_spec, require_fit
from lossscope.encoders.types import Shape
from lossscope.errors import InputError
from lossscope.io.files import write_atomically, write_text
from lossscope.io.versions import versions
from lossscope.registry import build, require_trusted
from lossscope.text.subwords import Subwords
from lossscope.text.tokenizer import Tokens
from lossscope.text.vocabulary import Vocabulary

from .schema import FORMAT, STATE, VERSION, checked


@dataclass(frozen=True)
class Checkpoint:
    """Everything needed to probe, continue or explain a trained model.

    encoder, objective, data: specs; data and objective are empty in a converted file that does not say.
    vocabulary: words by id; tokeniser: that of parts of words, as JSON, where it reads those instead.
    item_shape: shape of one image or feature, or several by name. kept: what of other files the encoder needs.
    data_fingerprint: of the training split. epoch: finished epochs; step: finished steps of the epoch under way.
    metrics: of the validation split, by name. weights: the encoder's state. training: the recipe, plain values.
    optimiser, rng: what continuing needs, None in checkpoints that are only for probing. versions: of libraries.
    objective_state: what the objective has learnt, None for most; absent in files of before there was any.
    """

    encoder: str
    objective: str
    data: str
    vocabulary: list[str]
    item_shape: list[int] | dict[str, list[int]]
    data_fingerprint: str
    epoch: int
    metrics: dict[str, float]
    weights: dict[str, Tensor]
    training: dict[str, Any]
    step: int = 0
    optimiser: dict[str, Any] | None = None
    rng: dict[str, Any] | None = None
    versions: dict[str, str] = field(default_factory=lambda: versions())
    objective_state: dict[str, Tensor] | None = None
    tokeniser: str | None = None
    kept: dict[str, str] = field(default_factory=dict)

    def save(self, path: Path | str) -> None:
        """Write it, whole or not at all: `.safetensors` (weights alone) with a `.json` beside it, else one `.pt`.

        The safetensors form is the one to pass on: it can not hold code. It has no optimiser and random state.
        """
        path = Path(path)
        values = {
            "format": FORMAT,
            "version": VERSION,
            **{item.name: getattr(self, item.name) for item in fields(self)},
        }
        if path.suffix != ".safetensors":
            with write_atomically(path) as part:
                torch.save(values, part)
            return
        with write_atomically(path) as part:
            beside = {f"{STATE}{k}": v for k, v in (self.objective_state or {}).items()}
            safetensors.torch.save_file({k: v.contiguous() for k, v in {**self.weights, **beside}.items()}, part)
        told = {
            name: value
            for name, value in values.items()
            if name not in ("weights", "optimiser", "rng", "objective_state")
        }
        write_text(path.with_suffix(".json"), json.dumps(told, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> Checkpoint:
        """Read one. Raises InputError: not a checkpoint, of a newer format, a key missing or of a wrong type."""
        wanted = [item.name for item in fields(cls)]
        found = checked(path, wanted)
        return cls(**{name: found[name] for name in wanted})

    def model(self, trust_code: bool = False) -> Encoder:
        """The encoder with these weights, in eval mode.

        Raises InputError: a spec that names a Python file (unless `trust_code`), or weights that do not fit.
        """
        require_trusted(self.encoder, trust_code)
        encoder = encoder_spec(self.encoder).rebuild(self.shape, len(self.words()), self.kept)
        wanted = encoder.state_dict()
        require_fit(wanted, self.weights, "the encoder")
        encoder.load_state_dict(self.weights)
        return encoder.eval()

    def words(self) -> Tokens:
        """The vocabulary, or the tokeniser, it was trained with."""
        return Vocabulary.from_list(self.vocabulary) if self.tokeniser is None else Subwords.from_json(self.tokeniser)

    @property
    def shape(self) -> Shape:
        """The shape of one item as data sets tell it."""
        if isinstance(self.item_shape, dict):
            return {name: tuple(shape) for name, shape in self.item_shape.items()}
        return tuple(self.item_shape)

    def without_training_state(self) -> Checkpoint:
        """The same for probing only: no optimiser and no random states."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return Checkpoint(**{**values, "optimiser": None, "rng": None})


def verify(path: Path | str, trust_code: bool = False) -> dict[str, str]:
    """What a checkpoint is, after rebuilding its model and looking for broken weights. Raises InputError."""
    checkpoint = Checkpoint.load(path)
    model = checkpoint.model(trust_code)
    require_trusted(checkpoint.data, trust_code)
    require_trusted(checkpoint.objective, trust_code)
    if checkpoint.objective:
        build("objectives", checkpoint.objective)
    if checkpoint.data:
        build("datasets", checkpoint.data)
    for name, tensor in checkpoint.weights.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"weights of {path} must be finite; {name} is not. The training diverged")
    return {
        "encoder": checkpoint.encoder,
        "objective": checkpoint.objective or "unknown",
        "data": checkpoint.data or "unknown",
        "data fingerprint": checkpoint.data_fingerprint,
        "vocabulary": f"{len(checkpoint.words())} {'words' if checkpoint.tokeniser is None else 'parts of words'}",
        "parameters": f"{sum(p.numel() for p in model.parameters()):,}",
        "epoch": str(checkpoint.epoch) + (f" and {checkpoint.step} steps" if checkpoint.step else ""),
        "can be continued": "yes" if checkpoint.optimiser else "no (weights only)",
        "written with": ", ".join(f"{k} {v}" for k, v in checkpoint.versions.items()),
    }


def stored_shape(shape: Shape) -> list[int] | dict[str, list[int]]:
    """The shape of an item as a checkpoint holds it."""
    return {name: list(one) for name, one in shape.items()} if isinstance(shape, Mapping) else list(shape)


def stored_tokens(words: Tokens) -> dict[str, Any]:
    """The two fields of a checkpoint that say how captions are read."""
    if isinstance(words, Subwords):
        return {"vocabulary": [], "tokeniser": words.to_json()}
    assert isinstance(words, Vocabulary)
    return {"vocabulary": words.to_list(), "tokeniser": None}
