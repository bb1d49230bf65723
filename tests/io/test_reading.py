"""Does every fault that a reader meets become one message that names the file and the fault?"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from lossscope.errors import InputError, Interrupted
from lossscope.io.reading import naming, reading, show_path
from lossscope.visible_text import show_text
from tests.each import each


@each("error, says", [
    (KeyError("rows"), "must be a frame; got KeyError: 'rows'. Copy it again; --debug shows where"),
    (MemoryError(), "must fit into memory while it is read; there is too little"),
    (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "must fit into memory"),
    (OSError(errno.ENOMEM, "Cannot allocate memory"), "must fit into memory"),
    (PermissionError(errno.EACCES, "Permission denied"), "must be a readable file; got Permission denied"),
    (RecursionError(), "nested too deep"),
    (ValueError("x" * 9000), "got ValueError: xxx"),
    (InputError("a.x must be mine"), "^a.x must be mine$"),
])  # fmt: skip
def test_an_exception_becomes_a_message_that_names_the_file(error: Exception, says: str) -> None:
    with pytest.raises(InputError, match=says) as problem, reading("a.x", "a frame"):
        raise error
    assert "a.x" in str(problem.value)
    assert len(str(problem.value)) < 500


@each("error", [KeyboardInterrupt, Interrupted])
def test_what_the_user_does_is_no_damage(error: type[BaseException]) -> None:
    with pytest.raises(error), reading("a.x", "a frame"):
        raise error


def test_a_message_without_its_file_gets_it() -> None:
    with (
        pytest.raises(InputError, match=r"^a\.x must be a vocabulary; words must be unique$"),
        naming("a.x", "a vocabulary"),
    ):
        raise InputError("words must be unique")
    with pytest.raises(InputError, match=r"^a\.x must be a table; it must exist$"), naming("a.x", "a table"):
        raise InputError("a.x must exist")


def test_names_that_no_terminal_should_get_are_written_out() -> None:
    assert show_path(Path("caf\u00e9 a.pt")) == "caf\u00e9 a.pt"
    assert show_path("\x1b[31m\udcff") == r"\x1b[31m\xff"


def test_a_message_that_names_its_file_stays_as_it_is() -> None:
    message = "weights must be those of VSE++, to which dir/a.pt belongs; missing ['fc.weight'] (1)"
    for name in ("dir/a.pt", "dir"):
        with pytest.raises(InputError) as raised, naming(name):
            raise InputError(message)
        assert str(raised.value) == message
    with pytest.raises(InputError) as raised, naming("a.pt"):
        raise InputError(message)
    assert str(raised.value) == f"a.pt must be readable; {message}"


@each("text, shown", [
    ("\ud800\udcff", r"\ud800\xff"),
    ("\u202ea\u2066\u2028", r"\u202ea\u2066\u2028"),
    ("\x9b2J\x7f\r\x00", r"\x9b2J\x7f\r\x00"),
    ("\u65e5\u672c \u00e9\u00a0\u0645\u06cc\u200c\u062e", "\u65e5\u672c \u00e9\u00a0\u0645\u06cc\u200c\u062e"),
])  # fmt: skip
def test_what_steers_a_terminal_is_written_out_and_letters_are_kept(text: str, shown: str) -> None:
    assert show_text(text) == shown and show_text(f"{text}\n", "\n") == f"{shown}\n"
