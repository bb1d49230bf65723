"""What training tells after each epoch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import _output


@contextlib.contextmanager
def listening(folder: Path, tensorboard: bool, quiet: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """What is called with each row of metrics.csv: a line on stderr, and TensorBoard where asked for."""
    writer = _writer(folder) if tensorboard else None

    def told(row: dict[str, Any]) -> None:
        _output.notice(_line(row), quiet)
        if writer is None:
            return
        for name, value in row.items():
            if name != "epoch" and value == value:
                writer.add_scalar(f"val/{name}", value, row["epoch"])

    try:
        yield told
    finally:
        if writer:
            writer.close()


def _line(row: dict[str, Any]) -> str:
    loss = f"{row['loss']:.4g}" if row["loss"] == row["loss"] else "–"
    return (
        f"epoch {row['epoch']:>3}  loss {loss}  rsum {row['rsum']:.1f}  "
        f"R@1 i2t {row['i2t_R@1']:.1f} t2i {row['t2i_R@1']:.1f}  "
        f"similarity: positive {row['pos_mean']:.3f}, hardest negative {row['neg_mean']:.3f}"
    )


def _writer(folder: Path) -> Any:
    from lossscope.errors import InputError

    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError("--tensorboard needs tensorboard; install lossscope[tb]") from error
    return SummaryWriter(str(folder.parent / f"{folder.name}.tb"))
