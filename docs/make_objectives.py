"""docs/objectives.in.md -> docs/objectives.md: a section for every objective, from its file, and a picture of its W.

The docstring of an objective begins with the formula in one line. Explanations follow, then the labels `W:`,
`Counted:`, `Training:`, `Defaults:` (these two are optional) and `Source:`, each at the start of a line, in this order.
The meaning of an option is the comment beside its field.
`--check` writes nothing and exits 1 with a diff if the page is out of date. It does not compare pictures.
"""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from generated_page import escape, write_or_compare
from PIL import Image

from lossscope.declarations import Declaration, declarations
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
DRAWN = {
    "goal": "goal:triplet=cir,pair=sig",
    "only_tail": "only_tail:of=siglip",
}  # the spec of the picture, instead of the defaults
TOP = {
    "arcface": 64.0,
    "contrastive": 2.0,
    "lifted_structure": 3.0,
    "ranked_list": 1.5,
}  # the end of the colour scale, because 1/d is unbounded
CAPTIONS = {
    "aoq": "Without offline columns, at gap 0.",
    "arcface": "The pull is unbounded as s₊ nears ±1; the colour scale ends at scale.",
    "dcl": "Flat: a single negative has all of the softmax. With several, each has its share of 1/tau.",
    "goal": "triplet=cir, pair=sig; the default is triplet_sh.",
    "infonce": "At the initial temperature.",
    "lifted_structure": "Coupled, so the first query of two pairs, [[s₊, s₋], [s₋, s₊]].",
    "meta_spn": "An untrained network: triplet_sh.",
    "only_above": "With one negative: ntxent, where its softmax is above eps.",
    "only_tail": "With one negative, which is left out; of siglip, as the positive of ntxent then has no weight.",
    "only_top": "With one negative: ntxent.",
    "proxy_anchor": "Coupled, so the first item of two, [[s₊, s₋], [s₋, s₊]].",
    "ncr": "At label 1: triplet_sh.",
    "siglip": "At the initial scale and bias.",
    "smoothap": "Zero where the two similarities differ by more than a few tau.",
    "ssp": "Violet: the negative is pulled.",
}


@dataclass(frozen=True)
class Entry:
    """The parts of an objective's section."""

    name: str
    objective: Objective  # at its defaults
    title: str  # first line of its file
    formula: str  # first line of its docstring
    explanation: str
    parts: dict[str, str]  # by label
    declared: Declaration  # its options


def entry(name: str) -> Entry:
    """Return the entry of an objective from its file. Raises InputError for a docstring of another form."""
    objective = build("objectives", name)
    module = inspect.getmodule(type(objective))
    title = (inspect.getdoc(module) or "").splitlines()[0].removesuffix(".")
    formula, explanation, parts = parse_docstring(inspect.getdoc(type(objective)) or "", name)
    usual = _training(objective)
    if not parts.setdefault("Training", f"{usual}.").startswith(usual):
        raise InputError(f"Training of {name} must begin with {usual!r}, what it does; got {parts['Training']!r}")
    (options,) = (item for item in declarations("objectives") if item.name == name)
    return Entry(name, objective, title, formula, explanation, parts, options)


def parse_docstring(text: str, name: str) -> tuple[str, str, dict[str, str]]:
    """Return the formula, the explanation and the labelled parts of a docstring.

    Raises InputError when a part is missing or misplaced.
    """
    first, _, rest = text.partition("\n")
    explanation, *pieces = re.split(rf"^({'|'.join(LABELS)}): ", rest, flags=re.M)
    parts = dict(zip(pieces[::2], (" ".join(piece.split()) for piece in pieces[1::2]), strict=True))
    labels = [label for label in LABELS if label in parts or label not in OPTIONAL]
    if pieces[::2] != labels:
        raise InputError(f"docstring of {name} must have {', '.join(labels)}, in this order; got {pieces[::2]}")
    return first.removesuffix("."), _paragraphs(explanation), parts


def _paragraphs(text: str) -> str:
    """Join the lines of paragraphs; indented lines become items of a list."""
    paragraphs: list[str] = []
    for line in text.strip().splitlines():
        if line.startswith("    "):
            paragraphs.append(f"- {line.strip()}")
        elif not paragraphs or paragraphs[-1].startswith("- "):
            paragraphs.append(f"\n{line}" if paragraphs else line)
        else:
            paragraphs[-1] += f" {line}"
    return "\n".join(paragraphs)


def page(source: str) -> str:
    """Return the page: the template with its table and sections."""
    entries = [entry(name) for name in all_names()]
    filled = source.replace("<!-- table -->", table(entries))
    return NOTE + filled.replace("<!-- sections -->", "\n".join(section(item) for item in entries).rstrip("\n"))


def all_names() -> list[str]:
    """Return the names of the objectives in this repository, without installed plug-ins."""
    return [name for name in names("objectives") if (HOME / f"{name}.py").is_file()]


def table(entries: list[Entry]) -> str:
    """Return a table of the objectives: name, title, formula, training, the first work cited."""
    rows = ["| name | what | loss of a query | training | source |", "|---|---|---|---|---|"]
    for item in entries:
        cited = re.match(r".*?\d{4}", item.parts["Source"])
        cells = (
            f"[`{item.name}`](#{item.name})",
            _markdown(item.title),
            f"`{item.formula}`",
            _training(item.objective),
            _markdown(cited[0] if cited else item.parts["Source"]),
        )
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def section(item: Entry) -> str:
    """Return the section of one objective."""
    field, parts = compute_field(item.name), item.parts
    lines = [
        f"### `{item.name}`",
        f"{_markdown(item.title)}.",
        f"`{item.formula}`",
        _markdown(item.explanation),
        f'<img src="../figures/objectives/{item.name}.png" width="700" alt="{picture.alt(field)}">',
        _caption(item.name),
        "\n".join(
            f"- **{label}** {text}"
            for label, text in (
                ("W", _markdown(parts["W"])),
                ("Counted", _markdown(parts["Counted"])),
                ("Training", _markdown(parts["Training"])),
                ("Options", _options(item)),
                ("Defaults", _markdown(parts.get("Defaults", ""))),
                ("Also", " ".join(_describe_traits(item.objective))),
                ("Source", _markdown(parts["Source"])),
                ("Files", _files(item.name, item.objective)),
            )
            if text
        ),
    ]
    return "\n\n".join(line for line in lines if line) + "\n"


