"""spec -> object -> spec is the identity, and the errors of specs that cannot be read list what exists."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossscope import registry
from lossscope.encoders.base import encoder_spec
from lossscope.errors import InputError, SpecError
from lossscope.objectives.base import Traits
from lossscope.objectives.custom.as_objective import as_objective
from lossscope.plugins import RENAMED, TRAITS
from lossscope.registry import KINDS, build, expand, load, names, spec_of, uses_file
from lossscope.spec import Spec
from tests.each import each

REQUIRED = {"root": "some/folder", "name": "flickr8k", "path": "dump.npz", "file": "captions.json"}
REQUIRED |= {"loss": "./loss.py:loss", "vocab": "vocab.json", "shards": "*.tar", "weights": "resnet.pth"}
REGISTERED = [(kind, name) for kind in KINDS for name in names(kind)]
pytestmark = pytest.mark.usefixtures("typed")  # Python files that specs name
PLUGIN = """
from __future__ import annotations
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lossscope.objectives.base import Gradient
from lossscope.probes.base import Probe

@dataclass(frozen=True)
class Mine(Gradient):
    size: int = 3
    rate: float = 0.5
    on: bool = False
    mode: Literal["in-out", "out_in"] = "in-out"
    limit: int | None = 7
    label: str = "a"
    root: Path = Path("data")

@dataclass(frozen=True)
class Other(Probe):
    count: int
    axis = "query"
    reads = frozenset()
    needs_objective = False

@dataclass(frozen=True)
class Counted(Gradient):
    count: int

@dataclass(frozen=True)
class Nothing:
    size: int = 3

class Plain:
    pass
