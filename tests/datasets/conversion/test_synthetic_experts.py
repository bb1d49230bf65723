"""Generated features: the same from the same seed, shaped as said, and telling of their own captions above chance."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from lossscope.datasets.conversion.random_word_vectors import write_word_vectors
from lossscope.datasets.conversion.synthetic_experts import EXPERTS, Generated
from lossscope.datasets.formats.ragged import Ragged
from lossscope.datasets.formats.videos import ExpertFolder
from lossscope.errors import InputError

NOUNS = ["dog", "cat", "car", "boat", "tree", "house", "river", "stone", "cloud", "horse", "piano", "spoon"]


def captions(videos: int = 60) -> dict[str, list[str]]:
    dice = np.random.default_rng(0)
    words = [dice.choice(NOUNS, 3, replace=False).tolist() for _ in range(videos)]
    return {f"video{k}": [f"a {w[0]} and a {w[1]}", f"the {w[2]}"] for k, w in enumerate(words)}


def made(root: Path, told: dict[str, list[str]] | None = None, **options: object) -> ExpertFolder:
    Generated(width=16, **options).write(told or captions(), root)  # type: ignore[arg-type]
    return ExpertFolder.open(root)


def test_names_and_widths_are_those_of_the_models() -> None:
    widths = {name: {expert: kind.width for expert, kind in found.items()} for name, found in EXPERTS.items()}
    assert widths == {
        "mmt": {"face": 512, "ocr": 300, "rgb": 2048, "s3d": 1024, "scene": 2208, "speech": 300, "vggish": 128},
        "ce": {
            "audio": 128, "face": 512, "i3d.i3d.0": 1024, "imagenet.resnext101_32x48d.0": 2048,
            "imagenet.senet154.0": 2048, "ocr": 300, "r2p1d.r2p1d-ig65m.0": 512, "scene.densenet161.0": 2208,
            "speech": 300,
        },
    }  # fmt: skip
    assert all(list(found) == sorted(found) for found in EXPERTS.values())


def test_the_same_seed_makes_the_same_files_and_another_one_others(tmp_path: Path) -> None:
    made(tmp_path / "a"), made(tmp_path / "b"), made(tmp_path / "c", seed=1)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    assert (tmp_path / "a/rgb.npy").read_bytes() != (tmp_path / "c/rgb.npy").read_bytes()


def test_lengths_times_and_missing_experts(tmp_path: Path) -> None:
    found = made(tmp_path, frames=9, missing=0.3)
    lengths = {e: [len(found.take(f"video{k}", e)[0]) for k in range(60)] for e in found.widths}
    assert {n for counts in lengths.values() for n in counts} == {0, *range(3, 10)}
    share = np.mean([n == 0 for counts in lengths.values() for n in counts])
    assert 0.2 < share < 0.4
    assert all(any(lengths[e][k] for e in lengths) for k in range(60))
    assert found.take("video0", "s3d")[1].tolist() == [k + 0.5 for k in range(lengths["s3d"][0])]
    assert np.isnan(found.take("video1", "ocr")[1]).all()


def test_experts_of_ce_that_are_averaged_have_one_frame(tmp_path: Path) -> None:
    found = made(tmp_path, models="ce", missing=0)
    counts = {e: len(found.take("video0", e)[0]) for e in found.widths}
    single = {e for e, kind in EXPERTS["ce"].items() if kind.single}
    assert {e for e, n in counts.items() if n == 1} == single
    assert len(single) == 6


def test_every_video_keeps_an_expert_even_when_nearly_all_are_missing(tmp_path: Path) -> None:
    found = made(tmp_path, missing=0.99)
    assert all(found.has(f"video{k}") for k in range(60))


def recall_at_5(root: Path, noise: float) -> float:
    """Share of videos among the five best of their words, by a linear map fitted on other videos."""
    told = captions(400)
    found = made(root, told, noise=noise, missing=0)
    features = np.stack([np.concatenate([found.take(v, e)[0].mean(0) for e in found.widths]) for v in told])
    words = np.array([[any(noun in text for text in texts) for noun in NOUNS] for texts in told.values()], float)
    fit, test = slice(0, 300), slice(300, 400)
    map_, *_ = np.linalg.lstsq(features[fit], words[fit] - words[fit].mean(0), rcond=None)
    S = words[test] @ (features[test] @ map_).T
    return float(np.mean([(row > row[k]).sum() < 5 for k, row in enumerate(S)]))


@pytest.mark.slow
def test_captions_find_their_videos_above_chance_and_noise_drowns_them(tmp_path: Path) -> None:
    assert recall_at_5(tmp_path / "a", noise=1.0) > 0.5  # chance: 0.05
    assert recall_at_5(tmp_path / "b", noise=100.0) < 0.25


@pytest.mark.parametrize(
    "options", [{"frames": 0}, {"noise": -1.0}, {"missing": 1.0}, {"share": 0.0}, {"width": -1}, {"seed": -1}]
)
def test_options_that_can_not_be(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be"):
        Generated(**options)  # type: ignore[arg-type]


def test_no_captions_no_features(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one video; got none"):
        Generated().write({}, tmp_path)


def test_a_word_has_the_same_vector_wherever_it_stands(tmp_path: Path) -> None:
    write_word_vectors({"a#0": "A dog runs.", "b#0": "the dog", "c#0": "?!"}, tmp_path / "w", 300)
    found = Ragged.open(tmp_path / "w")
    assert [found.take(id).shape for id in ("a#0", "b#0", "c#0")] == [(3, 300), (2, 300), (1, 300)]
    assert np.array_equal(found.take("a#0")[1], found.take("b#0")[1])
    assert not found.take("c#0").any()
    assert math.isclose(float(np.linalg.norm(found.take("b#0")[0])), 1, abs_tol=0.2)
    with pytest.raises(InputError, match="captions must be at least one"):
        write_word_vectors({}, tmp_path / "w", 3)
