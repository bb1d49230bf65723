"""Are pictures saved whole, in the right format, reproducibly, without a change of global state?"""

from __future__ import annotations

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest

from lossscope.errors import InputError
from lossscope.plots import style


def _figure():
    fig = style.canvas()
    fig.add_subplot().plot([0, 1], [1, 0])
    return fig


@pytest.mark.parametrize(("suffix", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_saves_by_suffix_and_twice_the_same(tmp_path, suffix, start):
    first = style.save(_figure(), tmp_path / f"a.{suffix}").read_bytes()
    second = style.save(_figure(), tmp_path / f"b.{suffix.upper()}").read_bytes()
    assert first.startswith(start)
    assert first == second
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a.{suffix}", f"b.{suffix.upper()}"]


def test_pdf_embeds_fonts(tmp_path):
    with style.paper():
        fig = _figure()
    text = style.save(fig, tmp_path / "a.pdf").read_bytes()
    assert b"/Type3" not in text
    assert b"FontFile2" in text


@pytest.mark.parametrize("name", ["a.jpg", "a"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"must end in .pdf, .png or .svg; got"):
        style.save(_figure(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_styles_hold_inside_with_only():
    before = dict(mpl.rcParams)
    with style.paper():
        assert mpl.rcParams["figure.figsize"][0] == pytest.approx(3.3)
        assert mpl.rcParams["pdf.fonttype"] == 42
    with style.screen():
        assert mpl.rcParams["font.size"] > 10
    assert dict(mpl.rcParams) == before


def test_colours_are_stable_and_distinct():
    labels = ["ntxent:tau=0.1", "ntxent:tau=0.2", "triplet-sh", "my_loss", "other"]
    chosen = style.colours(labels)
    assert chosen["ntxent:tau=0.1"] == style.COLOURS["ntxent"]
    assert chosen["triplet-sh"] == style.COLOURS["triplet_sh"]
    assert len(set(chosen.values())) == len(labels)
    assert chosen == style.colours(labels)


def test_labels_keep_apart_and_in_order():
    placed = style._apart([0.5, 0.52, 0.51, 0.0, 1.0], 0.1)
    assert all(b - a > 0.1 - 1e-9 for a, b in pairwise(sorted(placed)))
    assert list(np.argsort(placed)) == [3, 0, 2, 1, 4]
    assert style._apart([0.1, 0.9], 0.1) == [0.1, 0.9]


def test_specs_are_wrapped_at_commas():
    assert style.wrapped("unified:gamma=60,margin=0.2", 20) == "unified:gamma=60,\nmargin=0.2"
