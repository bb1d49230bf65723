"""Does every command line that README, docs/, CONTRIBUTING.md and --help show do what it says?

Each is run in a folder of its own that holds what the text assumes (console_inputs.py). `REDUCED` makes long ones
small, `NOT_RUN` has those that cannot be run here. A line in neither is run as written: every day one of each command
and kind of source, and those whose output is shown; the others are thorough. The options of all are parsed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import make_commands
import pytest
from console_inputs import AUDITED, DATA, ENCODER, MAKERS, PASSAGES, Inputs, kind_of, named
from console_lines import all_lines, differences, pages
from lossscope_cli import app
from typer.main import get_command
from typer.testing import CliRunner

from lossscope.registry import build, expand
from tests.blank_pictures import blank_pictures
from tests.each import each
from tests.farm import warm_jobs

REDUCED = {
    r"report runs/li2022-small": ("report runs/bleeker2022-small", "a second study is reported"),
    r"(^lossscope train .*--data )scenes(?= )": (rf"\g<1>{DATA}", "2,000 pictures are painted"),
    r"(^lossscope audit )(tiny|checkpoints/tiny\.pt)": (
        r"\g<1>ckpt.pt",
        "2,000 pictures and their captions are compared",
    ),
    r"(--data )scenes:ambiguity=0\.4(?= )": (rf"\g<1>{AUDITED}", "2,000 pictures and their captions are compared"),
    r"(--data )passages(?= )": (rf"\g<1>{PASSAGES}", "2,000 questions are learnt"),
    r"(--encoder )vsepp(:width=16)?(?= )": (rf"\g<1>{ENCODER}", "the size of the inputs' models"),
    r"(?<=--encoder )biencoder(?= )": ("biencoder:dim=8,words=8", "a text model is learnt"),
    r"(^lossscope train (?!.*--epochs)(?!.*--resume).*)": (r"\g<1> --epochs 1", "30 epochs"),
    r"--epochs \d+(?=.* --lr 0.002$)": ("--epochs 1", "several epochs"),
    r"--processes 4": ("--processes 1", "four processes start"),
    r"(^lossscope check (?:ntxent|\./my_loss.*MyLoss))$": (r"\g<1> --processes 1", "two processes start"),
    r"(?<=study run )(\w+-small)\b": (r"studies/\g<1>.toml", "minutes to an hour of training"),
    r"(^lossscope probe )tiny": (r"\g<1>ckpt.pt", "all probes on 3,000 captions"),
    r"(^lossscope analyse utility )tiny": (r"\g<1>ckpt.pt", "20 steps of each of three losses"),
    r"((?:tangent|influence|false-negatives|fidelity) embeddings\.npz --batch-size )all": (
        r"\g<1>50",
        "200 queries against 200 candidates",
    ),
    r"ntxent:tau=0\.02\.\.0\.2/10": ("ntxent:tau=0.02..0.2/3", "ten temperatures"),
}
"""Pattern -> replacement, and the reason why the line takes long."""
PUBLISHED = "a published model or real data; tests/encoders and tests/datasets open such files"
PICKLES = "a file of the authors; tests/cli/test_data.py converts small ones"
ONE_FILE = "the file above it; test_contributing.py runs it"
NOT_RUN = {
    r"make( .*)?|pip install .*": "the set-up itself; .ci/run is `make test`",
    r"(version|next)=.*|sed -i .*|\.venv/bin/python docs/release_notes.*": "test_releasing_page.py runs them in a copy",
    r"git .*|rm -rf dist .*|\.venv/bin/python -m zipfile .*|python3 -m venv .*|cd /tmp .*": "a release; test_wheel.py",
    r"lossscope demo.*": "minutes; tests/studies/test_demo.py runs a smaller file of the same command",
    r"PYTHONSAFEPATH=1 torchrun .*": "starts processes with options to fill in; tests/training runs torchrun",
    r"cd report/latex .*": "pdflatex; tests/report runs it where it is installed",
    r"lossscope convert .*": PUBLISHED,
    r"lossscope (cocos|eval) (model_best|scan\.pt|clip-vit|ViT-B-32|epoch_32|xvlm|saf\.pth).*": PUBLISHED,
    r"lossscope eval .*eccv_.*": "ids of COCO; tests/retrieval/test_judged.py has three of them",
    r"lossscope cocos s3://.*": "a store; tests/cli/test_sampled_queries.py reads one in memory",
    r"lossscope train --preset .*": PUBLISHED,
    r"lossscope (train|data features) .*(karpathy|coco):root=DIR.*": "real data; tests/datasets reads small folders",
    r"lossscope study run studies/bleeker2022-vsepp\.toml .*": "Flickr30k, a cluster; tests/studies has both small",
    r"lossscope data (ecir|msrvtt) .*": PICKLES,
    r"lossscope data (synthetic-experts|random-words) .*": "captions of MSR-VTT; tests/cli/test_data.py has small ones",
    r"lossscope .*\./clip\.py:.*": "open_clip, which needs torchvision; tests/objectives has its losses' form",
    r"lossscope .*(toy_|toy-|runs/toy).*": ONE_FILE,
}
"""Pattern -> the missing requirement of a line."""
SHOWN_VERSION = "0.1.0"
"""Version of lossscope that frames of pages state, so that a release changes no page."""

FAILS = r"lossscope check .*--trainer \./train\.py:step.*"  # finds the fault of the step that its page shows


def _examples() -> dict[str, str]:
    """Return every line once, with the output that the page shows below it."""
    shown = {line.text: line.output for line in all_lines().values()}
    of_help = [line for _, command in make_commands.commands() for line in make_commands.examples(command)]
    return dict.fromkeys(of_help, "") | shown


def _reduce(line: str) -> str:
    for pattern, (smaller, _) in REDUCED.items():
        line = re.sub(pattern, smaller, line)
    return line


LINES = _examples()
NOT_RUN_LINES = {line for line in LINES if any(re.fullmatch(pattern, line) for pattern in NOT_RUN)}
RUN_LINES = {_reduce(line): line for line in LINES if line not in NOT_RUN_LINES}
"""Lines to run once: the reduced line -> a line that it stands for."""

SPECS = {
    "objective": "objectives",
    "b_objective": "objectives",
    "encoder": "encoders",
    "probe": "probes",
    "probes": "probes",
}
"""Options whose values are specs -> kind of the specs."""


@cache
def _commands() -> Any:
    return get_command(app)


def _split(line: str) -> tuple[str, list[str]]:
    """Return the command of a line, and its other words."""
    words, command = shlex.split(line.partition(" > ")[0])[1:], _commands()
    names = []
    while hasattr(command, "commands") and words[0] in command.commands:
        names.append(words[0])
        command, words = command.commands[words[0]], words[1:]
    if names == ["probe"] and words[0] in _commands().commands:  # `probe similarity SOURCE`
        return words[0], words[1:]
    return " ".join(names), words


def _source(line: str) -> tuple[str, frozenset[str]]:
    """Return the command of a line and the kinds of its inputs: files, data sets, the shipped checkpoint."""
    command, words = _split(line)
    kinds = {kind_of(name) for name in named(command, words)}
    kinds |= {f"data {name}" for name in re.findall(r"--data (\w+)", line)}
    kinds |= {"shipped"} if re.search(r"\btiny\b", line) else set()
    return command, frozenset(kinds)


def _daily() -> set[str]:
    """Return the shortest line of each command and kind of source, and the lines whose output is shown."""
    shortest = {_source(line): line for line in sorted(RUN_LINES, key=lambda line: (-len(line), line))}
    return {*shortest.values(), *(reduced for reduced, line in RUN_LINES.items() if LINES[line])}


def _cases() -> list[Any]:
    daily = _daily()
    thorough = [pytest.mark.thorough]
    return [pytest.param(line, id=line, marks=[] if line in daily else thorough) for line in RUN_LINES]


@pytest.fixture(scope="module")
def inputs(folder_of_run: Path) -> Iterator[Inputs]:
    """Return the inputs that lines name; processes of pytest share one folder."""
    home = folder_of_run / "console-inputs"
    home.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "120")
        patch.setattr("lossscope.io.frames.own_version", lambda: SHOWN_VERSION)
        with blank_pictures(), warm_jobs():
            yield Inputs(home)


def _run(line: str) -> Any:
    """Run a line as a shell would: names with * are expanded where files match, > writes a file."""
    command, _, file = line.partition(" > ")
    words = [
        str(name)
        for word in shlex.split(command)[1:]
        for name in ((sorted(Path().glob(word)) or [word]) if "*" in word else [word])
    ]
    result = CliRunner().invoke(app, words)
    if file:
        Path(file).write_text(result.stdout, encoding="utf-8")
    return result


@pytest.mark.parametrize("line", _cases())
def test_a_line_runs(line: str, inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs.copy_named(*_split(line), tmp_path)
    monkeypatch.chdir(tmp_path)
    result = _run(line)
    assert result.exit_code == bool(re.fullmatch(FAILS, line)), f"{line}, for {RUN_LINES[line]}\n{result.output}"
    if LINES[RUN_LINES[line]]:
        assert differences(result.stdout, LINES[RUN_LINES[line]]) == []


@each("printed", ["C_neg  9.99 ± 0.4", "C_neg 10.00  ± 0.5", "C_neg 10.01 ± 0.4"])
def test_another_processor_may_round_the_last_digit_otherwise(printed: str) -> None:
    assert differences(f"{printed}\n\n24 batches", "C_neg 10.00 ± 0.4\n\n24 batches\n") == []


@each("printed", ["10.02 of 24", "10.0 of 24", "1.00 of 24", "-10.00 of 24", "10.00 of 25", "10.00", "", "\n"])
def test_any_other_output_is_a_difference(printed: str) -> None:
    assert len(differences(printed, "10.00 of 24\n")) == 1


def test_versions_and_specs_are_never_rounded() -> None:
    assert differences("lossscope 0.2.0", "lossscope 0.1.0") and differences("ntxent:tau=0.2.", "ntxent:tau=0.1.")


@each("line", sorted(line for line in LINES if line.startswith("lossscope ")))
def test_a_line_has_options_that_exist_and_specs_that_can_be_built(line: str) -> None:
    if "toy" in line:  # of files that test_contributing.py writes
        return
    words, command = shlex.split(line.partition(" > ")[0])[1:], _commands()
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    with command.make_context(command.name, words) as context:
        for option, kind in SPECS.items():
            given = context.params.get(option) or ()
            for spec in (given,) if isinstance(given, str) else given:
                if not spec.startswith("./") and spec not in ("all", "cheap") and command.name != "run":
                    assert all(build(kind, single) for single in expand(kind, spec)), spec


def test_every_input_is_named_by_a_line() -> None:
    assert not {name for name in MAKERS if "trained" not in name} - {
        name for line in RUN_LINES for name in named(*_split(line))
    }


@each("table", [REDUCED, NOT_RUN])
def test_the_tables_have_no_line_that_is_gone(table: dict[str, Any]) -> None:
    assert not [pattern for pattern in table if not any(re.search(pattern, line) for line in LINES)]


def test_commands_are_in_blocks_that_say_what_they_are() -> None:
    for page in pages():
        text = re.sub(r"^```(?:sh|console)\n.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        assert not re.findall(r"^(?:\$ )?lossscope [a-z-]+ -?.*\.(?:pt|npz|toml)\b.*$", text, re.M), page


def test_there_are_lines_of_every_page() -> None:
    assert len(LINES) > 140 and LINES["lossscope cocos tiny --eps 0.01"]  # the first look
