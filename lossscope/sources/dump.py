"""Embeddings or similarities in a file that any other program can write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.sides import Sides
from lossscope.core.types import Rows
from lossscope.encoders.released.containers import is_configured
from lossscope.errors import InputError
from lossscope.io.files import fingerprint, fingerprint_of
from lossscope.io.reading import show_path

from ._arrays import is_folder_of_arrays, read_arrays, read_rows
from ._dump_arrays import caption_image_of, column_of, finite_similarity, read_ids, unit_matrix
from ._relations import declared_sides
from ._shards import is_sharded, read_shards
from .base import Request
from .checkpoints.embed import cache_folder
from .checkpoints.input_keys import caption_keys, number_values
from .checkpoints.schema import is_safetensors_checkpoint


@dataclass(frozen=True)
class Dump:
    """an embedding or similarity dump (.npz, .safetensors, or a folder of .npy shards or FAISS indices)

    Arrays of a file of images and captions; others are ignored:

    - `images` (N, d) and `captions` (M, d), or `similarity` (N, M).
    - `caption_image` (M,): image row of each caption. Without it M must be k * N, image-major, and a warning says so.
    - `image_id`, `caption_id` and `caption` (the texts), all optional: images of one id, and captions of the same
      words, are the same input.
    - in place of `caption_image` `positives` (n, 2), as of other sides, where a caption has several images.

    Any other two sides are `queries` and `documents`, with `positives` (n, 2), rows of both, and perhaps `negatives`
    (q, k), rows of documents, -1 for none. `sides` names them otherwise: ["user", "item"] for arrays `users` and
    `items`. `query_id`, `document_id`, `query_text` and `document_text` are optional. One set is `embeddings` with
    `labels` (n,). Late interaction: `query_tokens` (T, d) and `query_offsets` (q + 1,), and those of the documents.

    A folder has images*.npy and captions*.npy (concatenated in the order of their names), or images.faiss and
    captions.faiss (flat indices; extra [faiss]), and may have metadata.parquet with a row per caption and the
    columns above. For a sample of queries (`--queries`) .npy shards are read block by block, also behind a URL.
    Raises InputError for NaN, zero rows and wrong shapes.
    """

    path: Path  # the file or folder

    @classmethod
    def accepts(cls, path: Path) -> bool:
        if path.is_dir():
            return is_folder_of_arrays(path)
        if path.suffix == ".safetensors" and is_configured(path):
            return False  # weights beside their configuration
        return path.suffix in (".npz", ".safetensors") and not is_safetensors_checkpoint(path)

    def read(self, request: Request) -> SplitEmbeddings:
        if request.sharded and is_sharded(self.path):
            return read_shards(str(self.path), request.caption_image, request.sides)
        arrays, origin = read_arrays(self.path, cache_folder() if request.cache else None)
        if request.caption_image is not None:
            arrays["caption_image"] = read_rows(request.caption_image)
            origin = fingerprint_of(origin, fingerprint(request.caption_image))
        has_vectors = {"images", "captions"} <= arrays.keys()
        sides = declared_sides(arrays, request.sides, self.path)
        if sides is not None and not _is_of_captions(arrays, sides, request.sides):
            from ._any_sides import read_any_sides

            return read_any_sides(arrays, sides, self.path, fingerprint_of(origin, sides.text), request.raw)
        if not has_vectors and "similarity" not in arrays:
            raise InputError(
                f"{self.path} must hold `images` and `captions`, or `similarity`; "
                f"got {', '.join(sorted(arrays)) or 'nothing'}. Of other sides `queries` and `documents`, or "
                "`embeddings` with `labels`"
            )
        notices: list[str] = []
        warnings: list[str] = []
        images = captions = similarity = None
        if has_vectors:
            images, captions = (
                unit_matrix(arrays[name], f"{name} of {self.path}", notices, request.raw)
                for name in ("images", "captions")
            )
            dtype = torch.promote_types(images.dtype, captions.dtype)
            images, captions = images.to(dtype), captions.to(dtype)
            if images.shape[1] != captions.shape[1]:
                raise InputError(
                    f"images and captions of {self.path} must have one width; "
                    f"got {images.shape[1]} and {captions.shape[1]}"
                )
            n, m = len(images), len(captions)
        else:
            similarity = finite_similarity(arrays["similarity"], self.path, notices, request.raw)
            n, m = similarity.shape
        caption_image = caption_image_of(arrays, n, m, self.path, notices, warnings)
        image_ids = read_ids(arrays, "image_id", n, self.path)
        return SplitEmbeddings(
            name=show_path(self.path),
            images=images,
            captions=captions,
            similarity=similarity,
            caption_image=caption_image,
            image_ids=image_ids,
            caption_ids=read_ids(arrays, "caption_id", m, self.path),
            fingerprint=origin,
            notices=tuple(notices),
            warnings=tuple(warnings),
            read_input_keys=partial(_keys, image_ids if "image_id" in arrays else None, _texts(arrays, m, self.path)),
        )

    def describe(self) -> dict[str, str]:
        """Read everything and return what is in it, name -> text. Raises InputError where something is wrong."""
        from ._dump_facts import describe

        return describe(self.read(Request(cache=False)))


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
