"""Are mined lists the hardest candidates, does a stopped ranking resume, and do batches draw from it?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import normalise
from lossscope.errors import InputError
from lossscope.training.offline_candidates import HardCandidates, mine_candidates

IMAGES, EACH, TOP = 12, 3, 5


@pytest.fixture(name="embedded")
def made() -> SplitEmbeddings:
    random = torch.Generator().manual_seed(0)
    owner = np.repeat(np.arange(IMAGES, dtype=np.int64), EACH)
    return SplitEmbeddings(
        name="model",
        images=normalise(torch.randn(IMAGES, 6, generator=random)),
        captions=normalise(torch.randn(IMAGES * EACH, 6, generator=random)),
        similarity=None,
        caption_image=owner,
        image_ids=[f"i{n}" for n in range(IMAGES)],
        caption_ids=[f"c{n}" for n in range(IMAGES * EACH)],
        fingerprint="abc",
    )


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lossscope.training.offline_candidates._ROWS", 5)


def test_the_lists_are_the_hardest_of_other_images_hardest_first(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    candidates = mine_candidates(embedded, tmp_path / "ranked", TOP)
    assert embedded.images is not None and embedded.captions is not None
    S, owner = (embedded.images @ embedded.captions.T).numpy(), embedded.caption_image
    for image in range(IMAGES):
        others = [c for c in range(len(owner)) if owner[c] != image]
        assert candidates.captions[image].tolist() == sorted(others, key=lambda c: -S[image, c])[:TOP]
    for caption in range(len(owner)):
        others = [i for i in range(IMAGES) if i != owner[caption]]
        assert candidates.images[caption].tolist() == sorted(others, key=lambda i: -S[i, caption])[:TOP]


def test_lists_are_no_longer_than_there_are_candidates(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    candidates = mine_candidates(embedded, tmp_path / "ranked", 1000)
    assert (candidates.captions.shape, candidates.images.shape) == ((IMAGES, 33), (36, IMAGES - 1))


def test_a_ranking_that_was_stopped_goes_on(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    whole = mine_candidates(embedded, tmp_path / "whole", TOP)

    class Stopped(Exception):
        pass

    def stop(_label: str, done: int, _total: int) -> None:
        if done == 4:
            raise Stopped

    with pytest.raises(Stopped):
        mine_candidates(embedded, tmp_path / "broken", TOP, stop)
    with pytest.raises(InputError, match=r"7 of 11 parts are missing. Run the same lossscope mine again"):
        HardCandidates.read(tmp_path / "broken")
    first = tmp_path / "broken" / "captions-00000000.safetensors"
    before = first.stat().st_mtime_ns
    again = mine_candidates(embedded, tmp_path / "broken", TOP)
    assert first.stat().st_mtime_ns == before
    assert again.fingerprint == whole.fingerprint
    assert np.array_equal(again.captions, whole.captions)


def test_other_rankings_and_other_folders_are_refused(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    mine_candidates(embedded, tmp_path / "ranked", TOP)
    with pytest.raises(InputError, match="it is another one"):
        mine_candidates(embedded, tmp_path / "ranked", TOP + 1)
    with pytest.raises(InputError, match="it is another one"):
        mine_candidates(replace(embedded, fingerprint="other"), tmp_path / "ranked", TOP)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thing").write_text("x")
    with pytest.raises(InputError, match="must be new or empty"):
        mine_candidates(embedded, tmp_path / "used", TOP)
    with pytest.raises(InputError, match=r"no manifest\.json"):
        HardCandidates.read(tmp_path / "used")
    with pytest.raises(InputError, match="--top must be at least 1"):
        mine_candidates(embedded, tmp_path / "new", 0)
    missing = replace(embedded, caption_image=np.minimum(embedded.caption_image, IMAGES - 2))
    with pytest.raises(InputError, match="every image to rank must have a caption; 1 of model have none"):
        mine_candidates(missing, tmp_path / "new", TOP)


def test_a_manifest_of_something_else_is_none(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    folder = tmp_path / "frame"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"schema": "other"}))
    with pytest.raises(InputError, match=r"no manifest\.json"):
        HardCandidates.read(folder)


def test_a_batch_is_extended_by_hard_items_and_their_partners(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    offline = mine_candidates(embedded, tmp_path / "ranked", TOP)
    owner = embedded.caption_image
    batch = next(Sampling("pairs", 8, seed=3).batches(owner))
    longer = offline.extend(batch, owner, seed=3, epoch=2)
    images, captions = longer.images.reshape(3, 8), longer.captions.reshape(3, 8)
    assert np.array_equal(images[0], batch.images)
    assert np.array_equal(captions[0], batch.captions)
    for q in range(8):
        assert captions[1, q] in offline.captions[images[0, q]]
        assert images[1, q] in offline.images[captions[0, q]]
        assert images[2, q] == owner[captions[1, q]]
        assert owner[captions[2, q]] == images[1, q]


def test_what_is_drawn_depends_on_seed_epoch_and_caption_alone(embedded: SplitEmbeddings, tmp_path: Path) -> None:
    offline = mine_candidates(embedded, tmp_path / "ranked", TOP)
    owner = embedded.caption_image
    first, *_ = Sampling("pairs", 36, seed=0).batches(owner)
    second, *_ = Sampling("pairs", 36, seed=1).batches(owner)

    def drawn(batch: object, epoch: int) -> dict[int, int]:
        longer = offline.extend(batch, owner, 0, epoch)  # type: ignore[arg-type]
        return dict(zip(longer.captions[:36].tolist(), longer.captions[36:72].tolist(), strict=True))

    assert drawn(first, 0) == drawn(second, 0)
    assert drawn(first, 0) != drawn(first, 1)


def test_a_manifest_that_states_too_much_is_refused_at_once(tmp_path: Path) -> None:
    stated = {"schema": "lossscope.offline/1", "source": "a", "origin": "b", "items": "c", "images": 10**15}
    counts = {"captions": 10**15, "top_captions": 3, "top_images": 3}
    (tmp_path / "manifest.json").write_text(json.dumps({**stated, **counts}), encoding="utf-8")
    with pytest.raises(InputError, match="must be complete"):
        HardCandidates.read(tmp_path)
