"""The embedded data set: painted scenes with captions whose truth is known, from a seed, with no download."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of

from .synthetic.captions import CAPTION_WORDS, Claim, tell
from .synthetic.rendering import ScenePictures
from .synthetic.scene import Dice, Scene, draw_scene, lots
from .synthetic.truth import SceneSplit

_SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Scenes:
    """Images of two to four shapes, and captions that leave out a share of what there is to say.

    train, val, test: number of images. size: pixels of a side, 16..512. ambiguity: probability, 0..1, that a
    caption leaves out each piece; at 0 it names everything, at 1 one thing by one word, so that it is true of
    a third of all images. captions: number per image. Raises InputError for values outside.
    """

    train: int = 2000
    val: int = 250
    test: int = 250
    size: int = 64
    ambiguity: float = 0.1
    seed: int = 0
    captions: int = 5

    def __post_init__(self) -> None:
        for name in (*_SPLITS, "captions"):
            _within(name, getattr(self, name), 1, 1_000_000)
        _within("size", self.size, 16, 512)
        _within("ambiguity", self.ambiguity, 0, 1)
        _within("seed", self.seed, 0, 2**64 - 1)

    def splits(self) -> tuple[str, ...]:
        """train, val, test."""
        return _SPLITS

    def split(self, name: str) -> SceneSplit:
        """The split of that name, which knows which caption is true of which image."""
        if name not in _SPLITS:
            raise InputError(f"split must be one of {', '.join(_SPLITS)}; got {name!r}")
        told = [self._image(_SPLITS.index(name), row) for row in range(getattr(self, name))]
        scenes = tuple(scene for scene, _ in told)
        captions = [text for _, said in told for _, text in said]
        ids = [f"{name}-{row:05d}" for row in range(len(scenes))]
        return SceneSplit(
            name=name,
            images=ScenePictures(scenes, self.size),
            captions=captions,
            caption_image=np.repeat(np.arange(len(scenes), dtype=np.int64), self.captions),
            image_ids=ids,
            caption_ids=[f"{image}-{k}" for image in ids for k in range(self.captions)],
            fingerprint=fingerprint_of(name, str(self.size), *map(repr, scenes), *captions),
            scenes=scenes,
            claims=tuple(claim for _, said in told for claim, _ in said),
        )

    def _image(self, stream: int, row: int) -> tuple[Scene, list[tuple[Claim, str]]]:
        words, blocks = lots(self.seed, stream, row, self.captions, CAPTION_WORDS)
        scene = draw_scene(Dice(words))
        return scene, [tell(scene, Dice(block), self.ambiguity) for block in blocks]


def _within(name: str, value: float, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError(f"scenes:{name} must be in {low}..{high}; got {value}")
