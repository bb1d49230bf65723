"""Does a citation state all that a reader needs to repeat the number, in any format, with any names?"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.declarations import declarations
from lossscope.errors import InputError
from lossscope.io.frame_summary import Measurement
from lossscope.io.frames import SUMMARY
from lossscope.tables._legend import explanations
from lossscope.tables.citing import documents, sources
from lossscope.tables.citing.bibliography import PAPERS
from lossscope.tables.citing.citation import citation, citations
from lossscope.tables.citing.paper import Paper, bibtex_text, software
from lossscope.tables.citing.sources import named_papers, papers_of_measure, papers_of_objective
from tests.each import each

ROW: dict[str, Any] = {
    "source": "ckpt.pt", "objective": "ntxent:tau=0.1", "direction": "i2t", "probe": "cocos", "statistic": "C_neg",
    "mean": 11.647, "std": 0.365, "low": 11.4425, "high": 11.8515, "level": 0.95, "method": "two-way over 600 images",
    "n": 24.0, "n_defined": 24.0, "n_spread": 23.0, "short_batch": 56.0, "unit": "samples", "weight_unit": "paper",
    "convention": "corrected", "eps": 0.01, "batch_size": 128.0, "sampling": "pairs", "seed": 0.0,
}  # fmt: skip
COMMAND = {
    "name": "cocos", "origin": "0123456789abcdef0123", "split": "train", "shuffle": True, "same_image": "keep",
    "probes": ["cocos:eps=0.01,convention=corrected,curve=false,unit=paper"],
}  # fmt: skip
SENTENCE = (
    "C_neg (i2t) = 11.65 samples, 95 % interval 11.44 to 11.85 (two-way over 600 images): negatives with weight above "
    "eps, per query; probe cocos; convention corrected; eps 0.01; weight unit paper; objective ntxent:tau=0.1; source "
    "ckpt.pt; data scenes:train=600; split train; 600 images and 3000 captions; fingerprint 0123456789abcdef; 24 "
    "batches of 128; sampling pairs; shuffled; another positive of the same item counted as a negative; seed 0; "
    "sd over 23 batches 0.36; lossscope 0.1.0."
)
ROOT = Path(__file__).parents[3]


def measurement(command: dict[str, Any] | None = None, **row: Any) -> Measurement:
    rows = pd.DataFrame([ROW | row], columns=list(SUMMARY))
    items = {"images": 600, "captions": 3000}
    return Measurement(rows, COMMAND | (command or {}), ("0.1.0",), items, "scenes:train=600")


def sentence(command: dict[str, Any] | None = None, **row: Any) -> str:
    (found,) = citations(measurement(command, **row))
    return found.sentence


def test_the_sentence_of_a_count() -> None:
    assert sentence() == SENTENCE


@each("command, row, said", [
    ({"same_image": "mask"}, {}, "other positives left out"),
    ({"masks": ["same_item", "above:margin=0.1"]}, {}, "masks same_item and above:margin=0.1"),
    ({"guide_origin": "ff" * 20}, {}, "guide of fingerprint ffffffffffffffff"),
    ({"negatives": "own"}, {}, "mined negatives of their own query alone"),
    ({"negatives": "own", "mined": 2}, {}, "2 mined negatives of a query"),
    ({"terms": ["q2q", "p2p"]}, {}, "further candidates q2q, p2p"),
    ({"shuffle": False, "captions": "first"}, {}, "in file order; the first caption of each image"),
    ({"drop_last": True}, {}, "without the last, shorter batch"),
    ({"per_class": 4}, {"sampling": "classes of 4"}, "4 items of a class"),
    ({"plugins": {"./my.py": "ab" * 20}}, {}, "with ./my.py abababababababab"),
    ({"data": "karpathy:root=DIR"}, {}, "data karpathy:root=DIR;"),
    ({"probes": ["tangent:of=candidate"]}, {"probe": "tangent"}, "probe tangent:of=candidate;"),
    ({"probes": ["cocos:eps=0.1", "cocos:eps=0.01"]}, {}, "probe cocos;"),
    ({}, {"n_defined": 20.0}, "24 batches of 128, defined in 20;"),
    ({}, {"mean": math.nan}, "C_neg (i2t) is undefined:"),
    ({}, {"low": math.nan, "high": math.nan}, "11.65 samples, without an interval:"),
    ({}, {"unit": "%", "level": 0.9}, "= 11.6 %, 90 % interval 11.4 to 11.9"),
    (
        {}, {"sampling": "pairs, 5 of 20 queries, all candidates", "method": "sampled queries, t", "n": 1.0},
        "(sampled queries, t, for all queries of this set)",
    ),
])  # fmt: skip
def test_what_a_choice_adds(command: dict[str, Any], row: dict[str, Any], said: str) -> None:
    assert said in sentence(command, **row)


@each("name", ["eps", "convention", "objective", "weight_unit"])
def test_what_a_number_does_not_have_is_not_said(name: str) -> None:
    text = sentence(**{name: None})
    assert "nan" not in text.lower() and "None" not in text


def test_another_choice_is_another_sentence() -> None:
    changed = {
        "eps": 0.1, "convention": "released", "weight_unit": "relative", "objective": "ntxent:tau=0.2", "seed": 1.0,
        "batch_size": 64.0, "sampling": "images", "direction": "t2i", "source": "b.pt", "low": 11.0, "n": 20.0,
    }  # fmt: skip
    sentences = [sentence(**{name: value}) for name, value in changed.items()]
    assert len({sentence(), *sentences}) == 1 + len(changed)


def test_statistics_and_directions_are_chosen_or_refused() -> None:
    both = measurement()
    both = replace(both, rows=pd.concat([both.rows, both.rows.assign(statistic="C_0")], ignore_index=True))
    assert [found.facts["number"].split()[0] for found in citations(both)] == ["C_neg", "C_0"]
    assert len(citations(both, ["C_0"], ["i2t"])) == 1
    with pytest.raises(InputError, match="--statistic must be one of C_neg, C_0; got C_1"):
        citations(both, ["C_1"])
    with pytest.raises(InputError, match="--direction must be one of i2t; got t2i"):
        citations(both, None, ["t2i"])


SOURCES = [
    (kind, declaration.name, declaration.source)
    for kind in ("probes", "objectives")
    for declaration in declarations(kind)
]


@each("kind, name, source", SOURCES)
def test_every_year_of_a_source_is_that_of_a_paper_with_an_entry(kind: str, name: str, source: str) -> None:
    years = re.findall(r"\b(?:19|20)\d\d\b", source)
    papers = named_papers(source)
    assert sorted(int(year) for year in years) == sorted(paper.year or 0 for paper in papers)
    cited = papers_of_objective(name) if kind == "objectives" else papers_of_probe(name)
    assert sorted(paper.key for paper in cited) == sorted(paper.key for paper in papers)


def statistics_of(probe: str) -> tuple[str, ...]:
    return tuple(explanations(probe)) or (probe,)  # a probe of one statistic has its name


def papers_of_probe(name: str) -> set[Paper]:
    return {paper for statistic in statistics_of(name) for paper in papers_of_measure(name, statistic)}


def test_every_statistic_that_a_paper_defines_is_one_of_its_probe() -> None:
    unknown = {
        f"{probe} {statistic}"
        for probe, papers in sources._DEFINED.items()
        for statistic in " ".join(papers.values()).split()
        if statistic not in statistics_of(probe)
    }
    assert unknown == set()


@each("probe, statistics, keys", [
    ("cocos:eps=0.1", "C_q C_B C_0 C_neg W_neg W_pos", ["bleeker2022"]),
    ("cocos", "N_eff", ["kish1965"]),
    ("cocos", "C_q_all W_low skipped any", []),
    ("weight-mass", "W_neg W_pos", ["bleeker2022"]),
    ("weight_mass", "W_low share_above any", []),
    ("contributors", "N_eff", ["kish1965"]),
    ("contributors", "perplexity", ["hill1973"]),
    ("contributors", "top1 top5 any", []),
    ("hubness", "hub_skewness", ["radovanovic2010"]),
    ("hubness", "hub_max_count never_hardest hub_share", []),
    ("modality_gap", "gap_cosine", []),
    ("tangent", "radial tangent_q50", []),
    ("effective_rank", "effective_rank", ["garrido2023", "roy2007"]),
    ("recall", "R@1", []),
])  # fmt: skip
def test_a_paper_is_credited_with_the_statistics_that_it_defines_alone(
    probe: str, statistics: str, keys: list[str]
) -> None:
    for statistic in statistics.split():
        assert [paper.key for paper in papers_of_measure(probe, statistic)] == keys, statistic


@each("kind, name", [(kind, name) for kind, name, _ in SOURCES])
def test_every_statistic_and_objective_has_papers_or_says_that_there_is_none(kind: str, name: str) -> None:
    rows = [{"objective": name}]
    if kind == "probes":
        rows = [{"probe": name, "statistic": statistic} for statistic in (*statistics_of(name), "any")]
    for row in rows:
        cited = citations(measurement(**row))
        text = documents.paragraphs(cited, documents.papers_to_cite(cited))[0]
        papers = cited[0].measure if kind == "probes" else cited[0].objective
        keys = ", ".join(paper.key for paper in papers)
        if kind == "probes":
            assert f"measure: {keys or 'no paper, as lossscope defines it'}; loss" in text
        else:
            assert f"loss: {keys or 'no paper'}]" in text
        assert all(f"@{paper.kind}{{{paper.key}," in documents.bibtex(papers) for paper in papers)


def test_the_papers_of_a_few() -> None:
    keys = {
        name: [paper.key for paper in papers_of_objective(name)]
        for name in ("goal:triplet=cir", "multi_similarity", "ranked-list", "unified", "./my.py:Loss", "rsp")
    }
    assert keys == {
        "goal:triplet=cir": ["xuan2023"], "multi_similarity": ["wang2019multi"], "ranked-list": ["wang2019ranked"],
        "unified": ["li2022"], "./my.py:Loss": [], "rsp": ["wei2021", "li2022"],
    }  # fmt: skip


def test_a_paper_is_where_the_lists_of_papers_have_it() -> None:
    entries = {paper.key: paper for paper in PAPERS}
    assert entries["ohsong2016"].booktitle == "IEEE Conference on Computer Vision and Pattern Recognition"
    yi = entries["yi2014"]  # as [37] of Xuan & Chen 2023 has it
    assert (yi.author.count(" and "), yi.title) == (3, "Deep Metric Learning for Person Re-Identification")
    assert yi.booktitle == "International Conference on Pattern Recognition"


def test_no_entry_is_written_that_nothing_cites_and_keys_differ() -> None:
    sources = " | ".join(source for _, _, source in SOURCES)
    assert all(re.search(paper.cited, sources) for paper in PAPERS)
    assert len({paper.key for paper in PAPERS}) == len(PAPERS)


@each("paper", [*PAPERS, software("0.1.0")])
def test_entries_are_ascii_with_braces_that_match(paper: Paper) -> None:
    entry = paper.bibtex()
    assert entry.isascii() and entry.count("{") == entry.count("}") and "doi" not in entry.lower()
    names = [name for name in paper.author.split(" and ") if name != "others"]
    assert paper.is_group or all(len(name.split(", ")) == 2 for name in names)


def test_accents() -> None:
    assert bibtex_text("Radovanović, Miloš") == r"Radovanovi{\'c}, Milo{\v{s}}"


@settings(max_examples=40)
@given(st.text())
def test_no_text_leaves_a_field_of_bibtex(text: str) -> None:
    written, depth = bibtex_text(text), 0
    for char in written:
        depth += (char == "{") - (char == "}")
        assert depth >= 0
    assert depth == 0 and written.isascii() and written.isprintable()


HOSTILE = "a\x1b[31m}\\input{x}%$#_&^~\n\u202eend"


def test_hostile_names_are_written_out() -> None:
    hostile = replace(measurement({"masks": [HOSTILE], "split": HOSTILE}, source=HOSTILE), versions=(HOSTILE,))
    cited = citations(hostile)
    papers = documents.papers_to_cite(cited)
    text = "\n".join(documents.paragraphs(cited, papers[:-1]))
    assert "\x1b" not in text and "\u202e" not in text and r"\x1b[31m" in text
    latex = documents.latex(cited, papers)
    assert r"\input" not in latex and "\x1b" not in latex and latex.count("\n") == 0
    assert re.sub(r"\\[{}]", "", latex).count("{") == re.sub(r"\\[{}]", "", latex).count("}")
    assert r"\input" not in documents.bibtex(papers) and "\x1b" not in documents.bibtex(papers)
    assert json.loads(json.dumps(documents.document(cited, papers)))["citations"][0]["facts"]["number"]


def test_latex_cites_papers_that_bibtex_has() -> None:
    cited = citations(measurement())
    papers = documents.papers_to_cite(cited)
    assert documents.latex(cited, papers).endswith(r"\cite{bleeker2022,lossscope}")
    assert documents.latex(cited, papers).startswith(r"$C_{\mathrm{neg}}$ (i2t) = 11.65 samples, 95 \% interval")
    assert re.findall(r"@\w+\{(\w+),", documents.bibtex(papers)) == ["bleeker2022", "lossscope"]


def test_frames_of_several_versions_cite_each() -> None:
    first = citations(measurement())
    second = citations(replace(measurement(), versions=("0.2.0",)))
    papers = documents.papers_to_cite([*first, *second])
    assert [paper.key for paper in papers] == ["bleeker2022", "lossscope-1", "lossscope-2"]
    assert documents.latex(second, papers).endswith(r"\cite{bleeker2022,lossscope-2}")


def test_a_frame_of_several_versions_cites_all_of_them() -> None:
    cited = citations(replace(measurement(), versions=("0.0.9", "0.1.0")))
    papers = documents.papers_to_cite(cited)
    assert cited[0].sentence.endswith("; lossscope 0.0.9 and 0.1.0.")
    assert [paper.version for paper in papers[1:]] == ["0.0.9", "0.1.0"]
    assert documents.latex(cited, papers).endswith(r"\cite{bleeker2022,lossscope-1,lossscope-2}")


def test_a_version_that_is_not_known_is_not_made_up() -> None:
    cited = citations(replace(measurement(), versions=("",)))
    assert cited[0].sentence.endswith("; lossscope of unknown version.")
    assert "version" not in documents.bibtex(documents.papers_to_cite(cited)[1:])


def test_lossscope_is_cited_as_its_own_file_says() -> None:
    stated = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    entry = software("0.1.0")
    assert (entry.title, entry.author) == (stated["title"], stated["authors"][0]["name"])
    assert "author = {{The lossscope authors}}" in entry.bibtex()
    (stated_paper,) = stated["references"]
    paper = next(candidate for candidate in PAPERS if candidate.key == "bleeker2022")
    assert (paper.title, paper.year) == (stated_paper["title"], stated_paper["year"])


def test_a_row_is_cited_alone() -> None:
    measured = measurement()
    (row,) = measured.rows.to_dict("records")
    assert citation(row, measured).sentence == SENTENCE
