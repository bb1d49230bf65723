"""Which texts may be near copies of each other? Those that share a key, unless very many do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from lossscope.core.plain_text import ARTICLES, LIGHT
from lossscope.core.types import Rows

from .hashes import Flags, Hashes, is_in, repeated
from .near_keys import BAG, NONE, REST, SIDES, WHOLE, bag

MOST = 32  # different texts that share what is on one side: more are instances of a template


@dataclass(frozen=True)
class NearPairs:
    """Places of texts that are to be compared."""

    pairs: Rows  # (k, 2) places of first occurrences
    cut: int  # different texts that share one side with more than MOST others, which was left out


def find_pairs(texts: Hashes, column: Callable[[int], Hashes]) -> NearPairs:
    """Return pairs of different texts that share a key.

    Args:
        texts: (n,) hash of each text, in their order.
        column: returns (n,) keys, of a column of `near_keys`.
    """
    firsts = _first_places(texts)
    pairs, cut = [_whole_pairs(firsts, column)], np.zeros(len(firsts), bool)
    bags = column(BAG)[firsts].astype(np.uint16)
    for side in SIDES:
        found, is_cut = _side_pairs(column(side)[firsts], bags)
        pairs.append(firsts[found])
        cut |= is_cut
    return NearPairs(np.unique(np.concatenate(pairs), axis=0), int(np.count_nonzero(cut)))


def _first_places(texts: Hashes) -> Rows:
    """(m,) where each different text stands first, in their order."""
    is_first = ~is_in(texts, repeated(texts)[1])
    again = np.flatnonzero(~is_first)
    is_first[again[np.unique(texts[again], return_index=True)[1]]] = True
    firsts: Rows = np.flatnonzero(is_first)
    return firsts


def _whole_pairs(firsts: Rows, column: Callable[[int], Hashes]) -> Rows:
    """(k, 2) each text with the first one of the same letters, and with the one before; titles left out or not."""
    keys, rests = column(WHOLE)[firsts], column(REST)[firsts]
    rests = np.where(is_in(rests, np.sort(keys)), rests, NONE)
    titled = np.flatnonzero(rests != NONE)
    shared = np.sort(np.concatenate((repeated(keys)[1], rests[titled])))
    plain = np.flatnonzero((keys != NONE) & is_in(keys, shared))
    groups = np.concatenate((keys[plain], rests[titled]))
    members = firsts[np.concatenate((plain, titled))]
    order = np.argsort(groups, kind="stable")  # texts without a title first
    groups, members = groups[order], members[order]
    starts = _starts(groups)
    with_first = np.stack((members[starts], members), 1)
    with_last = np.stack((members[:-1], members[1:]), 1)[groups[:-1] == groups[1:]]
    pairs: Rows = np.concatenate((with_first, with_last))
    pairs.sort(axis=1)
    different: Rows = pairs[pairs[:, 0] != pairs[:, 1]]
    return different


def _side_pairs(keys: Hashes, bags: npt.NDArray[np.uint16]) -> tuple[Rows, Flags]:
    """Return (k, 2) texts that share a key with few and may differ in a word, and (m,) which share one with many.

    Args:
        keys: (m,) of one side of each text.
        bags: (m,) sums of the numbers of their letters.
    """
    shared = np.flatnonzero((keys != NONE) & is_in(keys, repeated(keys)[1]))
    order = np.argsort(keys[shared], kind="stable")
    members, groups = shared[order], keys[shared[order]]
    starts = _starts(groups)
    sizes = np.bincount(starts, minlength=len(starts))[starts]
    is_cut = np.zeros(len(keys), bool)
    is_cut[members[sizes > MOST]] = True
    members, groups = members[sizes <= MOST], groups[sizes <= MOST]
    changes, pairs = _changes(), [np.zeros((0, 2), np.int64)]
    for step in range(1, min(MOST, len(members))):
        first, second = members[:-step], members[step:]
        same = np.flatnonzero(groups[:-step] == groups[step:])
        if not len(same):
            break
        first, second = first[same], second[same]
        pairs.append(np.stack((first, second), 1)[np.isin(bags[first] - bags[second], changes)])
    return np.concatenate(pairs), is_cut


@cache
def _changes() -> npt.NDArray[np.uint16]:
    """What the change of a word that says little adds to the sum of a text: see `is_near_duplicate`."""
    words = [bag(word) for word in (*LIGHT, "")]  # "": of the same letters
    articles = [bag(word) - bag(other) for word in ARTICLES for other in ARTICLES]
    return np.array([sign * change % (1 << 16) for change in (*words, *articles) for sign in (1, -1)], np.uint16)


def _starts(groups: Hashes) -> Rows:
    """(n,) the first place of the group of each member, of sorted groups."""
    new = np.ones(len(groups), bool)
    new[1:] = groups[1:] != groups[:-1]
    starts: Rows = np.flatnonzero(new)[np.cumsum(new) - 1]
    return starts
