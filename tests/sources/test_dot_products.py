"""Does --score dot keep norms and add biases, and is a bias never left out in silence?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lossscope.core.request import Request
from lossscope.core.similarity import Mask
from lossscope.errors import InputError
from lossscope.registry import build
from lossscope.sources.base import read_source
from tests.command_line import lossscope
from tests.each import each

USERS, ITEMS, TAU = 30, 20, 0.5
RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(USERS, 6)), RANDOM.normal(size=(ITEMS, 6)) * RANDOM.uniform(0.2, 3, size=(ITEMS, 1))
POSITIVES = np.stack([np.arange(USERS), RANDOM.integers(ITEMS, size=USERS)], 1)
SHARES = np.linspace(1, 5, ITEMS) / np.linspace(1, 5, ITEMS).sum()


def dump(path: Path, **more: object) -> Path:
    """Write users and items."""
    np.savez(path, users=X, items=Y, positives=POSITIVES, sides=["user", "item"], **more)  # type: ignore[arg-type]
    return path


def test_scores_are_dot_products_and_biases(tmp_path: Path) -> None:
    a, b = RANDOM.normal(size=USERS), RANDOM.normal(size=ITEMS)
    embedded = read_source(dump(tmp_path / "a.npz", user_bias=a, item_bias=b), Request(score="dot"))
    S = embedded.similarities(np.arange(USERS), np.arange(ITEMS)).i2t
    assert np.allclose(S.numpy(), X @ Y.T + a[:, None] + b, atol=1e-5)
    assert embedded.used == "dot products of its embeddings" and embedded.images is None
    assert any("scores are dot products" in text for text in embedded.notices)
    assert any("item_bias adds" in text and "another first item" in text for text in embedded.notices)


def test_the_correction_of_a_sampled_softmax_is_minus_log_q(tmp_path: Path) -> None:
    """Logits of the corrected softmax are s / tau − log Q(c), of users; items see one constant in a row."""
    path = dump(tmp_path / "a.npz", item_bias=-TAU * np.log(SHARES))
    S = read_source(path, Request(score="dot")).similarities(np.arange(ITEMS), np.arange(ITEMS)).i2t.double()
    eye = torch.eye(ITEMS, dtype=torch.bool)
    W = build("objectives", f"ntxent:tau={TAU}")(S, Mask(eye, torch.ones_like(eye))).W * TAU
    corrected = torch.from_numpy(X[:ITEMS] @ Y.T) / TAU - torch.from_numpy(np.log(SHARES))
    assert torch.allclose(W, corrected.softmax(1) - eye.double(), atol=1e-5)


@each("words", [("cocos", "--objective", "ntxent"), ("eval",), ("doctor",)])
def test_commands_say_the_score_in_their_first_line(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = lossscope(words[0], str(dump(Path("a.npz"))), "--score", "dot", "--quiet", *words[1:])
    assert result.exit_code in (0, 1), result.stderr
    assert "dot products of its embeddings" in " ".join(result.stdout.partition("\n\n")[0].split())


def test_a_bias_beside_cosines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"item_bias of .* write --score dot"):
        read_source(dump(tmp_path / "a.npz", item_bias=np.zeros(ITEMS)), Request())
    captions = {"images": X, "captions": X, "caption_bias": np.zeros(USERS)}
    np.savez(tmp_path / "b.npz", **captions)
    with pytest.raises(InputError, match=r"caption_bias of .* write --score dot"):
        read_source(tmp_path / "b.npz", Request())
    embedded = read_source(tmp_path / "b.npz", Request(score="dot"))
    S = embedded.similarities(np.arange(USERS), np.arange(USERS)).i2t
    assert np.allclose(S.numpy(), X @ X.T, atol=1e-5)


@each("more, says", [
    ({"item_bias": np.zeros(3)}, r"item_bias of .* must be \(20,\) numbers; got \(3,\)"),
    ({"item_bias": np.full(ITEMS, np.nan)}, "must be finite; row 0 is not"),
])  # fmt: skip
def test_a_bias_that_does_not_fit_is_refused(more: dict[str, object], says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says):
        read_source(dump(tmp_path / "a.npz", **more), Request(score="dot"))


def test_cosines_and_dot_products_have_other_fingerprints(tmp_path: Path) -> None:
    path = dump(tmp_path / "a.npz")
    assert len({read_source(path, Request(score=score)).fingerprint for score in ("cosine", "dot")}) == 2  # type: ignore[arg-type]


def test_one_labelled_set_has_dot_products_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", embeddings=Y, labels=np.arange(ITEMS) // 2)
    embedded = read_source(tmp_path / "set.npz", Request(score="dot"))
    assert np.allclose(embedded.similarities(np.arange(4), np.arange(4)).i2t.numpy(), Y[:4] @ Y[:4].T, atol=1e-5)


def test_a_source_that_is_no_dump_says_that_the_score_is_not_used() -> None:
    result = lossscope(*"eval tiny --score dot".split())
    assert "is scored as its model" in " ".join(result.stderr.split())
