"""Judge how a case ended: refused with a message, accepted, or a finding."""

from __future__ import annotations

import traceback
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lossscope.errors import InputError

from .commands import Refusal
from .limits import TimeLimit

Outcome = Literal[
    "refused", "no file", "unclear", "equal", "different", "traceback", "crash", "hang", "memory", "code run", "silent"
]
FINDINGS: tuple[Outcome, ...] = ("traceback", "crash", "hang", "memory", "code run", "silent")
"""Outcomes that must not happen; the others are refusals and accepted files."""
_LONGEST = 1500  # characters of a clear message
_PACKAGE = "/lossscope/"
_COMMANDS = "/cli/"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case and its evidence."""

    kind: str
    seed: int
    outcome: Outcome
    detail: str = ""  # the message, or the type of the exception and its text
    frame: str = ""  # innermost file:line of lossscope
    damage: str = ""  # mutators, their change and the file
    seconds: float = 0.0

    @property
    def replay(self) -> str:
        """Return the command that repeats the case."""
        return f"python -m tests.fuzz --kind {self.kind} --seed {self.seed}"


def outcome_of_error(error: BaseException, names: frozenset[str]) -> tuple[Outcome, str, str]:
    """Return (outcome, detail, frame) of a reader's exception.

    Args:
        error: raised.
        names: of the files of the case; a message must have one of them.
    """
    frame, text = innermost(error), f"{type(error).__name__}: {error}"[:600]
    if any(isinstance(cause, TimeLimit) for cause in _chain(error)):
        return "hang", text, innermost(next(cause for cause in _chain(error) if isinstance(cause, TimeLimit)))
    if any(_is_memory(cause) for cause in _chain(error)):
        return "memory", text, frame
    if not isinstance(error, InputError | Refusal | OSError):
        return "traceback", text, frame
    message = str(error).removeprefix("Error: ").strip()
    return outcome_of_message(message, names), message[:600], frame


def outcome_of_message(message: str, names: frozenset[str]) -> Outcome:
    """Return `refused` for a message that a user can act on, or the fault of the message."""
    control = any(unicodedata.category(letter) in ("Cc", "Cs", "Cf") for letter in message if letter not in "\n\t")
    if not message or control or len(message) > _LONGEST:
        return "unclear"
    return "refused" if any(name in message for name in names) else "no file"


def innermost(error: BaseException) -> str:
    """Return file:line of the innermost frame in lossscope; of the tests where there is none."""
    frames = [frame for cause in reversed(_chain(error)) for frame in traceback.extract_tb(cause.__traceback__)]
    ours = [
        f for f in frames if (_PACKAGE in f.filename or _COMMANDS in f.filename) and "site-packages" not in f.filename
    ]
    last = (ours or frames)[-1:]
    return "".join(f"{_relative(frame.filename)}:{frame.lineno}" for frame in last)


def _relative(file: str) -> str:
    root = Path(__file__).parents[2]
    return str(Path(file).relative_to(root)) if Path(file).is_relative_to(root) else file


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause is not None and cause not in chain:
            chain.append(cause)
            waiting += [cause.__cause__, cause.__context__]
    return chain


def _is_memory(error: BaseException) -> bool:
    words = ("can't allocate memory", "Cannot allocate memory", "not enough memory", "bad_alloc", "Unable to allocate")
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)
