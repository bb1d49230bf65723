"""The built-in data set: rendered scenes with captions whose truth is known, from a seed, without a download."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lossscope.io.files import fingerprint_of

from .base import USUAL_SPLITS, require_range, require_split
from .synthetic.captions import CAPTION_WORDS, Claim, write_caption
from .synthetic.rendering import ScenePictures
from .synthetic.scene import RandomGenerator, Scene, draw_scene, scene_words
from .synthetic.truth import SceneSplit


@dataclass(frozen=True)
class Scenes:
    """Images of two to four shapes, and captions that leave out a share of what could be stated.

    At ambiguity 0 a caption names everything; at 1 it names one object by one word, so that it is true of a third of
    all images. Raises InputError for values out of range.
    """

    train: int = 2000  # number of training images
    val: int = 250  # number of validation images
    test: int = 250  # number of test images
    size: int = 64  # pixels of a side, 16..512
    ambiguity: float = 0.1  # probability, 0..1, that a caption leaves out each piece
    seed: int = 0  # seed of scenes and captions, 0..2^64-1
    captions: int = 5  # number of captions of each image

    def __post_init__(self) -> None:
        for name in (*USUAL_SPLITS, "captions"):
            require_range(f"scenes:{name}", getattr(self, name), 1, 1_000_000)
        require_range(
            "scenes:captions times images", self.captions * max(self.train, self.val, self.test), 1, 50_000_000
        )
        require_range("scenes:size", self.size, 16, 512)
        require_range("scenes:ambiguity", self.ambiguity, 0, 1)
        require_range("scenes:seed", self.seed, 0, 2**64 - 1)

    def splits(self) -> tuple[str, ...]:
        """Return train, val and test."""
        return USUAL_SPLITS

    def split(self, name: str) -> SceneSplit:
        """Return the split of a name; it knows which caption is true of which image."""
        require_split(name, USUAL_SPLITS)
        images = [self._draw_image(USUAL_SPLITS.index(name), row) for row in range(getattr(self, name))]
        scenes = tuple(scene for scene, _ in images)
        captions = [text for _, pairs in images for _, text in pairs]
        ids = [f"{name}-{row:05d}" for row in range(len(scenes))]
        return SceneSplit(
            name=name,
            images=ScenePictures(scenes, self.size),
            captions=captions,
            caption_image=np.repeat(np.arange(len(scenes), dtype=np.int64), self.captions),
            image_ids=ids,
            caption_ids=[f"{image}-{k}" for image in ids for k in range(self.captions)],
            fingerprint=fingerprint_of(name, str(self.size), *(scene.fingerprint_text for scene in scenes), *captions),
            scenes=scenes,
            claims=tuple(claim for _, pairs in images for claim, _ in pairs),
        )

    def _draw_image(self, stream: int, row: int) -> tuple[Scene, list[tuple[Claim, str]]]:
        """Draw a scene and its captions."""
        words, blocks = scene_words(self.seed, stream, row, self.captions, CAPTION_WORDS)
        scene = draw_scene(RandomGenerator(words))
        return scene, [write_caption(scene, RandomGenerator(block), self.ambiguity) for block in blocks]
