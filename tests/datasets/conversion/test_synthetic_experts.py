"""Are generated features determined by the seed, of the stated shape, and related to their captions?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from lossscope.datasets.conversion.random_word_vectors import write_word_vectors
from lossscope.datasets.conversion.synthetic_experts import EXPERTS, SyntheticExperts
from lossscope.datasets.formats.ragged import RaggedArrays
from lossscope.datasets.formats.videos import ExpertFolder
from lossscope.errors import InputError
from tests.each import each

NOUNS = ["dog", "cat", "car", "boat", "tree", "house", "river", "stone", "cloud", "horse", "piano", "spoon"]


def captions(videos: int = 60) -> dict[str, list[str]]:
    rng = np.random.default_rng(0)
    words = [rng.choice(NOUNS, 3, replace=False).tolist() for _ in range(videos)]
    return {f"video{k}": [f"a {w[0]} and a {w[1]}", f"the {w[2]}"] for k, w in enumerate(words)}


def generate(root: Path, texts: dict[str, list[str]] | None = None, **options: object) -> ExpertFolder:
    SyntheticExperts(width=16, **options).write(texts or captions(), root)  # type: ignore[arg-type]
    return ExpertFolder.open(root)


def test_names_and_widths_are_those_of_the_models() -> None:
    widths = {name: {expert: kind.width for expert, kind in experts.items()} for name, experts in EXPERTS.items()}
    assert widths == {
        "mmt": {"face": 512, "ocr": 300, "rgb": 2048, "s3d": 1024, "scene": 2208, "speech": 300, "vggish": 128},
        "ce": {
            "audio": 128, "face": 512, "i3d.i3d.0": 1024, "imagenet.resnext101_32x48d.0": 2048,
            "imagenet.senet154.0": 2048, "ocr": 300, "r2p1d.r2p1d-ig65m.0": 512, "scene.densenet161.0": 2208,
            "speech": 300,
        },
    }  # fmt: skip
    assert all(list(experts) == sorted(experts) for experts in EXPERTS.values())


def test_the_same_seed_gives_the_same_files_and_another_seed_others(tmp_path: Path) -> None:
    generate(tmp_path / "a"), generate(tmp_path / "b"), generate(tmp_path / "c", seed=1)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    assert (tmp_path / "a/rgb.npy").read_bytes() != (tmp_path / "c/rgb.npy").read_bytes()


def test_lengths_times_and_missing_experts(tmp_path: Path) -> None:
    experts = generate(tmp_path, frames=9, missing=0.3)
    lengths = {e: [len(experts.take(f"video{k}", e)[0]) for k in range(60)] for e in experts.widths}
    assert {n for counts in lengths.values() for n in counts} == {0, *range(3, 10)}
    share = np.mean([n == 0 for counts in lengths.values() for n in counts])
    assert 0.2 < share < 0.4
    assert all(any(lengths[e][k] for e in lengths) for k in range(60))
    assert experts.take("video0", "s3d")[1].tolist() == [k + 0.5 for k in range(lengths["s3d"][0])]
    assert np.isnan(experts.take("video1", "ocr")[1]).all()


def test_experts_of_ce_that_are_averaged_have_one_frame(tmp_path: Path) -> None:
    experts = generate(tmp_path, models="ce", missing=0)
    counts = {e: len(experts.take("video0", e)[0]) for e in experts.widths}
    single = {e for e, kind in EXPERTS["ce"].items() if kind.single}
    assert {e for e, n in counts.items() if n == 1} == single
    assert len(single) == 6


def test_every_video_keeps_an_expert_even_when_nearly_all_are_missing(tmp_path: Path) -> None:
    experts = generate(tmp_path, missing=0.99)
    assert all(experts.has(f"video{k}") for k in range(60))


def recall_at_5(root: Path, noise: float) -> float:
    """Return the recall at 5 of videos by their words, with a linear map fitted on other videos."""
    by_video = captions(400)
    experts = generate(root, by_video, noise=noise, missing=0)
    features = np.stack([np.concatenate([experts.take(v, e)[0].mean(0) for e in experts.widths]) for v in by_video])
    words = np.array([[any(noun in text for text in texts) for noun in NOUNS] for texts in by_video.values()], float)
    fit, test = slice(0, 300), slice(300, 400)
    map_, *_ = np.linalg.lstsq(features[fit], words[fit] - words[fit].mean(0), rcond=None)
    S = words[test] @ (features[test] @ map_).T
    return float(np.mean([(row > row[k]).sum() < 5 for k, row in enumerate(S)]))


def test_recall_is_above_chance_and_falls_with_noise(tmp_path: Path) -> None:
    assert recall_at_5(tmp_path / "a", noise=1.0) > 0.5  # chance: 0.05
    assert recall_at_5(tmp_path / "b", noise=100.0) < 0.25


@each("options", [{"frames": 0}, {"noise": -1.0}, {"missing": 1.0}, {"share": 0.0}, {"width": -1}, {"seed": -1}])
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be"):
        SyntheticExperts(**options)  # type: ignore[arg-type]


def test_captions_are_required(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one video; got none"):
        SyntheticExperts().write({}, tmp_path)


def test_a_word_has_the_same_vector_in_all_captions(tmp_path: Path) -> None:
    write_word_vectors({"a#0": "A dog runs.", "b#0": "the dog", "c#0": "?!"}, tmp_path / "w", 300)
    vectors = RaggedArrays.open(tmp_path / "w")
    assert [vectors.take(id).shape for id in ("a#0", "b#0", "c#0")] == [(3, 300), (2, 300), (1, 300)]
    assert np.array_equal(vectors.take("a#0")[1], vectors.take("b#0")[1])
    assert not vectors.take("c#0").any()
    assert math.isclose(float(np.linalg.norm(vectors.take("b#0")[0])), 1, abs_tol=0.2)
    with pytest.raises(InputError, match="captions must be at least one"):
        write_word_vectors({}, tmp_path / "w", 3)
