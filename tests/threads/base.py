"""What a rebuilt thread is, the synthetic pairs that its loop trains on, and what doctor prints for its command."""

from __future__ import annotations

import contextlib
import csv
import importlib
import inspect
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

HERE = Path(__file__).parent
WIDTH = "100"  # columns of doctor's output
_FINDING = re.compile(r"^(error|warning|note) +([a-z0-9-]+): ")


@dataclass(frozen=True)
class Thread:
    """A question of a repository: the docstring of its file is what the poster saw, `train` there is the loop."""

    reference: str  # openai/CLIP#362
    mistake: str  # in the loop
    mended: str  # what the twin does instead
    command: str  # that the poster types, in the folder that the loop writes
    first: str  # id of the finding that answers the question; empty: there is none
    miss: str = ""  # why doctor does not say it first


@dataclass(frozen=True)
class Answer:
    """What doctor printed."""

    lines: tuple[str, ...]

    @property
    def findings(self) -> list[tuple[str, str]]:
        """(severity, id) of each finding, the most likely cause first."""
        return [(match[1], match[2]) for line in self.lines if (match := _FINDING.match(line))]

    @property
    def summary(self) -> list[str]:
        """What is, and the verdict."""
        return list(self.lines[: self._starts[2]])

    @property
    def first(self) -> list[str]:
        """The lines of the first finding."""
        return list(self.lines[self._starts[2] : self._starts[3]]) if self.findings else []

    @property
    def _starts(self) -> list[int]:
        """The first lines of the state, of the verdict, of each finding, and the end."""
        return [*(row for row, line in enumerate(self.lines) if not line.startswith(" ")), len(self.lines)]


def names() -> list[str]:
    """Return the names of the threads' files."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem != "base" and not path.stem.startswith("test_"))


def module(name: str) -> Any:
    """Return the module of a thread."""
    return importlib.import_module(f"tests.threads.{name}")


def docstring(name: str) -> tuple[str, str]:
    """Return the first line of what the poster saw, and the rest."""
    first, _, rest = (inspect.getdoc(module(name)) or "").partition("\n\n")
    return first, rest


def ask(name: str, folder: Path, mended: bool) -> Answer:
    """Train a thread's loop in a folder, and type its command there.

    Args:
        name: of the thread's file.
        folder: empty.
        mended: without the mistake.
    """
    from typer.testing import CliRunner

    app = importlib.import_module("lossscope_cli").app

    thread = module(name)
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder), _threads(1), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        thread.train(Path(), mended)
        environment = {"COLUMNS": WIDTH, "LOSSSCOPE_CACHE": str(Path("cache").resolve())}
        result = CliRunner(env=environment).invoke(app, [*shlex.split(thread.THREAD.command)[1:], "--quiet"])
    if result.exit_code:
        raise RuntimeError(f"{name}: {result.output}")
    return Answer(tuple(line.rstrip() for line in result.stdout.splitlines()))


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    """Add numbers in one order."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def views(n: int, seed: int = 0, latent: int = 12, noise: float = 0.1) -> tuple[Tensor, Tensor]:
    """Return two views (n, 48) and (n, 40) of n things, such as a picture and its caption.

    The views are those of one world, whatever the seed of the things.

    Args:
        n: number of things.
        seed: of the things.
        latent: numbers that a thing has.
        noise: standard deviation of what a view has of its own.
    """
    world, things = torch.Generator().manual_seed(1234), torch.Generator().manual_seed(seed)
    maps = [torch.randn(latent, width, generator=world) / math.sqrt(latent) for width in (48, 40)]
    z = torch.randn(n, latent, generator=things)
    first, second = (torch.tanh(z @ map) + noise * torch.randn(n, map.shape[1], generator=things) for map in maps)
    return first, second


def tower(inputs: int, outputs: int = 32, hidden: int = 128) -> nn.Sequential:
    """Return an encoder of one side."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def parameters(*modules: nn.Module) -> list[nn.Parameter]:
    """Return the parameters of modules."""
    return [parameter for one in modules for parameter in one.parameters()]


def clip_loss(first: Tensor, second: Tensor, scale: Tensor | float) -> Tensor:
    """Return CLIP's loss of a batch of embeddings, which are normalised here."""
    logits = scale * normalize(first, dim=1) @ normalize(second, dim=1).T
    labels = torch.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


def write_csv(path: Path, rows: Sequence[Mapping[str, float]]) -> None:
    """Write the log of a trainer, a row a step."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
