"""Pictures and tables -> main.tex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lossscope.tables import formats
from lossscope.tables.base import Table

from .sections import Answer, Picture, Section

_MAIN = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{lmodern}
\usepackage[margin=2.5cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
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
        parts += [formats.latex_text(paragraph) + "\n" for paragraph in section.paragraphs]
        for item in section.all_items:
            if isinstance(item, Table | Picture):
                parts.append(rf"\input{{{item.name}}}" if isinstance(item, Table) else _figure(item))
        parts.append(r"\clearpage")
    rows = tuple(provenance.items())
    parts.append(r"\section*{Provenance}" + "\n" + r"\begin{description}")
    parts += [rf"\item[{{{formats.latex_text(key)}}}] {formats.latex_text(value)}" for key, value in rows]
    parts.append(r"\item[] \end{description}" if not rows else r"\end{description}")
    return _MAIN % (formats.latex_text(title), "\n".join(parts))


def _findings(answer: Answer) -> list[str]:
    texts = [finding.text for finding in (*answer.doctor, *answer.findings)]
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
        rf"\caption{{{formats.latex_text(picture.caption)}}}\label{{fig:{picture.name}}}"
        "\n\\end{figure}"
    )
