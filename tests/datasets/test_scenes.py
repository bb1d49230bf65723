"""Are scenes the same on every machine, captions true of their images, and does ambiguity work as stated?"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.datasets.base import Dataset
from lossscope.datasets.scenes import Scenes
from lossscope.datasets.synthetic.captions import Claim, Mention
from lossscope.datasets.synthetic.rendering import render
from lossscope.datasets.synthetic.scene import PLACES, SHAPES, SIZES, RandomGenerator, Scene, SceneObject
from lossscope.datasets.synthetic.truth import SceneSplit, is_true, truth
from lossscope.text.vocabulary import SPECIAL, Vocabulary
from tests.each import each

DEFAULT_SHA256 = "dfea9802219a95e7bfe3bbf0c05c1600eeb4a1e4e2140b5bef48dc6ce26af8bf"
RED = SceneObject("circle", "red", "large", "top left")
BLUE = SceneObject("circle", "blue", "large", "right")
SCENE = Scene((RED, BLUE), "grey")
shares = st.floats(0, 1)
seeds = st.integers(0, 2**64 - 1)


def small(**fields: float) -> SceneSplit:
    return Scenes(**{"train": 1, "val": 12, "test": 1, **fields}).split("val")  # type: ignore[arg-type]


def test_the_default_set_is_the_same_on_every_machine() -> None:
    digest = hashlib.sha256()
    for name in Scenes().splits():
        split = Scenes().split(name)
        digest.update(split.images.take(np.arange(len(split.images))).tobytes())
        digest.update("\n".join(split.captions).encode())
    assert digest.hexdigest() == DEFAULT_SHA256


def test_fingerprints_stay_the_same() -> None:
    split = Scenes(train=5, val=5, test=5).split("val")
    assert split.fingerprint == "864193eec8d986b10fab76c77a071c8b917542dfd206d9984cbd41842d7096ec"


def test_columns_fit_and_ids_name_rows() -> None:
    split = Scenes().split("val")
    assert isinstance(Scenes(), Dataset)
    assert (len(split.images), len(split.captions), split.images.shape) == (250, 1250, (3, 64, 64))
    assert split.caption_image.tolist() == [row // 5 for row in range(1250)]
    assert (split.image_ids[17], split.caption_ids[17 * 5 + 3]) == ("val-00017", "val-00017-3")


def test_splits_seeds_and_options_differ() -> None:
    scenes = Scenes(train=5, val=5, test=5)
    splits = [*(scenes.split(name) for name in scenes.splits()), Scenes(val=5, seed=1).split("val")]
    assert len({scene for split in splits for scene in split.scenes}) == 20
    options = ({}, {"size": 32}, {"ambiguity": 0.5}, {"captions": 2}, {"seed": 1}, {"val": 11})
    assert len({small(**option).fingerprint for option in options}) == len(options)


def test_fewer_images_or_captions_change_nothing_else() -> None:
    whole, part = small(captions=4), small(val=5, captions=2)
    assert part.scenes == whole.scenes[:5]
    assert part.captions == [whole.captions[4 * image + k] for image in range(5) for k in range(2)]


@settings(deadline=None, max_examples=25)
@given(shares, seeds)
def test_every_caption_is_true_of_its_image(ambiguity: float, seed: int) -> None:
    split = small(ambiguity=ambiguity, seed=seed)
    assert split.truth()[np.arange(len(split.captions)), split.caption_image].all()


@settings(deadline=None, max_examples=25)
@given(shares, seeds)
def test_truth_is_is_true_of_every_pair(ambiguity: float, seed: int) -> None:
    split = small(ambiguity=ambiguity, seed=seed, captions=2)
    expected = [[split.is_true(row, image) for image in range(12)] for row in range(24)]
    assert split.truth().tolist() == expected


@settings(deadline=None, max_examples=25)
@given(shares, shares, seeds)
def test_more_ambiguity_makes_captions_true_of_more_images(first: float, second: float, seed: int) -> None:
    clear, ambiguous = (small(ambiguity=share, seed=seed).truth() for share in sorted((first, second)))
    assert (ambiguous | ~clear).all()


@settings(deadline=None, max_examples=25)
@given(seeds)
def test_scenes_have_two_to_four_objects_in_different_places(seed: int) -> None:
    for scene in small(seed=seed).scenes:
        assert 2 <= len(scene.objects) <= 4
        assert len({item.position for item in scene.objects}) == len(scene.objects)


def test_complete_captions_name_everything_and_are_true_of_no_other_image() -> None:
    split = Scenes(ambiguity=0).split("val")
    assert (split.truth().sum(axis=1) == 1).mean() > 0.999
    for claim, image in zip(split.claims, split.caption_image.tolist(), strict=True):
        scene = split.scenes[image]
        stated = {(m.shape, m.colour, m.size, m.position) for m in claim.mentions}
        assert stated == {(t.shape, t.colour, t.size, t.position) for t in scene.objects}
        assert claim.background == scene.background


def test_open_captions_state_one_word() -> None:
    split = small(ambiguity=1)
    for claim in split.claims:
        (mention,) = claim.mentions
        assert claim.background is mention.size is mention.position is None
        assert (mention.shape is None) != (mention.colour is None)


def test_ambiguity_sets_how_many_other_images_a_caption_fits() -> None:
    fits = [Scenes(ambiguity=share).split("val").truth().mean() - 1 / 250 for share in (0.1, 0.5, 0.8, 1)]
    assert 0 < fits[0] < 0.001 < 0.01 < fits[1] < 0.04 < 0.1 < fits[2] < 0.2 < 0.3 < fits[3] < 0.5


@each("claim, expected", [
    (Claim((Mention(shape="circle"),)), True),
    (Claim((Mention(shape="circle"), Mention(shape="circle"))), True),
    (Claim((Mention(shape="circle"),) * 3), False),
    (Claim((Mention(),) * 2), True),
    (Claim((Mention(),) * 3), False),
    (Claim((Mention(colour="red"), Mention(colour="red"))), False),
    (Claim((Mention(shape="circle"), Mention(colour="red"))), True),
    (Claim((Mention(colour="red", position="right"),)), False),
    (Claim((Mention(colour="red"),), "grey"), True),
    (Claim((Mention(colour="red"),), "white"), False),
    (Claim(()), True),
])  # fmt: skip
def test_truth_needs_an_object_for_each_mention(claim: Claim, expected: bool) -> None:
    assert is_true(claim, SCENE) is expected
    assert truth([claim], [SCENE]).tolist() == [[expected]]
    assert truth([claim], []).shape == (1, 0)


def test_captions_state_their_claims() -> None:
    split = small(ambiguity=0.4, val=60)
    for caption, claim in zip(split.captions, split.claims, strict=True):
        for mention in claim.mentions:
            assert mention.colour in (None, "purple", "cyan") or mention.colour in caption
            assert mention.shape not in ("triangle",) or "triangle" in caption
        assert claim.background in (None, "grey") or claim.background in caption
        assert (claim.background is None) == (not any(w in caption for w in ("background", "backdrop", "wall")))
        assert " an green" not in caption
        assert "a orange" not in caption
        assert "  " not in caption


def test_captions_are_varied_and_small_in_vocabulary() -> None:
    split = Scenes().split("train")
    assert len(set(split.captions[:5])) == 5
    words = Vocabulary.build(split.captions)
    assert 50 < len(words) < 90
    assert all(3 not in words.encode(caption) for caption in Scenes().split("test").captions)
    assert words.words[:4] == SPECIAL


@each("size", [*range(16, 70), 511, 512])
def test_objects_stay_in_their_ninth_at_every_size(size: int) -> None:
    plain = render([Scene((), "grey")], size)[0]
    for jitter in ((0, 0, 0), (8, 8, 8)):
        forms = itertools.product(SHAPES, SIZES, PLACES)
        objects = [SceneObject(shape, "red", scale, position, jitter) for shape, scale, position in forms]
        for item, pixels in zip(objects, render([Scene((item,), "grey") for item in objects], size), strict=True):
            down, right = np.nonzero((pixels != plain).any(axis=0))
            row, column = divmod(PLACES.index(item.position), 3)
            assert len(down) >= 1
            for pixels, third in ((down, row), (right, column)):
                assert third * size // 3 <= pixels.min()
                assert pixels.max() <= (third + 1) * size // 3


def test_shapes_sizes_and_colours_look_different() -> None:
    split = Scenes(train=1, val=1, test=1).split("val")
    item = split.scenes[0].objects[0]
    colours = ("red", "green", "blue", "yellow", "orange", "purple", "pink", "cyan")
    scenes = [
        Scene((SceneObject(shape, colour, size, item.position),), "grey")
        for shape in SHAPES
        for size in SIZES
        for colour in colours
    ]
    assert len({picture.tobytes() for picture in render(scenes, 64)}) == len(scenes)


def test_pictures_are_the_same_one_by_one_and_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([7, 2, 7], dtype=np.int64)
    whole = small().images.take(rows)
    monkeypatch.setattr("lossscope.datasets.synthetic.rendering._CACHE_BYTES", 0)
    assert np.array_equal(small().images.take(rows), whole)


def test_random_numbers_are_in_range_and_uniform() -> None:
    rng = RandomGenerator(np.random.Philox(key=1).random_raw(6000).tolist())
    counts = np.bincount([rng.below(6) for _ in range(6000)])
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 150
