"""A dump of any two sides, such as queries and documents, or of one labelled set."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.sides import Sides
from lossscope.core.types import Rows
from lossscope.errors import InputError
from lossscope.io.reading import show_path

from ._dot_products import USED, DotProductScorer, dot_products, require_no_bias
from ._dump_arrays import column_of, finite_similarity, read_ids, texts_by_id, unit_matrix
from ._maxsim import MaxSimScorer, token_vectors
from ._relations import SideKeys, keys_of_sides, read_relations
from .checkpoints.input_keys import caption_keys, number_values


def read_any_sides(
    arrays: dict[str, Any], sides: Sides, path: Path, origin: str, raw: bool = False, score: str = "cosine"
) -> SplitEmbeddings:
    """Return the split that a dump of any sides holds.

    Args:
        arrays: by name, see `sources.dump.Dump`.
        sides: what they are called.
        path: of the dump, for messages.
        origin: fingerprint of the files.
        raw: leave rows as they are, see `core.request.Request`.
        score: of embeddings, `cosine` or `dot`.

    Raises:
        InputError: arrays are missing, not finite, or do not fit each other.
    """
    notices: list[str] = []
    names = keys_of_sides(sides, arrays)
    first = second = similarity = None
    scorer: MaxSimScorer | DotProductScorer | None = None
    both = sides.first, sides.second or sides.first
    if score != "dot":
        require_no_bias(arrays, both, path)
    if f"{sides.first}_tokens" in arrays:
        scorer = _late_interaction(arrays, sides, path, notices)
        shape = len(scorer.queries), len(scorer.documents)
    elif score == "dot":
        require_vectors(arrays, names, path)
        scorer = dot_products(arrays, (names.first, names.second or names.first), both, path, notices)
        shape = len(scorer.queries), len(scorer.documents)
    elif names.first in arrays:
        first, second = _vectors(arrays, names, path, notices, raw)
        shape = len(first), len(second)
    elif "similarity" in arrays:
        similarity = finite_similarity(arrays["similarity"], path, notices, raw)
        shape = similarity.shape[0], similarity.shape[1]
        if sides.is_one_set and shape[0] != shape[1]:
            raise InputError(f"similarity of {path} must be square for one set of items; got {shape[0]} x {shape[1]}")
    else:
        raise InputError(_missing(arrays, names, path))
    relations = read_relations(arrays, sides, shape, path, notices)
    ids, texts, keys = _ids_texts_and_keys(arrays, sides, relations, path, notices)
    return SplitEmbeddings(
        name=show_path(path),
        images=first,
        captions=second,
        similarity=similarity,
        caption_image=None,
        image_ids=ids.i2t,
        caption_ids=ids.t2i,
        fingerprint=origin,
        used=USED if isinstance(scorer, DotProductScorer) else "",
        notices=tuple(notices),
        pair_scorer=scorer,
        read_input_keys=partial(Pair[Rows | None], keys.i2t, keys.t2i),
        read_texts=texts_by_id(tuple(ids), tuple(texts)),
        relations=relations,
    )


def _vectors(
    arrays: dict[str, Any], names: SideKeys, path: Path, notices: list[str], raw: bool
) -> tuple[Tensor, Tensor]:
    """Return the embeddings of both sides, of one type; one set has the same twice."""
    require_vectors(arrays, names, path)
    first = unit_matrix(arrays[names.first], f"{names.first} of {path}", notices, raw)
    if names.second is None:
        return first, first
    second = unit_matrix(arrays[names.second], f"{names.second} of {path}", notices, raw)
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"{names.first} and {names.second} of {path} must have one width; got {first.shape[1]} and "
            f"{second.shape[1]}"
        )
    dtype = torch.promote_types(first.dtype, second.dtype)
    return first.to(dtype), second.to(dtype)


def require_vectors(arrays: dict[str, Any], names: SideKeys, path: Path) -> None:
    """Raise InputError unless a dump has the embeddings of its sides."""
    if not {names.first, names.second or names.first} <= arrays.keys():
        raise InputError(_missing(arrays, names, path))


def _late_interaction(arrays: dict[str, Any], sides: Sides, path: Path, notices: list[str]) -> MaxSimScorer:
    if sides.second is None:
        raise InputError(f"late interaction needs two sides; {path} is of one, {sides.first}")
    queries, documents = (token_vectors(arrays, side, path, notices) for side in (sides.first, sides.second))
    widths = queries.vectors.shape[1], documents.vectors.shape[1]
    if widths[0] != widths[1]:
        raise InputError(f"tokens of both sides of {path} must have one width; got {widths[0]} and {widths[1]}")
    longest = int((queries.offsets[1:] - queries.offsets[:-1]).max())
    if longest > 1:
        notices.append(
            f"scores of {path} are sums over up to {longest} tokens of a query, so they are not cosines: tau, margins "
            "and eps are of the sums"
        )
    return MaxSimScorer(queries, documents)


def _ids_texts_and_keys(
    arrays: dict[str, Any], sides: Sides, relations: Relations, path: Path, notices: list[str]
) -> tuple[Pair[list[str]], Pair[list[str] | None], Pair[Rows | None]]:
    """Return the ids and the texts of both sides, and numbers that are equal where texts, or stated ids, are."""
    names = (sides.first, sides.first if sides.second is None else sides.second)
    sizes = (relations.first, relations.second)
    heard = None if sides.is_one_set else notices  # in one set items of one label match
    ids = [read_ids(arrays, f"{name}_id", size, path, heard) for name, size in zip(names, sizes, strict=True)]
    texts: list[list[str] | None] = []
    keys: list[Rows | None] = []
    for name, side_ids, size in zip(names, ids, sizes, strict=True):
        side_texts = None
        if f"{name}_text" in arrays:
            side_texts = [str(text) for text in column_of(arrays, f"{name}_text", path)]
            if len(side_texts) != size:
                raise InputError(f"{name}_text of {path} must have {size} entries; got {len(side_texts)}")
            keys.append(caption_keys(side_texts))
        else:
            keys.append(number_values(side_ids) if f"{name}_id" in arrays else None)
        texts.append(side_texts)
    return Pair(*ids), Pair(*texts), Pair(*keys)


def _missing(arrays: dict[str, Any], names: SideKeys, path: Path) -> str:
    wanted = f"`{names.first}`" if names.second is None else f"`{names.first}` and `{names.second}`"
    return f"{path} must hold {wanted}, or `similarity`; got {', '.join(sorted(arrays)) or 'nothing'}"
