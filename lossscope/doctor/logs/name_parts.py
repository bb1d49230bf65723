"""Which quantity, split and direction does the name of a column state?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Split = Literal["", "train", "val", "val_train"]
Direction = Literal["", "first", "second"]

_TRAIN = frozenset({"train", "training", "tr"})
_VAL = ("val", "valid", "validation", "eval", "evaluation", "dev", "test")  # in the order of preference
_ENDS = {"lossscope": 0, "step": 0, "batch": 0, "value": 0, "avg": 1, "average": 1, "epoch": 2}  # words without meaning
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")  # trainLoss, not nDCG
_SEPARATORS = re.compile(r"[\s/.:|\-_]+")
_CUTOFF = re.compile(
    r"(?<![^_])(r|recall|hits?|ndcg|mrr|map|acc|accuracy|top|precision)(?:_?(?:@|at)_?|_?)(\d+)(?![^_])"
)
_IMAGE, _TEXT, _QUERY, _DOCUMENT = "image|img|video|i|v", "text|txt|caption|t", "query|q", "document|doc|passage|d|p"
_SIDES = ((_IMAGE, _TEXT), (_QUERY, _DOCUMENT), ("a", "b"))
_DIRECTION = "(?<![^_])(?:{})_?(?:to|2)_?(?:{})(?![^_])"
_FIRST = re.compile("|".join(_DIRECTION.format(first, second) for first, second in _SIDES))
_SECOND = re.compile("|".join(_DIRECTION.format(second, first) for first, second in _SIDES))
_SHARES = re.compile(r"(^|_)(accuracy|acc|recall|r|ndcg|mrr|map|ap|hits?|top)(@\d+)?(_cos\w*)?(_|$)")
_THRESHOLD = "threshold"  # of a metric; no metric itself


@dataclass(frozen=True)
class NameParts:
    """The parts of the name of a column."""

    quantity: str  # in lower case, words joined by `_`: `grad_norm`, `r@1`
    split: Split
    direction: Direction
    preference: tuple[int, int]  # among names of one quantity, the smaller the better


def normal_name(name: str) -> str:
    """Return a name in lower case with one separator; without the name of the run, which W&B exports in front.

    >>> normal_name("Train/Learning-Rate"), normal_name("run 7 - trainLoss"), normal_name("val_recall_at_1")
    ('train_learning_rate', 'train_loss', 'val_recall@1')
    """
    words = _CAMEL.sub("_", name.rsplit(" - ", 1)[-1].strip())
    return _CUTOFF.sub(r"\1@\2", _SEPARATORS.sub("_", words).strip("_").lower())


def parse_name(name: str) -> NameParts:
    """Return the parts of the name of a column.

    >>> parse_name("train/loss").quantity, parse_name("Loss/validation").split
    ('loss', 'val')
    >>> parse_name("val/image_to_text_R@1")
    NameParts(quantity='r@1', split='val', direction='first', preference=(0, 0))
    """
    text, direction = _without_direction(normal_name(name))
    words = [word for word in text.split("_") if word]
    val = [word for word in words if word in _VAL]
    train = any(word in _TRAIN for word in words)
    split: Split = "val_train" if val and train else "val" if val else "train" if train else ""
    rest = [word for word in words if word not in _TRAIN and word not in _VAL]
    split_preference = min((_VAL.index(word) for word in val), default=int(train))
    end_preference = 0
    while len(rest) > 1 and (rest[0] in _ENDS or rest[-1] in _ENDS):
        end_preference = max(end_preference, _ENDS[rest.pop(0 if rest[0] in _ENDS else -1)])
    return NameParts("_".join(rest), split, direction, (end_preference, split_preference))


def _without_direction(text: str) -> tuple[str, Direction]:
    if _FIRST.search(text):
        return _FIRST.sub("", text), "first"
    return (_SECOND.sub("", text), "second") if _SECOND.search(text) else (text, "")


def is_of_ranks(name: str) -> bool:
    """Return whether a column is a mean of ranks, in [0, 1] or in percent: accuracy, recall, nDCG, MRR."""
    return bool(_SHARES.search(normal_name(name))) and _THRESHOLD not in name.lower()
