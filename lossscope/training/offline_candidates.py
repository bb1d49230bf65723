"""Offline candidates: the hardest of the whole training split under a model, ranked once, drawn from in every batch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
import torch

from lossscope.core.batches import Batch
from lossscope.core.embedded import SplitEmbeddings
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of, read_safetensors, write_atomically, write_text

Rows = npt.NDArray[np.int64]
Progress = Callable[[str, int, int], None]
SCHEMA = "lossscope.offline/1"
_PART = 512


@dataclass(frozen=True)
class HardCandidates:
    """The hardest candidates of every item, hardest first: captions (N, K) of images, images (M, K) of captions.

    Those of the item's own image are left out. items: fingerprint of the split's ids. source: the model's name.
    """

    captions: Rows
    images: Rows
    items: str
    source: str

    @classmethod
    def read(cls, folder: Path) -> HardCandidates:
        """A folder that `mine_candidates` has finished. Raises InputError for any other."""
        told = _manifest(folder)
        if told is None:
            raise InputError(f"{folder} must be a folder written by lossscope rank; it has no manifest.json of one")
        parts = _parts(told)
        missing = [name for name in parts if not (folder / name).is_file()]
        if missing:
            raise InputError(
                f"{folder} must be a finished ranking; {len(missing)} of {len(parts)} parts are missing. Run the same "
                "lossscope rank again: it goes on"
            )
        rows: dict[str, list[Rows]] = {"captions": [], "images": []}
        for name in parts:
            rows[name.partition("-")[0]].append(read_safetensors(folder / name)["rows"].numpy())
        return cls(np.concatenate(rows["captions"]), np.concatenate(rows["images"]), told["items"], told["source"])

    @property
    def fingerprint(self) -> str:
        """Of the lists themselves."""
        return fingerprint_of(self.items, self.captions.tobytes(), self.images.tobytes())

    def extended(self, batch: Batch, caption_image: Rows, seed: int, epoch: int) -> Batch:
        """B pairs -> 3 B: the pairs, then an offline image with an offline caption for each, then their partners.

        Pair q is followed at B + q by I^ (a hard image of its caption) and T^ (a hard caption of its image), and at
        2 B + q by the image of T^ and a caption of I^. What is drawn depends on (seed, epoch, caption) alone.
        """
        first, second, third = (column[batch.captions] for column in _draws(len(caption_image), seed, epoch))
        T = self.captions[batch.images, first % self.captions.shape[1]]
        I = self.images[batch.captions, second % self.images.shape[1]]  # noqa: E741 - the paper's name
        order = np.argsort(caption_image, kind="stable")
        begin, number = (
            np.searchsorted(caption_image[order], I),
            np.bincount(caption_image, minlength=int(I.max()) + 1)[I],
        )
        partner = order[begin + third % number]
        images = np.concatenate([batch.images, I, caption_image[T]])
        return Batch(images, np.concatenate([batch.captions, T, partner]), "pairs")


def mine_candidates(
    embedded: SplitEmbeddings, folder: Path, top: int = 300, progress: Progress | None = None
) -> HardCandidates:
    """Write the `top` hardest candidates of every image and caption, part by part; a folder begun is gone on with.

    Raises InputError when the folder holds a ranking of something else, or no item has a candidate.
    """
    if top < 1:
        raise InputError(f"--top must be at least 1; got {top}")
    owner, n, m = embedded.caption_image, len(embedded.image_ids), len(embedded.caption_ids)
    if len(np.unique(owner)) < n:
        raise InputError(
            f"every image to rank must have a caption; {n - len(np.unique(owner))} of {embedded.name} have none"
        )
    most = int(np.bincount(owner, minlength=n).max())
    told = {
        "schema": SCHEMA, "source": embedded.name, "origin": embedded.fingerprint, "items": items_of(embedded),
        "images": n, "captions": m, "top_captions": min(top, m - most), "top_images": min(top, n - 1),
    }  # fmt: skip
    before = _manifest(folder)
    if before is not None and before != told:
        raise InputError(f"{folder} must be new or of this very ranking; it is another one. Choose another --out")
    if before is None:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} must be new or empty; it is not. Choose another --out")
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "manifest.json", json.dumps(told, indent=1) + "\n")
    parts = _parts(told)
    for place, name in enumerate(parts):
        if not (folder / name).is_file():
            kind, start = name.removesuffix(".safetensors").split("-")
            rows = _hardest(embedded, kind, int(start), told)
            with write_atomically(folder / name) as part:
                safetensors.numpy.save_file({"rows": rows}, part)
        if progress:
            progress("ranking", place + 1, len(parts))
    return HardCandidates.read(folder)


def items_of(split: Any) -> str:
    """Fingerprint of the ids of a split, or of what was embedded of it."""
    return fingerprint_of("items", *split.image_ids, *split.caption_ids)


@lru_cache(maxsize=2)
def _draws(captions: int, seed: int, epoch: int) -> tuple[Rows, Rows, Rows]:
    """Three whole numbers for every caption of an epoch, from the raw counter-based stream."""
    key = np.array([seed & 0xFFFFFFFFFFFFFFFF, (1 << 32) + epoch], dtype=np.uint64)
    raw = (np.random.Philox(key=key).random_raw(3 * captions) >> np.uint64(1)).astype(np.int64).reshape(3, -1)
    return raw[0], raw[1], raw[2]


def _hardest(embedded: SplitEmbeddings, kind: str, start: int, told: dict[str, Any]) -> Rows:
    """The best candidates of rows start ... of one side, those of the own image left out."""
    owner, n = embedded.caption_image, told["images"]
    if kind == "captions":
        rows, other = np.arange(start, min(start + _PART, n)), np.arange(told["captions"])
        S, own, top = embedded.block(rows, other), rows[:, None] == owner[None, :], told["top_captions"]
    else:
        rows, other = np.arange(start, min(start + _PART, told["captions"])), np.arange(n)
        S, own, top = embedded.block(other, rows).T, owner[rows][:, None] == other[None, :], told["top_images"]
    hidden = S.masked_fill(torch.from_numpy(own).to(S.device), -torch.inf)
    return hidden.topk(top, dim=1).indices.cpu().numpy().astype(np.int64)


def _parts(told: dict[str, Any]) -> list[str]:
    sides = (("captions", told["images"]), ("images", told["captions"]))
    return [f"{kind}-{start:08d}.safetensors" for kind, rows in sides for start in range(0, rows, _PART)]


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        told = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and told.get("schema") == SCHEMA else None