def compute_field(name: str) -> pd.DataFrame:
    """Return the weight field of an objective's picture, labelled with its spec."""
    spec = DRAWN.get(name, name)
    return weight_field(spec).assign(objective=spec)


def draw(name: str) -> Path:
    """Write the picture of an objective with 256 colours, a third of the full size."""
    PICTURES.mkdir(exist_ok=True)
    with style.paper():
        path = style.save(picture.draw(compute_field(name), TOP.get(name)), PICTURES / f"{name}.png")
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    return path


def _training(objective: Objective) -> str:
    return TRAINING[float(objective.traits.directions), objective.traits.reduction]


def _caption(name: str) -> str:
    end = f"Colours end at {TOP[name]:g}." if name in TOP else ""
    caption = " ".join(part for part in (CAPTIONS.get(name, ""), end) if part)
    return f"<sub>{_markdown(caption)}</sub>" if caption else ""


def _options(item: Entry) -> str:
    """Return the spec with its defaults, and the meaning and the choices of each option, one a line."""
    lines = [f"`{spec_of(item.objective)}`"]
    for option in item.declared.fields:
        choices = f" ({', '.join(option.choices)})" if option.choices else ""
        default = " (none by default)" if option.default is None else ""
        lines.append(f"    - `{option.name}`: {_markdown(option.help)}{choices}{default}")
    return "\n".join(lines)


def _describe_traits(objective: Objective) -> list[str]:
    """Return sentences on the differences from a loss with one positive a query and independent rows."""
    sentences = []
    traits = objective.traits
    if traits.positives == "many":
        sentences.append("Any number of positives a query.")
    if objective.rows_sum_to_zero:
        sentences.append("Rows of W sum to 0.")
    if objective.coupled:
        sentences.append("Coupled: a row of W depends on other rows.")
    if traits.relative:
        sentences.append(f"{_names(traits.relative)}, if given, replace terms that depend on the rest of the batch.")
    if objective.warmup:
        sentences.append(f"Training begins with `--warmup` epochs of `{objective.warmup}`.")
    if objective.learnable:
        initial = ", ".join(f"{name} from {value:.3g}" for name, value in objective.learnable.items())
        sentences.append(f"Training learns {initial.replace('-', '−')}.")
    if objective.network() is not None:
        sentences.append("Training learns a network.")
    if traits.required_info:
        sentences.append(f"Training needs {_names(traits.required_info)} in `mask.info`.")
    if traits.estimates_labels:
        sentences.append("Training estimates `label` in `mask.info`.")
    if objective.caveat:
        sentences.append(f"Beside published numbers: {objective.caveat}.")
    if len(traits.conventions) > 1:
        sentences.append(f"Counting conventions: {', '.join(traits.conventions)}.")
    return sentences


def _names(words: tuple[str, ...]) -> str:
    return " and ".join(f"`{word}`" for word in words)


def _files(name: str, objective: Objective) -> str:
    """Return links to the file, the oracle, and the tests of the objective and of its parts."""
    files = [f"[objective](../lossscope/objectives/{name}.py)", f"[oracle](../tests/oracles/{name}.py)"]
    tests = [ROOT / "tests" / "objectives" / "test_contract.py"]
    for path in sorted((ROOT / "tests" / "objectives").glob("test_*.py")):
        if path not in tests and re.search(rf"[\"']{name}[:\"',]", path.read_text(encoding="utf-8")):
            tests.append(path)
    more = {
        "learnt_scale": objective.learnable,
        "meta_step": objective.network(),
        "soft_labels": objective.traits.estimates_labels,
        "quintuplet_loss": objective.traits.required_info,
    }
    tests += [ROOT / "tests" / "training" / f"test_{module}.py" for module, needed in more.items() if needed]
    links = [f"[{path.stem}](../{path.relative_to(ROOT).as_posix()})" for path in tests]
    return " · ".join(files + links)


def _markdown(text: str) -> str:
    """Escape plain text, and link entries of errata.md in parentheses: (E1)."""
    pieces = re.split(r"(`[^`]*`)", escape(text))
    pieces[::2] = [re.sub(r"\b(E\d+)\b(?=\))", _errata, piece) for piece in pieces[::2]]
    return "".join(pieces)


def _errata(match: re.Match[str]) -> str:
    """Return a link to the heading of an entry in errata.md."""
    heading = re.search(rf"^#+ ({match[0]} .*)$", (ROOT / "docs" / "errata.md").read_text(encoding="utf-8"), re.M)
    if heading is None:
        raise InputError(f"docs/errata.md must have a heading {match[0]}; it has none")
    anchor = re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
    return f"[{match[0]}](errata.md#{anchor})"


def main(arguments: list[str]) -> int:
    """Write the page and the pictures, or compare the file with the page."""
    text = page(SOURCE.read_text(encoding="utf-8"))
    if "--check" not in arguments:
        for name in all_names():
            draw(name)
    return write_or_compare(PAGE, text, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
