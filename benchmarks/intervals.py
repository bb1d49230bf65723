"""What do the intervals of a sweep cost? The same sweep with and without them, in turns, in one run.

checkpoint: a small VSE++ reads and embeds the scenes, 5 captions an image, then sweeps them, as `lossscope cocos FILE`
does without a cache. stacks: 145,000 pairs (29,000 images) in batches of 128, in memory. Both have both directions, and
COCOS of triplet, triplet SH and NT-Xent. tiles: all pairs in one batch, triplet and NT-Xent, in memory. bare: the
products alone. One thread, CPU time.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from measuring import machine, medians, peak, source, table

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.engine.sweep import Sweep
from lossscope.sources.base import load
from lossscope.training.components import resolve
from lossscope.training.recipe import Recipe
from lossscope.training.state import new_state, snapshot
from lossscope.training.task import prepare_task

THREE, TWO = ("triplet", "triplet-sh", "ntxent:tau=0.05"), ("triplet", "ntxent:tau=0.05")
PANEL = 512  # rows of a bare product


def bare(embedded: SplitEmbeddings, batch_size: int | None) -> None:
    """Multiply the rows of each batch."""
    assert embedded.images is not None and embedded.captions is not None
    for batch in Sampling("pairs", batch_size).batches(embedded.relations):
        v, t = embedded.images[torch.from_numpy(batch.images)], embedded.captions[torch.from_numpy(batch.captions)]
        for rows in torch.split(v, PANEL):
            torch.mm(rows, t.T)


def measure(
    name: str, read: Callable[[], SplitEmbeddings], batch_size: int | None, specs: tuple[str, ...]
) -> tuple[str, ...]:
    """Return a line of the table.

    Args:
        name: of the case.
        read: returns the source; its time counts with each sweep.
        batch_size: of the sweep; None: all pairs in one batch.
        specs: of the objectives.
    """
    embedded = read()
    assert embedded.images is not None and embedded.captions is not None
    probes = ("cocos:unit=paper",)
    plain, with_intervals = (Sweep(specs, probes, "pairs", batch_size, interval=level) for level in (None, 0.95))
    runs = [partial(read_and_run, read, sweep) for sweep in (plain, with_intervals)]
    product, without, with_them = medians([partial(bare, embedded, batch_size), *runs])
    memory = [peak(run) for run in runs]
    size = f"{len(embedded.captions):,}", str(embedded.images.shape[1])
    return (
        name, *size, f"{product:.2f}", f"{without:.2f}", f"{with_them:.2f}",
        f"{with_them / without:.2f}", f"{with_them / product:.2f}", f"{memory[0]:.0f}", f"{memory[1]:.0f}",
    )  # fmt: skip


def read_and_run(read: Callable[[], SplitEmbeddings], sweep: Sweep) -> None:
    """Read the source, and sweep it."""
    sweep.run(read(), jobs=1)


def save_checkpoint(folder: Path, images: int) -> Path:
    """Save a checkpoint of an untrained small VSE++ of the scenes, and return its path."""
    recipe = Recipe(data=f"scenes:train={images},val=10,test=10", encoder="vsepp:image=cnn-small", objective="ntxent")
    task = prepare_task(resolve(recipe), folder, "cpu")
    path = folder / "checkpoint.pt"
    snapshot(task, new_state(task), {}).save(path)
    return path


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="A tenth of the pairs.")
    tenth = 10 if parser.parse_args().quick else 1
    torch.set_num_threads(1)
    print(machine())
    header = (
        "case", "pairs", "d", "bare s", "without s", "with s", "with / without", "with / bare", "without MB", "with MB"
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = save_checkpoint(Path(folder), 4_000 // tenth)
        lines = [measure("checkpoint", partial(load, checkpoint, cache=False), 128, THREE)]
        for name, pairs, width, batch_size, specs in (
            ("stacks", 145_000, 512, 128, THREE), ("stacks", 145_000, 1024, 128, THREE),
            ("tiles", 15_000, 512, None, TWO), ("tiles", 32_000, 512, None, TWO),
        ):  # fmt: skip
            embedded = source(pairs // tenth // 5, 5, width, noise=2.0)
            lines.append(measure(name, partial(_same, embedded), batch_size, specs))
    print(table(header, lines))


def _same(embedded: SplitEmbeddings) -> SplitEmbeddings:
    return embedded


if __name__ == "__main__":
    main()
