"""A checkpoint: weights and the specs that rebuild the model, in a plain dict that is read without running code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lossscope.core.types import TEXT_SHAPE
from lossscope.encoders.types import ANY_NUMBER, ItemShape, fits_shape
from lossscope.errors import InputError
from lossscope.io.digests import digests_of
from lossscope.io.files import write_atomically, write_safetensors, write_text
from lossscope.io.folder_lock import lock_files
from lossscope.io.reading import naming
from lossscope.io.trusted_code import require_trusted, trust
from lossscope.io.versions import versions
from lossscope.registry import build
from lossscope.spec import Spec

from .schema import FORMAT, STATE_PREFIX, VERSION, read_checkpoint_file
from .shared_texts import share_texts

if TYPE_CHECKING:
    from lossscope.encoders.base import Encoder
    from lossscope.text.tokenizer import Tokeniser


@dataclass(frozen=True)
class Checkpoint:
    """A trained model with what is needed to probe it or to resume its training; fields are the keys of the file."""

    encoder: str  # spec
    objective: str  # spec; empty in a converted file that does not name it
    data: str  # spec; empty in a converted file that does not name it
    vocabulary: list[str]  # words by id; empty where `tokeniser` reads the captions
    item_shape: list[int] | dict[str, list[int]]  # of one image or feature, or several shapes by name
    data_fingerprint: str  # of the training split
    epoch: int  # number of finished epochs
    metrics: dict[str, float]  # of the validation split, by name
    weights: dict[str, Tensor]  # state dict of the encoder
    training: dict[str, Any]  # the recipe, plain values
    step: int = 0  # number of finished steps of the current epoch
    optimiser: dict[str, Any] | None = None  # state to resume from; None in checkpoints only for probing
    rng: dict[str, Any] | None = None  # random states to resume from; None in checkpoints only for probing
    versions: dict[str, str] = field(default_factory=lambda: versions())  # of libraries
    objective_state: dict[str, Tensor] | None = None  # learnt by the objective; None for most, absent in older files
    tokeniser: str | None = None  # a subword tokeniser as JSON, where it reads the captions
    word_tokeniser: str = "words"  # how a vocabulary cuts captions (lossscope.text.word_tokenisers)
    kept: dict[str, str] = field(default_factory=dict)  # content of other files that the encoder needs, by name
    reading: dict[str, str] = field(default_factory=dict)  # how a released model reads pictures: fields of data sets
    digests: dict[str, str] = field(default_factory=dict, compare=False)  # of the file's other parts; empty if older

    def save(self, path: Path | str) -> None:
        """Write it atomically: `.safetensors` (weights alone) with a `.json` of the same name, else one `.pt`.

        The safetensors form is the one to share: it cannot contain code. It has no optimiser and no random states.
        """
        path = Path(path)
        parts = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "digests"}
        if path.suffix == ".safetensors":
            parts |= {"optimiser": None, "rng": None, "objective_state": self.objective_state or None}
        values = {"format": FORMAT, "version": VERSION, **parts, "digests": digests_of(parts)}
        if path.suffix != ".safetensors":
            with write_atomically(path) as part, open(part, "wb") as stream:  # a path would be stored in the file
                torch.save(share_texts(values), stream)
            return
        state = {f"{STATE_PREFIX}{k}": v for k, v in (self.objective_state or {}).items()}
        weights = {**self.weights, **state}
        plain = {
            name: value
            for name, value in values.items()
            if name not in ("weights", "optimiser", "rng", "objective_state")
        }
        with lock_files(path):
            write_safetensors(path, weights, states_digest=False)  # the .json has digests of all parts
            write_text(path.with_suffix(".json"), json.dumps(plain, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path | str) -> Checkpoint:
        """Read a checkpoint.

        Raises InputError for another file, a newer format, a missing key, a wrong type, and a part that is not what
        was saved.
        """
        names = [item.name for item in fields(cls)]
        values = read_checkpoint_file(path, names)
        return cls(**{name: values[name] for name in names})

    def model(self, trust_code: bool = False) -> Encoder:
        """Return the encoder with these weights, in eval mode.

        Raises InputError when the spec names a Python file (unless `trust_code`), or the weights do not fit.
        """
        from lossscope.encoders.base import encoder_spec, require_fit

        from .sizes import require_possible_sizes

        with trust(any_file=trust_code):
            require_trusted([self.encoder], "the checkpoint")
            spec, sizes = encoder_spec(self.encoder), (self.shape, len(self.words()), self.kept)
            require_possible_sizes(spec, *sizes, self.weights)
            encoder = spec.rebuild(*sizes)
        require_fit(encoder.state_dict(), self.weights, "the encoder")
        encoder.load_state_dict(self.weights)
        return encoder.eval()

    def words(self) -> Tokeniser:
        """Return the vocabulary, or the subword tokeniser, that the model was trained with."""
        if self.tokeniser is not None:
            from lossscope.text.subwords import Subwords

            return Subwords.from_json(self.tokeniser)
        from lossscope.text.vocabulary import Vocabulary

        return Vocabulary.from_list(self.vocabulary, self.word_tokeniser)

    def for_items(self, shape: ItemShape, what: str) -> Checkpoint:
        """Return a copy for items of that shape, which decides the numbers that a released file leaves open.

        Raises InputError when the model takes other items; `what` names the file and what was done with it.
        """
        if not fits_shape(shape, self.shape):
            raise InputError(
                f"items must have the shape {what}, {describe_shape(self.shape)}; got {describe_shape(shape)}. "
                f"{_remedy(self.shape, shape)}"
            )
        return replace(self, item_shape=stored_shape(shape))

    @property
    def is_released(self) -> bool:
        """Whether it was made of a file that a model's authors released."""
        return "converted_from" in self.training

    @property
    def stored_files(self) -> dict[str, str]:
        """What its encoder keeps of files, name -> content; of a released model its tokeniser, too, as training needs.

        A released file has no tokeniser: its conversion takes that from --vocabulary.
        """
        if not self.is_released or self.tokeniser is None:
            return dict(self.kept)
        return {"tokeniser": self.tokeniser, **self.kept}

    @property
    def shape(self) -> ItemShape:
        """Shape of one item, in the type that data sets use."""
        if isinstance(self.item_shape, dict):
            return {name: tuple(shape) for name, shape in self.item_shape.items()}
        return tuple(self.item_shape)

    def with_encoder(self, changes: Iterable[str]) -> Checkpoint:
        """Return a copy whose encoder's spec has other values, each `key=value`. Raises SpecError for unknown ones."""
        from lossscope.encoders.base import encoder_spec

        changes = tuple(changes)
        if "config" in self.kept and any(change.partition("=")[0].strip() == "path" for change in changes):
            raise InputError("path is where a new model begins; a file brings its own configuration")
        changed = replace(self, encoder=str(Spec.parse(self.encoder).with_values(changes)))
        encoder_spec(changed.encoder)
        return changed

    def without_training_state(self) -> Checkpoint:
        """Return a copy for probing only, without optimiser and random states."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return Checkpoint(**{**values, "optimiser": None, "rng": None})


def verify(path: Path | str, trust_code: bool = False) -> dict[str, str]:
    """Rebuild the model of a checkpoint and describe it, name -> text.

    Raises InputError when the model, the objective or the data set cannot be built, or a weight is not finite.
    """
    checkpoint = Checkpoint.load(path)
    with trust(any_file=trust_code):
        require_trusted((checkpoint.encoder, checkpoint.data, checkpoint.objective), path)
        with naming(path, "a checkpoint whose parts can be built"):
            model, words = checkpoint.model(), checkpoint.words()
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
        "vocabulary": f"{len(words)} {'words' if checkpoint.tokeniser is None else 'parts of words'}",
        "parameters": f"{sum(p.numel() for p in model.parameters()):,}",
        "epoch": str(checkpoint.epoch) + (f" and {checkpoint.step} steps" if checkpoint.step else ""),
        "can be continued": "yes" if checkpoint.optimiser else "no (weights only)",
        "written with": ", ".join(f"{k} {v}" for k, v in checkpoint.versions.items()),
    }


def stored_shape(shape: ItemShape) -> list[int] | dict[str, list[int]]:
    """Return the shape of an item in the type that checkpoints store."""
    return {name: list(sizes) for name, sizes in shape.items()} if isinstance(shape, Mapping) else list(shape)


def describe_shape(shape: ItemShape) -> str:
    """Return the shape of an item in words, `any` for a number that the data decide."""
    if shape == TEXT_SHAPE:
        return "texts"
    return str(shape).replace(str(ANY_NUMBER), "any")


def stored_tokens(words: Tokeniser) -> dict[str, Any]:
    """Return the fields of a checkpoint that store its tokeniser."""
    from lossscope.text.subwords import Subwords
    from lossscope.text.vocabulary import Vocabulary

    if isinstance(words, Subwords):
        return {"vocabulary": [], "tokeniser": words.to_json()}
    assert isinstance(words, Vocabulary)
    return {"vocabulary": words.to_list(), "tokeniser": None, "word_tokeniser": words.word_tokeniser}


def _remedy(wanted: ItemShape, given: ItemShape) -> str:
    """Say what to type where the items of a data set have another shape than those of the model."""
    if TEXT_SHAPE in (wanted, given):
        return "Name data of the sides that the model compares: --data SPEC"
    if isinstance(wanted, tuple) and len(wanted) == 3 and wanted[0] == 3:
        return f"These are pictures of another size: state it in the data set's spec, --data NAME:...,size={wanted[1]}"
    return "These are other features: name the data set with those of the model, --data SPEC"
