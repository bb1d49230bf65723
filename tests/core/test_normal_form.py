"""Do all texts at once get the form that each gets alone?"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.core.normal_form import normal_form, normal_forms, numbers_of_words

BLANKS = "".join(chr(code) for code in range(0x110000) if chr(code).isspace())
texts = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]), st.sampled_from(BLANKS + "aA\0éßŋ\u0301 "), st.sampled_from(" \n\ta")
    ),
    max_size=12,
)


@settings(max_examples=300)
@given(st.lists(texts, max_size=8))
def test_all_at_once_are_as_each_alone(lines: list[str]) -> None:
    forms = normal_forms(lines)
    assert forms == [normal_form(text) for text in lines]
    assert numbers_of_words(forms) == [max(1, len(form.split(" "))) for form in forms]


@given(texts)
def test_a_normal_form_is_its_own(text: str) -> None:
    assert normal_form(f" {text}\n\n{text} ") == normal_form(f"{text} {text}")


def test_letters_and_their_accents_are_one() -> None:
    assert len({normal_form(text) for text in ("CAFÉ", "cafe\u0301", " Café\u2003")}) == 1
    assert normal_form("STRASSE") == normal_form("Straße")
