"""One split as a frozen model sees it: its embeddings or similarities, and which items are positives of which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lossscope.errors import InputError

from .pair import Pair
from .relations import Relations
from .sides import Sides, plural, sides_entry
from .types import Gradients, Rows
from .unit_vectors import unit_rows

if TYPE_CHECKING:
    from .vector_shards import VectorShards


@dataclass(frozen=True)
class SplitEmbeddings:
    """One split as a frozen model sees it: N items of the first side, M of the second, and their similarities.

    Sides are images and captions, or any others that `relations` names: queries and documents, two views. One set has
    the same items on both sides. Similarities come from the products of `images` and `captions`, or from `similarity`,
    or from `pair_scorer`. Of images and captions `caption_image` is given, else `relations`.
    Raises InputError for fewer than 2 items of a side, and where `caption_image` is out of range.
    """

    name: str  # its name in tables
    images: Tensor | None  # (N, d), rows whose products with `captions` are S; None where no embeddings are known
    captions: Tensor | None  # (M, d)
    similarity: Tensor | None  # (N, M), where only similarities are known
    caption_image: Rows | None  # (M,) row of the image that each caption describes; None: `relations` say it
    image_ids: list[str]  # N; of shards `RowNumbers`
    caption_ids: list[str]  # M
    fingerprint: str  # hex, of the files that the numbers come from
    objective: str | None = None  # spec of the objective it was trained with
    seed: int | None = None  # it was trained with
    split: str | None = None
    scores: Sequence[tuple[int, int, float]] = ()  # (query row, candidate row, score) of pairs that have scores
    used: str = ""  # rows of a file, `all 350 rows of rows.jsonl`, or what the scores are; empty: nothing to say
    notices: tuple[str, ...] = ()  # what the user should know
    warnings: tuple[str, ...] = ()  # what may make the numbers others than the user means, shown in any case
    # image rows and caption rows -> S, or a Pair where the two directions differ
    pair_scorer: Callable[[Rows, Rows], Tensor | Pair[Tensor]] | None = None
    # numbers of the images and of the captions, equal where the inputs (pixels, words) are equal
    read_input_keys: Callable[[], Pair[Rows | None]] | None = None
    # id -> text of the items of both sides, perhaps of further ones; None of a side without texts
    read_texts: Callable[[], Pair[Mapping[str, str] | None]] | None = None
    # rows of a batch -> in each direction dL/dS -> gradient norm of each layer; None where there is no model
    layer_gradients: Callable[[Rows, Rows], Pair[Gradients]] | None = None
    # of each side, rows of batches -> vectors (n, d), encoded anew batch by batch; None where there is no model
    encode_rows: Pair[Callable[[Sequence[Rows]], Tensor]] | None = None
    mode: str = "eval"  # of the model that computed it, or `train`
    recipe: Mapping[str, Any] = field(default_factory=dict)  # how it was trained; empty where the source has no recipe
    floors_median_rank: bool = True  # whether its authors round the median rank down
    # positives and mined negatives; of images and captions they follow from caption_image
    relations: Relations = field(default=None)  # type: ignore[assignment]
    shards: Pair[VectorShards] | None = None  # of embeddings that are not in memory; then `images` is None
    is_joined: bool = False  # whether both sides are the items of two sides, see `joined`

    def __repr__(self) -> str:
        """Show the name, the size and the training objective in one line."""
        objective = f", trained with {self.objective}" if self.objective else ""
        return f"<{self.name}: {self._size}{objective}>"

    def __post_init__(self) -> None:
        if self.caption_image is not None:
            self._take_caption_image(self.caption_image)
        if self.relations is None:
            raise InputError(f"{self.name} must have caption_image or relations; got neither")
        if self.relations.first < 2 or self.relations.second < 2:
            sides = self.sides
            needed = " and ".join(f"2 {plural(side)}" for side in (sides.first, sides.second) if side is not None)
            raise InputError(f"{self.name} must have at least {needed}; got {self._size}")

    def _take_caption_image(self, caption_image: Rows) -> None:
        """Derive the relations of images and captions."""
        images = len(self.image_ids)
        if len(caption_image) < 2 or images < 2:
            got = f"{images} images and {len(caption_image)} captions"
            raise InputError(f"{self.name} must have at least 2 images and 2 captions; got {got}")
        low, high = int(caption_image.min()), int(caption_image.max())
        if low < 0 or high >= images:
            raise InputError(f"caption_image of {self.name} must be rows 0..{images - 1}; got {low}..{high}")
        object.__setattr__(self, "relations", Relations.of_captions(caption_image, images))

    @property
    def sides(self) -> Sides:
        """What its two sides are called."""
        return self.relations.sides

    @property
    def further_columns(self) -> dict[str, str]:
        """Columns of its summary rows beside those that all have: `sides`, and `used`."""
        return {**sides_entry(self.sides), **({"used": self.used} if self.used else {})}

    @property
    def device(self) -> torch.device:
        """Where S is computed; of a model that scores pairs the CPU, to which it returns them."""
        if self.shards is not None:
            return self.shards.i2t.device
        known = self.similarity if self.images is None else self.images
        return torch.device("cpu") if known is None else known.device

    @property
    def _size(self) -> str:
        """`10 images and 50 captions`; `60 items` of one set."""
        first, second = self.sides.first, self.sides.second
        items = f"{len(self.image_ids)} {plural(first)}"
        return items if second is None else f"{items}, {len(self.caption_ids)} {plural(second)}"

    def similarities(self, image_rows: Rows, caption_rows: Rows) -> Pair[Tensor]:
        """Return S of some images (b,) and captions (m,) with queries as rows: i2t (b, m) and t2i (m, b).

        An entry is NaN where a re-ranking model has not scored the pair: such a candidate is masked out.
        """
        if self.pair_scorer is not None:
            scores = self.pair_scorer(image_rows, caption_rows)
            return scores if isinstance(scores, Pair) else Pair(scores, scores.T)
        if self.shards is not None:
            S = self.shards.i2t.take(image_rows) @ self.shards.t2i.take(caption_rows).T
        elif self.images is None or self.captions is None:
            assert self.similarity is not None
            S = self.similarity[torch.from_numpy(image_rows)[:, None], torch.from_numpy(caption_rows)[None, :]]
        else:
            S = self.images[torch.from_numpy(image_rows)] @ self.captions[torch.from_numpy(caption_rows)].T
        return Pair(S, S.T)

    def similarity_block(self, image_rows: Rows, caption_rows: Rows) -> Tensor:
        """Return S (b, m) of some images and captions, one matrix for both directions.

        Raises InputError where the two directions differ.
        """
        i2t, t2i = self.similarities(image_rows, caption_rows)
        if t2i.data_ptr() != i2t.data_ptr():
            raise InputError(f"similarities of {self.name} must be one matrix for this; its two directions differ")
        return i2t

    @cached_property
    def input_keys(self) -> Pair[Rows | None]:
        """Numbers of the images (N,) and of the captions (M,), equal for equal inputs; None where they are unknown."""
        return self.read_input_keys() if self.read_input_keys is not None else Pair(None, None)

    def prefix(self, width: int) -> SplitEmbeddings:
        """Return the split with the first dimensions of its embeddings, of unit length again (Matryoshka).

        Raises InputError where there are no embeddings, or narrower ones.
        """
        self.require_prefix(width)
        assert self.images is not None
        assert self.captions is not None
        first, _ = unit_rows(self.images[:, :width].contiguous(), f"the first {width} dimensions of {self.name}", 0.0)
        second = first
        if self.captions is not self.images:
            second, _ = unit_rows(self.captions[:, :width].contiguous(), f"the first {width} dimensions", 0.0)
        return replace(
            self, name=f"{self.name} dims={width}", images=first, captions=second, layer_gradients=None,
            encode_rows=None, fingerprint=f"{self.fingerprint}-{width}",
        )  # fmt: skip

    def require_prefix(self, width: int | None) -> None:
        """Raise InputError where `prefix` cannot have a width; None is the whole one."""
        if width is None:
            return
        if self.shards is not None:
            raise InputError(
                f"--dims needs embeddings in memory; lossscope reads {self.name} shard by shard. Leave it out"
            )
        if self.images is None or self.captions is None:
            raise InputError(f"--dims needs embeddings; {self.name} has similarities only")
        if not 1 <= width <= self.images.shape[1]:
            raise InputError(f"--dims must be at most the width of {self.name}, {self.images.shape[1]}; got {width}")

    @cached_property
    def in_memory(self) -> SplitEmbeddings:
        """The same split with the embeddings of its shards in memory."""
        if self.shards is None:
            return self
        return replace(self, images=self.shards.i2t.all(), captions=self.shards.t2i.all(), shards=None)

    @cached_property
    def joined(self) -> SplitEmbeddings:
        """The items of both sides as one set, those of the second side behind: what batches of views are taken from.

        Raises InputError where no embeddings are known.
        """
        if self.shards is not None:
            return self.in_memory.joined
        if self.images is None or self.captions is None:
            raise InputError(
                f"--sampling views needs embeddings, as both views are queries; {self.name} has similarities only"
            )
        vectors, ids = torch.cat([self.images, self.captions]), [*self.image_ids, *self.caption_ids]
        return replace(
            self, images=vectors, captions=vectors, image_ids=ids, caption_ids=ids, caption_image=None,
            relations=self.relations, read_input_keys=None, layer_gradients=None, encode_rows=None,
            is_joined=True,
        )  # fmt: skip

    def to(self, device: torch.device) -> SplitEmbeddings:
        """Return a copy whose tensors are on `device`."""
        values: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        moved: dict[str, Any] = {k: v.to(device) if isinstance(v, Tensor) else v for k, v in values.items()}
        if self.shards is not None:
            moved["shards"] = self.shards.map(lambda side: side.to(device))
        return SplitEmbeddings(**moved)
