"""A model with its tokeniser over a split of data: what every source that holds a model comes down to."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.datasets.base import Split
from lossscope.encoders.base import Encoder
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.versions import versions
from lossscope.registry import build, require_trusted
from lossscope.spec import Spec

from ._inputs import keys_of
from .base import Request
from .checkpoints.captions import CaptionBatcher
from .checkpoints.checkpoint import Checkpoint, stored_shape
from .checkpoints.embed import cache_folder, embed, read_cache, write_cache
from .checkpoints.layer_gradients import LayerGradients
from .checkpoints.pair_scores import PairScorer


def by_checkpoint(
    checkpoint: Checkpoint,
    path: Path,
    origin: str,
    objective: str | None,
    request: Request,
    name: str,
    notices: tuple[str, ...] = (),
) -> SplitEmbeddings:
    """The split of the request as the checkpoint's model sees it: vectors, kept in the cache, or a scorer of pairs.

    path: what to call the file in errors. origin: fingerprint of it. Raises InputError when data and model do not fit.
    """
    require_trusted(request.data or checkpoint.data, request.trust_code)
    if request.encoder:
        checkpoint = replace(checkpoint, encoder=str(Spec.parse(checkpoint.encoder).changed(request.encoder)))
        origin = fingerprint_of(origin, checkpoint.encoder)
    split = _split(checkpoint, request, path)
    key = fingerprint_of("embed", versions()["lossscope"], origin, split.fingerprint)
    kept = cache_folder() / f"{key}.safetensors" if request.cache else None
    vectors, scorer = read_cache(kept), None
    make = partial(_made, checkpoint, split, request)
    if vectors is None:
        model, sentences = make()
        if model.dot:
            vectors = embed(model, sentences, request.batch_size, request.progress)
            write_cache(kept, *vectors)
        else:
            scorer = PairScorer(model, sentences, request.batch_size, request.progress)
    return SplitEmbeddings(
        name=name,
        images=vectors[0] if vectors else None,
        captions=vectors[1] if vectors else None,
        similarity=None,
        caption_image=split.caption_image,
        image_ids=split.image_ids,
        caption_ids=split.caption_ids,
        fingerprint=key,
        objective=objective,
        seed=checkpoint.training.get("seed"),
        split=split.name,
        notices=(*notices, *_notices(checkpoint, split, request)),
        pair_scorer=scorer,
        inputs=partial(keys_of, split, request.progress),
        layer_gradients=LayerGradients(make if scorer is None else lambda: (model, sentences)),
        recipe=checkpoint.training,
    )


def _made(checkpoint: Checkpoint, split: Split, request: Request) -> tuple[Encoder, CaptionBatcher]:
    """The model on the device, and the captions as it reads them."""
    model = checkpoint.model(request.trust_code).to(torch.device(request.device))
    return model, CaptionBatcher(split, checkpoint.words())


def _split(checkpoint: Checkpoint, request: Request, path: Path) -> Split:
    data = request.data or checkpoint.data
    if not data:
        raise InputError(f"--data is needed: {path} does not say what it was trained on, e.g. --data precomp:root=DIR")
    split: Split = build("datasets", data).split(request.split)
    if stored_shape(split.images.shape) != checkpoint.item_shape:
        raise InputError(
            f"items must have the shape {path} was trained on, {checkpoint.shape}; got {split.images.shape}"
        )
    return split


def _notices(checkpoint: Checkpoint, split: Split, request: Request) -> tuple[str, ...]:
    found = []
    known = bool(checkpoint.data_fingerprint) and request.data is None
    if known and split.name == "train" and split.fingerprint != checkpoint.data_fingerprint:
        found.append("the training data differ from those the checkpoint was trained on (other fingerprint)")
    skipped = getattr(split, "skipped", ())
    if skipped:
        found.append(f"{len(skipped)} images could not be read and were left out, first {skipped[0]}")
    return tuple(found)
