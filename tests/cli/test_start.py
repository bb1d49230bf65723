"""Does a command import only what it needs, and is Ctrl-C during the imports no traceback?"""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path

import lossscope_cli
import pytest
from lossscope_cli import app
from lossscope_cli._commands import app_of, name_of
from lossscope_cli._start import explain_interrupt, no_garbage
from typer.main import get_command
from typer.testing import CliRunner

from tests.command_line import tree
from tests.each import each

NOT_NEEDED = (
    "scipy.stats", "scipy.sparse", "scipy.optimize", "matplotlib", "seaborn", "plotly", "pyarrow.parquet", "fsspec",
    "sklearn", "skimage", "nltk", "jinja2", "transformers", "sympy", "networkx", "torch._dynamo", "torch._inductor",
)  # fmt: skip
"""Slow modules that no common command may import; pandas itself imports the main part of pyarrow."""
FOREIGN = (
    "lossscope.io.pickles.unpickler", "lossscope.io.pickles.legacy_torch", "lossscope.io.pickles.torchscript",
    "lossscope.encoders.released.containers", "lossscope.sources.checkpoints.conversion", "lossscope.sources._released",
    "lossscope.sources._dump_split", "lossscope.sources._shards", "lossscope.core.vector_shards",
    "lossscope.text.subwords", "lossscope.text.vocabulary_files",
)  # fmt: skip
"""Readers of other programs' files, which a checkpoint of lossscope does not need."""
COMMON = (
    "cocos tiny", "probe tiny", "probe similarity tiny", "eval tiny", "doctor tiny",
    "diff tiny tiny --b-objective triplet", "check ntxent", "list probes",
)  # fmt: skip
RUN = """
import sys
from lossscope_cli._commands import app_of

for line in sys.argv[2:]:
    app_of(line.split())(line.split(), standalone_mode=False)
print([name for name in sys.argv[1].split() if name in sys.modules])
"""


def test_common_commands_import_nothing_that_they_do_not_use() -> None:
    """One process runs all commands; the modules that none may import are missing at the end."""
    command = [sys.executable, "-P", "-c", RUN, " ".join((*NOT_NEEDED, *FOREIGN)), *COMMON]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


@each("words", tree(app).commands)  # type: ignore[attr-defined]
def test_the_command_that_is_typed_is_built_alone_and_is_the_same(words: str) -> None:
    whole = tree(app).commands[words]  # type: ignore[attr-defined]
    if hasattr(whole, "commands"):  # a group
        assert app_of([words, "--help"]) is app
        return
    built = get_command(app_of([words, "--help"])).commands  # type: ignore[attr-defined]
    assert list(built) == [words]
    assert [parameter.opts for parameter in built[words].params] == [parameter.opts for parameter in whole.params]


@each("words", [["--version"], ["no-such-command"], ["data", "lint"], ["--version", "--help"]])
def test_all_commands_are_built_where_none_is_typed(words: list[str]) -> None:
    assert app_of(words) is app


@each("option", ["--help", "-h", ""], "columns", ["60", "80", "120"])
def test_help_of_all_commands_is_the_same_without_their_options(option: str, columns: str) -> None:
    run = CliRunner(env={"COLUMNS": columns}).invoke
    words = option.split()
    assert run(app_of(words), words).output == run(app, words).output


IMPORTED = """
import sys, lossscope_cli._commands
app = lossscope_cli._commands.app_of(sys.argv[1:3])
print(*(name for name in sys.argv[3:] if f"lossscope_cli.{name}" in sys.modules))
print(*map(lossscope_cli._commands.name_of, app.registered_commands))
lossscope_cli._commands.whole_app()
print(*map(lossscope_cli._commands.name_of, lossscope_cli.app.registered_commands))
"""


@each("word, file", {"cocos": "cocos", "list": "listing", "eval": "evaluate", "weight-mass": "probe"}.items())
def test_the_file_of_the_command_that_is_typed_is_imported_alone_and_changes_no_order(word: str, file: str) -> None:
    files = sorted(path.stem for path in Path(lossscope_cli.__file__).parent.glob("[a-z]*.py"))
    command = [sys.executable, "-P", "-c", IMPORTED, word, "tiny", *files]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert shown == [file, word, " ".join(map(name_of, app.registered_commands))]


def test_garbage_is_looked_for_after_the_imports_and_never_where_the_caller_looks_for_none() -> None:
    was = gc.isenabled()
    try:
        for looked in (True, False):
            gc.enable() if looked else gc.disable()
            frozen = gc.get_freeze_count()
            with no_garbage():
                made = [[] for _ in range(1000)]  # type: ignore[var-annotated]
                assert not gc.isenabled()
            assert gc.isenabled() == looked
            assert (gc.get_freeze_count() >= frozen + len(made)) == looked
    finally:
        gc.enable() if was else gc.disable()


def test_to_import_the_library_freezes_nothing() -> None:
    code = "import gc, lossscope, lossscope.engine.sweep; print(gc.isenabled(), gc.get_freeze_count())"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0"]


@pytest.mark.parametrize("module", ["lossscope_cli._start", "typer", "lossscope_cli.listing"])
def test_ctrl_c_at_the_start_is_no_traceback(module: str) -> None:
    """The interrupt comes after one of the imported modules; before the first, Python itself is not ready."""
    command = [sys.executable, "-P", "-X", "importtime", "-m", "lossscope_cli", "list", "objectives"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.rpartition("|")[2].strip() == module:
            break
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    said = [line for line in shown.splitlines() if not line.startswith("import time:")]
    assert not [line for line in said if "lossscope_cli" in line or "/cli/" in line]
    assert process.returncode in (0, 130, -signal.SIGINT)


STRUCK = """
import os, signal, sys, lossscope_cli
if {struck}:
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:  # as torch does while it imports numpy
        pass
raise RecursionError("maximum recursion\\ndepth exceeded")
"""
IGNORED = """
import os, signal, time, lossscope_cli

class Struck:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

Struck()
time.sleep(30)
raise ValueError("the interrupt was lost")
"""
AT_EXIT = """
import atexit, os, signal, sys, lossscope_cli
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv = ["lossscope", "--version"]
lossscope_cli.main()
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code that Ctrl-C interrupts, also where a background shell ignores it."""
    code = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{code}"
    return subprocess.run([sys.executable, "-P", "-c", code], check=False, capture_output=True, text=True)


def test_an_interrupt_that_a_module_swallowed_is_one_line() -> None:
    """Ctrl-C while torch imported numpy was a RecursionError of 900 lines."""
    said = python(STRUCK.format(struck=True)).stderr
    assert said == "Interrupted; what was broken off raised RecursionError: maximum recursion depth exceeded\n"
    assert "Traceback" in python(STRUCK.format(struck=False)).stderr


def test_an_interrupt_within_a_destructor_is_not_lost() -> None:
    assert python(IGNORED).stderr == "Interrupted.\n"


def test_ctrl_c_when_all_is_done_is_no_traceback() -> None:
    done = python(AT_EXIT)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
    assert done.stdout


def test_any_other_error_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        explain_interrupt(type(error), error, error.__traceback__)
    assert "ValueError: why" in capsys.readouterr().err
    explain_interrupt(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err == "Interrupted.\n"