"""


def minimal(kind: str, name: str) -> str:
    """Return the shortest spec that builds: required fields only."""
    try:
        build(kind, name)
    except SpecError as error:
        missing = [key for key in REQUIRED if f"{key}=..." in str(error)]
        return f"{name}:" + ",".join(f"{key}={REQUIRED[key]}" for key in missing)
    return name


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mine.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return "./mine.py:Mine"


@each("kind, name", REGISTERED)
def test_spec_to_object_to_spec_is_the_identity(kind: str, name: str) -> None:
    thing = build(kind, minimal(kind, name))
    spec = spec_of(thing)
    assert spec.partition(":")[0] == name
    assert build(kind, spec) == thing
    assert spec_of(build(kind, spec)) == spec
    assert str(Spec.parse(spec)) == spec


@each("kind", KINDS)
def test_names_are_the_files_without_base_and_private_ones(kind: str) -> None:
    files = {path.stem for path in registry.folder(kind).glob("*.py")}
    assert set(names(kind)) >= {name for name in files if name not in registry.NOT_ENTRIES and not name.startswith("_")}
    assert "base" not in names(kind)
    assert names(kind) == sorted(names(kind))


values = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@given(keys, st.dictionaries(keys, values, max_size=4))
def test_quoted_values_survive_writing_and_reading(name: str, given_values: dict[str, str]) -> None:
    spec = Spec(name, given_values)
    reread = Spec.parse(str(spec))
    assert (reread.name, reread.values) == (name, given_values)
    assert str(reread) == str(spec)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=1e-300))
def test_every_float_survives_writing_and_reading(tau: float) -> None:
    objective = load("objectives", "ntxent")(tau=tau)
    assert build("objectives", spec_of(objective)) == objective


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_every_path_survives_writing_and_reading(text: str) -> None:
    karpathy = load("datasets", "karpathy")(root=Path(text), name="flickr8k")
    assert build("datasets", spec_of(karpathy)) == karpathy


def test_dashes_and_underscores_are_equal_in_names_keys_and_choices() -> None:
    assert build("objectives", "Triplet-SH") == build("objectives", "triplet_sh")
    assert build("objectives", "goal:m-plus=0.1,pair=sig_ms") == build("objectives", "goal:m_plus=0.1,pair=sig-ms")


def test_an_unknown_name_lists_what_exists_and_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"objective must be one of aoq, .*vlc; got 'ntxnet'; did you mean 'ntxent'\?"):
        build("objectives", "ntxnet")
    with pytest.raises(SpecError, match=r"data set must be one of .*; got 'zzz'$"):
        build("datasets", "zzz")


@each("name", ["", "base", "_summary", "../registry", "goal/../vlc", "."])
def test_an_invalid_name_is_never_imported(name: str) -> None:
    with pytest.raises(SpecError, match="objective must be one of"):
        load("objectives", name)


@each("kind, name, meant", [
    ("datasets", "Flickr8k", "karpathy:root=DIR,name=flickr8k"),
    ("objectives", "NT-Xent", "ntxent"),
    ("objectives", "clip", "ntxent"),
])  # fmt: skip
def test_a_name_from_elsewhere_is_answered_with_ours(kind: str, name: str, meant: str) -> None:
    with pytest.raises(SpecError, match=f"did you mean '{meant}'"):
        load(kind, name)


def test_a_file_without_a_name_is_answered_with_what_it_defines(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import never\n\ndef _hidden(S): ...\n\ndef loss(S): ...\n\nclass Loss: ...\n", encoding="utf-8")
    with pytest.raises(SpecError, match=rf"the name of an objective; it defines loss, Loss. Write {path}:loss"):
        load("objectives", str(path))
    with pytest.raises(SpecError, match="followed by the name of a probe; it defines Loss"):
        load("probes", str(path))
    path.write_text("def", encoding="utf-8")
    with pytest.raises(SpecError, match="must be a Python file; invalid syntax"):
        load("objectives", str(path))
    with pytest.raises(SpecError, match=r"plug-in file must exist, and be followed by a name, goal.py:NAME"):
        load("objectives", "goal.py")


def test_an_unknown_key_lists_the_keys_and_the_nearest() -> None:
    message = r"key of unified must be one of margin, gamma, weights, margins; got 'gama'; did you mean 'gamma'"
    with pytest.raises(SpecError, match=message):
        build("objectives", "unified:gama=3")
    with pytest.raises(SpecError, match=r"key of ntxent must be one of tau; got 'tua'"):
        expand("objectives", "ntxent:tua=0.1..0.3/3")


def test_a_missing_required_key_is_named() -> None:
    with pytest.raises(SpecError, match=r"karpathy needs root=\.\.\., name=\.\.\.; got 'karpathy'"):
        build("datasets", "karpathy")


@each("spec, message", [
    ("", "empty text"),
    ("ntxent:tau", "name:key=value,...; got 'tau'"),
    ("ntxent:=3", "got '=3'"),
    ("ntxent:tau=1,tau=2", "'tau' twice"),
    ('ntxent:tau="1', "quotes of a spec must be closed"),
])  # fmt: skip
def test_a_spec_that_cannot_be_read_raises_naming_the_piece(spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Spec.parse(spec)


@each("spec, steps", [
    ("ntxent:tau=0.1..0.3/3", ["0.1", "0.2", "0.3"]),
    ("ntxent:tau=0.3..0.1/2", ["0.3", "0.1"]),
    ("ntxent:tau=0.01..1/3 log", ["0.01", "0.1", "1"]),
    ("ntxent:tau=1e-2..1e0/2", ["0.01", "1"]),
    ("ntxent:tau=0..1", ["0", "0.25", "0.5", "0.75", "1"]),
    ("ntxent:tau=0.1", ["0.1"]),
])  # fmt: skip
def test_ranges_become_one_spec_per_step(spec: str, steps: list[str]) -> None:
    assert expand("objectives", spec) == [f"ntxent:tau={step}" for step in steps]


def test_two_ranges_make_a_grid_and_optional_floats_have_ranges() -> None:
    assert len(expand("objectives", "unified:gamma=10..60/6,margin=0..0.2/3")) == 18
    assert len(expand("objectives", "goal:m_plus=0..1/2")) == 2


@each("kind, spec, message", [
    ("objectives", "goal:pair=1..2/3", "ranges are for float fields; got pair=1..2/3"),
    ("datasets", "scenes:size=16..64/3", "ranges are for float fields; got size"),
    ("objectives", "ntxent:tau=1..2/1", "at least 2 steps"),
    ("objectives", "ntxent:tau=0..2/3 log", "positive ends for log"),
    ("objectives", "ntxent:tau=e..e/3", "ends of a range must be numbers"),
    ("objectives", "ntxent:tau=1..1e999/3", "ends of a range must be numbers"),
])  # fmt: skip
def test_invalid_ranges_raise(kind: str, spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        expand(kind, spec)


def test_a_plug_in_file_is_built_with_typed_arguments(plugin: str) -> None:
    spec = f'{plugin}:size=4,rate=2,on=yes,mode=out-in,limit=none,label="x,y",root="a b"'
    thing = build("objectives", spec)
    typed = {"size": 4, "rate": 2.0, "on": True, "mode": "out_in", "limit": None, "label": "x,y"}
    assert vars(thing) == {**typed, "root": Path("a b")}
    assert isinstance(thing.rate, float)
    assert build("objectives", spec_of(thing)) == thing
    assert spec_of(thing).startswith(plugin)


def test_a_plug_in_that_is_installed_later_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a plug-in after the first search for plug-ins: a second search must find it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "late_comer" not in names("objectives")
    installed = tmp_path / "late_comer-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: late-comer\nVersion: 1\n", encoding="utf-8")
    points = "[lossscope.objectives]\nlate-comer = late_comer:Mine\n"
    (installed / "entry_points.txt").write_text(points, encoding="utf-8")
    assert "late_comer" in names("objectives")


def test_a_plug_in_without_arguments_has_its_defaults(plugin: str) -> None:
    assert build("objectives", plugin).size == 3
    assert build("probes", "mine.py:Other:count=2").count == 2


def test_a_changed_plug_in_file_is_read_again(plugin: str) -> None:
    assert build("objectives", plugin).size == 3
    Path("mine.py").write_text(PLUGIN.replace("size: int = 3", "size: int = 33"), encoding="utf-8")
    assert build("objectives", plugin).size == 33


def test_specs_that_name_a_file_are_recognised() -> None:
    assert uses_file("./mine.py:Mine:size=2")
    assert uses_file('only_top:of="./mine.py:Mine:size=2",k=3')
    assert not uses_file("only_top:of=ntxent")
    assert not uses_file("ntxent:tau=0.1")
    assert not uses_file('karpathy:root="x.py:Class",name=a')


@each("spec, message", [
    ("./none.py:Mine", "plug-in file must exist; got './none.py'"),
    ("./mine.py:Nobody", "must define Nobody; it does not"),
    ("./mine.py:Plain", "Plain of ./mine.py must be a function, .* got a class without __call__"),
    ("./mine.py:Mine:sice=2", "did you mean 'size'"),
    ("./mine.py:Counted", "needs count=..."),
])  # fmt: skip
@pytest.mark.usefixtures("plugin")
def test_plug_ins_that_cannot_be_used_raise(spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        build("objectives", spec)


@each("text", ["true", "True", "yes", "1"])
def test_true_has_four_spellings(plugin: str, text: str) -> None:
    assert build("objectives", f"{plugin}:on={text}").on is True


@each("text", ["false", "No", "0"])
def test_false_has_three_spellings(plugin: str, text: str) -> None:
    assert build("objectives", f"{plugin}:on={text}").on is False


@each("value, message", [
    ("on=maybe", "on must be bool; got 'maybe'"),
    ("size=1.5", "size must be int; got '1.5'"),
    ("size=none", "size must be int; got 'none'"),
    ("rate=fast", "rate must be float; got 'fast'"),
    ("rate=inf", "rate must be float; got 'inf'"),
    ("rate=none", "rate must be float; got 'none'"),
    ("mode=up", "mode must be one of in-out, out_in; got 'up'"),
    ("limit=x", "limit must be int or none; got 'x'"),
])  # fmt: skip
def test_values_of_the_wrong_type_raise(plugin: str, value: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        build("objectives", f"{plugin}:{value}")


def write(file: Path, *classes: str) -> None:
    body = "".join(f"@dataclass\nclass {name}:\n    x: int = 1\n" for name in classes)
    file.write_text(f"from dataclasses import dataclass\n{body}", encoding="utf-8")


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Replace lossscope/objectives/ by an empty folder."""
    package: ModuleType = importlib.import_module("lossscope.objectives")
    folder = tmp_path / "objectives"
    folder.mkdir()
    monkeypatch.setattr(registry, "_HOME", tmp_path)
    monkeypatch.setattr(package, "__path__", [str(folder)])
    yield folder
    for module in [name for name in sys.modules if name.startswith("lossscope.objectives.scratch_")]:
        del sys.modules[module]


