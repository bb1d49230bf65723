"""Do `watch`, wrapped losses, the doctor and the flight recorder see the same on the device as on the CPU?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lossscope.core.similarity import normalise
from lossscope.live.monitor import LossScope
from lossscope.registry import names

PAIRS, WIDTH = 12, 6
PROBES = tuple(name for name in names("probes") if name not in ("false_negatives", "parameter_gradients"))


def sides() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    first = torch.randn(PAIRS, WIDTH, generator=random)
    return normalise(first), normalise(first + 0.7 * torch.randn(PAIRS, WIDTH, generator=random))


def assert_same(ours: dict[str, float] | None, expected: dict[str, float] | None, tolerance: float = 1e-4) -> None:
    assert ours is not None and expected is not None
    assert ours.keys() == expected.keys()
    for name, value in expected.items():
        of_roots = 1e-3 if name.endswith("bound_17") else tolerance  # roots of differences of numbers near 1
        np.testing.assert_allclose(ours[name], value, rtol=of_roots, atol=of_roots, err_msg=name)


@pytest.mark.parametrize("objective", ["ntxent:tau=0.05", "triplet", "siglip"])
@pytest.mark.parametrize("probe", PROBES)
def test_watch_of_both_sides(probe: str, objective: str, device: torch.device) -> None:
    first, second = sides()
    expected = LossScope(objective, (probe,)).watch(images=first, captions=second)
    ours = LossScope(objective, (probe,)).watch(images=first.to(device), captions=second.to(device))
    assert_same(ours, expected)


def test_watch_of_similarities_and_of_labels(device: torch.device) -> None:
    first, second = sides()
    scope = LossScope("ntxent:tau=0.05")
    assert_same(scope.watch((first @ second.T).to(device)), scope.watch(first @ second.T))
    labels = torch.arange(PAIRS) // 2
    scope = LossScope("supcon")
    expected = scope.watch(embeddings=first, labels=labels)
    assert_same(scope.watch(embeddings=first.to(device), labels=labels.to(device)), expected)


def test_watch_of_mined_negatives(device: torch.device) -> None:
    first, second = sides()
    negatives = normalise(second.roll(1, 0) + 0.1)[:, None]
    scope = LossScope("infonce", ("cocos", "similarity"))
    expected = scope.watch(queries=first, documents=second, negatives=negatives)
    assert_same(
        scope.watch(queries=first.to(device), documents=second.to(device), negatives=negatives.to(device)), expected
    )


def test_what_is_not_finite_is_said(device: torch.device) -> None:
    S = torch.eye(4)
    S[0, 1] = float("nan")
    row = LossScope("ntxent").watch(S.to(device))
    assert row is not None and row["finite"] == 0


class Loop(nn.Module):
    """A loss that computes its similarities itself."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(20.0))

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        S = self.scale * normalise(first) @ normalise(second).T
        target = torch.arange(len(S), device=S.device)
        return (nn.functional.cross_entropy(S, target) + nn.functional.cross_entropy(S.T, target)) / 2


def test_a_wrapped_loss(device: torch.device) -> None:
    rows: list[dict[str, float]] = []
    for target in (torch.device("cpu"), device):
        scope = LossScope(None, ("cocos",))
        loss = scope.wrap(Loop().to(target))
        first, second = (x.to(target).requires_grad_() for x in sides())
        loss(first, second).backward()
        assert first.grad is not None
        rows.append(dict(scope.history[-1]))
    assert_same(rows[1], rows[0])


def test_the_doctor_of_a_loop_and_its_recorder(device: torch.device, tmp_path: Path) -> None:
    events = []
    for target, name in ((torch.device("cpu"), "cpu"), (device, "device")):
        scope = LossScope("ntxent", ("cocos",), doctor=True, recorder=2, recorder_folder=tmp_path / name)
        first, _ = sides()
        for step in range(4):
            collapsed = first[:1].expand(PAIRS, -1).to(target) if step > 1 else first.to(target)
            scope.watch(images=collapsed, captions=collapsed, step=step)
        events.append([(event.step, event.finding.id) for event in scope.events])
    assert events[0] == events[1]
