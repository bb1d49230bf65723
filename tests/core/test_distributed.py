"""Three processes against one: gathers with their gradients, sums, batch norm, and how processes meet."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.core.distributed import (
    ProcessGroup,
    is_lost_process,
    join_group,
    launched_group,
    local_rank,
    process_group,
)
from lossscope.errors import InputError
from lossscope.objectives.checks.spawn import gathered, group
from lossscope.training.data_parallel import sum_gradients, sums
from lossscope.training.sync_batch_norm import sync_batch_norms, uncounted_batches

RANKS = 3
COUNTS = {"uneven": (2, 4, 1), "one empty": (2, 0, 3), "all but one empty": (0, 0, 4), "even": (2, 2, 2)}
NORMS: dict[str, Callable[[], nn.Module]] = {
    "1d": lambda: nn.BatchNorm1d(4),
    "1d of sets": lambda: nn.BatchNorm1d(4, eps=1e-3, momentum=0.3),
    "2d": lambda: nn.BatchNorm2d(4, momentum=None),
    "plain": lambda: nn.BatchNorm1d(4, affine=False),
    "memoryless": lambda: nn.BatchNorm1d(4, track_running_stats=False),
}
SHAPES = {"1d of sets": (4, 5), "2d": (4, 3, 2)}


def part(x: Tensor, counts: tuple[int, ...], rank: int) -> Tensor:
    return x[sum(counts[:rank]) : sum(counts[: rank + 1])]


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def told(here: ProcessGroup) -> dict[str, Any]:
    """What one of the processes finds, by name."""
    found: dict[str, Any] = {"rank": (here.rank, here.size), "everybody": here.gather({"rank": here.rank})}
    found["sum"] = here.sum(torch.arange(3) + here.rank)
    found["max"] = here.max(torch.tensor([-1.0 * here.rank, here.rank]))
    found["stack"] = here.stack(torch.tensor([here.rank, 7]))
    found["any"] = [here.any(here.rank == 2), here.any(False)]
    here.barrier()
    for name, counts in COUNTS.items():
        found[f"rows {name}"] = of_rows(here, counts)
        for kind in (torch.bool, torch.int64, torch.bfloat16):
            rows = (torch.arange(sum(counts) * 2).view(-1, 2) % 3).to(kind)
            found[f"{kind} {name}"] = here.rows(part(rows, counts, here.rank))
    for name, make in NORMS.items():
        for shares, counts in COUNTS.items():
            found[f"norm {name} {shares}"] = of_norm(here, make(), name, counts)
    found["lonely norm"] = of_norm(here, nn.BatchNorm1d(4), "1d", (0, 1, 0))
    found |= of_gradients(here)
    return found


def of_rows(here: ProcessGroup, counts: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """All rows, and the gradients of own rows: every process sends back another loss; each its third of one loss."""
    every = numbers(sum(counts), 2)
    first, second = (part(every, counts, here.rank).clone().requires_grad_() for _ in range(2))
    gathered_rows = here.rows(first)
    ((here.rank + 1) * gathered_rows.pow(3)).sum().backward()  # type: ignore[no-untyped-call]
    (gathered(second).prod(0).sum() / here.size).backward()  # type: ignore[no-untyped-call]
    assert first.grad is not None and second.grad is not None
    return gathered_rows.detach(), first.grad, second.grad


def of_norm(here: ProcessGroup, norm: nn.Module, name: str, counts: tuple[int, ...]) -> dict[str, Tensor]:
    """y, dx, dw, db and running statistics of two batches; counts of 0 are given a row that does not count."""
    shape = SHAPES.get(name, (4,))
    norm = norm.double()
    for parameter in norm.parameters():
        nn.init.uniform_(parameter, 0.5, 1.5, generator=torch.Generator().manual_seed(3))
    sync_batch_norms(norm, here)
    found: dict[str, Tensor] = {}
    for turn in range(2):
        every = numbers(sum(counts), *shape, seed=turn) + 3
        own = part(every, counts, here.rank)
        x = (own if len(own) else torch.full((1, *shape), 1e3, dtype=every.dtype)).clone().requires_grad_()
        with contextlib.nullcontext() if len(own) else uncounted_batches(norm):
            y = norm(x)[: len(own)]
        slope = numbers(*every.shape, seed=5)
        (y * part(slope, counts, here.rank)).sum().backward()  # type: ignore[no-untyped-call]
        assert x.grad is not None
        found |= {f"y {turn}": y.detach(), f"dx {turn}": x.grad[: len(own)], f"rest {turn}": x.grad[len(own) :]}
    found |= {f"d{k}": here.sum(p.grad) for k, p in norm.named_parameters() if p.grad is not None}
    norm.eval()
    return found | dict(norm.named_buffers()) | {"eval": norm(torch.ones(3, *shape, dtype=torch.float64)).detach()}


def of_gradients(here: ProcessGroup) -> dict[str, Any]:
    some, none, half = (nn.Parameter(torch.zeros(2, 2, dtype=d)) for d in (torch.float32, torch.float32, torch.float64))
    some.grad = torch.full((2, 2), 1.0) if here.rank == 1 else None
    half.grad = torch.full((2, 2), 0.5 + here.rank, dtype=torch.float64)
    sum_gradients(here, [some, none, half])
    mixed = sums(here, [torch.ones(2), torch.tensor(here.rank), torch.ones(2, 2)])
    return {"gradients": [some.grad, none.grad, half.grad], "sums": mixed}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Mapping[str, Any]]:
    """What each of three processes tells."""
    folder = tmp_path_factory.mktemp("three")
    command = [sys.executable, __file__, str(folder)]
    running = [subprocess.Popen([*command, str(rank)], stderr=subprocess.PIPE, text=True) for rank in range(RANKS)]
    errors = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0] * RANKS, errors
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(RANKS)]


@pytest.mark.slow
def test_processes_know_each_other_and_agree(found: list[Mapping[str, Any]]) -> None:
    for rank, mine in enumerate(found):
        assert mine["rank"] == (rank, RANKS)
        assert mine["everybody"] == [{"rank": 0}, {"rank": 1}, {"rank": 2}]
        assert mine["sum"].tolist() == [3, 6, 9] and mine["max"].tolist() == [0, 2]
        assert mine["stack"].tolist() == [[0, 7], [1, 7], [2, 7]]
        assert mine["any"] == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_rows_come_in_the_order_of_ranks_with_the_gradient_of_all_losses(
    name: str, found: list[Mapping[str, Any]]
) -> None:
    counts = COUNTS[name]
    every = numbers(sum(counts), 2).requires_grad_()
    (6 * every.pow(3)).sum().backward()  # type: ignore[no-untyped-call]
    other = every.detach().clone().requires_grad_()
    other.prod(0).sum().backward()  # type: ignore[no-untyped-call]
    assert every.grad is not None and other.grad is not None
    for rank, mine in enumerate(found):
        rows, first, second = mine[f"rows {name}"]
        assert torch.equal(rows, every)
        torch.testing.assert_close(first, part(every.grad, counts, rank), rtol=1e-14, atol=0)
        torch.testing.assert_close(second, part(other.grad, counts, rank), rtol=1e-14, atol=0)
        for kind in (torch.bool, torch.int64, torch.bfloat16):
            expected = (torch.arange(sum(counts) * 2).view(-1, 2) % 3).to(kind)
            assert torch.equal(mine[f"{kind} {name}"], expected)


@pytest.mark.slow
@pytest.mark.parametrize("shares", COUNTS)
@pytest.mark.parametrize("name", NORMS)
def test_batch_norm_of_many_is_that_of_one(name: str, shares: str, found: list[Mapping[str, Any]]) -> None:
    counts = COUNTS[shares]
    alone = of_norm(ProcessGroup(), NORMS[name](), name, (sum(counts),))
    for key in alone:
        parts = [mine[f"norm {name} {shares}"][key] for mine in found]
        if key.startswith(("y", "dx")):
            parts = [torch.cat(parts)]
        elif key.startswith("rest"):
            assert all(not bool(given.any()) for given in parts)
            continue
        for one in parts:
            torch.testing.assert_close(one, alone[key], rtol=1e-12, atol=1e-12, msg=f"{key}: {one} {alone[key]}")


@pytest.mark.slow
def test_one_value_of_all_processes_is_normalised_by_running_statistics(found: list[Mapping[str, Any]]) -> None:
    mine = found[1]["lonely norm"]
    assert not mine["running_mean"].any() and not mine["num_batches_tracked"]
    assert bool(mine["y 0"].isfinite().all()) and len(mine["y 0"]) == 1


@pytest.mark.slow
def test_gradients_add_up_and_none_stays_none_where_nobody_has_one(found: list[Mapping[str, Any]]) -> None:
    for mine in found:
        some, none, half = mine["gradients"]
        assert none is None
        assert some.tolist() == [[1, 1], [1, 1]] and half.tolist() == [[4.5, 4.5], [4.5, 4.5]]
        assert [x.tolist() for x in mine["sums"]] == [[3, 3], 3, [[3, 3], [3, 3]]]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 2, 6, 7, 128])
def test_shares_cover_everything_in_order_and_differ_by_at_most_one(n: int, size: int) -> None:
    shares = [list(range(n))[ProcessGroup(rank, size).share(n)] for rank in range(size)]
    assert [item for share in shares for item in share] == list(range(n))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_alone_everything_is_itself() -> None:
    here, x = process_group(), torch.ones(2, requires_grad=True)
    assert here == ProcessGroup(0, 1) and here.main
    assert here.rows(x) is x and here.sum(x) is x and here.max(x) is x
    assert here.gather(x) == [x] and here.any(True) and not here.any(False)
    with join_group("cpu") as inside:
        assert inside == here and not torch.distributed.is_initialized()
    norm = nn.BatchNorm1d(2)
    sync_batch_norms(norm, here)
    assert "forward" not in norm.__dict__


ENVIRONMENT = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "localhost", "MASTER_PORT": "1", "LOCAL_RANK": "1"}


def test_torchrun_says_which_process_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    assert launched_group() == ProcessGroup(0, 1) and local_rank() == 0
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert launched_group() == ProcessGroup(1, 4) and local_rank() == 1
    monkeypatch.delenv("MASTER_PORT")  # a cluster that sets the others for its own ends
    assert launched_group() == ProcessGroup(0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"RANK": "4"}, r"RANK must be in 0\.\.WORLD_SIZE-1; got 4 of 4"),
        ({"RANK": "first"}, r"RANK of the environment must be a whole number; got 'first'"),
        ({"LOSSSCOPE_TIMEOUT": "soon"}, r"LOSSSCOPE_TIMEOUT of the environment must be a whole number; got 'soon'"),
        ({"LOSSSCOPE_TIMEOUT": "1"}, r"4 processes must be able to meet at localhost:1; "),
    ],
    ids=str,
)
def test_what_can_not_meet_says_so(changed: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**ENVIRONMENT, "GLOO_SOCKET_IFNAME": "lo", **changed}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=message), join_group("cpu"):
        raise AssertionError("it has met")


def test_a_lost_process_is_told_from_an_error_of_ones_own() -> None:
    assert is_lost_process("[gloo/transport/tcp/pair.cc:553] Connection closed by peer")
    assert is_lost_process("NCCL communicator was aborted on rank 1")
    assert not is_lost_process("S must be one matrix to train")


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, rank = Path(sys.argv[1]), int(sys.argv[2])
    os.environ.pop("GLOO_SOCKET_IFNAME", None)
    with group(folder / "meeting", rank, RANKS):
        torch.save(told(process_group()), folder / f"{rank}.pt")
    os._exit(0)  # threads of torch's may abort a process that takes its time
