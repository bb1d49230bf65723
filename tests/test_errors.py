"""Are messages short enough to be read, whatever names a file puts into them?"""

from __future__ import annotations

import pickle

from lossscope.errors import InputError, WriteError


def test_a_long_message_loses_its_middle() -> None:
    message = str(WriteError(f"a.json must be short; got {'x' * 10**6}. Shorten it"))
    assert message.startswith("a.json must be short; got x") and message.endswith("x. Shorten it")
    assert "letters] " in message and len(message) < 1500


def test_what_steers_a_terminal_is_written_out() -> None:
    assert (
        str(InputError("a\x1b[31m.json must be short;\n\tgot \u202e")) == r"a\x1b[31m.json must be short;"
        "\n\tgot \\u202e"
    )


def test_an_ordinary_message_stays_and_survives_processes() -> None:
    assert str(pickle.loads(pickle.dumps(InputError("tau must be above 0; got -1")))) == "tau must be above 0; got -1"
