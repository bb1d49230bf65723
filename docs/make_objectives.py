"""docs/objectives.in.md -> docs/objectives.md: a section for every objective, from its file, and a picture of its W.

Docstrings of objectives begin with the value in one line; then what is to be said of it; then, each at the beginning of
a line and in this order, `W:`, `Counted:`, `Training:`, `Defaults:` (these two may be missing), `Source:`.
`--check` writes nothing and exits 1 with a diff when the page is not what would be written; pictures are not compared.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import sys
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
from PIL import Image

from lossscope.engine.weight_fields import weight_field
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.plots import style
from lossscope.plots import weight_field as picture
from lossscope.registry import build, names, spec_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "docs" / "objectives.in.md"
PAGE = ROOT / "docs" / "objectives.md"
HOME = ROOT / "lossscope" / "objectives"
PICTURES = ROOT / "figures" / "objectives"
NOTE = (
    "<!-- Made by docs/make_objectives.py from docs/objectives.in.md and the docstrings of lossscope/objectives. "
    "Change those, then `make docs`. -->\n\n"
)
LABELS = ("W", "Counted", "Training", "Defaults", "Source")
OPTIONAL = ("Training", "Defaults")
TRAINING = {
    (1.0, "sum"): "sum i2t + sum t2i",
    (0.5, "sum"): "0.5 (sum i2t + sum t2i)",
    (1.0, "mean"): "mean i2t + mean t2i",
    (0.5, "mean"): "0.5 (mean i2t + mean t2i)",
    (1.0, "pairs"): "(sum i2t + sum t2i) / B",
    (0.5, "pairs"): "0.5 (sum i2t + sum t2i) / B",
}
DRAWN = {"goal": "goal:triplet=cir,pair=sig"}  # what is drawn instead of the defaults
TOP = {"contrastive": 2.0, "lifted_structure": 3.0, "ranked_list": 1.5}  # 1/d grows: where their colours end
CAPTIONS = {
    "aoq": "Without offline columns, at gap 0.",
    "dcl": "Flat: a single negative has all of the softmax. With several, each has its share of 1/tau.",
    "goal": "triplet=cir, pair=sig; the default is triplet_sh.",
    "infonce": "At the temperature that training begins with.",
    "lifted_structure": "Coupled, so the first query of two pairs, [[s₊, s₋], [s₋, s₊]].",
    "meta_spn": "A fresh net: triplet_sh.",
    "ncr": "At label 1: triplet_sh.",
    "siglip": "At the scale and bias that training begins with.",
    "smoothap": "Two candidates that are told apart weigh nothing; the ridge is as wide as tau.",
    "ssp": "Violet: the negative is pulled.",
}


@dataclass(frozen=True)
class Entry:
    """What the page tells of one objective: name, the object at its defaults, first line of its file, its docstring."""

    name: str
    objective: Objective
    what: str
    value: str
    told: str
    parts: dict[str, str]


def entry(name: str) -> Entry:
    """Read from the file. Raises InputError for a docstring of another form."""
    objective = build("objectives", name)
    module = inspect.getmodule(type(objective))
    what = (inspect.getdoc(module) or "").splitlines()[0].removesuffix(".")
    value, told, parts = parsed(inspect.getdoc(type(objective)) or "", name)
    usual = _training(objective)
    if not parts.setdefault("Training", f"{usual}.").startswith(usual):
        raise InputError(f"Training of {name} must begin with {usual!r}, what it does; got {parts['Training']!r}")
    return Entry(name, objective, what, value, told, parts)


def parsed(text: str, name: str) -> tuple[str, str, dict[str, str]]:
    """Value, what is said of it, and the labelled parts. Raises InputError when a part is missing or misplaced."""
    first, _, rest = text.partition("\n")
    told, *pieces = re.split(rf"^({'|'.join(LABELS)}): ", rest, flags=re.M)
    found = dict(zip(pieces[::2], (" ".join(piece.split()) for piece in pieces[1::2]), strict=True))
    wanted = [label for label in LABELS if label in found or label not in OPTIONAL]
    if pieces[::2] != wanted:
        raise InputError(f"docstring of {name} must have {', '.join(wanted)}, in this order; got {pieces[::2]}")
    return first.removesuffix("."), " ".join(told.split()), found


def page(source: str) -> str:
    """The template with the table and the sections in it."""
    entries = [entry(name) for name in all_names()]
    filled = source.replace("<!-- table -->", table(entries))
    return NOTE + filled.replace("<!-- sections -->", "\n".join(section(item) for item in entries).rstrip("\n"))


def all_names() -> list[str]:
    """The files of the registry; plug-ins that are installed have their own pages."""
    return [name for name in names("objectives") if (HOME / f"{name}.py").is_file()]


def table(entries: list[Entry]) -> str:
    """One row each: name, what it is, value, training, the first work cited."""
    rows = ["| name | what | value | training | source |", "|---|---|---|---|---|"]
    for item in entries:
        cited = re.match(r".*?\d{4}", item.parts["Source"])
        cells = (
            f"[`{item.name}`](#{item.name})",
            _text(item.what),
            f"`{item.value}`",
            _training(item.objective),
            _text(cited[0] if cited else item.parts["Source"]),
        )
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def section(item: Entry) -> str:
    """Everything of one objective."""
    field, parts = drawn(item.name), item.parts
    lines = [
        f"### `{item.name}`",
        f"{_text(item.what)}.",
        f"`{item.value}`",
        _text(item.told),
        f'<img src="../figures/objectives/{item.name}.png" width="700" alt="{picture.alt(field)}">',
        _caption(item.name),
        "\n".join(
            f"- **{label}** {text}"
            for label, text in (
                ("W", _text(parts["W"])),
                ("Counted", _text(parts["Counted"])),
                ("Training", _text(parts["Training"])),
                ("Options", _options(item.objective)),
                ("Defaults", _text(parts.get("Defaults", ""))),
                ("Also", " ".join(_unusual(item.objective))),
                ("Source", _text(parts["Source"])),
                ("Files", _files(item.name, item.objective)),
            )
            if text
        ),
    ]
    return "\n\n".join(line for line in lines if line) + "\n"


def drawn(name: str) -> pd.DataFrame:
    """The field of its picture, under the spec that was drawn."""
    spec = DRAWN.get(name, name)
    return weight_field(spec).assign(objective=spec)


def draw(name: str) -> Path:
    """Write its picture, with as many colours as it takes: a third of the size."""
    PICTURES.mkdir(exist_ok=True)
    with style.paper():
        path = style.save(picture.draw(drawn(name), TOP.get(name)), PICTURES / f"{name}.png")
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    return path


def _training(objective: Objective) -> str:
    return TRAINING[float(objective.directions), objective.reduction]


def _caption(name: str) -> str:
    end = f"Colours end at {TOP[name]:g}." if name in TOP else ""
    told = " ".join(part for part in (CAPTIONS.get(name, ""), end) if part)
    return f"<sub>{_text(told)}</sub>" if told else ""


def _options(objective: Objective) -> str:
    """The spec with every default, then the choices of words and what is nothing by default."""
    hints, told = typing.get_type_hints(type(objective)), []
    for item in dataclasses.fields(objective):  # type: ignore[arg-type]
        if typing.get_origin(hints[item.name]) is Literal:
            told.append(f"`{item.name}`: {', '.join(typing.get_args(hints[item.name]))}.")
        elif item.default is None:
            told.append(f"`{item.name}`: none.")
    return " ".join([f"`{spec_of(objective)}`.", *told])


def _unusual(objective: Objective) -> list[str]:
    """Sentences on what sets it apart; the usual has one positive, and independent rows."""
    told = []
    if objective.positives == "many":
        told.append("Any number of positives a query.")
    if objective.rows_sum_to_zero:
        told.append("Rows of W sum to 0.")
    if objective.coupled:
        told.append("Coupled: a row of W depends on other rows.")
    if objective.relative:
        told.append(f"{_names(objective.relative)}, when given, replace what comes from the rest of the batch.")
    if objective.warmup:
        told.append(f"Training begins with `--warmup` epochs of `{objective.warmup}`.")
    if objective.learnable:
        begin = ", ".join(f"{name} from {value:.3g}" for name, value in objective.learnable.items())
        told.append(f"Training learns {begin.replace('-', '−')}.")
    if objective.network() is not None:
        told.append("Training learns a net.")
    if objective.required_info:
        told.append(f"To be trained it needs {_names(objective.required_info)} in `mask.info`.")
    if len(objective.conventions) > 1:
        told.append(f"Counting conventions: {', '.join(objective.conventions)}.")
    return told


def _names(words: tuple[str, ...]) -> str:
    return " and ".join(f"`{word}`" for word in words)


def _files(name: str, objective: Objective) -> str:
    """Links to the file, the oracle, and the tests that name it or what it needs."""
    found = [f"[objective](../lossscope/objectives/{name}.py)", f"[oracle](../tests/oracles/{name}.py)"]
    tests = [ROOT / "tests" / "objectives" / "test_contract.py"]
    for path in sorted((ROOT / "tests" / "objectives").glob("test_*.py")):
        if path not in tests and re.search(rf"[\"']{name}[:\"',]", path.read_text(encoding="utf-8")):
            tests.append(path)
    more = {
        "learnt_scale": objective.learnable,
        "meta_step": objective.network(),
        "quintuplet_loss": objective.required_info,
    }
    tests += [ROOT / "tests" / "training" / f"test_{module}.py" for module, wanted in more.items() if wanted]
    links = [f"[{path.stem}](../{path.relative_to(ROOT).as_posix()})" for path in tests]
    return " · ".join(found + links)


def _text(text: str) -> str:
    """Formulas in plain text, so that Markdown shows them as they are; entries of errata.md become links."""
    pieces = re.split(r"(`[^`]*`)", text)
    plain = [re.sub(r"\*|(?<!\w)_|_(?!\w)|<(?=\w)|(?<=\])\(", r"\\\g<0>", piece) for piece in pieces[::2]]
    pieces[::2] = [re.sub(r"\b(E\d+)\b(?=\))", _errata, piece) for piece in plain]
    return "".join(pieces)


def _errata(found: re.Match[str]) -> str:
    """Its place in errata.md, by the heading that is there."""
    heading = re.search(rf"^#+ ({found[0]} .*)$", (ROOT / "docs" / "errata.md").read_text(encoding="utf-8"), re.M)
    if heading is None:
        raise InputError(f"docs/errata.md must have a heading {found[0]}; it has none")
    anchor = re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
    return f"[{found[0]}](errata.md#{anchor})"


def main(arguments: list[str]) -> int:
    """Write the page and the pictures, or compare the page."""
    made = page(SOURCE.read_text(encoding="utf-8"))
    if "--check" not in arguments:
        PAGE.write_text(made, encoding="utf-8")
        for name in all_names():
            draw(name)
        return 0
    found = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    labels = (f"{PAGE.name} as it is", f"{PAGE.name} as the objectives have it")
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), made.splitlines(True), *labels))
    return int(found != made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
