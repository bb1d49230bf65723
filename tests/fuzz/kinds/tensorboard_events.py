"""Scalars of TensorBoard, as the doctor reads them; it skips everything behind a damaged record."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.commands import run_command

FILES = {"events.out.tfevents.1.host": "records"}
CHECKSUMMED = ()


def make(folder: Path) -> None:
    """Write a loss and a learning rate of 60 steps, by the package itself."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder / "written")) as writer:
        for step in range(1, 61):
            writer.add_scalar("train/loss", 4 / step, step)
            writer.add_scalar("train/lr", 0.1, step)
    (file,) = (folder / "written").iterdir()
    file.rename(folder / "events.out.tfevents.1.host")
    (folder / "written").rmdir()


def read(folder: Path) -> object:
    """Examine it."""
    return run_command("doctor", "--log", next(iter(FILES)), "--batch-size", "64", "--format", "json")
