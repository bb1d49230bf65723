"""Embeddings or similarities in a file that any other program can write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.request import Request
from lossscope.encoders.released.signs import is_configured

from .checkpoints.schema import is_safetensors_checkpoint

_FOLDER = ("images*.npy", "similarity*.npy", "images.faiss", "images.index")  # shards or indices, one of which is there
_OTHERS = (".npy", ".pt", ".pth", ".csv", ".tsv", ".parquet")  # that hold arrays, or something else


@dataclass(frozen=True)
class Dump:
    """an embedding or similarity dump (.npz, .safetensors, .pt, a square .npy, a table, a folder of .npy or FAISS)

    Arrays of a file of images and captions; others are ignored:

    - `images` (N, d) and `captions` (M, d), or `similarity` (N, M).
    - `caption_image` (M,): image row of each caption. Without it M must be k * N, image-major, and a warning says so.
    - `image_id`, `caption_id` and `caption` (the texts), all optional: images of one id, and captions of the same
      words, are the same input.
    - in place of `caption_image` `positives` (n, 2), as of other sides, where a caption has several images.

    Any other two sides are `queries` and `documents`, with `positives` (n, 2), rows of both, and perhaps `negatives`
    (q, k), rows of documents, -1 for none. `sides` names them otherwise: ["user", "item"] for arrays `users` and
    `items`. `query_id`, `document_id`, `query_text` and `document_text` are optional. One set is `embeddings` with
    `labels` (n,); with `proxies` (C, d) beside them, the vector of each class, a label is a row of these. Late
    interaction: `query_tokens` (T, d) and `query_offsets` (q + 1,), and those of the documents.

    A folder has images*.npy and captions*.npy (concatenated in the order of their names), or images.faiss and
    captions.faiss (flat indices; extra [faiss]), and may have metadata.parquet with a row per caption and the
    columns above.

    A torch file has the arrays by name, or as a tuple of two matrices. A .npy file is a matrix of similarities, square
    or with --caption-image. A table (.csv, .tsv, .parquet) has a label and numbers, or a list of them; or lists of
    numbers of two sides. For a sample of queries (`--queries`) .npy shards are read block by block, also behind a URL.
    Raises InputError for NaN, zero rows and wrong shapes.
    """

    path: Path  # the file or folder

    @classmethod
    def accepts(cls, path: Path) -> bool:
        if path.is_dir():
            return any(any(path.glob(pattern)) for pattern in _FOLDER)
        if path.suffix in _OTHERS:
            from ._array_files import is_array_file

            return is_array_file(path) and not (path.suffix == ".npy" and cls.accepts(path.parent))
        if path.suffix == ".safetensors" and is_configured(path):
            return False  # weights beside their configuration
        return path.suffix in (".npz", ".safetensors") and not is_safetensors_checkpoint(path)

    def read(self, request: Request) -> SplitEmbeddings:
        from ._dump_split import read_dump

        return read_dump(self.path, request)

    def describe(self) -> dict[str, str]:
        """Read everything and return what is in it, name -> text. Raises InputError where something is wrong."""
        from ._dump_facts import describe

        return describe(self.read(Request(cache=False)))
