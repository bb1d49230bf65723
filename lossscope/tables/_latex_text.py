"""Write text for LaTeX: escape special characters, typeset names of statistics, let long words break."""

from __future__ import annotations

import re

_LATEX = {
    **{char: f"\\{char}" for char in "&%_#${}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "–": "--",
    "—": "---",
    "±": r"$\pm$",
    "−": "$-$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\to$",
    "∞": r"$\infty$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "¶": r"\P{}",
    "×": r"$\times$",
    "τ": r"$\tau$",
    "ε": r"$\epsilon$",
    "γ": r"$\gamma$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "λ": r"$\lambda$",
    "Σ": r"$\Sigma$",
    "²": "$^2$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # \\ would read a row that starts with [ as its option
    "*": "{*}",
    "…": r"\dots{}",
    "“": "``",
    "”": "''",
    "’": "'",
    "`": r"\textasciigrave{}",
}
_STATISTIC = re.compile(r"(?<![\w@])(?:([CW])_(q_all|q|B|0|neg|low|pos)|N_(eff)|s_(pos|neg))(?!\w)")
_LONG = 24  # letters of a word, at most, that needs no break points
_BREAK = r"\allowbreak{}"


def without_commands(text: str) -> str:
    """Return a text without the sentences that name a command of the shell, which a paper does not want.

    >>> without_commands("rsum is a sum. `lossscope eval --format csv` also gives MRR. Recalls are in per cent.")
    'rsum is a sum. Recalls are in per cent.'
    """
    sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z`])", text)
    return " ".join(sentence for sentence in sentences if "`lossscope " not in sentence)


def latex_text(text: str) -> str:
    r"""Escape a text for LaTeX; write characters that LaTeX may lack as code points.

    Names of statistics become formulas. Long words such as paths and specs can break after their signs.

    >>> print(latex_text("50% & a_b: C_neg"))
    50\% \& a\_b: $C_{\mathrm{neg}}$
    """
    return " ".join(_word(word) for word in text.split())


def _word(word: str) -> str:
    parts, end = [], 0
    for match in _STATISTIC.finditer(word):
        parts += [_escape(word[end : match.start()]), _formula(match[0])]
        end = match.end()
    return "".join([*parts, _escape(word[end:])])


def _formula(name: str) -> str:
    r"""Return `C_q_all` as `$C_{q,\mathrm{all}}$`."""
    letter, _, index = name.partition("_")
    words = [word if len(word) == 1 else rf"\mathrm{{{word}}}" for word in index.split("_")]
    return f"${letter}_{{{','.join(words)}}}$"


def _escape(text: str) -> str:
    breaks = "/,:_" if len(text) > _LONG else ""
    return "".join(_char(char) + (_BREAK if char in breaks else "") for char in text)


def _char(char: str) -> str:
    if char in _LATEX:
        return _LATEX[char]
    if char.isprintable() and (ord(char) < 128 or 0xC0 <= ord(char) <= 0x17F):
        return char
    return rf"\texttt{{U+{ord(char):04X}}}"
