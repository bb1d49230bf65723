"""Mine the hardest candidates of the whole training split under a model once; each batch draws from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch

from lossscope.core.batches import Batch
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Progress, Rows
from lossscope.errors import InputError
from lossscope.io.decode import decode
from lossscope.io.files import fingerprint_of, read_safetensors, write_safetensors
from lossscope.io.folder_lock import has_content, lock_folder
from lossscope.io.manifests import read_manifest, write_manifest

SCHEMA: Final = "lossscope.offline/1"
_ROWS = 512  # items of a part


@dataclass(frozen=True)
class HardCandidates:
    """The hardest candidates of each item, hardest first, without its positives."""

    captions: Rows  # (N, K) of images
    images: Rows  # (M, K) of captions
    items: str  # fingerprint of the split's ids
    source: str  # name of the model

    @classmethod
    def read(cls, folder: Path) -> HardCandidates:
        """Read a folder that `mine_candidates` finished. Raises InputError for any other."""
        manifest = _read_manifest(folder)
        if manifest is None:
            raise InputError(
                f"{folder} must be a folder written by lossscope mine; it has no manifest.json of a ranking"
            )
        there = sum(1 for _ in folder.glob("*.safetensors"))
        if there < manifest.part_count:
            raise InputError(
                f"{folder} must be complete; {manifest.part_count - there} of {manifest.part_count} parts are "
                "missing. Run the same lossscope mine again: it resumes"
            )
        rows: dict[str, list[Rows]] = {"captions": [], "images": []}
        for name in manifest.parts:
            rows[name.partition("-")[0]].append(_read_part(folder / name, manifest))
        captions, images = (np.concatenate(rows[side]) for side in ("captions", "images"))
        return cls(captions, images, manifest.items, manifest.source)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the lists."""
        return fingerprint_of(self.items, self.captions.tobytes(), self.images.tobytes())

    def extend(self, batch: Batch, caption_image: Rows, seed: int, epoch: int) -> Batch:
        """B pairs -> 3 B: the pairs, then an offline image with an offline caption for each, then their partners.

        Pair q is followed at B + q by I^ (a hard image of its caption) and T^ (a hard caption of its image), and at
        2 B + q by the image of T^ and a caption of I^. The draw depends on (seed, epoch, caption) alone.
        """
        first, second, third = (column[batch.captions] for column in _random_numbers(len(caption_image), seed, epoch))
        T = self.captions[batch.images, first % self.captions.shape[1]]
        I = self.images[batch.captions, second % self.images.shape[1]]  # noqa: E741 - the paper's name
        order = np.argsort(caption_image, kind="stable")
        begin = np.searchsorted(caption_image[order], I)
        number = np.bincount(caption_image, minlength=int(I.max()) + 1)[I]
        partner = order[begin + third % number]
        images = np.concatenate([batch.images, I, caption_image[T]])
        return Batch(images, np.concatenate([batch.captions, T, partner]), "pairs")


def mine_candidates(
    embedded: SplitEmbeddings, folder: Path, top: int = 300, progress: Progress | None = None
) -> HardCandidates:
    """Write the hardest candidates of all images and captions, part by part; resume an unfinished folder.

    Args:
        embedded: the training split under a model.
        folder: for the parts.
        top: candidates of each item.
        progress: called with (label, done, of).

    Raises:
        InputError: a folder that holds something else, or an image without a caption.
    """
    if top < 1:
        raise InputError(f"--top must be at least 1; got {top}")
    owner, n, m = embedded.relations.caption_image, len(embedded.image_ids), len(embedded.caption_ids)
    if len(np.unique(owner)) < n:
        raise InputError(
            f"every image to rank must have a caption; {n - len(np.unique(owner))} of {embedded.name} have none"
        )
    most = int(np.bincount(owner, minlength=n).max())
    manifest = _Manifest(
        SCHEMA, embedded.name, embedded.fingerprint, items_of(embedded), n, m, min(top, m - most), min(top, n - 1)
    )
    with lock_folder(folder):
        _write_parts(embedded, folder, manifest, progress)
    return HardCandidates.read(folder)


def _write_parts(embedded: SplitEmbeddings, folder: Path, manifest: _Manifest, progress: Progress | None) -> None:
    """Write the parts that a folder lacks. Raises InputError when it holds something else."""
    before = _read_manifest(folder)
    if before is not None and before != manifest:
        raise InputError(f"{folder} must be new or of this very ranking; it is another one. Choose another --out")
    if before is None:
        if has_content(folder):
            raise InputError(f"{folder} must be new or empty; it is not. Choose another --out")
        write_manifest(folder / "manifest.json", asdict(manifest))
    parts = manifest.parts
    for number, name in enumerate(parts):
        if not (folder / name).is_file():
            side, start = name.removesuffix(".safetensors").split("-")
            rows = _hardest(embedded, side, int(start), manifest)
            write_safetensors(folder / name, {"rows": torch.from_numpy(rows)})
        if progress:
            progress("mining", number + 1, len(parts))


