"""False negatives by an audit, where the data do not know the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lossscope.core.known_pairs import KnownPairs
from lossscope.doctor.examination.examine import examine
from lossscope.errors import InputError

N = 600


def dump(folder: Path) -> Path:
    """Pairs of which every second has a neighbour that its query matches nearly as well."""
    torch.manual_seed(0)
    images = torch.nn.functional.normalize(torch.randn(N, 32), dim=1)
    captions = images + 0.05 * torch.randn(N, 32)
    captions[1::2] = images[::2] + 0.05 * torch.randn(N // 2, 32)
    ids = {
        "image_id": np.array([f"i{row}" for row in range(N)]),
        "caption_id": np.array([f"c{row}" for row in range(N)]),
    }
    file = folder / "dump.npz"
    np.savez(file, images=images.numpy(), captions=captions.numpy(), caption_image=np.arange(N), **ids)
    return file


def audit(folder: Path, probability: float, name: str = "i") -> Path:
    """Queries of even rows with the captions behind their own."""
    even = np.arange(0, N, 2)
    ids = tuple(f"{name}{row}" for row in range(N)), tuple(f"c{row}" for row in range(N))
    KnownPairs(even, even + 1, np.full(N // 2, probability, np.float32), *ids).write(folder / "mask.npz")
    return folder


def share_of(file: Path, folder: Path) -> tuple[float | None, list[str]]:
    """The measured share of the weight, and the ids of findings."""
    options = {"objective": "ntxent:tau=0.05", "batch_size": N, "audit": folder}
    result = examine(str(file), **options).examinations[0]  # type: ignore[arg-type]
    return result.signals.get("false-negatives"), [one.id for one in result.findings]


def test_an_audit_decides_where_the_truth_is_not_known(tmp_path: Path) -> None:
    file = dump(tmp_path)
    sure, findings = share_of(file, audit(tmp_path, 1.0))
    half, _ = share_of(file, audit(tmp_path, 0.5))
    assert sure is not None
    assert half is not None
    assert sure > 0.15
    assert half == pytest.approx(sure / 2, rel=1e-5)
    assert "false-negatives" in findings


def test_without_an_audit_it_is_not_looked_for(tmp_path: Path) -> None:
    result = examine(str(dump(tmp_path)), objective="ntxent:tau=0.05").examinations[0]
    assert "--audit names an audit" in dict(result.not_checked)["false-negatives"]


def test_an_audit_of_other_items_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be of the items of this split"):
        share_of(dump(tmp_path), audit(tmp_path, 1.0, name="other"))
