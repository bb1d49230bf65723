"""The arrays of a dump as a split."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.request import Request
from lossscope.core.sides import Sides
from lossscope.core.types import Rows
from lossscope.errors import InputError
from lossscope.io.file_states import unchanged
from lossscope.io.files import fingerprint, fingerprint_of
from lossscope.io.reading import show_path
from lossscope.io.vector_cache import cache_folder

from ._array_files import read_array_file
from ._arrays import read_arrays, read_rows
from ._dot_products import USED, dot_products, require_no_bias
from ._dump_arrays import caption_image_of, column_of, finite_similarity, read_ids, texts_by_id, unit_matrix
from ._relations import declared_sides
from ._shards import is_sharded, read_shards
from .checkpoints.input_keys import caption_keys, number_values


def read_dump(path: Path, request: Request) -> SplitEmbeddings:
    """Return the split of a dump. Raises InputError as `Dump` says."""
    if request.sharded and is_sharded(path):
        return read_shards(str(path), request.caption_image, request.sides)
    if path.is_dir() or path.suffix in (".npz", ".safetensors"):
        arrays, origin = read_arrays(path, cache_folder() if request.cache else None)
        notices, chosen = list[str](), None
    else:
        with unchanged(path):
            arrays, notices, chosen = read_array_file(path, request)
            origin = fingerprint_of(fingerprint(path), *([chosen] if chosen else []))
    if request.caption_image is not None:
        with unchanged(request.caption_image):
            arrays["caption_image"] = read_rows(request.caption_image)
            origin = fingerprint_of(origin, fingerprint(request.caption_image))
    has_vectors = {"images", "captions"} <= arrays.keys()
    sides = declared_sides(arrays, request.sides, path)
    if sides is not None and not _is_of_captions(arrays, sides, request.sides):
        from ._any_sides import read_any_sides

        origin = fingerprint_of(origin, sides.text, *_of_score(request))
        split = read_any_sides(arrays, sides, path, origin, request.raw, request.score)
        return replace(split, notices=(*notices, *split.notices), split=chosen) if notices else split
    if not has_vectors and "similarity" not in arrays:
        raise InputError(
            f"{path} must hold `images` and `captions`, or `similarity`; "
            f"got {', '.join(sorted(arrays)) or 'nothing'}. Of other sides `queries` and `documents`, or "
            "`embeddings` with `labels`"
        )
    warnings: list[str] = []
    images = captions = similarity = None
    scorer = None
    if request.score == "dot":
        if not has_vectors:
            raise InputError(f"{path} must hold embeddings of both sides for --score dot; it has similarities")
        scorer = dot_products(arrays, ("images", "captions"), ("image", "caption"), path, notices)
        n, m = len(scorer.queries), len(scorer.documents)
    elif has_vectors:
        require_no_bias(arrays, ("image", "caption"), path)
        images, captions = (
            unit_matrix(arrays[name], f"{name} of {path}", notices, request.raw) for name in ("images", "captions")
        )
        dtype = torch.promote_types(images.dtype, captions.dtype)
        images, captions = images.to(dtype), captions.to(dtype)
        if images.shape[1] != captions.shape[1]:
            raise InputError(
                f"images and captions of {path} must have one width; got {images.shape[1]} and {captions.shape[1]}"
            )
        n, m = len(images), len(captions)
    else:
        similarity = finite_similarity(arrays["similarity"], path, notices, request.raw)
        n, m = similarity.shape
    caption_image = caption_image_of(arrays, n, m, path, notices, warnings)
    image_ids = read_ids(arrays, "image_id", n, path, notices)
    caption_ids = read_ids(arrays, "caption_id", m, path, notices)
    texts = _texts(arrays, m, path)
    return SplitEmbeddings(
        name=show_path(path),
        images=images,
        captions=captions,
        similarity=similarity,
        caption_image=caption_image,
        image_ids=image_ids,
        caption_ids=caption_ids,
        fingerprint=origin if scorer is None else fingerprint_of(origin, *_of_score(request)),
        pair_scorer=scorer,
        used="" if scorer is None else USED,
        notices=tuple(notices),
        warnings=tuple(warnings),
        read_input_keys=partial(_keys, image_ids if "image_id" in arrays else None, texts),
        read_texts=texts_by_id((image_ids, caption_ids), (None, texts)),
        split=chosen,
    )


def _of_score(request: Request) -> tuple[str, ...]:
    """What the fingerprint has of --score; nothing for cosines, as before there were others."""
    return ("dot",) if request.score == "dot" else ()


def _is_of_captions(arrays: dict[str, Any], sides: Sides, typed: str | None) -> bool:
    """Return whether captions belong to images, as far as a dump with sides says: those, or nothing but the vectors."""
    if "positives" in arrays:
        return False
    has_vectors = {"images", "captions"} <= arrays.keys()
    if typed or "sides" in arrays:
        return sides.is_image_text and (has_vectors or "similarity" in arrays)
    return has_vectors


def _texts(arrays: dict[str, Any], m: int, path: Path) -> list[str] | None:
    if "caption" not in arrays:
        return None
    texts = [str(text) for text in column_of(arrays, "caption", path)]
    if len(texts) != m:
        raise InputError(f"caption of {path} must have {m} entries; got {len(texts)}")
    return texts


def _keys(image_ids: list[str] | None, captions: list[str] | None) -> Pair[Rows | None]:
    """Return numbers of the images, equal where their ids are, and of the captions, equal where their words are."""
    return Pair(
        None if image_ids is None else number_values(image_ids), None if captions is None else caption_keys(captions)
    )
