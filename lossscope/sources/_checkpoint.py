"""The embeddings of a split by the model of a checkpoint, shared by all sources that contain a model."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.request import Request
from lossscope.datasets.base import Split
from lossscope.declarations import declaration
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.reading import naming
from lossscope.io.trusted_code import require_trusted
from lossscope.io.vector_cache import cache_folder, cache_limit
from lossscope.io.versions import versions
from lossscope.spec import Spec

from .checkpoints.checkpoint import Checkpoint
from .checkpoints.data_of_model import data_of_model
from .checkpoints.embedding_cache import read_cache, write_cache
from .checkpoints.encode_rows import ItemEncoder
from .checkpoints.input_keys import input_keys
from .checkpoints.layer_gradients import LayerGradients

if TYPE_CHECKING:
    from lossscope.encoders.base import Encoder

    from .checkpoints.captions import CaptionBatcher
    from .checkpoints.train_mode import TrainMode


def embed_checkpoint(
    checkpoint: Checkpoint,
    path: Path,
    origin: str,
    objective: str | None,
    request: Request,
    name: str,
    notices: tuple[str, ...] = (),
) -> SplitEmbeddings:
    """Return the split of the request as the checkpoint's model sees it: vectors, kept in the cache, or a pair scorer.

    Args:
        checkpoint: with the model.
        path: of the file, for messages.
        origin: fingerprint of the file.
        objective: spec of the objective it was trained with, where it is known.
        request: which split, and how it is read.
        name: of the source in tables.
        notices: further messages to the user.

    Raises:
        InputError: data and model do not fit, or the data set is not known.
    """
    if request.data:
        require_trusted((request.data,), path)
    with naming(path, "a checkpoint whose parts can be built"):
        require_trusted((checkpoint.encoder,) if request.data else (checkpoint.data, checkpoint.encoder), path)
    if request.encoder:
        checkpoint = checkpoint.with_encoder(request.encoder)
        origin = fingerprint_of(origin, checkpoint.encoder)
    split, reading_notices = _split(checkpoint, request, path)
    checkpoint = checkpoint.for_items(split.images.shape, f"{path} was trained on")
    key = fingerprint_of("embed", versions()["lossscope"], origin, split.fingerprint, *_words_key(checkpoint))
    training = _train_mode(request)
    cached = _cached(origin, key) if request.cache and request.runs_model and training is None else None
    vectors, scorer = read_cache(cached, len(split.images), len(split.captions)), None
    load_model = partial(_load_model, checkpoint, path, split, request)
    if vectors is None and request.runs_model:
        model, captions = load_model()
        if model.is_dot_product:
            from .checkpoints.embed import embed

            vectors = embed(model, captions, request.batch_size, request.progress, request.raw, training)
            if all(bool(x.isfinite().all()) for x in vectors):
                write_cache(cached, *vectors, name, "released model" if checkpoint.is_released else "checkpoint")
        elif training is not None:
            raise InputError(f"{path} must embed both sides alone for train mode; it scores pairs")
        else:
            from .checkpoints.pair_scores import PairScorer

            scorer = PairScorer(model, captions, request.batch_size, request.progress)
    gradients = LayerGradients(load_model if scorer is None else lambda: (model, captions))
    return SplitEmbeddings(
        name=name if training is None else f"{name} in train mode",
        images=vectors[0] if vectors else None,
        captions=vectors[1] if vectors else None,
        similarity=None,
        caption_image=split.caption_image,
        image_ids=split.image_ids,
        caption_ids=split.caption_ids,
        fingerprint=key if training is None else fingerprint_of("train mode", key, str(request.mode_seed)),
        objective=objective,
        seed=checkpoint.training.get("seed"),
        split=split.name,
        used=split.used,
        scores=split.scores,
        notices=(
            *notices,
            *reading_notices,
            *_notices(checkpoint, split, request),
            *_mode_notices(training, request),
        ),
        mode=request.mode,
        pair_scorer=scorer,
        read_input_keys=partial(input_keys, split, request.progress),
        read_texts=split.texts_by_id,
        layer_gradients=gradients,
        encode_rows=ItemEncoder(lambda: gradients.model_and_captions).sides if vectors is not None else None,
        recipe=checkpoint.training,
        relations=split.relations,
        floors_median_rank=_floors_median_rank(checkpoint.encoder),
    )


def _cached(origin: str, key: str) -> Path:
    """Return the file of a split's vectors in the cache. Raises InputError for a limit of the cache that is no size."""
    cache_limit()
    return cache_folder() / fingerprint_of("vectors of splits", origin) / f"{key}.safetensors"


def _words_key(checkpoint: Checkpoint) -> tuple[str, ...]:
    """What the ids of captions depend on beside the file; nothing where it holds the words, and lossscope cuts them."""
    if not checkpoint.is_released and checkpoint.word_tokeniser == "words":
        return ()
    from ._released import words_key

    return words_key(checkpoint)


def _floors_median_rank(encoder: str) -> bool:
    """Whether the authors of an encoder round the median rank down, as its file declares, which is not imported."""
    declared = declaration("encoders", Spec.parse(encoder).name.replace("-", "_").lower())
    if declared is not None:
        return bool(declared.constants.get("floors_median_rank", True))
    from lossscope.encoders.base import encoder_spec  # of a plug-in

    return encoder_spec(encoder).floors_median_rank


def _train_mode(request: Request) -> TrainMode | None:
    if request.mode != "train":
        return None
    from .checkpoints.train_mode import TrainMode

    return TrainMode(request.mode_seed)


def _mode_notices(training: TrainMode | None, request: Request) -> tuple[str, ...]:
    if training is None:
        return ()
    return (
        f"train mode: dropout is drawn with seed {training.seed}, once for each item; batch norm is that of "
        f"{request.batch_size} items or more in file order, and its running statistics stay as they are",
    )


def _load_model(checkpoint: Checkpoint, path: Path, split: Split, request: Request) -> tuple[Encoder, CaptionBatcher]:
    """Return the model on the device, and the captions of the split as it reads them."""
    from .checkpoints.captions import CaptionBatcher, with_tokens

    with naming(path, "a checkpoint whose model can be built"):
        model, words = checkpoint.model(request.trust_code), checkpoint.words()
    return model.to(torch.device(request.device)), CaptionBatcher(with_tokens(split, words), words)


def _split(checkpoint: Checkpoint, request: Request, path: Path) -> tuple[Split, tuple[str, ...]]:
    """Return the split, and notices on how its pictures are read."""
    if not (request.data or checkpoint.data):
        raise InputError(f"--data is needed: {path} names no training data, e.g. --data precomp:root=DIR")
    with contextlib.nullcontext() if request.data else naming(path, "a checkpoint of data that can be read"):
        dataset, name, notices = data_of_model(checkpoint, request)
        return dataset.split(name), notices


def _notices(checkpoint: Checkpoint, split: Split, request: Request) -> tuple[str, ...]:
    notices = list(split.notices)
    same_data = bool(checkpoint.data_fingerprint) and request.data is None
    if same_data and split.name == "train" and split.fingerprint != checkpoint.data_fingerprint:
        notices.append("the training data differ from those the checkpoint was trained on (other fingerprint)")
    if checkpoint.is_released:
        from ._released import notices_of_released

        notices.extend(notices_of_released(checkpoint, split))
    skipped = getattr(split, "skipped", ())
    if skipped:
        notices.append(f"{len(skipped)} images could not be read and were left out, first {skipped[0]}")
    return tuple(notices)
