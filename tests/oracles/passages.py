"""Read questions and passages from their key words alone, not from the forms that made them."""

from __future__ import annotations

import re

_ASKS = (
    (r"when was|birth year|which year", "year"),
    (r"animal|pet", "pet"),
    (r"instrument|perform|what does \w+ \w+ play", "instrument"),
    (r"language|speak", "language"),
    (r"study|degree", "subject"),
    (r"living|job|trade", "job"),
    (r"born|birthplace", "birthplace"),
    (r"live|house", "home"),
)
_STATES = (
    (r"\d{4}", "year"),
    (r"keeps a|as a pet|shares the house", "pet"),
    (r"plays the|performs on|practises", "instrument"),
    (r"speaks|fluent|grew up", "language"),
    (r"studied|degree|lessons", "subject"),
    (r"works as|by trade|living", "job"),
    (r"born|native|world", "birthplace"),
    (r"lives in|house in|settled", "home"),
)
_VALUE_IS_LAST = r"(\w+)(?: by trade| every day| as a pet)?\.$"


def _first(rules: tuple[tuple[str, str], ...], text: str) -> str:
    return next(name for pattern, name in rules if re.search(pattern, text, re.I))


def asked(question: str) -> tuple[str, str]:
    """(name of the person, relation) that a question asks for; the name is `somebody` if it may be anybody."""
    if "somebody" in question:
        return "somebody", _first(_ASKS, question.replace("somebody", "Al Bar"))
    (name,) = re.findall(r"[A-Z][a-z]+ [A-Z][a-z]+(?=[ ?])", re.sub(r"^\w+ ", "", question))
    return name, _first(_ASKS, question)


def stated(passage: str) -> dict[tuple[str, str], str]:
    """(name of the person, relation) -> value that a passage states; pronouns and last names are the first person."""
    sentences = re.findall(r"[^.]+\.", passage)
    name = " ".join(sentences[0].split()[:2])
    facts = {}
    for sentence in sentences:
        words = sentence.split()
        assert words[0] in ("She", "He", name.split()[1]) or " ".join(words[:2]) == name
        match = re.search(_VALUE_IS_LAST, sentence)
        assert match is not None
        facts[name, _first(_STATES, sentence)] = match[1].lower()
    return facts


def answers(question: str, passage: str) -> bool:
    """Does the passage answer the question?"""
    name, relation = asked(question)
    return any(relation == stated_relation and name in (of, "somebody") for of, stated_relation in stated(passage))
