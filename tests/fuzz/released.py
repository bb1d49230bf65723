"""Write released files of VSE++ as their authors do, and open them as `lossscope convert` does."""

from __future__ import annotations

import json
from pathlib import Path

from lossscope.sources.checkpoints.conversion import describe, open_released
from tests.encoders.released.releases import release_of

_SPECIAL = ("<pad>", "<start>", "<end>", "<unk>")


def write_vsepp(folder: Path) -> None:
    """Write the checkpoint and its vocabulary."""
    release = release_of("vsepp")
    release.write(folder)
    (folder / "words.json").write_text(json.dumps(vocabulary(release.vocabulary_size)), encoding="utf-8")


def vocabulary(size: int) -> dict[str, object]:
    """Return the fields of a vocabulary file."""
    words = [*_SPECIAL, *(f"w{n}" for n in range(size - len(_SPECIAL)))]
    ids = {word: row for row, word in enumerate(words)}
    return {"word2idx": ids, "idx2word": {str(row): word for word, row in ids.items()}, "idx": len(words)}


def open_vsepp(folder: Path, old_pickle: bool = False) -> object:
    """Convert it and build its model."""
    return open_model(folder / "model_best.pth.tar", folder / "words.json", "precomp:root=nowhere", old_pickle)


def open_model(path: Path, vocabulary: Path | None, data: str, old_pickle: bool = False) -> object:
    """Return everything that opening a released file or folder tells, after building its model once.

    Args:
        path: of the file or folder.
        vocabulary: of the model; None where it has its own.
        data: spec of a data set.
        old_pickle: read pickles of Python 2 too.
    """
    checkpoint, notices = open_released(path, vocabulary, data, old_pickle)
    checkpoint.model()
    return checkpoint, notices, describe(checkpoint)
