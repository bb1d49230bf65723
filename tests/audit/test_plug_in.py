"""Is a user's signal a column beside the others, under the name of its class?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.audit.steps.options import AuditOptions
from lossscope.audit.steps.run import audit
from lossscope.audit.steps.signals import build_signals
from lossscope.core.sides import Sides
from lossscope.errors import InputError, SpecError
from lossscope.registry import build

SIGNAL = '''
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from lossscope.audit.base import Signal

@dataclass(frozen=True)
class {name}(Signal):
    """value = minus the number of letters."""
    scale: float = 1.0
    because: ClassVar[str] = "it is short"

    def values(self, material, pairs):
        lengths = np.array([len(text) for text in material.split.captions], np.float32)
        return -self.scale * lengths[pairs.right]
'''
OPTIONS = {"data": "scenes:train=24,val=4,test=4,size=16", "batch_size": 12, "sheet": 10}
pytestmark = pytest.mark.usefixtures("typed")


def write(path: Path, *names: str) -> Path:
    path.write_text("".join(SIGNAL.format(name=name) for name in names))
    return path


def test_a_signal_of_the_user_is_a_column_of_its_class_without_a_weight(tmp_path: Path) -> None:
    path = write(tmp_path / "signal.py", "Shortness")
    result = audit((), AuditOptions.of(signals=("text_items", "text_cosine", f"{path}:Shortness"), **OPTIONS))  # type: ignore[arg-type]
    assert result.signals == ("text_items", "text_cosine", "Shortness")
    assert result.calibration.weights[3] == 0
    assert result.because["Shortness"] == "it is short"


def test_labels_give_it_a_weight(tmp_path: Path) -> None:
    path = write(tmp_path / "signal.py", "Shortness")
    specs = ("text_items", f"{path}:Shortness")
    first = audit((), AuditOptions.of(signals=specs, **OPTIONS | {"sheet": 60}))  # type: ignore[arg-type]
    pairs, captions = first.sheet.pairs, first.material.caption_ids
    lengths = [len(first.material.split.captions[row]) for row in pairs.right]  # type: ignore[union-attr]
    middle = sorted(lengths)[len(lengths) // 2]
    rows = [
        f"{first.material.image_ids[a]},{captions[b]},{'yes' if n < middle else 'no'},"
        + ("," if row is None else ",".join(row.cells))
        + "\n"
        for a, b, n, row in zip(pairs.left, pairs.right, lengths, first.pool.design, strict=False)
    ]
    (tmp_path / "labels.csv").write_text("image,caption,answer,stratum,share\n" + "".join(rows))
    second = audit((), AuditOptions.of(signals=specs, labels=(tmp_path / "labels.csv",), **OPTIONS))  # type: ignore[arg-type]
    assert second.calibration.weights[2] > 1
    assert (first.state, second.state) == ("ranked only", "calibrated")
    assert second.quality is not None
    assert second.quality.auc > 0.8
    rows_of_pairs = zip(pairs.left.tolist(), pairs.right.tolist(), first.pool.design, strict=False)
    labelled = {(a, b) for a, b, row in rows_of_pairs if row is not None}  # pairs for the fit have a stratum, too
    assert not labelled & set(zip(second.sheet.pairs.left.tolist(), second.sheet.pairs.right.tolist(), strict=True))


def test_several_signals_of_one_file_have_columns_of_their_own(tmp_path: Path) -> None:
    path = write(tmp_path / "signal.py", "One", "Two")
    assert [signal.name() for signal in build_signals((f"{path}:One", f"{path}:Two:scale=2"))] == ["One", "Two"]
    other = write(tmp_path / "other.py", "One")
    with pytest.raises(InputError, match="got One twice"):
        build_signals((f"{path}:One", f"{other}:One"))


def test_no_signal_is_called_as_another_column(tmp_path: Path) -> None:
    path = write(tmp_path / "signal.py", "similarity", "probability", "image")
    with pytest.raises(InputError, match=r"similarity is a signal already. Give the class another name"):
        build_signals((f"{path}:similarity",))
    with pytest.raises(InputError, match=r"probability is a column already"):
        build_signals((f"{path}:probability",))
    with pytest.raises(InputError, match="image is a column already"):
        build_signals((f"{path}:image",), Sides())
    with pytest.raises(InputError, match=r"density is a column already. Give the side another name"):
        build_signals(("density",), Sides("density", "text"))


def test_what_is_no_signal_is_refused_when_it_is_built(tmp_path: Path) -> None:
    path = tmp_path / "signal.py"
    path.write_text("from dataclasses import dataclass\n@dataclass\nclass Mine:\n    x: int = 0\n")
    with pytest.raises(SpecError, match=r"is no signal: it must inherit Signal .*; it lacks group, because, values"):
        build("signals", f"{path}:Mine")


def test_without_any_signal_that_has_a_weight_there_is_nothing_to_decide_by(tmp_path: Path) -> None:
    path = write(tmp_path / "signal.py", "Shortness")
    with pytest.raises(InputError, match=r"got the signals Shortness, which have no weight yet"):
        audit((), AuditOptions.of(signals=(f"{path}:Shortness",), **OPTIONS))  # type: ignore[arg-type]
