"""What a released model's numbers rest on beside its weights: words and pictures, and what to say of them."""

from __future__ import annotations

from lossscope.datasets.base import Split
from lossscope.io.files import fingerprint_of
from lossscope.text.vocabulary import SPECIAL
from lossscope.text.word_tokenisers import has_punkt

from .checkpoints.checkpoint import Checkpoint

_COUNTED = 25_000  # captions whose tokens are counted at most, evenly spread: about two seconds


def words_key(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return what the ids of captions depend on beside the file: a vocabulary elsewhere, and nltk's data."""
    tokens = (*checkpoint.vocabulary, checkpoint.tokeniser or "", checkpoint.word_tokeniser)
    return (fingerprint_of(*tokens), "punkt" if checkpoint.tokeniser is None and has_punkt() else "")


def notices_of_released(checkpoint: Checkpoint, split: Split) -> tuple[str, ...]:
    """Return what the user of a released model should know of how its captions are cut."""
    if _was_converted_before(checkpoint):
        return (
            "WARNING: it was converted by an earlier lossscope, which read captions or pictures otherwise than its "
            "authors' code: convert the released file again",
        )
    if split.tokens is not None or split.words is not None:
        return ()
    step = -(-len(split.captions) // _COUNTED)  # whole test splits; of the captions of a training split some
    from lossscope.text.unknown_tokens import count_unknown

    unknown = count_unknown(checkpoint.words(), split.captions[::step])
    return () if unknown is None else unknown.notices()


def _was_converted_before(checkpoint: Checkpoint) -> bool:
    """Return whether a converted file lacks what every one now has: how it cuts captions, and reads pictures."""
    has_words = len(checkpoint.vocabulary) > len(SPECIAL)
    has_pictures = not isinstance(checkpoint.item_shape, dict) and len(checkpoint.item_shape) == 3
    return (has_words and checkpoint.word_tokeniser == "words") or (has_pictures and not checkpoint.reading)
