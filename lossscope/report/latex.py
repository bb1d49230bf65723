"""Pictures and tables -> main.tex, and the README beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lossscope.tables import formats
from lossscope.tables.base import Table

from .sections import Answer, Picture, Section

PREAMBLE = r"""\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{graphicx}
% a basic installation has neither Latin Modern nor booktabs: Computer Modern, and rules of the same widths
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{\usepackage{ae,aecompl}}
\IfFileExists{booktabs.sty}{\usepackage{booktabs}}{%
  \newcommand{\toprule}{\noalign{\hrule height 0.08em\vskip 0.65ex}}%
  \newcommand{\midrule}{\noalign{\vskip 0.4ex\hrule height 0.05em\vskip 0.65ex}}%
  \newcommand{\bottomrule}{\noalign{\vskip 0.4ex\hrule height 0.08em}}%
  \def\cmidrule(lr)##1{\cline{##1}}}
"""
"""What tables and pictures of a report need; it compiles with the packages of a basic installation."""

README = r"""# The report in LaTeX

`pdflatex main.tex`, twice: tables refer to one another.

`main.tex` requires packages of a basic installation (Debian: texlive-latex-base) and looks better with two more:

| package | in Debian | in TeX Live | without it |
|---|---|---|---|
| lmodern | lmodern | lm | letters of Computer Modern |
| booktabs | texlive-latex-recommended | booktabs | simple rules between the rows of tables |

A table for a paper is `\input{NAME}`, NAME a `.tex` beside this file. The paper's preamble needs

```latex
\usepackage[T1]{fontenc}
\usepackage{booktabs,graphicx}
```
"""

_MAIN = r"""\documentclass{article}
%s\usepackage[margin=2.5cm]{geometry}
%% a picture at most as wide as the text; its name where the file is not beside this one
\newcommand{\shownpicture}[1]{\IfFileExists{#1}%%
  {\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{\includegraphics{#1}}}%%
  {\fbox{\texttt{\detokenize{#1}} is not in this folder}}}
\title{%s}
\date{}
\begin{document}
\maketitle
%s
\end{document}
"""


def latex(title: str, lead: str, answer: Answer, sections: Sequence[Section], provenance: Mapping[str, str]) -> str:
    """Return main.tex, which reads a file for each table and picture.

    Args:
        title: of the document.
        lead: first paragraph.
        answer: findings, as a list.
        sections: in order.
        provenance: what a reader needs to believe the numbers.
    """
    parts = [formats.latex_text(lead), *_findings(answer)]
    for section in sections:
        parts.append(rf"\section{{{formats.latex_text(section.title)}}}")
        parts += [formats.latex_text(formats.without_commands(text)) + "\n" for text in section.paragraphs]
        for item in section.all_items:
            if isinstance(item, Table | Picture):
                parts.append(rf"\input{{{item.name}}}" if isinstance(item, Table) else _figure(item))
        parts.append(r"\clearpage")
    rows = tuple(provenance.items())
    parts.append(r"\section*{Provenance}" + "\n" + r"\begin{description}")
    parts += [rf"\item[{{{formats.latex_text(key)}}}] {formats.latex_text(value)}" for key, value in rows]
    parts.append(r"\item[] \end{description}" if not rows else r"\end{description}")
    return _MAIN % (PREAMBLE, formats.latex_text(title), "\n".join(parts))


def _findings(answer: Answer) -> list[str]:
    planted = [f"A run that fails on purpose: {finding.text}" for finding in answer.planted]
    stated = [finding.text for finding in (*answer.doctor, *answer.findings)]
    texts = [*([answer.headline] if answer.headline else []), *stated, *planted]
    if not texts:
        return []
    items = [rf"\item {formats.latex_text(text)}" for text in texts]
    notes = [formats.latex_text(note) + "\n" for note in answer.notes]
    return [r"\begin{itemize}", *items, r"\end{itemize}", *notes]


def _figure(picture: Picture) -> str:
    return (
        "\\begin{figure}[htbp]\n\\centering\n"
        rf"\shownpicture{{{picture.name}.pdf}}"
        "\n"
        rf"\caption{{{formats.latex_text(formats.without_commands(picture.caption))}}}\label{{fig:{picture.name}}}"
        "\n\\end{figure}"
    )
