"""Does the doctor read stored rows as they are, where other commands normalise or refuse them?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lossscope.doctor.examination.open_source import open_patient
from lossscope.doctor.examination.options import Options
from lossscope.doctor.parts.matrix import Matrix
from lossscope.doctor.parts.vectors import Vectors
from lossscope.errors import InputError
from lossscope.sources.base import from_arrays, load
from tests.planted.base import SIZES, aligned, dump, pairs


@pytest.fixture
def sides() -> tuple[Any, Any]:
    """Return rows of lengths from 2 to 5 on one side, of 1 on the other; a row of the second has NaN."""
    first, second = aligned(SIZES[0])
    first = (first * np.linspace(2, 5, len(first))[:, None]).astype(np.float32)
    second = second.astype(np.float32)
    second[4, 2] = np.nan
    return first, second


def test_nan_rows_and_lengths_are_kept(sides: tuple[Any, Any], tmp_path: Path) -> None:
    path = pairs(tmp_path, *sides)
    raw = load(path, raw=True, cache=False)
    assert raw.images is not None and raw.captions is not None
    assert torch.equal(raw.images, torch.from_numpy(sides[0]))
    np.testing.assert_array_equal(raw.captions.numpy(), sides[1])
    assert not any("normalised" in notice for notice in raw.notices)
    with pytest.raises(InputError, match="row 4"):
        load(path, cache=False)


def test_without_raw_rows_are_normalised(sides: tuple[Any, Any], tmp_path: Path) -> None:
    path = pairs(tmp_path, sides[0], sides[0])
    rows = load(path, cache=False).images
    assert rows is not None
    assert torch.allclose(rows.norm(dim=1), torch.ones(len(rows)), atol=1e-5)


def test_other_sides_and_arrays_are_kept_too(sides: tuple[Any, Any], tmp_path: Path) -> None:
    positives = np.stack([np.arange(len(sides[0]))] * 2, 1)
    arrays = {"queries": sides[0], "documents": sides[1], "positives": positives}
    for raw in (load(dump(tmp_path, **arrays), raw=True, cache=False), from_arrays(arrays, raw=True)):
        assert raw.images is not None and raw.captions is not None
        assert torch.equal(raw.images, torch.from_numpy(sides[0]))
        np.testing.assert_array_equal(raw.captions.numpy(), sides[1])
    with pytest.raises(InputError, match="row 4"):
        from_arrays(arrays)


def test_similarities_are_kept(tmp_path: Path) -> None:
    S = np.eye(20, dtype=np.float32)
    S[3, 5] = np.inf
    path = dump(tmp_path, similarity=S, caption_image=np.arange(20))
    raw = load(path, raw=True, cache=False).similarity
    assert raw is not None and torch.equal(raw, torch.from_numpy(S))
    with pytest.raises(InputError, match="row 3"):
        load(path, cache=False)
    assert open_patient(path, Options.of(cache=False)).part(Matrix) is not None


def test_the_share_beyond_cosines_is_one_of_finite_entries() -> None:
    S = torch.full((4, 5), 0.5)
    S[0, :3], S[1, 1], S[2, 2] = 1.5, torch.nan, -torch.inf
    matrix = Matrix(S)
    assert (matrix.not_finite, matrix.first_not_finite) == (2, 1)
    assert matrix.beyond == 3 / 18 and matrix.largest == 1.5
    assert Matrix(torch.full((2, 2), torch.nan)).beyond == 0


def test_the_doctor_sees_the_rows_as_they_are(sides: tuple[Any, Any], tmp_path: Path) -> None:
    facts = open_patient(pairs(tmp_path, *sides), Options.of(cache=False)).part(Vectors).facts
    assert [side.not_finite for side in facts] == [0, 1]
    assert [side.n for side in facts] == [len(sides[0])] * 2


def test_rows_of_a_model_are_as_it_gives_them(tiny_checkpoint: Path) -> None:
    raw = load(tiny_checkpoint, raw=True, cache=False).images
    unit = load(tiny_checkpoint, cache=False).images
    assert raw is not None and unit is not None
    assert torch.allclose(torch.nn.functional.normalize(raw.float(), dim=1), unit.float(), atol=1e-5)
