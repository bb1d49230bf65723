"""Does each file import only what its layer may, lazy imports and TYPE_CHECKING included?"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import lossscope_cli

import lossscope
from lossscope.registry import KINDS, names
from tests.each import each

LIBRARY = Path(lossscope.__file__).parent
COMMANDS = Path(str(lossscope_cli.__file__)).parent
LAYERS = (
    "visible_text errors spec io core plugins registry declarations text objectives probes engine encoders "
    "datasets sources retrieval stats plots tables report training conformance audit doctor live studies diagnosis "
    "lossscope"
).split()  # a file imports its own package, or one to the left
DRAWS = ("stats", "plots", "tables", "report")  # frames in, pictures and tables out: never torch
DRAWS_IMPORT = (*DRAWS, "visible_text", "errors", "spec", "io", "declarations")
# names of directions, sides and conventions, and what an option is: they import nothing that draws or computes, so
# everybody may import them
WORDS = ("lossscope.core.types", "lossscope.core.sides", "lossscope.core.choices")
FILES = sorted(LIBRARY.rglob("*.py"))
ONE_CORNER = {"fsspec", "nltk", "plotly", "skimage", "sklearn"}  # core for one thing each: no other pays their import
BANNED = {"utils", "util", "common", "helpers", "helper", "misc", "manager", "managers"}

Import = tuple[str, str]  # the module that is imported, and the name taken from it, or ""


def module_of(file: Path, library: Path = LIBRARY) -> str:
    """Return a file's module, such as `lossscope.io.files`; `__init__.py` has the package's name."""
    parts = (library.name, *file.relative_to(library).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


def package_of(module: str) -> str:
    """Return the top-level folder or file of a module: `io`, `errors`; `lossscope` for the library's `__init__.py`."""
    return [*module.split("."), "lossscope"][1]


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """Return every node of a file."""
    return tuple(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


@cache
def imports(file: Path, library: Path = LIBRARY) -> tuple[Import, ...]:
    """Return everything that a file imports, at any level."""
    return tuple(_imports(file, library))


def _imports(file: Path, library: Path) -> Iterator[Import]:
    package = [library.name, *file.relative_to(library).parts[:-1]]
    for node in nodes(file):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            for alias in node.names:
                path = library.parent.joinpath(*base.split("."), alias.name)
                is_module = base.startswith(library.name) and (path.is_dir() or path.with_suffix(".py").is_file())
                yield (f"{base}.{alias.name}", "") if is_module else (base, alias.name)


def breaches(library: Path = LIBRARY) -> list[str]:
    """Return a line for each import that the rule forbids."""
    return [line for file in sorted(library.rglob("*.py")) for line in _breaches(file, library)]


def _breaches(file: Path, library: Path) -> Iterator[str]:
    module = module_of(file, library)
    package = package_of(module)
    for target, name in imports(file, library):
        if not f"{target}.".startswith("lossscope."):
            if package in DRAWS and target.partition(".")[0] == "torch":
                yield f"{module} draws, and must not import torch"
            continue
        other = package_of(target)
        if other not in LAYERS or LAYERS.index(other) > LAYERS.index(package):
            yield f"{module} must not import {target}: {other} stands above {package}"
        if package in DRAWS and other not in DRAWS_IMPORT and target not in WORDS:
            yield f"{module} draws, and must not import {target}"
        private = [part for part in (*target.split("."), name) if part.startswith("_") and not part.endswith("__")]
        if private and other != package:
            yield f"{module} must not import {target} {name}: {private[0]} is private to {other}"


def circles(library: Path = LIBRARY) -> list[tuple[str, ...]]:
    """Return the files that import each other, directly or through others: strongly connected components."""
    graph = {
        module_of(file, library): {target for target, _ in imports(file, library)} for file in library.rglob("*.py")
    }
    reach = {module: others & graph.keys() - {module} for module, others in graph.items()}
    changed = True
    while changed:
        wider = {module: others.union(*(reach[other] for other in others)) for module, others in reach.items()}
        changed, reach = wider != reach, wider
    return sorted(
        {tuple(sorted(o for o in reach[module] if module in reach[o])) for module in reach if module in reach[module]}
    )


def test_files_import_their_own_package_or_one_to_the_left() -> None:
    assert not breaches()


def test_no_files_import_each_other_in_a_circle() -> None:
    assert not circles()


@each("file, line, says", [
    ("core/weights.py", "from lossscope.training.recipe import Recipe", "training stands above core"),
    ("core/weights.py", "if TYPE_CHECKING:\n    from ..training import recipe", "training stands above core"),
    ("engine/sweep.py", "def f():\n    from lossscope.studies.study import Study", "studies stands above engine"),
    ("plots/style.py", "import torch", "must not import torch"),
    ("tables/base.py", "from lossscope.core.batches import Batch", "draws, and must not import"),
    ("training/step.py", "from lossscope.objectives.base import _rows", "_rows is private to objectives"),
    ("training/step.py", "from lossscope.tables import _summary", "_summary is private to tables"),
    ("engine/plan.py", "from lossscope.shelf import x", "shelf stands above engine"),
])  # fmt: skip
def test_a_planted_breach_is_seen(tmp_path: Path, file: str, line: str, says: str) -> None:
    library = write_library(tmp_path, {file: line, "tables/_summary.py": ""})
    assert any(says in breach for breach in breaches(library))


def test_a_planted_circle_is_seen(tmp_path: Path) -> None:
    files = {
        "io/a.py": "from . import b",
        "io/b.py": "def f():\n    from .c import x",
        "io/c.py": "import lossscope.io.a",
    }
    assert circles(write_library(tmp_path, files)) == [("lossscope.io.a", "lossscope.io.b", "lossscope.io.c")]


def write_library(folder: Path, files: dict[str, str]) -> Path:
    """Write a small library of these files."""
    for name, text in files.items():
        path = folder / "lossscope" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "lossscope"


def test_no_file_knows_a_particular_entry_of_a_registry() -> None:
    entries = {f"lossscope.{package}.{name}" for kind, package in KINDS.items() for name in names(kind)}
    found = [(module_of(file), target) for file in FILES for target, _ in imports(file) if target in entries]
    assert not found, "entries are built by their names"


def test_the_library_has_few_files_at_its_root_and_every_folder_says_what_lives_there() -> None:
    assert len(list(LIBRARY.glob("*.py"))) <= 8
    for folder in {file.parent for file in FILES} - {LIBRARY}:
        sentence = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
        assert sentence.endswith("."), f"{folder.relative_to(LIBRARY)}/__init__.py must say what lives there"


def test_matplotlib_stays_in_plots_and_terminals_in_the_command_line() -> None:
    for file in FILES:
        roots = {target.partition(".")[0] for target, _ in imports(file)}
        assert package_of(module_of(file)) == "plots" or not roots & {"matplotlib", "seaborn"}, file
        assert not roots & {"lossscope_cli", "cli", "typer", "rich", "click"}, file


def test_what_one_corner_needs_is_imported_within_its_function() -> None:
    for file in FILES:
        body = ast.parse(file.read_text(encoding="utf-8")).body
        names = [alias.name for node in body if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in body if isinstance(node, ast.ImportFrom)]
        assert not {name.partition(".")[0] for name in names} & ONE_CORNER, file


def test_the_library_never_prints() -> None:
    for file in FILES:
        calls = [node for node in nodes(file) if isinstance(node, ast.Call)]
        lines = [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
        assert not lines, f"{module_of(file)} prints in lines {lines}"


def test_no_module_has_a_name_that_says_nothing() -> None:
    named = {part for file in FILES for part in module_of(file).split(".")} | {p.stem for p in COMMANDS.rglob("*.py")}
    assert not named & BANNED


@each("arguments", [
    None,
    ["--help"],
    ["--version"],
    ["list", "objectives"],
    ["list", "probes", "--format", "json"],
    ["cocos", "--help"],
    ["train", "--help"],
])  # fmt: skip
def test_help_and_names_import_nothing_heavy(arguments: list[str] | None) -> None:
    run = "" if arguments is None else f"sys.argv = ['lossscope', *{arguments}]\nfrom lossscope_cli import main\nmain()"
    code = f"""
import atexit, sys
heavy = ("torch", "numpy", "pandas", "scipy", "matplotlib", "seaborn", "pyarrow", "msgspec")
atexit.register(lambda: print("heavy:", *[name for name in heavy if name in sys.modules]))
import lossscope
{run}
"""
    assert fresh(code).splitlines()[-1].strip() == "heavy:"


def test_names_of_the_registry_are_read_without_importing_them() -> None:
    code = "import sys; from lossscope.registry import names; names('objectives'); print('torch' in sys.modules)"
    assert fresh(code).strip() == "False"


def test_tables_and_pictures_are_made_without_torch() -> None:
    modules = [module_of(file) for file in FILES if package_of(module_of(file)) in DRAWS]
    code = f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\nprint('torch' in sys.modules)"
    assert fresh(code).strip() == "False"


def fresh(code: str) -> str:
    """Return what a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


RUNS = {"exec_module", "SourceFileLoader", "spec_from_file_location", "run_path", "run_module", "import_file"}
PLACES_OF_IMPORTS = {"lossscope.io.python_files", "lossscope.registry"}
UNPICKLES = {"Unpickler", "_Unpickler"}
PLACES_OF_PICKLES = {
    "lossscope.io.files": "torch files, with weights_only",
    "lossscope.live.equal_losses": "a copy of a loss in memory, which it pickled itself",
    "lossscope.objectives.checks.spawn": "the result of a process that it started, in a folder of its own",
}


def test_a_python_file_is_imported_in_one_place_that_asks_first() -> None:
    """The registry calls `import_file`, and asks `require_trusted` before it."""
    found = {
        module_of(file)
        for file in FILES
        for node in nodes(file)
        if (isinstance(node, ast.Attribute) and node.attr in RUNS)
        or (isinstance(node, ast.Name) and (node.id in RUNS or node.id in ("exec", "eval")))
    }
    assert found == PLACES_OF_IMPORTS
    registry = ast.parse((LIBRARY / "registry.py").read_text(encoding="utf-8"))
    (caller,) = [
        node for node in registry.body if isinstance(node, ast.FunctionDef) and "import_file(" in ast.unparse(node)
    ]
    text = ast.unparse(caller)
    assert 0 < text.index("require_trusted(") < text.index("import_file(")


def test_pickles_are_read_in_one_package() -> None:
    """numpy never reads objects, and torch only what `weights_only` lets it."""
    found = {module_of(file) for file in FILES for node in nodes(file) if _reads_pickles(node)}
    assert {module for module in found if not module.startswith("lossscope.io.pickles.")} == set(PLACES_OF_PICKLES)
    files = (LIBRARY / "io" / "files.py").read_text(encoding="utf-8")
    assert files.count("torch.load(") == files.count("weights_only=True") == 1


def _reads_pickles(node: ast.AST) -> bool:
    """Return whether a call reads a pickle, or may."""
    if isinstance(node, ast.Attribute) and node.attr in UNPICKLES:
        return True
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    called = ast.unparse(node.func)
    allows = any(keyword.arg == "allow_pickle" for keyword in node.keywords)
    return allows or called in ("torch.load", "pickle.load", "pickle.loads", "np.load", "pd.read_pickle", "joblib.load")