def items_of(split: Any) -> str:
    """Return the fingerprint of the ids of a split, or of its embeddings."""
    return fingerprint_of("items", *split.image_ids, *split.caption_ids)


@dataclass(frozen=True)
class _Manifest:
    schema: Literal["lossscope.offline/1"]
    source: str  # name of the model
    origin: str  # fingerprint of the embeddings
    items: str  # fingerprint of the split's ids
    images: int
    captions: int
    top_captions: int  # candidates of each image
    top_images: int  # candidates of each caption

    def __post_init__(self) -> None:
        counts = (self.images, self.captions, self.top_captions, self.top_images)
        if min(counts) < 1 or self.top_captions > self.captions or self.top_images > self.images:
            raise InputError(f"a ranking must be of images, captions and as many candidates or fewer; got {counts}")

    @property
    def part_count(self) -> int:
        """Number of the files."""
        return -(-self.images // _ROWS) - (-self.captions // _ROWS)

    @property
    def parts(self) -> list[str]:
        """Names of the files: captions of images, then images of captions."""
        sides = (("captions", self.images), ("images", self.captions))
        return [f"{side}-{start:08d}.safetensors" for side, rows in sides for start in range(0, rows, _ROWS)]

    def part_shape(self, name: str) -> tuple[tuple[int, int], int]:
        """Return the shape of a part's rows, and their exclusive upper limit."""
        side, start = name.removesuffix(".safetensors").split("-")
        items, top = (self.images, self.top_captions) if side == "captions" else (self.captions, self.top_images)
        others = self.captions if side == "captions" else self.images
        return (min(_ROWS, items - int(start)), top), others


@lru_cache(maxsize=2)
def _random_numbers(captions: int, seed: int, epoch: int) -> tuple[Rows, Rows, Rows]:
    """Return three integers for each caption of an epoch, from the raw counter-based stream."""
    key = np.array([seed & 0xFFFFFFFFFFFFFFFF, (1 << 32) + epoch], dtype=np.uint64)
    raw = (np.random.Philox(key=key).random_raw(3 * captions) >> np.uint64(1)).astype(np.int64).reshape(3, -1)
    return raw[0], raw[1], raw[2]


def _hardest(embedded: SplitEmbeddings, side: str, start: int, manifest: _Manifest) -> Rows:
    """Return the hardest candidates of the rows of a part, without their positives."""
    owner, n = embedded.relations.caption_image, manifest.images
    if side == "captions":
        rows, other = np.arange(start, min(start + _ROWS, n)), np.arange(manifest.captions)
        S, is_positive = embedded.similarity_block(rows, other), rows[:, None] == owner[None, :]
        top = manifest.top_captions
    else:
        rows, other = np.arange(start, min(start + _ROWS, manifest.captions)), np.arange(n)
        S, is_positive = embedded.similarity_block(other, rows).T, owner[rows][:, None] == other[None, :]
        top = manifest.top_images
    others = S.masked_fill(torch.from_numpy(is_positive).to(S.device), -torch.inf)
    return others.topk(top, dim=1).indices.cpu().numpy().astype(np.int64)


def _read_part(file: Path, manifest: _Manifest) -> Rows:
    """Return the rows of a part. Raises InputError if they do not fit the manifest."""
    content = read_safetensors(file)
    shape, others = manifest.part_shape(file.name)
    rows = content.get("rows")
    if rows is None or tuple(rows.shape) != shape or rows.dtype is not torch.int64:
        got = "none" if rows is None else f"{rows.dtype} {tuple(rows.shape)}"
        raise InputError(f"{file} must hold rows, int64 {shape}, as the manifest states; got {got}. Rank again")
    if int(rows.min()) < 0 or int(rows.max()) >= others:
        raise InputError(f"rows of {file} must be from 0 to {others - 1}; got {int(rows.min())} to {int(rows.max())}")
    return np.asarray(rows.numpy(), dtype=np.int64)


def _read_manifest(folder: Path) -> _Manifest | None:
    """Return the manifest, None if the folder has none of ours. Raises InputError if it is damaged."""
    path = folder / "manifest.json"
    if not path.exists():
        return None
    content = read_manifest(path)
    if content.get("schema") != SCHEMA:
        return None
    return decode(_Manifest, content, str(path))
