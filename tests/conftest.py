"""Tests share the oracles, loaded by path, and small batches that follow from a seed."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import Phase, settings

from tests import lengths
from tests.chromium import launch
from tests.durations import Durations
from tests.farm import collect_seldom, warm_spawning

ORACLES = Path(__file__).parent / "oracles"
DATA = Path(__file__).parent / "data"
STAND_INS = Path(__file__).parent / "stand_ins"
collect_ignore_glob = ["data/authors/*.py"]  # they import the authors' code

os.environ.setdefault("OMP_NUM_THREADS", "1")  # batches of a few rows gain nothing from threads that wait
_PHASES = [phase for phase in Phase if phase is not Phase.explain]  # which takes longer than to find the failure
settings.register_profile("lossscope", deadline=None, derandomize=True, phases=_PHASES)
settings.load_profile("lossscope")
_TESTS = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose a length of the suite."""
    lengths.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Collect durations where an option asks for them; imported modules are not garbage."""
    gc.disable()
    if config.getoption("--renew-durations"):
        config.pluginmanager.register(Durations(lengths.is_whole(config) and not config.getoption("markexpr")))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test of the length."""
    return lengths.is_left_out(collection_path, config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of the length."""
    lengths.choose(config, items)


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str) -> list[pytest.Item] | None:
    """Make no cases of a function that this length of the suite leaves out."""
    return [] if lengths.is_slow(f"{collector.nodeid}::{name}", collector.config) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> lengths.FileScheduling:
    """Give the tests of a file to one process of pytest."""
    return lengths.FileScheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how many tests were skipped, beside how many may be."""
    most = lengths.most_skipped(config)
    if most is not None:
        line = f"{lengths.count_skipped(config)} skipped; at most {most} where Chromium and pdflatex are installed"
        terminalreporter.write_line(line, red=lengths.skips_too_many(config))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that skipped too many tests."""
    is_first = not hasattr(session.config, "workerinput")
    if is_first and session.exitstatus == pytest.ExitCode.OK and lengths.skips_too_many(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_finish() -> None:
    """Do work that is the same in every test once.

    All that was imported is no garbage. And torch's eighty loggers hand on to the root: to each that does not pytest
    adds handlers in every test.
    """
    collect_seldom()
    gc.enable()
    for name, logger in logging.root.manager.loggerDict.items():
        if name.partition(".")[0] == "torch" and isinstance(logger, logging.Logger):
            logger.propagate = True


@cache
def _loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"oracle_{name}", ORACLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def oracle() -> Callable[[str], ModuleType]:
    """`oracle("ntxent")` is the slow, obvious reimplementation in tests/oracles/ntxent.py."""
    return _loaded


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of known answers."""
    return DATA


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a folder for its cached embeddings; the folder is made only when a test caches any."""
    folder = tmp_path_factory.getbasetemp() / "kept" / str(next(_TESTS))
    monkeypatch.setenv("LOSSSCOPE_CACHE", str(folder / "cache"))
    monkeypatch.setenv("LOSSSCOPE_STATE", str(folder / "state"))


@pytest.fixture(scope="session", autouse=True)
def _warm_processes() -> Iterator[None]:
    """Use processes of the farm wherever lossscope starts processes of Python, for the whole run."""
    with warm_spawning():
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Yield Chromium without a network, one per module: its driver keeps an event loop of asyncio running."""
    with launch() as chromium:
        yield chromium


@pytest.fixture(scope="session", autouse=True)
def _commands_built_once() -> Iterator[None]:
    """Let `CliRunner().invoke` use one tree of commands for the whole run."""
    from tests.command_line import tree

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", tree)
        yield


@pytest.fixture
def typed() -> Iterator[None]:
    """Let Python files that specs of the test name count as typed by the user."""
    from lossscope.io.trusted_code import trust

    with trust(any_file=True):
        yield


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let `import open_clip` and `import grad_cache` find tests/stand_ins, in every process, for one test."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STAND_INS), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.syspath_prepend(str(STAND_INS))

    def forget() -> dict[str, ModuleType]:
        named = [name for name in sys.modules if name.partition(".")[0] in ("open_clip", "grad_cache")]
        return {name: sys.modules.pop(name) for name in named}

    installed = forget()
    yield
    forget()
    sys.modules.update(installed)


@pytest.fixture
def punkt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Write nltk's punkt_tab from a package that has the same numbers."""
    import nltk
    from nltk.tokenize.punkt import PunktParameters, save_punkt_params

    from lossscope.text import word_tokenisers

    english = pytest.importorskip("punkt.data.english")
    parameters = PunktParameters()
    parameters.abbrev_types, parameters.sent_starters = english.ABBREV_TYPES, english.SENT_STARTERS
    parameters.collocations, parameters.ortho_context = english.COLLOCATIONS, english.ORTHO_CONTEXT
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    (tmp_path / "tokenizers" / "punkt_tab").mkdir(parents=True)
    save_punkt_params(parameters, str(tmp_path / "tokenizers" / "punkt_tab" / "english"))
    for cached in (word_tokenisers.has_punkt, word_tokenisers._punkt):
        cached.cache_clear()
    yield
    for cached in (word_tokenisers.has_punkt, word_tokenisers._punkt):
        cached.cache_clear()


@pytest.fixture(scope="module")
def transferred() -> Iterator[None]:
    """Let audits state probabilities without labels, as if the captions resembled those that people judged."""
    from lossscope.audit.estimate.transfer import Transfer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lossscope.audit.steps.scorer.Transfer.of", lambda *_: Transfer(True, "as a test says"))
        yield


@pytest.fixture(scope="session")
def held() -> Callable[[Path], AbstractContextManager[None]]:
    """Return a context, `with held(folder):`, in which another thread, a second writer, holds the lock of a folder."""
    import threading

    from lossscope.io.folder_lock import lock_folder

    @contextmanager
    def hold_elsewhere(folder: Path) -> Iterator[None]:
        begun, over = threading.Event(), threading.Event()

        def hold() -> None:
            with lock_folder(folder):
                begun.set()
                over.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        assert begun.wait(30)
        try:
            yield
        finally:
            over.set()
            thread.join()

    return hold_elsewhere


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run folder of two epochs on tiny scenes, finished in a second. Do not write to it."""
    from lossscope.training.loop import train
    from tests.tiny import RECIPE

    return train(RECIPE, tmp_path_factory.mktemp("tiny") / "run").path


@pytest.fixture(scope="session")
def tiny_checkpoint(tiny_run: Path) -> Path:
    """Return the best.pt of `tiny_run`."""
    return tiny_run / "best.pt"


@pytest.fixture(scope="session")
def tiny_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished study of two losses and two seeds, with tiny.toml beside it. Do not write to it."""
    from tests.tiny import run_study

    return run_study(tmp_path_factory.mktemp("tiny-study")).path


@pytest.fixture(scope="session")
def folder_of_run(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return a folder that all processes of pytest share."""
    folder = tmp_path_factory.getbasetemp()
    return folder if worker_id == "master" else folder.parent


@pytest.fixture(scope="session")
def tiny_report(tiny_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of its report with blank pictures, every file beside it. Do not write to it."""
    from lossscope.studies.report import report
    from lossscope.studies.report_options import ReportOptions
    from tests.blank_pictures import blank_pictures

    with blank_pictures():
        return report([tiny_study], tmp_path_factory.mktemp("tiny-report") / "report", ReportOptions(resamples=99))


@pytest.fixture
def blank_pictures() -> Iterator[None]:
    """Make the pictures of reports blank: drawing takes most of the time of a report."""
    from tests import blank_pictures

    with blank_pictures.blank_pictures():
        yield
