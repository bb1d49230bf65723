"""Turn texts into vectors: counts of words, and a space in which texts of one item lie together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy import sparse

from lossscope.core.facts import Missing
from lossscope.core.normal_form import normal_form
from lossscope.core.types import Progress
from lossscope.datasets.base import Split, Texts

from ..types import Floats
from .material import Material

_FIT, _WIDTH, _KEPT = 40_000, 600, 100  # training texts, dimensions of words, dimensions that separate items
_SHRINKAGE = 0.3  # of the scatter within items towards a sphere
_WORD = re.compile(r"[^\W_]+")
_SEED = 0


@dataclass(frozen=True, eq=False)
class TextSpace:
    """Vectors of M texts of the second side, and of N texts of the first if it has texts."""

    words: Any  # (M, V) sparse TF-IDF of stems, rows of unit length
    siblings: Floats  # (M, k) rows of unit length in the space of `sibling_projection`; zeros without a known word
    phrases: Any  # (M, P) sparse 0/1 of all stems and pairs of stems, also those that no training text has
    phrase_weights: npt.NDArray[np.float64]  # (P,) inverse document frequency
    first_words: Any | None = None  # (N, V)

    @cached_property
    def is_known(self) -> npt.NDArray[np.bool_]:
        """(M,) whether a text has a word of the training texts."""
        return np.asarray(self.siblings.any(1))

    @classmethod
    def of(cls, material: Material) -> TextSpace:
        """Fit the space on the training texts. Raises Missing if the data have no texts."""
        if material.split is None or not any(material.split.captions):
            raise Missing("it has no texts; name the data with --data")
        groups = _groups(material.training or material.split)
        return cls.fit(groups, material.split.captions, material.first_texts, material.progress)

    @classmethod
    def fit(
        cls,
        groups: Sequence[Sequence[str]],
        second: Sequence[str],
        first: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> TextSpace:
        """Learn the spaces and transform the texts.

        Args:
            groups: texts of each item of the training data.
            second: M texts of the second side.
            first: N texts of the first side, if it has texts.
            progress: called with (label, done, of).

        Raises:
            Missing: texts without words.
        """
        from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

        label = "reading texts"
        if progress:
            progress(label, 0, 3)
        chosen = _sample(groups)
        texts = [text for group in chosen for text in group]
        least = 2 if len(texts) > 1000 else 1
        word_counter = TfidfVectorizer(analyzer=stems, sublinear_tf=True, min_df=least)
        phrase_counter = CountVectorizer(analyzer=phrases, binary=True, dtype=np.float32)
        try:
            X = word_counter.fit_transform(texts)
            counts = phrase_counter.fit_transform([*texts, *second]).tocsr()
        except ValueError:  # an empty vocabulary
            raise Missing("its texts have no words that two of them share") from None
        if progress:
            progress(label, 1, 3)
        learnt, of_second = counts[: len(texts)], counts[len(texts) :]
        weights = np.log((1 + len(texts)) / (1 + np.asarray(learnt.sum(0)).ravel())) + 1
        project, centre = sibling_projection(X, np.repeat(np.arange(len(chosen)), [len(group) for group in chosen]))
        if progress:
            progress(label, 2, 3)
        words = word_counter.transform(second).tocsr()
        first_words = None if first is None else word_counter.transform(first)
        siblings = words @ project - centre
        siblings[np.diff(words.indptr) == 0] = 0  # texts without a known word would all be the same vector
        result = cls(
            words, unit(siblings), of_second, weights, first_words
        )  # fmt: skip
        if progress:
            progress(label, 3, 3)
        return result


def _groups(split: Split) -> list[list[str]]:
    """Group texts that say the same thing: an item of the first side with its positives, or the items of a label.

    Each other text is a group alone.
    """
    relations = split.relations
    if relations.labels is not None:
        order = np.argsort(relations.labels, kind="stable")
        ends = np.nonzero(np.diff(relations.labels[order]))[0] + 1
        return [[split.captions[row] for row in rows] for rows in np.split(order, ends)]
    texts = split.images.texts if isinstance(split.images, Texts) else None
    groups = [[] if texts is None else [texts[row]] for row in range(len(split.image_ids))]
    for first, second in relations.positives.tolist():
        groups[first].append(split.captions[second])
    alone = np.setdiff1d(np.arange(relations.second), relations.positives[:, 1])
    return [*(group for group in groups if group), *([split.captions[row]] for row in alone.tolist())]


def sibling_projection(X: Any, item: npt.NDArray[np.int64]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return P (V, k) and c (k,): x P − c has unit variance within items, in the k directions where items differ most.

    First come latent semantics (the largest singular vectors of X), then the generalised eigenvectors of the scatter
    between items against that within, shrunk towards a sphere. If no item has two texts, the singular vectors stay.

    Args:
        X: (n, V) sparse, a row each text.
        item: (n,) the item of each text.

    Source: Deerwester et al. 1990 (latent semantics); Fisher's discriminant as in Hatch et al. 2006 (within-class
    covariance normalisation).
    """
    from sklearn.decomposition import TruncatedSVD

    width = min(_WIDTH, min(X.shape) - 1)
    if width < 2:
        return np.eye(X.shape[1]), np.zeros(X.shape[1])
    svd = TruncatedSVD(width, random_state=_SEED)
    with np.errstate(divide="ignore", invalid="ignore"):  # equal texts have no share of variance, which nothing reads
        Z = svd.fit_transform(X)
    sizes = np.bincount(item)
    free = len(Z) - len(sizes)
    if free < 2 * width:  # too few siblings to tell what varies within an item
        return svd.components_.T, np.zeros(width)
    sums = sparse.csr_matrix((1 / sizes[item], (item, np.arange(len(item))))) @ Z
    centre = sums.mean(0)
    within = Z - sums[item]
    S_w = within.T @ within / free
    S_b = (sums - centre).T @ (sums - centre) / len(sums) - S_w * np.mean(1 / sizes)
    S_w = (1 - _SHRINKAGE) * S_w + _SHRINKAGE * np.trace(S_w) / width * np.eye(width)
    kept = min(_KEPT, width)
    values, vectors = scipy.linalg.eigh(S_b, S_w, subset_by_index=(width - kept, width - 1))
    P = vectors * np.sqrt(values.clip(0))
    return svd.components_.T @ P, centre @ P


def unit(rows: Any) -> Floats:
    """Return rows of unit length, float32; rows of zeros stay zeros."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Floats = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled


def stems(text: str) -> list[str]:
    """Return the stems of the words of a text.

    >>> stems("Two dogs are running!")
    ['two', 'dog', 'are', 'run']
    """
    return [_stem(word) for word in _WORD.findall(normal_form(text))]


def phrases(text: str) -> list[str]:
    """Return the stems of a text, and its pairs of successive stems."""
    words = stems(text)
    return words + [f"{a} {b}" for a, b in pairwise(words)]


@lru_cache(maxsize=1 << 18)
def _stem(word: str) -> str:
    return str(_stemmer().stem(word))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    from nltk.stem.snowball import SnowballStemmer

    return SnowballStemmer("english")


def _sample(groups: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return whole groups, drawn at random, with about 40,000 texts together."""
    total = sum(map(len, groups))
    if total <= _FIT:
        return list(groups)
    order = np.random.default_rng(_SEED).permutation(len(groups))
    cumulative = np.cumsum([len(groups[row]) for row in order])
    return [groups[row] for row in order[: int(np.searchsorted(cumulative, _FIT)) + 1]]