def test_a_new_file_is_registered_by_being_there(scratch: Path) -> None:
    write(scratch / "scratch_one.py", "One", "_Part")
    assert names("objectives") == ["scratch_one"]
    thing: Any = build("objectives", "scratch-one:x=5")
    assert spec_of(thing) == "scratch_one:x=5"


@each("classes, listed", [((), r"\[\]"), (("One", "Two"), r"\['One', 'Two'\]")])
def test_a_file_has_exactly_one_public_dataclass(scratch: Path, classes: tuple[str, ...], listed: str) -> None:
    name = f"scratch_{len(classes)}"
    write(scratch / f"{name}.py", *classes)
    with pytest.raises(SpecError, match=f"exactly one public dataclass; got {listed}"):
        load("objectives", name)


def test_an_unregistered_class_has_no_spec() -> None:
    with pytest.raises(SpecError, match="Spec is not registered"):
        spec_of(Spec("x"))


@each("kind", registry.KINDS)
def test_a_plug_in_of_another_kind_is_refused_when_it_is_built(kind: str, plugin: str) -> None:
    """The error came late, as an AttributeError of `positives`, `split` or `identity`."""
    with pytest.raises((SpecError, InputError), match=r"mine\.py:Nothing.*(it must .*; it lacks |must inherit)"):
        _ = encoder_spec("./mine.py:Nothing") if kind == "encoders" else build(kind, "./mine.py:Nothing")


