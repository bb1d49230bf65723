"""Options that commands share, and what refuses a value that none of them may have."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from lossscope.core.choices import OUTPUT, RUNNING, Choice
from lossscope.core.types import WeightUnit
from lossscope.declarations import declarations
from lossscope.errors import InputError

from . import _processes

Sources = Annotated[
    tuple[Path, ...],
    Choice(
        None, "Checkpoint, run folder, original file, Hugging Face folder, embedding or similarity dump.", argument=True
    ),
]
Format = Annotated[
    Literal["table", "json", "csv", "markdown", "latex"], Choice(OUTPUT, "Format of the result.", flags="--format")
]
FailOn = Annotated[
    Literal["error", "warning"] | None, Choice(None, "Exit with code 3 for findings of this severity or above.")
]
LinesOrJson = Annotated[Literal["table", "json"], Choice(None, "Format: lines, or a JSON document.")]
File = Annotated[Path | None, Choice(OUTPUT, "File for the result instead of stdout.")]
Unit = Annotated[
    WeightUnit | None,
    Choice(
        None,
        "Unit of weights and eps: that of the paper, shares of the loss's saturated weight, or dL/ds itself.",
        shown="paper; relative for several objectives",
    ),
]
Seed = Annotated[int, Choice(None, "Seed of batches and of initial weights.", low=0)]
Jobs = Annotated[
    int | None,
    Choice(
        RUNNING,
        "Threads that share the work; any number gives the same results. LOSSSCOPE_JOBS sets it for all commands.",
        shown="cores",
        low=1,
    ),
]
Quiet = Annotated[bool, Choice(RUNNING, "Print no progress and no notices.", flags="--quiet,-q")]
Verbose = Annotated[bool, Choice(RUNNING, "Print more on stderr.", flags="--verbose,-v")]
Debug = Annotated[bool, Choice(RUNNING, "Show the traceback of an error.", flags="--debug")]


def usage(message: str) -> typer.BadParameter:
    """Return an error of the command line itself: exit code 2."""
    return typer.BadParameter(message)


def resolve_device(text: str) -> str:
    """Return the device that is meant: `auto` is the GPU if there is one; of many processes each has its own GPU.

    Raises InputError for a device that is not there.
    """
    import re

    import torch

    many = _processes.is_one_of_many()
    if many and text.startswith("cuda:"):
        raise usage(f"--device must be auto, cpu or cuda where torchrun starts many processes; got {text!r}")
    if text == "auto":
        text = "cuda" if torch.cuda.is_available() else "cpu"
    if many and text == "cuda":
        from lossscope.core.distributed import local_rank

        text = f"cuda:{local_rank()}"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", text):
        raise usage(f"--device must be auto, cpu, cuda or cuda:INDEX; got {text!r}")
    if text.startswith("cuda"):
        index = int(text.partition(":")[2] or 0)
        if index >= torch.cuda.device_count():
            number = torch.cuda.device_count()
            there = (
                f"there are {number} CUDA devices, cuda:0 to cuda:{number - 1}" if number else "no CUDA device found"
            )
            raise InputError(f"--device {text}: {there}. Use --device {'cuda' if number else 'cpu'}")
    return text


def require_choice(value: str, choices: Sequence[str], option: str) -> str:
    """Return the value, which must be one of `choices`. Raises a usage error otherwise."""
    if value not in choices:
        raise usage(f"{option} must be one of {', '.join(choices)}; got {value!r}")
    return value


def require_declared(name: str, what: str, *kinds: str) -> str:
    """Return the name of a file of these kinds; `-` and `_` are equal. Raises a usage error with the nearest name."""
    names = sorted({item.name for kind in kinds for item in declarations(kind)})
    wanted = name.replace("-", "_").lower()
    if wanted not in names:
        near = difflib.get_close_matches(wanted, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise usage(f"{what} must be one of {', '.join(names)}; got {name!r}{hint}")
    return wanted


def require_picture(path: Path | None, option: str) -> None:
    """Raise a usage error for a path of a picture that is none."""
    if path is not None and path.suffix.lower() not in (".pdf", ".png", ".svg"):
        raise usage(f"{option} must end in .pdf, .png or .svg; got {path.name!r}")
