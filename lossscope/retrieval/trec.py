"""Rankings for other evaluation programs: TREC run files and relevance judgements (qrels), one pair per direction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.item_ids import named_ids, require_unique
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.types import DIRECTIONS, Direction, Progress, Rows
from lossscope.engine.blocks.matrix import TiledMatrix
from lossscope.errors import InputError
from lossscope.io.exact_texts import IN_RUNS
from lossscope.io.files import write_atomically
from lossscope.io.folder_lock import lock_folder

_BLOCK_ENTRIES = 8_000_000  # similarities of a block of queries
_BLOCK_QUERIES = 4096  # whose judgements are written at a time


def write_run_files(
    embedded: SplitEmbeddings,
    folder: Path | str,
    top: int | None = 100,
    tag: str = "lossscope",
    progress: Progress | None = None,
) -> list[Path]:
    """Write i2t.run, t2i.run, i2t.qrels and t2i.qrels, each atomically, and return their paths.

    Of other sides than images and captions files are named after their directions: q2d.run, or all.run of one set.

    A line of a run is `query Q0 document rank score tag`, rank from 1; a line of qrels is `query 0 document 1`. Equal
    scores keep the order of the source's rows and are printed equal, with all their digits, so that ties can be seen:
    ranks of this project count only candidates strictly above. Pairs that a model has not scored are left out, and so
    is an item of one set for itself. Items without a positive are documents, but no queries. An id
    that is no word of visible ASCII letters is written as a JSON string without blanks, see `exact_texts.IN_RUNS`.

    Args:
        embedded: the source.
        folder: where the files are written.
        top: number of best documents of each query; None: all.
        tag: last column of the run files, the name of the system.
        progress: called after each block of queries.

    Raises:
        InputError: ids that are empty or not unique, `top` below 1, a folder that is a file, or NaN.
    """
    if top is not None and top < 1:
        raise InputError(f"top must be at least 1; got {top}")
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} must be a folder for run files; it is a file. Choose another name")
    require_run_ids(embedded)
    ids = Pair(*(list(map(IN_RUNS.write, side)) for side in (embedded.image_ids, embedded.caption_ids)))
    with lock_folder(folder):
        return _write_files(embedded, folder, ids, top, tag, progress)


def require_run_ids(embedded: SplitEmbeddings) -> None:
    """Raise InputError, with its rows, for an id that two items of a side have."""
    for what, ids in named_ids(embedded.sides, embedded.image_ids, embedded.caption_ids):
        require_unique(what, ids, embedded.name, "to name lines of run files")


def _write_files(
    embedded: SplitEmbeddings,
    folder: Path,
    ids: Pair[list[str]],
    top: int | None,
    tag: str,
    progress: Progress | None,
) -> list[Path]:
    """Write the files of both directions into a folder that is locked."""
    files: list[Path] = []
    for direction in DIRECTIONS[:1] if embedded.sides.is_one_set else DIRECTIONS:
        label = embedded.sides.label(direction)
        queries, documents = (ids.i2t, ids.t2i) if direction == "i2t" else (ids.t2i, ids.i2t)
        relations = embedded.relations if direction == "i2t" else embedded.relations.t()
        files += [folder / f"{label}.run", folder / f"{label}.qrels"]
        with write_atomically(files[-2]) as part, open(part, "w", encoding="ascii") as file:
            for row, S in _iter_scores(embedded, direction, relations, progress):
                file.writelines(_lines(queries[row], documents, S, top, IN_RUNS.write(tag)))
        with write_atomically(files[-1]) as part, open(part, "w", encoding="ascii") as file:
            file.writelines(f"{queries[q]} 0 {documents[d]} 1\n" for q, d in _positive_pairs(relations))
    return files


def _iter_scores(
    embedded: SplitEmbeddings, direction: Direction, relations: Relations, progress: Progress | None
) -> Iterator[tuple[int, Tensor]]:
    """Yield each query's row and its scores of all documents, −inf for those that were not scored."""
    images, captions = np.arange(len(embedded.image_ids)), np.arange(len(embedded.caption_ids))
    queries = np.flatnonzero(relations.number_of_positives)
    matrix = TiledMatrix(embedded, images, captions)
    size = max(1, _BLOCK_ENTRIES // relations.second)
    for start in range(0, len(queries), size):
        block = queries[start : start + size]
        if progress:
            progress(f"{embedded.sides.label(direction)}.run of {embedded.name}", start, len(queries))
        S = _score_block(matrix, block, direction)
        if relations.one_set:
            S[torch.arange(len(block)), torch.from_numpy(block)] = -torch.inf
        yield from zip(block.tolist(), S, strict=True)


def _score_block(matrix: TiledMatrix, queries: Rows, direction: Direction) -> Tensor:
    if matrix.embedded.pair_scorer is None:
        S = matrix.whole_rows(torch.from_numpy(queries), direction)
    elif direction == "i2t":
        S = matrix.embedded.similarities(queries, matrix.caption_rows).i2t.nan_to_num(nan=-torch.inf)
    else:
        S = matrix.embedded.similarities(matrix.image_rows, queries).t2i.nan_to_num(nan=-torch.inf)
    if bool(S.isnan().any()):
        raise InputError(
            f"similarities of {matrix.embedded.name} must be numbers; got NaN. Look for NaN in the embeddings"
        )
    return S.cpu()


def _lines(query: str, documents: list[str], S: Tensor, top: int | None, tag: str) -> Iterator[str]:
    scores = S.numpy()
    order = np.argsort(-scores, kind="stable")[:top]
    for rank, document in enumerate(order.tolist(), start=1):
        if scores[document] > -np.inf:
            yield f"{query} Q0 {documents[document]} {rank} {scores[document]!s} {tag}\n"


def _positive_pairs(relations: Relations) -> Iterator[tuple[int, int]]:
    """Yield every query and document that are positives of each other, by query, then document."""
    queries, candidates = np.flatnonzero(relations.number_of_positives), np.arange(relations.second)
    for start in range(0, len(queries), _BLOCK_QUERIES):
        block = queries[start : start + _BLOCK_QUERIES]
        rows, documents = relations.entries(block, candidates)
        yield from zip(block[rows].tolist(), documents.tolist(), strict=True)