@each("kind", RENAMED)
def test_a_plug_in_with_a_former_name_raises_with_the_current_one(kind: str, tmp_path: Path) -> None:
    for former, name in RENAMED[kind].items():
        path = tmp_path / f"{kind}_{former}.py"
        path.write_text(
            f"from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Mine:\n    {former} = None\n"
        )
        with pytest.raises(SpecError, match=f"must define {name}; it defines {former}, its former name"):
            build(kind, f"{path}:Mine")


LOSS = "LossObjective"
OWN_LOSS = """
from dataclasses import dataclass
from functools import cached_property
from lossscope.objectives.base import LossObjective, Traits
from lossscope.objectives.ntxent import NTXent

@dataclass(frozen=True)
class Mine({base}):
    {line}
"""


def own_loss(folder: Path, line: str, base: str = LOSS) -> str:
    path = folder / "own_loss.py"
    path.write_text(OWN_LOSS.format(line=line, base=base), encoding="utf-8")
    return f"{path}:Mine"


@each("former, trait", TRAITS.items())
def test_every_former_attribute_of_an_objective_is_refused_with_the_line_to_type(
    former: str, trait: str, tmp_path: Path
) -> None:
    """These attributes are now fields of its traits; nothing would read them."""
    (field,) = (item for item in dataclasses.fields(Traits) if item.name == trait)
    value = repr(field.default).replace("'", '"')
    spec = own_loss(tmp_path, f"{former} = {value}")
    line = re.escape(f"must have the line `traits = Traits({trait}={value})`, with Traits of lossscope.objectives.base")
    with pytest.raises(SpecError, match=rf"own_loss.py:Mine {line}; it defines {former}, which nothing reads"):
        build("objectives", spec)
    Mine = types.new_class("Mine", (load("objectives", "ntxent"),), exec_body=lambda body: body.update({former: value}))
    for thing in (Mine, Mine()):
        with pytest.raises(SpecError, match=rf"Mine must have the line `traits = .*it defines {former}, which nothing"):
            as_objective(thing)


def test_the_former_name_of_the_base_class_is_refused_with_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text("from lossscope.objectives.base import Loss\n", encoding="utf-8")
    with pytest.raises(SpecError, match="is its former name: import LossObjective"):
        build("objectives", f"{path}:Mine")


def test_all_traits_were_attributes_of_an_objective() -> None:
    added = {"is_part"}  # since then
    assert {item.name for item in dataclasses.fields(Traits)} == set(TRAITS.values()) | added


@each("line, base, says", [
    ('positives, reduction = "many", "mean"', LOSS, 'the line `traits = Traits(positives="many", reduction="mean")`'),
    ('positives = "many"', "NTXent",
     'traits = Traits(directions=0.5, reduction="mean", conventions=("corrected", "released", "text"), '
     'takes_terms=True, positives="many")`'),
    ("directions = property(lambda self: 0.5)", LOSS, "a property `traits` that returns Traits(directions=...)"),
    ("square = cached_property(lambda self: True)", LOSS, "a property `traits` that returns Traits(square=...)"),
    ('reduction: str = "mean"', LOSS, "a property `traits` that returns Traits(reduction=...)"),
    ("reduction: str", LOSS, "a property `traits` that returns Traits(reduction=...)"),
])  # fmt: skip
def test_the_line_to_type_has_all_that_the_class_says(line: str, base: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=re.escape(says)):
        load("objectives", own_loss(tmp_path, line, base))


@each("line, traits", [
    ("margin: float = 1", Traits()),
    ("embeddings: bool = True", Traits()),
    ('traits = Traits(positives="many")', Traits(positives="many")),
    ('traits = property(lambda self: Traits(positives="many"))', Traits(positives="many")),
])  # fmt: skip
def test_the_traits_of_an_objective_of_the_user_are_read(line: str, traits: Traits, tmp_path: Path) -> None:
    assert build("objectives", own_loss(tmp_path, line)).traits == traits


@each("spec, says", [
    ("." * 60_000, "at most 10000 letters; got 60000"),
    ("ntxent:tau=0.1..0.2/1000000000", "at most 1000 values; got 1000000000"),
    ("unified:gamma=1..2/100,margin=1..2/100", "at most 1000 values; got 10000"),
])  # fmt: skip
def test_a_spec_without_end_is_refused_at_once(spec: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        expand("objectives", spec)


def test_a_whole_number_has_64_bits() -> None:
    with pytest.raises(SpecError, match="vsepp:dim must be int"):
        build("encoders", f"vsepp:dim={10**19}")
    assert expand("objectives", "ntxent:tau=" + "." * 9000) == ["ntxent:tau=" + "." * 9000]
