"""How many tokens of some captions does a tokeniser not know? A large share means other words than in training."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .subwords import Subwords
from .tokenizer import Tokeniser
from .vocabulary import SPECIAL, Vocabulary
from .word_tokenisers import has_punkt, may_hold_sentences

LARGEST_SHARE = 0.02  # of tokens; rare words alone stay below
_SHOWN = 5
_ENDS = ("[CLS]", "[SEP]", "</s>")
_END_OF_CLIP = "<|endoftext|>"  # which CLIP's files name as unknown, where no part of a word is


@dataclass(frozen=True)
class UnknownTokens:
    """Counts of the tokens of some captions."""

    total: int  # tokens, start and end not counted
    unknown: Counter[str]  # unknown ones -> how often; one name for all where the tokeniser does not say which
    split_in_doubt: int = 0  # captions that punkt, which is not installed, might split into sentences

    @property
    def share(self) -> float:
        """Unknown tokens / all tokens; 0 where there are none."""
        return self.unknown.total() / max(self.total, 1)

    def notices(self) -> tuple[str, ...]:
        """Return what a user should know: the share, a warning when it is large, and captions that were not split."""
        if not self.total:
            return ()
        text = f"{self.share:.2%} of {self.total:,} tokens of the captions are unknown to the vocabulary"
        if self.share > LARGEST_SHARE:
            often = ", ".join(f"{token!r} ({count})" for token, count in self.unknown.most_common(_SHOWN))
            text = (
                f"WARNING: {text}, most often {often}. More than {LARGEST_SHARE:.0%} speaks for captions, or a "
                "vocabulary, other than those of its training: the numbers below may not be the model's"
            )
        doubt = (
            f"{self.split_in_doubt} captions have a full stop inside, and each was cut as one sentence: nltk's data "
            "punkt_tab, with which the authors split sentences, are not installed (python -P -m nltk.downloader "
            "punkt_tab)"
        )
        return (text, doubt) if self.split_in_doubt else (text,)


def count_unknown(tokeniser: Tokeniser, captions: Iterable[str]) -> UnknownTokens | None:
    """Return the counts of the captions' tokens; None for a tokeniser that has no unknown ones, as of byte pairs."""
    if isinstance(tokeniser, Vocabulary):
        return _count_words(tokeniser, captions)
    if isinstance(tokeniser, Subwords):
        return _count_parts(tokeniser, captions)
    return None


def _count_words(vocabulary: Vocabulary, captions: Iterable[str]) -> UnknownTokens:
    known = vocabulary.ids.keys() - set(SPECIAL)
    needs_punkt = vocabulary.word_tokeniser != "words" and not has_punkt()
    total, doubt, unknown = 0, 0, Counter[str]()
    for caption in captions:
        tokens = vocabulary.tokenise(caption)
        total += len(tokens)
        unknown.update(token for token in tokens if token not in known)
        doubt += needs_punkt and may_hold_sentences(caption)
    return UnknownTokens(total, unknown, doubt)


def _count_parts(subwords: Subwords, captions: Iterable[str]) -> UnknownTokens | None:
    model = json.loads(subwords.content)["model"]
    name = model.get("unk_token") or "<unk>"
    unknown_id = model["unk_id"] if "unk_id" in model else subwords.id_of(name)
    ends = {subwords.id_of(token) for token in _ENDS}
    if unknown_id is None or name == _END_OF_CLIP:
        return None
    ids = Counter(row for caption in captions for row in subwords.encode(caption) if row not in ends)
    return UnknownTokens(ids.total(), Counter({name: ids[unknown_id]} if ids[unknown_id] else {}))
