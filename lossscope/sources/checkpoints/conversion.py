"""Convert a released file to a checkpoint: its encoder family, vocabulary, objective and weights, all checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from lossscope.encoders.base import EncoderSpec, require_finite, require_fit
from lossscope.encoders.released.containers import read_container
from lossscope.encoders.released.option_table import flatten
from lossscope.encoders.types import OpenedModel, ReleasedFile
from lossscope.errors import InputError
from lossscope.io.reading import naming
from lossscope.registry import build, load, names, spec_of
from lossscope.spec import Spec
from lossscope.text.tokenizer import Tokeniser

from .checkpoint import Checkpoint, describe_shape, stored_shape, stored_tokens
from .reading import complete_data, stored_reading
from .released_words import find_tokeniser, fit_to_model

_SHOWN = 5  # names in a notice


def open_released(
    path: Path | str,
    vocabulary: Path | None = None,
    data: str = "",
    old_pickle: bool = False,
    choices: Sequence[str] = (),
    accepted_options: Sequence[str] = (),
) -> tuple[Checkpoint, tuple[str, ...]]:
    """Convert a released file or folder to a checkpoint, and return it with notices for the user.

    Args:
        path: the file or folder.
        vocabulary: file of words (.json, .pkl) or tokeniser (folder, vocab.txt) the model was trained with; where not
            given, it is searched for beside the file and in `vocab/` there.
        data: spec to store, with what it leaves unsaid of how the model reads pictures.
        old_pickle: whether to read it with the restricted unpickler, for files of Python 2 that torch refuses.
        choices: KEY=VALUE, what the user says of the model where the file does not.
        accepted_options: names of options in the file, in no list of its family, that leave the model as it is.

    Raises:
        InputError: a file of no known family, weights that do not fit, no vocabulary, or one of another size.
    """
    released = replace(read_container(path, old_pickle), choices=_parse_choices(choices))
    with naming(path, "a released model that can be opened"):
        model = _open_family(released)
    type(model.encoder).released_options.require_known(released.options, accepted_options, released.path)
    tokeniser = fit_to_model(find_tokeniser(released, model, vocabulary), model)
    _require_vocabulary_size(released, model, tokeniser)
    kept = dict(model.stored_files)
    expected = model.encoder.rebuild(model.item_shape, len(tokeniser), kept).state_dict()
    with naming(path, "a released model that can be opened"):
        require_fit(expected, model.weights, f"{spec_of(model.encoder).partition(':')[0]}, to which {path} belongs")
    require_finite(model.weights, str(path))
    reading = stored_reading(model)
    data, reading_notices = complete_data(data, reading)
    checkpoint = Checkpoint(
        encoder=spec_of(model.encoder),
        objective=model.objective,
        data=spec_of(build("datasets", data)) if data else "",
        **stored_tokens(tokeniser),
        item_shape=stored_shape(model.item_shape),
        data_fingerprint="",
        epoch=released.epoch,
        metrics=dict(released.metrics),
        weights={name: tensor.detach().clone().contiguous() for name, tensor in model.weights.items()},
        training={"converted_from": released.path.name, "ignored": list(model.ignored)},
        kept=kept,
        reading=reading,
    )
    more = (*reading_notices, *_ignored_notices(model.ignored))
    stated = _option_notices(released, model, accepted_options)
    return checkpoint, (*stated, _objective_notice(model.objective), *model.notices, *more)


def _option_notices(released: ReleasedFile, model: OpenedModel, accepted: Sequence[str]) -> tuple[str, ...]:
    """Return what was taken for granted of a file's options."""
    stated = {name for name, _ in flatten(released.options)}
    missing = [name for name in type(model.encoder).released_options.deciding if name not in stated]
    notices = []
    if missing:
        notices.append(
            f"WARNING: {released.path} does not say {', '.join(missing)}, which tensors do not show: the defaults of "
            f"its authors' code are assumed, {spec_of(model.encoder)}"
        )
    if accepted:
        notices.append(f"taken to be without effect, as --accept-option says: {', '.join(accepted)}")
    return tuple(notices)


def _objective_notice(objective: str) -> str:
    """Return a notice on where the objective comes from."""
    if not objective:
        return "the file does not name the objective it was trained with: give it by --objective"
    return f"taken as trained with {objective}, as the file's options say; --objective names another"


def _ignored_notices(ignored: tuple[str, ...]) -> tuple[str, ...]:
    """Return a notice that names some of the tensors that are left out, and how many they are."""
    if not ignored:
        return ()
    shown = ", ".join(ignored[:_SHOWN])
    more = f" and {len(ignored) - _SHOWN} more, all in `training.ignored` of the converted file"
    return (f"left out on purpose: {shown}{more if len(ignored) > _SHOWN else ''}",)


def _open_family(released: ReleasedFile) -> OpenedModel:
    """Return the model as the one encoder family that opens it. Raises InputError when none or several families do."""
    models: dict[str, OpenedModel] = {}
    for name in names("encoders"):
        spec: type[Any] = load("encoders", name)
        model = spec.from_released(released) if issubclass(spec, EncoderSpec) else None
        if model is not None:
            models[name] = model
    if len(models) == 1:
        return next(iter(models.values()))
    if models:
        raise InputError(f"{released.path} must be of one family; it could be of {', '.join(models)}")
    parameters = " | ".join(", ".join(list(tower)[:3]) for tower in released.towers)
    words = any(name.startswith("rnn.") for tower in released.towers for name in tower)
    hint = ". Its option cross_attn marks SCAN, focal_type BFAN; save the file with its `opt`" if words else ""
    raise InputError(
        f"{released.path} must be of a known family ({', '.join(names('encoders'))}); "
        f"it holds {len(released.towers)} state dict(s) with names like {parameters}{hint}"
    )


def _require_vocabulary_size(released: ReleasedFile, model: OpenedModel, tokeniser: Tokeniser) -> None:
    if model.vocabulary_size and len(tokeniser) != model.vocabulary_size:
        raise InputError(
            f"the vocabulary must have {model.vocabulary_size} words, as many as {released.path} embeds; got "
            f"{len(tokeniser)}. Files of one name exist in several sizes: take the file of its training"
        )


def describe(checkpoint: Checkpoint) -> Mapping[str, str]:
    """Describe a converted checkpoint for the user, name -> text."""
    number = sum(tensor.numel() for tensor in checkpoint.weights.values() if isinstance(tensor, torch.Tensor))
    return {
        "encoder": checkpoint.encoder,
        "objective": checkpoint.objective,
        "vocabulary": f"{len(checkpoint.words())}",
        "items": describe_shape(checkpoint.shape),
        "tensors": f"{len(checkpoint.weights)} with {number:,} numbers",
    }


def _parse_choices(choices: Sequence[str]) -> dict[str, str]:
    """Return KEY=VALUE pairs as a dict. Raises SpecError for any other form."""
    return dict(Spec("a released file", {}).with_values(choices).values)
