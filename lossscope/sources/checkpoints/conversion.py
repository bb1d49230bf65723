"""An original file -> one of our checkpoints: which family it is of, its words, its objective; nothing half loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from lossscope.encoders.base import EncoderSpec, require_finite, require_fit
from lossscope.encoders.released.checkpoint_file import read_released
from lossscope.encoders.types import OpenedModel, ReleasedFile
from lossscope.errors import InputError
from lossscope.registry import load, names, spec_of
from lossscope.text.subwords import Subwords
from lossscope.text.tokenizer import Tokens
from lossscope.text.vocabulary import Vocabulary, read_vocabulary

from .checkpoint import Checkpoint, stored_shape, stored_tokens


def open_released(
    path: Path | str, vocabulary: Path | None = None, data: str = "", old_pickle: bool = False
) -> tuple[Checkpoint, tuple[str, ...]]:
    """The checkpoint that an original file or folder comes to, and what its user should know.

    vocabulary: file of words (.json, .pkl) or tokeniser (folder, vocab.txt) it was trained with; looked for beside the
    file, and in `vocab/` there, when not given. data: spec to store. Raises InputError: of no family we know,
    weights that do not fit, no vocabulary, or one of another size.
    """
    original = read_released(path, old_pickle)
    found = _family(original)
    words = _shortened(_words(original, found, vocabulary), found.context)
    _check_size(original, found, words)
    kept = dict(found.kept)
    wanted = found.encoder.rebuild(found.item_shape, len(words), kept).state_dict()
    require_fit(wanted, found.weights, f"{spec_of(found.encoder).partition(':')[0]}, to which {path} belongs")
    require_finite(found.weights, str(path))
    checkpoint = Checkpoint(
        encoder=spec_of(found.encoder),
        objective=found.objective,
        data=data,
        **stored_tokens(words),
        item_shape=stored_shape(found.item_shape),
        data_fingerprint="",
        epoch=original.epoch,
        metrics=dict(original.metrics),
        weights={name: tensor.detach().clone().contiguous() for name, tensor in found.weights.items()},
        training={"converted_from": original.path.name, "ignored": list(found.ignored)},
        kept=kept,
    )
    told = _told(found.objective)
    ignored = f"left out on purpose: {', '.join(found.ignored)}" if found.ignored else ""
    return checkpoint, (told, *found.notices, *([ignored] if ignored else []))


def _told(objective: str) -> str:
    """What is known of the loss: files of the family keep a margin, whatever they were trained with."""
    if not objective:
        return "the file does not say what it was trained with: name it by --objective"
    return f"taken as trained with {objective}, as the file's options say; --objective names another"


def _family(original: ReleasedFile) -> OpenedModel:
    """The family whose encoder file knows the original. Raises InputError when none or more than one does."""
    found: dict[str, OpenedModel] = {}
    for name in names("encoders"):
        spec: type[Any] = load("encoders", name)
        answer = spec.from_released(original) if issubclass(spec, EncoderSpec) else None
        if answer is not None:
            found[name] = answer
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise InputError(f"{original.path} must be of one family; it could be of {', '.join(found)}")
    held = " | ".join(", ".join(list(tower)[:3]) for tower in original.towers)
    raise InputError(
        f"{original.path} must be of a family we know ({', '.join(names('encoders'))}); "
        f"it holds {len(original.towers)} state dict(s) with names like {held}"
    )


def _words(original: ReleasedFile, found: OpenedModel, given: Path | None) -> Tokens:
    if found.encoder.wordless:
        return Vocabulary.build([], 1)
    if given is not None:
        return _read_words(given, found)
    for path in _likely(original):
        if path.exists():
            return _read_words(path, found)
    size = f"{found.vocabulary_size} words" if found.vocabulary_size else "parts of words"
    raise InputError(
        f"--vocabulary is needed: {original.path} reads {size} and does not hold them. Name the file it was trained "
        "with, e.g. f30k_precomp_vocab.json, or the folder of its tokeniser"
    )


def _likely(original: ReleasedFile) -> list[Path]:
    """Where its words may lie: a tokeniser beside it, or for a GRU a vocabulary under its data's name."""
    folder = original.path if original.path.is_dir() else original.path.parent
    if not any("rnn." in name for tower in original.towers for name in tower):
        return [folder / "tokenizer.json", folder / "vocab.txt", folder / "vocab.json"]
    files: list[Path] = []
    name = original.options.get("data_name")
    if isinstance(name, str) and name.replace("_", "").isalnum():
        stems = [folder / f"{name}_vocab", folder / "vocab" / f"{name}_vocab"]
        files += [stem.with_suffix(suffix) for stem in stems for suffix in (".json", ".pkl")]
    return files


def _read_words(path: Path, found: OpenedModel) -> Tokens:
    if path.is_dir() or path.name in ("tokenizer.json", "vocab.txt", "vocab.json"):
        read: Tokens = Subwords.from_folder(path if path.is_dir() else path.parent)
    else:
        read = read_vocabulary(path)
    return found.encoder.prepare(read)  # type: ignore[no-any-return]


def _shortened(words: Tokens, context: int) -> Tokens:
    """The same tokeniser, cutting captions to what the model takes."""
    if not context or not isinstance(words, Subwords):
        return words
    return replace(words, max_length=min(words.max_length or context, context))


def _check_size(original: ReleasedFile, found: OpenedModel, words: Tokens) -> None:
    if found.vocabulary_size and len(words) != found.vocabulary_size:
        raise InputError(
            f"the vocabulary must have {found.vocabulary_size} words, as many as {original.path} embeds; got "
            f"{len(words)}. Several files of one name with other sizes are about: take the one it was trained with"
        )


def describe(checkpoint: Checkpoint) -> Mapping[str, str]:
    """What a converted checkpoint is, for the user."""
    number = sum(tensor.numel() for tensor in checkpoint.weights.values() if isinstance(tensor, torch.Tensor))
    return {
        "encoder": checkpoint.encoder,
        "objective": checkpoint.objective,
        "vocabulary": f"{len(checkpoint.words())}",
        "items": str(checkpoint.shape),
        "tensors": f"{len(checkpoint.weights)} with {number:,} numbers",
    }
