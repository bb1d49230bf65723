"""The restricted reader of pickles: a file gets the globals of one table and nothing else, so no code of it runs."""

from __future__ import annotations

import io
import mmap
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from lossscope.errors import InputError

from ..files import require_file
from ..limits import require_bounded
from ..reading import explain_failure, lacks_memory
from .allow_list import PLAIN_GLOBALS, Globals
from .opcode_limits import require_buildable


def _refuse_reference(identity: object) -> Any:
    raise InputError("got a reference to something outside of it")


class RestrictedUnpickler(pickle.Unpickler):
    """An unpickler whose only globals are those of a table; any other one is an InputError that names it.

    Args:
        file: where the pickle begins; text of Python 2 is read as latin1.
        known: the table of globals.
        refusal: message for any other global, whose full name replaces `{name}`.
        load_reference: what a persistent id stands for; refuses every one unless given.
    """

    def __init__(
        self,
        file: IO[bytes],
        known: Globals,
        refusal: str = "got {name}, which was not run: do not trust this file",
        load_reference: Callable[[Any], Any] = _refuse_reference,
    ) -> None:
        super().__init__(file, encoding="latin1")
        self._file, self._known, self._refusal, self._load_reference = file, known, refusal, load_reference

    def load(self) -> Any:
        """Return what the pickle holds. Raises InputError, before anything is built, as require_buildable does."""
        if isinstance(self._file, io.BytesIO):
            require_buildable(self._file.getvalue(), self._file.tell())
        else:
            with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                require_buildable(content, self._file.tell())
        return super().load()

    def find_class(self, module: str, name: str) -> Any:
        value = self._known.get((module, name))
        if value is None:
            raise InputError(self._refusal.format(name=f"{module}.{name}"))
        return value

    def persistent_load(self, pid: Any) -> Any:
        return self._load_reference(pid)


def read_pickle(path: Path | str) -> Any:
    """Return what a pickle of plain containers and numpy arrays holds; text of Python 2 is read as latin1.

    Raises InputError when the file is missing, cut off, no pickle, or names any global that is not in PLAIN_GLOBALS.
    """
    path = require_file(path)
    with open(path, "rb") as file:
        return read_stream(file, path)


def read_stream(
    file: IO[bytes], path: Path, known: Globals = PLAIN_GLOBALS, content: str = "plain containers and arrays"
) -> Any:
    """Return what the pickle that begins at the position of `file` holds. Raises InputError as read_pickle does.

    Args:
        file: an open file.
        path: its path, for messages.
        known: the globals that the pickle may name.
        content: what the file must hold, for messages.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # numpy warns of how its old versions wrote arrays
            read = RestrictedUnpickler(file, known).load()
        require_bounded(read)
        return read
    except InputError as error:
        raise InputError(f"{path} must hold {content}; {error}") from None
    except Exception as error:  # a damaged pickle can raise anything
        if lacks_memory(error):
            raise InputError(explain_failure(path, content, error, "")) from error
        got = f"{type(error).__name__} ({error})"
        raise InputError(f"{path} must be a whole pickle; got {got}: fetch the file again") from None
