"""How much does the doctor add to `watch`? Both on the same batches, in turns: 300 steps, with their examinations.

Batches come from a loop that learns, so that no finding appears. Steps 1,000 to 1,300 are timed, where all checks run;
the first steps, which import modules, do not count. The last column is of whole trainings of 40 steps, in which each
check has its turn and nine examinations run. One thread.
"""

from __future__ import annotations

from itertools import product

import torch
from measuring import machine, medians, table

from lossscope.live.doctor_options import DoctorOptions
from lossscope.live.monitor import LossScope

SIZES, WIDTHS = (128, 256, 512, 1024), (128, 256, 512)
STEPS = 300
SETTLED = 1000  # steps before the timed ones
SHORT = 40  # steps of a whole training


def batches(size: int, width: int, number: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return pairs of embeddings whose positives rank better than by chance."""
    random = torch.Generator().manual_seed(0)
    queries = torch.randn(number, size, width, generator=random)
    return [(q, q + 3 * torch.randn(size, width, generator=random)) for q in queries]


def ratios(size: int, width: int, repeats: int = 3) -> tuple[float, float, float, float]:
    """Return milliseconds of a watched step, and the factor by the doctor: of embeddings, S, short trainings."""
    pairs = batches(size, width, 10)
    matrices = [torch.nn.functional.normalize(q) @ torch.nn.functional.normalize(d).T for q, d in pairs]
    plain, doctor = LossScope("ntxent:tau=0.05"), LossScope("ntxent:tau=0.05", doctor=True)
    plain_S, doctor_S = LossScope("ntxent:tau=0.05"), LossScope("ntxent:tau=0.05", doctor=True)
    small = batches(32, 16, 1)[0]
    for scope in (doctor, doctor_S):  # up to the step from which all checks run
        for _ in range(SETTLED):
            scope.watch(queries=small[0], documents=small[1])

    def embeddings(scope: LossScope) -> None:
        for step in range(STEPS):
            scope.watch(queries=pairs[step % 10][0], documents=pairs[step % 10][1])

    def similarities(scope: LossScope) -> None:
        for step in range(STEPS):
            scope.watch(matrices[step % 10])

    def training(doctor: DoctorOptions | bool) -> None:
        scope = LossScope("ntxent:tau=0.05", doctor=doctor)
        for step in range(SHORT):
            scope.watch(queries=pairs[step % 10][0], documents=pairs[step % 10][1])

    seconds = medians(
        [lambda: embeddings(plain), lambda: embeddings(doctor), lambda: similarities(plain_S),
         lambda: similarities(doctor_S), lambda: training(False), lambda: training(DoctorOptions(max_steps=SHORT))],
        repeats,
    )  # fmt: skip
    return 1000 * seconds[0] / STEPS, seconds[1] / seconds[0], seconds[3] / seconds[2], seconds[5] / seconds[4]


def main() -> None:
    """Print the ratios, for each size of a batch and width."""
    torch.set_num_threads(1)
    print(machine())
    rows = []
    for size, width in product(SIZES, WIDTHS):
        milliseconds, *shares = ratios(size, width, 3 if size < 1024 else 1)
        rows.append([str(size), str(width), f"{milliseconds:.2f} ms", *(f"{share:.2f}" for share in shares)])
    print(table(["B", "d", "watch(queries, documents)", "with the doctor", "of watch(S)", "of 40 steps"], rows))


if __name__ == "__main__":
    main()
