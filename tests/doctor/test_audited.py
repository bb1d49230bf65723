"""Does an audit find false negatives where the data do not know the truth?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lossscope.core.known_pairs import KnownPairs
from lossscope.doctor.examination.examine import examine
from lossscope.errors import InputError
from tests.lengths import thorough

N = 600


_IDS = ("image_id", "caption_id")


def dump(folder: Path) -> Path:
    """Write pairs; each second pair has a neighbour that its query matches nearly as well."""
    file = folder / "dump.npz"
    np.savez(file, **_arrays(N))
    return file


def _arrays(n: int) -> dict[str, Any]:
    torch.manual_seed(0)
    images = torch.nn.functional.normalize(torch.randn(n, 32), dim=1)
    captions = images + 0.05 * torch.randn(n, 32)
    captions[1::2] = images[::2] + 0.05 * torch.randn(n // 2, 32)
    ids = {name: np.array([f"{name[0]}{row}" for row in range(n)]) for name in _IDS}
    return {"images": images.numpy(), "captions": captions.numpy(), "caption_image": np.arange(n), **ids}


def audit(folder: Path, probability: float, name: str = "i") -> Path:
    """Return an audit: queries of even rows with the next row's caption."""
    even = np.arange(0, N, 2)
    ids = tuple(f"{name}{row}" for row in range(N)), tuple(f"c{row}" for row in range(N))
    KnownPairs(even, even + 1, np.full(N // 2, probability, np.float32), *ids).write(folder / "mask.npz")
    return folder


def share_of(file: Path, folder: Path, batch_size: int = N) -> tuple[float | None, list[str]]:
    """Return the measured share of the weight, and the ids of findings."""
    options = {"objective": "ntxent:tau=0.05", "batch_size": batch_size, "audit": folder}
    result = examine(str(file), **options).examinations[0]  # type: ignore[arg-type]
    return result.signals.get("false-negatives"), [finding.id for finding in result.findings]


def test_an_audit_decides_where_the_truth_is_not_known(tmp_path: Path) -> None:
    file = dump(tmp_path)
    sure, findings = share_of(file, audit(tmp_path, 1.0))
    half, _ = share_of(file, audit(tmp_path, 0.5))
    assert sure is not None
    assert half is not None
    assert sure > 0.15
    assert half == pytest.approx(sure / 2, rel=1e-5)
    assert "false-negatives" in findings


@pytest.mark.parametrize("rows_without_ids", [("image_id", "caption_id"), ("caption_id",)])
@pytest.mark.parametrize(
    "reason", ["a caption with NaN", "an image without caption", *thorough("more rows than a sample has")]
)
def test_an_audit_of_rows_without_ids_is_looked_up_by_the_rows_of_the_source(
    reason: str, rows_without_ids: tuple[str, ...], tmp_path: Path
) -> None:
    n = 4200 if reason == "more rows than a sample has" else N
    arrays = _arrays(n)
    if reason == "a caption with NaN":
        arrays["captions"][7] = np.nan
    elif reason == "an image without caption":
        arrays["caption_image"][7] = 6
    even = np.arange(0, n, 2)
    shares = []
    for missing in ((), rows_without_ids):
        ids = [[str(row) for row in range(n)] if name in missing else list(arrays[name]) for name in _IDS]
        known = KnownPairs(even, even + 1, np.ones(n // 2, np.float32), tuple(ids[0]), tuple(ids[1]))
        known.write(tmp_path / "mask.npz")
        np.savez(tmp_path / "dump.npz", **{name: array for name, array in arrays.items() if name not in missing})
        shares.append(share_of(tmp_path / "dump.npz", tmp_path, 300)[0])
    assert shares[0] is not None and shares[0] > 0.01
    assert shares[1] == pytest.approx(shares[0])


def test_without_an_audit_it_is_not_looked_for(tmp_path: Path) -> None:
    result = examine(str(dump(tmp_path)), objective="ntxent:tau=0.05").examinations[0]
    assert "--audit names an audit" in result.reasons["false-negatives"]


def test_a_mask_is_advised_with_a_training_without_one(tmp_path: Path) -> None:
    """Where false negatives are rare, masks do harm (docs/audit.md)."""
    result = examine(str(dump(tmp_path)), objective="ntxent:tau=0.05", batch_size=N, audit=audit(tmp_path, 1.0))
    (finding,) = (finding for finding in result.examinations[0].findings if finding.id == "false-negatives")
    assert "of the negatives probably match their query" in finding.why
    for advice in finding.advice:
        assert "--mask" not in advice.text or "compare with a training without the mask" in advice.text


def test_an_audit_of_other_items_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be of the items of this split"):
        share_of(dump(tmp_path), audit(tmp_path, 1.0, name="other"))
