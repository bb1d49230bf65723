"""Do row operations equal their plain torch forms, for rows of any width?"""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from lossscope.core.row_ops import exp_, row_argmax, row_dot, row_top_k, sort_rows
from tests.each import each

FLOATS = [torch.float32, torch.float64]


def rows(width: int, dtype: torch.dtype, levels: int = 0) -> torch.Tensor:
    x = torch.randn(5, width, generator=torch.Generator().manual_seed(width), dtype=torch.float64)
    return ((x * levels).round() / levels if levels else x).to(dtype)


@each("dtype", FLOATS, "scale", [0.5, 20.0, 100.0])
def test_exponentials_equal_torch_exp(scale: float, dtype: torch.dtype) -> None:
    x = torch.linspace(-1, 0, 4001, dtype=dtype)
    expected = (x.double() * scale).exp()
    actual = exp_(x.clone(), scale)
    torch.testing.assert_close(
        actual.double(), expected, rtol=4 * scale * torch.finfo(dtype).eps + 1e-7 * (dtype == FLOATS[0]), atol=1e-43
    )
    assert exp_(torch.tensor([0.0, -torch.inf], dtype=dtype), scale).tolist() == [1, 0]


@each("dtype", FLOATS, "width", [1, 128, 4096, 4097, 30_000])
def test_row_dot_is_a_sum_in_full_precision(width: int, dtype: torch.dtype) -> None:
    x, y = rows(width, dtype).abs(), rows(width, dtype, 64).abs()
    expected = (x.double() * y.double()).sum(1)
    torch.testing.assert_close(row_dot(x, y).double(), expected, rtol=20 * torch.finfo(dtype).eps, atol=0)
    torch.testing.assert_close(
        row_dot(x, y[0]).double(), (x.double() * y[0].double()).sum(1), rtol=20 * torch.finfo(dtype).eps, atol=0
    )
    assert row_dot(x, y).dtype == dtype


@given(width=st.integers(1, 600), number=st.integers(1, 6), levels=st.sampled_from([0, 2, 50]))
def test_row_top_k_are_the_last_of_the_sorted_row(width: int, number: int, levels: int) -> None:
    x, number = rows(width, torch.float32, levels), min(number, width)
    ordered = sort_rows(x)
    assert torch.equal(ordered, x.sort(1).values)
    assert torch.equal(row_top_k(x, number, torch.empty_like(x)).sort(1).values, ordered[:, width - number :])
    column = row_argmax(x)
    assert torch.equal(x.gather(1, column[:, None])[:, 0], x.amax(1))
    for row, first in zip(x, column.tolist(), strict=True):
        assert not bool((row[:first] == row[first]).any())
