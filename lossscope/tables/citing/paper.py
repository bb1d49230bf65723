"""A paper, and how BibTeX writes it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field, fields

_ACCENTS = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u030c": "v", "\u0327": "c"}
_BIBTEX = {
    **{char: f"\\{char}" for char in "&%_#$"},
    "{": r"\textbraceleft{}", "}": r"\textbraceright{}", "\\": r"\textbackslash{}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", '"': r"\textquotedbl{}",
}  # fmt: skip


@dataclass(frozen=True)
class Paper:
    """A paper; unknown fields are empty and not written."""

    key: str  # of BibTeX
    cited: str  # pattern of how `Source:` lines name it
    kind: str  # of BibTeX's entry
    author: str  # `Last, First and Last, First`
    title: str
    year: int | None
    booktitle: str = ""
    journal: str = ""
    publisher: str = ""
    note: str = ""
    version: str = ""
    is_group: bool = field(default=False, repr=False)  # whether its author is the name of a group

    @property
    def named(self) -> dict[str, str]:
        """The known fields of BibTeX as plain text."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        names = ("author", "title", "booktitle", "journal", "publisher", "year", "version", "note")
        return {name: str(values[name]) for name in names if values[name]}

    def bibtex(self) -> str:
        r"""Return the entry in ASCII.

        >>> print(Paper("hill1973", "", "article", "Hill, M. O.", "Diversity & Evenness", 1973).bibtex())
        @article{hill1973,
          author = {Hill, M. O.},
          title = {{Diversity \& Evenness}},
          year = {1973},
        }
        """
        braced = {"title", *(("author",) if self.is_group else ())}
        lines = []
        for name, value in self.named.items():
            text = bibtex_text(value)
            lines.append(f"  {name} = {{{{{text}}}}}," if name in braced else f"  {name} = {{{text}}},")
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])

    def reference(self) -> str:
        """Return one line of text: authors, title, where and when."""
        names = [name.strip() for name in self.author.split(" and ")]
        where = self.booktitle or self.journal or self.publisher or self.note
        version = f"version {self.version}" if self.version else ""
        when = str(self.year) if self.year else ""
        end = ", ".join(part for part in (where, version, when) if part)
        title = self.title if self.title.endswith("?") else f"{self.title}."
        return f"{'; '.join(names)}. {title} {end[:1].upper()}{end[1:]}."


def software(version: str) -> Paper:
    """Return the entry of lossscope itself."""
    return Paper("lossscope", "", "misc", "The lossscope authors", "lossscope", None, version=version, is_group=True)


def bibtex_text(text: str) -> str:
    r"""Return a text for a field of BibTeX: accents as commands, no brace without its partner, what is left as U+NNNN.

    >>> print(bibtex_text("Radovanović {50 %}"))
    Radovanovi{\'c} \textbraceleft{}50 \%\textbraceright{}
    """
    parts: list[str] = []
    for char in " ".join(text.split()):
        base, *marks = list(unicodedata.normalize("NFD", char))
        if char in _BIBTEX:
            parts.append(_BIBTEX[char])
        elif char.isascii() and char.isprintable():
            parts.append(char)
        elif base.isascii() and base.isalpha() and len(marks) == 1 and marks[0] in _ACCENTS:
            accent = _ACCENTS[marks[0]]
            parts.append(f"{{\\{accent}{{{base}}}}}" if accent.isalpha() else f"{{\\{accent}{base}}}")
        else:
            parts.append(rf"\texttt{{U+{ord(char):04X}}}")
    return "".join(parts)
