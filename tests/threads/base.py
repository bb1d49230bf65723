"""What is a rebuilt thread, on which synthetic data does its loop train, and what does lossscope print for it?"""

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
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

HERE = Path(__file__).parent
WIDTH = "100"  # columns of doctor's output
_FINDING = re.compile(r"^(error|warning|note) +([a-z0-9-]+): |^  (fail) +(\S+(?: \S+)*) {2,}")
"""A severity of doctor and `data lint`, or a failure of `check`."""


@dataclass(frozen=True)
class Thread:
    """A question from a repository: its file's docstring tells what the poster saw, and `train` reproduces it."""

    reference: str  # openai/CLIP#362
    mistake: str  # in the loop
    mended: str  # what the twin does instead
    command: str  # what the poster types, in the folder of the loop
    first: str  # id of the finding or name of the check that answers; empty: none does
    miss: str = ""  # why the first finding is another


@dataclass(frozen=True)
class Answer:
    """What lossscope printed."""

    lines: tuple[str, ...]

    @property
    def findings(self) -> list[tuple[str, str]]:
        """(severity, id) of each finding, the most likely cause first."""
        matches = (_FINDING.match(title) for title in self.titles)
        return [(match[1] or match[3], match[2] or match[4]) for match in matches if match]

    @property
    def titles(self) -> list[str]:
        """The first line of each finding."""
        return [title for title, *_ in self._blocks if _FINDING.match(title)]

    @property
    def summary(self) -> list[str]:
        """The facts and the verdict, without the findings and without the promises that `check` lists."""
        blocks = (block for block in self._blocks if not block[0].startswith(" ") and not _FINDING.match(block[0]))
        return [line for block in blocks for line in block]

    @property
    def first(self) -> list[str]:
        """The lines of the first finding."""
        return next((block for block in self._blocks if _FINDING.match(block[0])), [])

    @property
    def _blocks(self) -> list[list[str]]:
        """Each line without an indent, with the indented lines below it."""
        starts = [row for row, line in enumerate(self.lines) if line[:3].strip()]
        return [list(self.lines[start:end]) for start, end in pairwise([*starts, len(self.lines)])]


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
    """Write the poster's files into a folder, and run the thread's command there.

    Args:
        name: of the thread's file.
        folder: empty.
        mended: whether to mend the mistake.
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
    answer = Answer(tuple(line.rstrip() for line in result.stdout.splitlines()))
    if result.exit_code and not answer.findings:  # `check` ends with 1 where something fails
        raise RuntimeError(f"{name}: {result.output}")
    return answer


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    """Use this number of threads, so that sums have one order."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def views(n: int, seed: int = 0, latent: int = 12, noise: float = 0.1) -> tuple[Tensor, Tensor]:
    """Return two views (n, 48) and (n, 40) of n things, such as a picture and its caption.

    All seeds share one world.

    Args:
        n: number of things.
        seed: of the things.
        latent: numbers of a thing.
        noise: standard deviation of a view's noise.
    """
    world, things = torch.Generator().manual_seed(1234), torch.Generator().manual_seed(seed)
    maps = [torch.randn(latent, width, generator=world) / math.sqrt(latent) for width in (48, 40)]
    z = torch.randn(n, latent, generator=things)
    first, second = (torch.tanh(z @ map) + noise * torch.randn(n, map.shape[1], generator=things) for map in maps)
    return first, second


def classes(n: int, number: int, spread: float = 0.6, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return pictures (n, 32) of things of some classes, and the class of each.

    Args:
        n: number of pictures.
        number: of classes.
        spread: standard deviation of a picture around its class; classes have 1.
        seed: of the pictures.
    """
    things = torch.Generator().manual_seed(seed)
    centres, labels = torch.randn(number, 32, generator=things), torch.randint(number, (n,), generator=things)
    return centres[labels] + spread * torch.randn(n, 32, generator=things), labels


def batch_hard(embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distances of the furthest positive and of the nearest negative of each item."""
    distances = (embeddings[:, None] - embeddings[None]).square().sum(2).add(1e-12).sqrt()
    same = labels[:, None] == labels[None]
    return distances.masked_fill(~same, 0).amax(1), distances.masked_fill(same, torch.inf).amin(1)


def tower(inputs: int, outputs: int = 32, hidden: int = 128) -> nn.Sequential:
    """Return an encoder of one side."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def parameters(*modules: nn.Module) -> list[nn.Parameter]:
    """Return the parameters of modules."""
    return [parameter for module in modules for parameter in module.parameters()]


def clip_loss(first: Tensor, second: Tensor, scale: Tensor | float) -> Tensor:
    """Normalise a batch of embeddings; return CLIP's loss."""
    logits = scale * normalize(first, dim=1) @ normalize(second, dim=1).T
    labels = torch.arange(len(logits))
    return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2


def write_csv(path: Path, rows: Sequence[Mapping[str, float]]) -> None:
    """Write the log of a trainer, a row a step."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
