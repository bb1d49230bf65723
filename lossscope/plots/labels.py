"""What do the labels of data mean in words? Specs, titles of GOAL's weights, statistics, and paths of sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from types import MappingProxyType

from lossscope.errors import InputError
from lossscope.spec import Spec
from lossscope.visible_text import show_text

NAMES = MappingProxyType(
    {
        "aoq": "AOQ", "arcface": "ArcFace", "binomial_deviance": "Binomial deviance", "circle": "Circle",
        "cmpm": "CMPM", "contrastive": "Contrastive", "cosface": "CosFace", "dcl": "DCL", "goal": "GOAL",
        "infonce": "InfoNCE", "lifted_structure": "Lifted structure", "meta_spn": "Meta-SPN",
        "multi_similarity": "Multi-similarity", "ncr": "NCR", "npair": "N-pair", "ntxent": "NT-Xent",
        "proxy_anchor": "Proxy-Anchor", "ranked_list": "Ranked list", "rsp": "RSP", "siglip": "SigLIP",
        "smoothap": "SmoothAP", "ssp": "SSP", "supcon": "SupCon", "triplet": "Triplet", "triplet_sh": "Triplet SH",
        "unified": "Unified", "vlc": "VLC",
    }
)  # fmt: skip
PAIR_WEIGHTS = MappingProxyType(
    {
        "con": "constant",
        "lin": "linear",
        "sig": "sigmoid",
        "lin-ms": "linear with relative term",
        "sig-ms": "sigmoid with relative term",
    }
)
STATISTICS = MappingProxyType(
    {
        "C_q": "samples above ε per query that has any",
        "C_q_all": "samples above ε per query",
        "C_B": "samples above ε per batch",
        "C_neg": "negatives above ε per query",
        "W_neg": "weight on negatives above ε",
        "W_low": "weight on negatives up to ε",
        "W_pos": "weight on the positive",
        "N_eff": "effective number of negatives",
        "C_0": "queries with no negative above ε",
    }
)
_TRIPLET_WEIGHTS = {"con": "constant triplet weight", "nca": "NCA triplet weight", "cir": "circle triplet weight"}
_FIELDS = {
    "tau": "temperature τ = {}",
    "gamma": "scale γ = {}",
    "alpha": "slope α = {}",
    "beta": "slope β = {}",
    "lam": "midpoint λ = {}",
}
PARTS = {
    "only_above": "above {eps} of {of}", "only_tail": "all but the top {k} of {of}", "only_top": "top {k} of {of}",
}  # fmt: skip
"""Objective that is a part of another -> its name in words."""
_LABEL = re.compile(r"(?P<spec>[^ ]+?)(?: \((?P<note>.*)\))?")
_GENERIC = {"/", ".", "..", "run", "runs", "study", "checkpoints", "best", "last"}  # parts of paths that say nothing
_NO_WIDTH = "\u200b"
_LONGEST = 300  # letters of a label in a picture
_SUFFIX = re.compile(r"\.(pt|npz|safetensors|csv|parquet)$")


def in_words(label: str) -> str:
    """Return a label in words: specs of objectives, and titles of GOAL's weights; any other label as it is.

    >>> in_words("ntxent:tau=0.1")
    'NT-Xent, temperature τ = 0.1'
    >>> in_words("T cir, tau 10")
    'Circle triplet weight, scale τ = 10'
    >>> in_words("ntxent (other 0)")
    'NT-Xent, the other similarity at 0'
    >>> in_words('only_top:of="triplet:margin=0.2",k=1')
    'top 1 of Triplet, margin 0.2'
    """
    if label.startswith("T ") and label[2:5] in _TRIPLET_WEIGHTS:
        return _goal_title(label)
    match = _LABEL.fullmatch(label)
    words = _spec_in_words(match["spec"]) if match else None
    if match is None or words is None:
        return label
    note = match["note"] or ""
    if note.startswith("other"):  # `other 0`, or `other: s₋ 0.77, s₊ 0.79`: each curve has one of the two fixed
        note = f"the other similarity at {note.removeprefix('other').lstrip(': ').replace(', ', ' or ')}"
    return f"{words}, {note}" if note else words


def label_text(label: str) -> str:
    """Return a label in words, as a picture writes it."""
    return plain_text(in_words(label))


def plain_text(text: str) -> str:
    r"""Return a text that a picture writes letter by letter: no formula, no control characters, in every legend.

    matplotlib takes what stands between dollars for a formula, and leaves a label with `_` before it out of legends.

    >>> print(plain_text("$x$ and \x1b[31m"))
    \$x\$ and \x1b[31m
    """
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\N{HORIZONTAL ELLIPSIS}"
    shown = show_text(shown, "\n").replace("$", r"\$")
    return f"{_NO_WIDTH}{shown}" if shown.startswith("_") else shown


def parameter_in_words(name: str) -> str:
    """Return the name of a hyper-parameter on an axis.

    >>> parameter_in_words("gamma"), parameter_in_words("margin")
    ('scale γ', 'margin')
    """
    return _FIELDS[name].partition(" =")[0] if name in _FIELDS else plain_text(name.replace("_", " "))


def symbol(statistic: str) -> str:
    """Return the symbol of a statistic with its index below: `C_neg` -> `$C_{neg}$`; other names as they are."""
    letter, _, index = statistic.partition("_")
    index = index.replace("_", r",\,")
    return rf"${letter}_\mathrm{{{index}}}$" if statistic in STATISTICS else plain_text(statistic)


def statistic_in_words(name: str) -> str:
    """Return what a statistic is, and its symbol."""
    return f"{STATISTICS[name]}, {symbol(name)}" if name in STATISTICS else plain_text(name)


def shortest_names(sources: Iterable[str]) -> dict[str, str]:
    """Return source -> the shortest part of its path that distinguishes it from the others.

    Folders that every run has (`runs`, `run`, `checkpoints`) and names of its files (`best.pt`) are no names; the parts
    of a name that `--` joins count one by one.

    >>> list(shortest_names(["runs/a/best.pt", "runs/b/best.pt"]).values())
    ['a', 'b']
    >>> list(shortest_names(["runs/s/runs/scenes--vse--nt-xent--seed0/run"]).values())
    ['scenes, vse, nt-xent, seed0']
    """
    sources = list(dict.fromkeys(map(str, sources)))
    words = {source: _words_of_path(source) for source in sources}
    common = set.intersection(*(set(parts[0] + parts[1]) for parts in words.values())) if len(sources) > 1 else set()
    for parents in (False, True):
        names = {
            source: ", ".join(word for word in (parts[0] if parents else ()) + parts[1] if word not in common)
            for source, parts in words.items()
        }
        if all(names.values()) and len(set(names.values())) == len(names):
            return names
    return {source: source for source in sources}


def _words_of_path(source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of the folders of a path, and those of its name."""
    parts = [_SUFFIX.sub("", part) for part in PurePath(source).parts]
    named = [part for part in parts if part not in _GENERIC]
    if not named:
        return (), (source,)
    return tuple(word for part in named[:-1] for word in part.split("--")), tuple(named[-1].split("--"))


def _spec_in_words(text: str) -> str | None:
    """Return a spec of a known objective in words, or None for any other text."""
    try:
        spec = Spec.parse(text)
    except InputError:
        return None
    plain = re.sub(r"[-_]", "", spec.name)
    part = next((known for known in PARTS if known.replace("_", "") == plain), None)
    if part is not None:
        return _part_in_words(part, spec)
    name = next((known for known in NAMES if known.replace("_", "") == plain), None)
    if name is None:
        return None
    return ", ".join([NAMES[name], *(_field_in_words(name, key, value) for key, value in spec.values.items())])


def _part_in_words(name: str, spec: Spec) -> str:
    """Return a part of an objective in words: `top 5 of NT-Xent, temperature τ = 0.1`."""
    values = {"of": "ntxent", "k": "5", "eps": "0.01", **spec.values}
    return PARTS[name].format(**values | {"of": in_words(values["of"])})


def _field_in_words(objective: str, key: str, value: str) -> str:
    if objective == "goal" and key == "triplet" and value in _TRIPLET_WEIGHTS:
        return _TRIPLET_WEIGHTS[value]
    if objective == "goal" and key == "pair" and value in PAIR_WEIGHTS:
        return f"{PAIR_WEIGHTS[value]} pair weight"
    if objective == "goal" and key == "tau":  # it multiplies similarities
        return f"scale τ = {value}"
    return _FIELDS.get(key, f"{key.replace('_', ' ')} {{}}").format(value)


def _goal_title(title: str) -> str:
    """Return `T cir, tau 10, P lin` in words."""
    phrases: Sequence[str] = title.split(", ")
    words = []
    for phrase in phrases:
        kind, _, value = phrase.partition(" ")
        if kind == "T":
            words.append(_TRIPLET_WEIGHTS[value])
        elif kind == "P" and value in PAIR_WEIGHTS:
            words.append(f"{PAIR_WEIGHTS[value]} pair weight")
        else:
            words.append(f"scale τ = {value}" if kind == "tau" else phrase)
    text = ", ".join(words)
    return text[:1].upper() + text[1:]
