"""If three processes share a batch, do S, extra loss, gradients and buffers of all encoders equal those of one?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lossscope.core.batches import Batch
from lossscope.core.distributed import ProcessGroup, process_group
from lossscope.core.similarity import pair_mask
from lossscope.core.weights import backward
from lossscope.encoders.types import Items
from lossscope.errors import InputError
from lossscope.training.data_parallel import (
    StepSeed,
    checksums,
    encode_shared,
    require_agreement,
    seed_per_rank,
    shared_rng,
    sum_gradients,
)
from lossscope.training.sync_batch_norm import sync_batch_norms
from tests.encoders.examples import Example, N, captions, double_precision, examples, is_built_in, without_dropout
from tests.farm import run_ranks
from tests.lengths import thorough

RANKS = 3
FIRST = {example.name: example for example in reversed(examples())}
SHARED = {  # the other examples from files differ in initial weights alone; plug-ins are not tested here
    example.spec: example
    for example in examples()
    if is_built_in(example.name) and (example.files is None or example is FIRST[example.name])
}
FIRST_OF_EACH = [spec for spec, example in SHARED.items() if example is FIRST[example.name]]
OTHERS = [spec for spec in SHARED if spec not in FIRST_OF_EACH]
BATCHES = (N, 2)  # with two pairs, one of three processes has no share


class StoredImages:
    """Images of a split, in memory."""

    def __init__(self, stored: Items) -> None:
        self.stored = stored

    def take(self, rows: Any) -> Any:
        if isinstance(self.stored, Tensor):
            return self.stored[rows].numpy()
        return {name: column[rows].numpy() for name, column in self.stored.items()}


CPU, SEED = torch.device("cpu"), StepSeed(3, 0, 4)


def step(example: Example, folder: Path, pairs: int, here: ProcessGroup) -> dict[str, Any]:
    """Return S and the extra loss of a batch, and gradients and buffers after a step.

    Each gradient is copied: it is a view of a long vector, and pickle would write the whole vector for each.
    """
    spec = example.options(folder, example.quiet)
    model = without_dropout(example.build(spec)).train()
    sync_batch_norms(model, here)
    rows = np.arange(pairs, dtype=np.int64)
    ids, lengths = captions(spec)
    words = ids[:pairs], lengths[:pairs]
    pixels: Any = StoredImages(example.items(spec))
    images, texts = encode_shared(model, pixels, Batch(rows, rows, "pairs"), words, here)
    with shared_rng(here, CPU, SEED):
        if here.size == 1:
            torch.manual_seed(SEED.of(-1))  # the seed that many processes share there
        S = model.score(images, texts)
        assert isinstance(S, Tensor)
        extra = model.extra_loss(images, texts, S, pair_mask(torch.arange(pairs)), *words)
    G = torch.randn(S.shape, generator=torch.Generator().manual_seed(9))
    backward(S, G, 1 / here.size, extra)
    sum_gradients(here, list(model.parameters()))
    return {
        "S": S.detach(),
        "extra loss": None if extra is None else extra.detach(),
        **{f"gradient of {n}": None if p.grad is None else p.grad.clone() for n, p in model.named_parameters()},
        **dict(model.named_buffers()),
    }


def random_numbers(here: ProcessGroup) -> dict[str, list[int]]:
    """Return random numbers of this process and of all, twice in the same step, then in the next."""
    drawn: dict[str, list[int]] = {"own": [], "same": []}
    for number in (4, 4, 5):
        seed = StepSeed(3, 0, number)
        seed_per_rank(here, seed)
        with shared_rng(here, CPU, seed):
            drawn["same"].append(int(torch.randint(1 << 40, ())))
        drawn["own"].append(int(torch.randint(1 << 40, ())))
    return drawn


def disagreement(here: ProcessGroup) -> str:
    """Return the error when the parameters of rank 1 differ by a bit."""
    model = nn.Linear(3, 3)
    nn.init.ones_(model.weight)
    nn.init.ones_(model.bias)

    def require() -> None:
        values = {"parameters": checksums(dict(model.named_parameters())), "training data": "f"}
        require_agreement(here, values, 0, Path("runs/x"))

    require()
    if here.rank == 1:
        with torch.no_grad():
            model.weight[1, 1] = torch.nextafter(torch.tensor(1.0), torch.tensor(2.0))
    try:
        require()
    except InputError as error:
        return str(error)
    return ""


def steps_of_rank(specs: Sequence[str], folder: Path) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Return (spec, pairs) -> results of this process; for the first, also those of a single process."""
    here, results = process_group(), {}
    with double_precision():  # batch norms of two items magnify rounding errors
        for index, spec in enumerate(specs):
            files = folder / f"files{index}"
            for pairs in BATCHES:
                results[spec, pairs] = [step(SHARED[spec], files, pairs, here)]
                if here.main:
                    results[spec, pairs].append(step(SHARED[spec], files, pairs, ProcessGroup()))
    return results


@pytest.mark.parametrize("specs", [FIRST_OF_EACH, *thorough(OTHERS)], ids=["first", "others"])
def test_a_batch_shared_by_three_gives_what_one_gives(
    specs: Sequence[str], tmp_path: Path, subtests: pytest.Subtests
) -> None:
    pytest.importorskip("transformers")
    for index, spec in enumerate(specs):
        SHARED[spec].options(tmp_path / f"files{index}")
    of_ranks = run_ranks(steps_of_rank, RANKS, specs, tmp_path)
    for key in of_ranks[0]:
        with subtests.test(key[0], pairs=key[1]):
            (first, alone), *others = (results[key] for results in of_ranks)
            assert first.keys() == alone.keys()
            for name, expected in alone.items():
                assert far(first[name], expected) < 1e-8, name
            for (other,) in others:  # all processes end with the same bits
                assert first.keys() == other.keys()
                assert [n for n, x in first.items() if x is not None and not torch.equal(x, other[n])] == []


def far(x: Tensor | None, expected: Tensor | None) -> float:
    """Return the largest difference over the largest number; 0 if both are None."""
    if x is None or expected is None:
        return 0.0 if x is expected else float("inf")
    actual, reference = x.double(), expected.double()
    return float((actual - reference).abs().max() / reference.abs().max().clamp(min=1e-3))


def drawn_of_rank() -> tuple[dict[str, list[int]], str]:
    return random_numbers(process_group()), disagreement(process_group())


@pytest.fixture(scope="module")
def drawn() -> list[tuple[dict[str, list[int]], str]]:
    """Return random numbers of each of three processes, and their errors when parameters differ."""
    return run_ranks(drawn_of_rank, RANKS)


def test_random_numbers_are_of_one_process_or_of_all_and_a_step_repeats_them(drawn: list[Any]) -> None:
    of_process, same = ([numbers[kind] for numbers, _ in drawn] for kind in ("own", "same"))
    assert same[0] == same[1] == same[2]
    assert len({draws[0] for draws in of_process} | {draws[2] for draws in of_process} | {same[0][0], same[0][2]}) == 8
    assert all(draws[0] == draws[1] for draws in (*of_process, *same))


def test_parameters_that_differ_by_a_bit_are_an_error_that_names_the_rank(drawn: list[Any]) -> None:
    message = "parameters must be the same in all processes; rank 1's in epoch 0 are not rank 0's. "
    assert [said.startswith(message) for _, said in drawn] == [True] * RANKS
