"""Retrieval data in the format of BEIR: corpus.jsonl, queries.jsonl, qrels/{split}.tsv, and a TREC run as negatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lossscope.errors import InputError
from lossscope.io.locations import join_location, location_exists
from lossscope.io.reading import show_path

from .base import Split
from .formats.beir_files import read_judgements, read_ranking, read_texts, require_known
from .rows.text_pairs import TextPairs

_FILES = {"train": ("train",), "val": ("dev", "val"), "test": ("test",)}  # split -> names of its file
_SLOT = "{split}"
_Judged = Mapping[str, Mapping[str, tuple[float, int]]]  # query -> document -> score and line
_Lines = Mapping[str, Mapping[str, int]]  # query -> document -> line


@dataclass(frozen=True)
class Beir:
    """The judged queries of a split and its documents; a score above 0 is a positive.

    A document is its title, a blank and its text. Documents are those that the judgements of the split name, and those
    that the run names, or all with corpus=all. `val` is qrels/dev.tsv. Queries without a positive are left out, and
    counted. Documents of exactly equal text are one, under the first id, and counted; merge=false keeps them apart, as
    BEIR's own evaluation does.

    With `run`, a TREC run file (with `{split}` in it one for each split), the first `top` documents of each query, best
    score first, that are no positives are its mined negatives.
    Raises InputError, naming file, line and id, for an id that the corpus or the queries do not have.

    Source: Thakur et al. 2021 (BEIR).
    """

    root: str  # folder of corpus.jsonl, queries.jsonl and qrels/: path or URL
    corpus: Literal["judged", "all"] = "judged"  # documents: those that judgements and run name, or all
    run: str | None = None  # TREC run file: path or URL, {split} in it stands for train, val or test
    top: int = 10  # number of mined negatives of each query
    merge: bool = True  # documents of equal text are one

    def __post_init__(self) -> None:
        if self.top < 1:
            raise InputError(f"beir:top must be at least 1; got {self.top}")

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits that have judgements, train first."""
        return tuple(name for name in _FILES if self._qrels(name))

    def split(self, name: str) -> Split:
        """Return the split of a name."""
        name = "val" if name == "dev" else name
        qrels = self._qrels(name)
        if not qrels:
            splits = ", ".join(self.splits()) or f"one of {show_path(self._path('qrels'))}/*.tsv (none found)"
            raise InputError(f"split of {show_path(self.root)} must be one of {splits}; got {name!r}")
        judged = read_judgements(qrels)
        known = read_texts(self._path("queries.jsonl"))
        require_known(qrels, _first_lines(judged), known, "query", "queries.jsonl")
        positives = {q: [d for d, (score, _) in scores.items() if score > 0] for q, scores in judged.items()}
        queries = {query: text for query, text in known.items() if positives.get(query)}
        if not queries:
            raise InputError(f"{show_path(qrels)} must name a positive; no score is above 0")
        mined = {} if self.run is None else read_ranking(self.run.replace(_SLOT, name), queries, known)
        documents = self._documents(qrels, judged, mined)
        return self._joined(name, queries, documents, positives, mined, len(known))

    def _documents(self, qrels: str, judged: _Judged, mined: _Lines) -> dict[str, str]:
        """Return the documents of a split by id, in the order of the corpus."""
        named = {d: line for scores in judged.values() for d, (_, line) in scores.items()}
        ranked = {d: line for ranking in mined.values() for d, line in ranking.items()}
        wanted = None if self.corpus == "all" else {*named, *ranked}
        documents = read_texts(self._path("corpus.jsonl"), wanted)
        require_known(qrels, named, documents, "document", "corpus.jsonl")
        require_known(str(self.run), ranked, documents, "document", "corpus.jsonl")
        return documents

    def _joined(
        self,
        name: str,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        positives: Mapping[str, Sequence[str]],
        mined: _Lines,
        known: int,
    ) -> Split:
        """Return the split of texts by id."""
        pairs, rows = TextPairs(), dict[str, int]()
        by_text: dict[str, int] = {}
        for key, text in documents.items():
            rows[key] = by_text.setdefault(text, len(pairs.documents)) if self.merge else len(pairs.documents)
            if rows[key] == len(pairs.documents):
                pairs.documents.append(text)
                pairs.document_ids.append(key)
        for row, (key, text) in enumerate(queries.items()):
            pairs.queries.append(text)
            pairs.query_ids.append(key)
            relevant = [rows[document] for document in positives[key]]
            pairs.positives += [(row, document) for document in relevant]
            ranked = (rows[document] for document in mined.get(key, ()))
            others = dict.fromkeys(document for document in ranked if document not in relevant)
            pairs.negatives += [(row, document) for document in list(others)[: self.top]]
        return pairs.split(name, self._notices(pairs, len(documents), known, len(positives)))

    def _notices(self, pairs: TextPairs, documents: int, known: int, judged: int) -> list[str]:
        """Return what was left out and what was merged."""
        kept, repeated = len(pairs.queries), documents - len(pairs.documents)
        without = kept - len({query for query, _ in pairs.negatives}) if self.run else 0
        counted = {
            "queries are not judged in this split, and left out": known - judged,
            "judged queries have no positive, and are left out": judged - kept,
            "documents repeat a text, and are one with it": repeated,
            "queries have no mined negative": without,
        }
        return [f"{number} {what}" for what, number in counted.items() if number]

    def _path(self, *names: str) -> str:
        return join_location(self.root, *names)

    def _qrels(self, name: str) -> str | None:
        """Return the location of a split's judgements, None where there are none."""
        files = (self._path("qrels", f"{stem}.tsv") for stem in _FILES.get(name, ()))
        return next((file for file in files if location_exists(file)), None)


def _first_lines(judged: _Judged) -> dict[str, int]:
    """Return query -> the first line that names it."""
    return {query: min(line for _, line in scores.values()) for query, scores in judged.items()}
