"""A hundred captions, five a picture, with the punctuation, contractions, hyphens and numbers that data sets have."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

_SPECIAL = (
    "A man doesn't wear a t-shirt.",
    "It's the dog's ball; the dogs' owner can't throw it.",
    "The sign reads \"STOP\", the other one 'go'.",
    "About 3,000 people walk 2.5 miles at 10:30 in 20-degree weather",
    "A girl (in red) won't reach the flag...",
    "Men, women & children pay $2.50 or 10% less!",
    "rock 'n' roll at the o'clock-tower's top",
    "Is that a fire-truck? no, it's a red van.",
    "Zwei Hunde vor einem straßencafé, « très bien » “quoted” ‘too’",
    "he's gonna eat ice-cream -- she'd rather not",
    "NO FULL STOP AT THE END",
    "  spaces   everywhere .  ",
    "a dog_house, a bird/cat and an e-mail to a@b.com",
    "A U.S.-made 12-speed bike; someone'll buy it",
    "they've been there for 1/2 hour: we'll see",
)
SENTENCES = (
    "Two dogs run. They're wet and cold.",
    "A man sits. A woman stands. Nobody talks.",
    "A man with a st. bernard, i.e. a big dog. It sits.",
    'He said "stop." Then he left.',
    "Mr. Smith isn't here. His dog is.",
)
"""Captions of several sentences; punkt splits them before words are cut."""

_SUBJECTS = ("a man", "two women", "the child", "some people", "a brown dog", "a cyclist")
_VERBS = ("is riding a bike", "jumps over the rock", "plays in the snow")
_ENDS = (", near a lake.", " beside the red car.", " while it's raining;", "-- in front of a crowd", " on the street .")


def captions() -> list[str]:
    """Return the captions, of one sentence each."""
    plain = [f"{subject} {verb}{end}" for subject, verb, end in product(_SUBJECTS, _VERBS, _ENDS)]
    return [*_SPECIAL, *plain[: 100 - len(_SPECIAL)]]


def words(tokenise: Callable[[str], list[str]]) -> list[str]:
    """Return the words of the captions by id but for one, which is then unknown.

    Args:
        tokenise: the function that cuts a lower-cased caption.
    """
    texts = [caption.lower() for caption in (*captions(), *SENTENCES)]
    found = sorted({token for text in texts for token in tokenise(text)})
    return ["<pad>", "<start>", "<end>", "<unk>", *(word for word in found if word != "fire-truck")]
