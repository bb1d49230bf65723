"""Who may import whom: read from the files' imports, so that a breach fails by name."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import lossscope_cli
import pytest

import lossscope

LIBRARY = Path(lossscope.__file__).parent
COMMANDS = Path(str(lossscope_cli.__file__)).parent
PROJECT = Path(__file__).parents[1]
FILES = sorted(LIBRARY.rglob("*.py"))
FOLDERS = (
    "objectives",
    "probes",
    "encoders",
    "datasets",
    "features",
    "sources",
    "plots",
    "tables",
    "launchers",
    "chapters",
)


def inside(package: str) -> set[str]:
    """The modules of a package, by their names."""
    return {f"{package}.{path.stem}" for path in (LIBRARY / package).glob("[a-z]*.py")}


LAYERS, ORIGINALS, FORMATS, CHECKS, FORMS = (
    inside(name) for name in ("layers", "originals", "formats", "checks", "forms")
)
CHAPTERS = {"chapters.base", *(f"chapters.{path.stem}" for path in (LIBRARY / "chapters").glob("_[a-z]*.py"))}
TABLES = {"tables.base", *(f"tables.{path.stem}" for path in (LIBRARY / "tables").glob("_[a-z]*.py"))}
DATA = {"documents", "scenery", "painting", "telling", "truth", "vocabulary", "files", *FORMATS}
READING = {"vocabulary", "tokens", "subwords", "twopass"}
ALLOWED = {
    "errors": set(),
    "similarity": {"weights"},
    "weights": {"similarity"},
    "registry": {"spec"},
    "documents": set(),
    "files": set(),
    "vocabulary": {"documents", "files"},
    "frames": {"files"},
    "held": set(),
    "first_call": set(),
    # what an objective has learnt beside the encoder is read from a file
    "objectives": {"objectives.base", "similarity", "weights", "held", "files", "first_call", *FORMS},
    "upstream": {"objectives.base"},
    "signature": set(),
    "vectors": {"similarity"},
    "blackbox": {"objectives.base", "similarity", "weights", "signature", "vectors"},
    "rowwise": set(),
    "forms": {"objectives.base", "similarity", "rowwise", *FORMS},
    "view": {"objectives.base", "similarity", "rowwise", "forms.base", "forms.spread", "forms.whole"},
    "probes": {"probes.base", "probes._curve", "objectives.base", "similarity", "weights", "view", "rowwise"},
    "measure": {"objectives.base", "probes.base", "view"},
    "memory": set(),
    "relation": {"sampling", "similarity"},
    "tokens": set(),
    "subwords": {"files"},
    "twopass": {"encoders.base"},  # for its types
    "layers": {
        "encoders.base",
        "files",
        "similarity",
        "subwords",
        "documents",
        "twopass",
        "weights",
        *LAYERS,
        "originals.original",
    },
    # what is opened becomes a checkpoint
    "originals": {"encoders.base", "registry", "files", "documents", "checkpoint", *READING, *LAYERS, *ORIGINALS},
    "formats": {"datasets.base", "files", "documents", "vocabulary", *FORMATS},
    "features": {"features.base", "files", "layers.resnet", "registry", "documents"},
    "encoders": {"encoders.base", "registry", "files", "similarity", "weights", *READING, *LAYERS, *ORIGINALS},
    "datasets": {"datasets.base", "registry", *DATA},
    # what is probed comes down to a checkpoint, whose encoder runs over a data set
    "sources": {
        "sources.base",
        "sources._checkpoint",
        "sources._arrays",
        "sources._inputs",
        "live",
        "registry",
        "spec",
        "files",
        "vocabulary",
        "checkpoint",
        "checkpoint_content",
        "embed",
        "scoring",
        "sentences",
        "weights",
        "originals.opening",
        "originals.original",
        "encoders.base",
        "datasets.base",
    },
    "plots": {"plots.style", "plots.naming", "files", "frames"},
    "tables": {*TABLES, "published.base", "spec", "files", "frames"},
    "published": set(),
    "interactive": set(),
    "association": set(),
    "report": {"plots.style", "tables.base", "tables._formats", "interactive", "files", "frames"},
    "run": {"files"},
    "results": {"documents", "frames", "run"},
    "chapters": {
        "spec",
        "results",
        "report",
        "interactive",
        "association",
        "tables",
        *TABLES,
        *CHAPTERS,
        *inside("plots"),
        *inside("tables"),
    },
    "launchers": {"launchers.base"},
    "processes": set(),
    "checks": {"processes", "objectives.base", "registry", "similarity", "vectors", "weights", "held", *CHECKS},
    "check": {"objectives.base", "registry", *CHECKS},
    "imagewise": set(),
    "paired": set(),
    "pairing": {"imagewise", "paired"},
    "compare": {"imagewise", "paired", "pairing", "frames"},
    "doctor": {"files", "frames"},
}
CORE = ("similarity", "weights", "registry", "documents", "files", "vocabulary", "frames")
CORE_PACKAGES = {"torch", "numpy", "pandas", "safetensors", "pyarrow"}
DRAWN = (
    "plots",
    "tables",
    "published",
    "report",
    "frames",
    "compare",
    "imagewise",
    "paired",
    "pairing",
    "doctor",
    "results",
    "chapters",
    "interactive",
    "association",
)
BANNED = {"utils", "util", "common", "helpers", "helper", "misc", "manager", "managers"}


def module_of(file: Path) -> str:
    """`objectives.goal`, `files`; a package's own file has the package's name."""
    parts = file.relative_to(LIBRARY).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def layer_of(module: str) -> str:
    return module.partition(".")[0]


@cache
def parsed(file: Path) -> tuple[ast.AST, ...]:
    """Every node of a file."""
    return tuple(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


@cache
def imported(file: Path) -> frozenset[str]:
    """Absolute names of everything a file imports anywhere, type checking included."""
    package = ["lossscope", *file.relative_to(LIBRARY).parts[:-1]]
    found: set[str] = set()
    for node in parsed(file):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            found |= {member(base, alias.name) for alias in node.names}
    return frozenset(found)


def member(base: str, name: str) -> str:
    """`from lossscope import files` imports a module, `from lossscope.files import x` a name of one."""
    folder = LIBRARY.parent.joinpath(*base.split("."), name)
    is_module = base.startswith("lossscope") and (folder.is_dir() or folder.with_suffix(".py").is_file())
    return f"{base}.{name}" if is_module else base


def of_ours(file: Path) -> set[str]:
    """Modules of the library that a file imports, without the leading `lossscope.`."""
    return {name.removeprefix("lossscope.") for name in imported(file) if name.startswith("lossscope.")}


def packages(file: Path) -> set[str]:
    """Top-level names of everything that a file imports."""
    return {name.partition(".")[0] for name in imported(file)}


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


every_file = pytest.mark.parametrize("file", FILES, ids=module_of)


def test_the_files_are_found_and_their_imports_read() -> None:
    assert {"objectives.goal", "sweep", "plots.style"} <= {module_of(file) for file in FILES}
    assert {"objectives.base", "registry", "frames"} <= of_ours(LIBRARY / "sweep.py")
    assert {"plots.style", "files"} <= of_ours(LIBRARY / "plots" / "style.py") | {"plots.style"}
    assert "tables._summary" in of_ours(LIBRARY / "tables" / "statistics.py")


@every_file
def test_a_layer_imports_only_what_it_may(file: Path) -> None:
    layer = layer_of(module_of(file))
    if layer in ALLOWED:
        breach = of_ours(file) - ALLOWED[layer] - {"errors"}
        assert not breach, f"{module_of(file)} may not import {sorted(breach)}"


@every_file
def test_no_file_knows_a_particular_member_of_a_registry(file: Path) -> None:
    particular = {
        name
        for name in of_ours(file)
        if layer_of(name) in ("objectives", "probes", "encoders", "datasets", "features", "sources")
        and not name.endswith(".base")
        and "._" not in name
    }
    assert not particular, f"{module_of(file)} must go through the registry or base, not {sorted(particular)}"


@every_file
def test_the_library_never_imports_its_command_line(file: Path) -> None:
    assert not packages(file) & {"lossscope_cli", "cli", "typer", "rich", "click"}, module_of(file)


@every_file
def test_matplotlib_stays_in_plots(file: Path) -> None:
    assert layer_of(module_of(file)) == "plots" or not packages(file) & {"matplotlib", "seaborn"}, module_of(file)


@every_file
def test_what_draws_frames_never_imports_torch_or_training(file: Path) -> None:
    if layer_of(module_of(file)) in DRAWN:
        assert "torch" not in packages(file), module_of(file)
        assert "train" not in of_ours(file), module_of(file)


@pytest.mark.parametrize("name", CORE)
def test_the_core_stands_on_arrays_and_the_standard_library(name: str) -> None:
    foreign = packages(LIBRARY / f"{name}.py") - set(sys.stdlib_module_names) - {"lossscope"}
    assert foreign <= CORE_PACKAGES, f"{name} may not import {sorted(foreign - CORE_PACKAGES)}"


@every_file
def test_the_library_never_prints(file: Path) -> None:
    calls = [node for node in parsed(file) if isinstance(node, ast.Call)]
    lines = [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    assert not lines, f"{module_of(file)} prints in lines {lines}"


def test_no_module_has_a_name_that_says_nothing() -> None:
    named = {path.stem for path in (*FILES, *COMMANDS.rglob("*.py"))} | set(FOLDERS)
    assert not named & BANNED


def test_every_package_is_listed_for_installation() -> None:
    with open(PROJECT / "pyproject.toml", "rb") as file:
        listed = set(tomllib.load(file)["tool"]["setuptools"]["packages"])
    folders = {".".join(("lossscope", *file.parent.relative_to(LIBRARY).parts)) for file in FILES}
    assert listed == folders | {"lossscope_cli"}
    assert all((LIBRARY.parent.joinpath(*name.split(".")) / "__init__.py").is_file() for name in folders)


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        ["--help"],
        ["--version"],
        ["list", "objectives"],
        ["list", "probes", "--format", "json"],
        ["cocos", "--help"],
    ],
    ids=str,
)
def test_help_and_names_import_nothing_heavy(arguments: list[str] | None) -> None:
    run = "" if arguments is None else f"sys.argv = ['lossscope', *{arguments}]\nfrom lossscope_cli import main\nmain()"
    code = f"""
import atexit, sys
heavy = ("torch", "numpy", "pandas", "scipy", "matplotlib", "pyarrow")
atexit.register(lambda: print("heavy:", *[name for name in heavy if name in sys.modules]))
import lossscope
{run}
"""
    assert fresh(code).splitlines()[-1].strip() == "heavy:"


def test_names_of_the_registry_are_read_without_importing_them() -> None:
    code = "import sys; from lossscope.registry import names; names('objectives'); print('torch' in sys.modules)"
    assert fresh(code).strip() == "False"


def test_tables_and_pictures_are_made_without_torch() -> None:
    modules = [f"lossscope.{module_of(f)}" for f in FILES if layer_of(module_of(f)) in DRAWN]
    code = f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\nprint('torch' in sys.modules)"
    assert fresh(code).strip() == "False"
