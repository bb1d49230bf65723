"""Are pictures written atomically, in the right format, reproducibly, without a change of global state?"""

from __future__ import annotations

from xml.etree import ElementTree

import matplotlib as mpl
import pandas as pd
import pytest
from PIL import Image

from lossscope.errors import InputError
from lossscope.plots import style
from tests.each import each


def _figure():
    fig = style.new_figure()
    fig.add_subplot().plot([0, 1], [1, 0])
    return fig


@each("suffix, start", [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_suffix_is_the_format_and_files_are_reproducible(tmp_path, suffix, start):
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


DESCRIPTION = "Weights & <shares> of T₊. Second: 5 % (ε = 0.01)."


def _save(tmp_path, suffix, alt=DESCRIPTION):
    return style.save(_figure(), tmp_path / f"a.{suffix}", alt)


def test_the_description_is_in_an_svg(tmp_path):
    root = ElementTree.fromstring(_save(tmp_path, "svg").read_text(encoding="utf-8"))
    assert root.findtext("{http://www.w3.org/2000/svg}title") == "Weights & <shares> of T₊."
    assert DESCRIPTION in {text.strip() for text in root.itertext()}


def test_the_description_is_in_a_png(tmp_path):
    with Image.open(_save(tmp_path, "png")) as picture:
        assert picture.text["Description"] == DESCRIPTION


def test_the_description_is_in_a_pdf(tmp_path):
    data = _save(tmp_path, "pdf").read_bytes()
    wide = b"\xfe\xff" + DESCRIPTION.encode("utf-16-be")
    for char in (b"\\", b"(", b")"):
        wide = wide.replace(char, b"\\" + char)
    assert wide in data


@each("suffix", style.FORMATS)
def test_files_with_a_description_are_reproducible_and_differ_from_those_without(tmp_path, suffix):
    first = _save(tmp_path, suffix).read_bytes()
    assert first == _save(tmp_path, suffix).read_bytes()
    assert first != _save(tmp_path, suffix, None).read_bytes()
    assert b"CreationDate" not in first and b"dc:date" not in first


def test_fonts_of_a_pdf_are_type_42(tmp_path):
    """Type 3 fonts are refused by many conferences; 42 is TrueType, which is CIDFontType2 in the file."""
    for context in (style.paper, style.screen):
        with context():
            data = style.save(_figure(), tmp_path / "a.pdf").read_bytes()
        assert b"/CIDFontType2" in data or b"/Subtype /TrueType" in data
        assert b"/Type3" not in data


@each("name", ["a.jpg", "a"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"must end in .pdf, .png or .svg; got"):
        style.save(_figure(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_styles_apply_only_inside_with():
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


def test_names_in_tables_have_the_colour_of_their_objective():
    chosen = style.colours(["Triplet SH", "NT-Xent", "SmoothAP", "goal:triplet=cir (other 0)", "T nca, tau 10"])
    assert list(chosen.values())[:4] == [style.COLOURS[name] for name in ("triplet_sh", "ntxent", "smoothap", "goal")]
    assert len(set(chosen.values())) == 5
    assert style.colours(["my-loss"])["my-loss"] == style.colours(["my_loss"])["my_loss"]


def test_a_label_has_one_colour_in_all_pictures_of_a_report():
    """A second spec of a loss had the loss's colour in a picture without the first spec."""
    labels = ["NT-Xent", "ntxent:tau=0.05", "Triplet", "InfoNCE", "Circle", "mine"]
    with style.same_colours(labels):
        together = style.colours(labels)
        assert [style.colours([label])[label] for label in labels] == list(together.values())
        assert len(set(together.values())) == len(labels)
        others = style.colours(["Triplet SH", "ntxent:tau=0.05"])
        assert others["ntxent:tau=0.05"] == together["ntxent:tau=0.05"] != others["Triplet SH"]
    assert style.colours(["ntxent:tau=0.05"])["ntxent:tau=0.05"] == style.COLOURS["ntxent"]


def test_specs_are_wrapped_at_commas():
    assert style.wrap_spec("unified:gamma=60,margin=0.2", 20) == "unified:gamma=60,\nmargin=0.2"


def test_words_are_wrapped_and_equations_stay_whole():
    assert style.wrap_words("NT-Xent, temperature τ = 0.1", 24) == "NT-Xent, temperature\nτ = 0.1"


def test_a_headline_is_replaced_and_the_figure_grows_by_its_lines_once():
    fig = style.new_figure()
    before = fig.get_figheight()
    style.set_headline(fig, "what it shows " * 12)
    lines = len(fig.get_suptitle().splitlines())
    grown = fig.get_figheight() - before
    style.set_headline(fig, "short")
    assert lines > 1 and style.headline(fig) == "short"
    assert fig.get_figheight() - before == pytest.approx(grown / lines)


def test_a_figure_is_at_most_two_columns_wide():
    with style.paper():
        assert style.new_figure(width=5).get_figwidth() == pytest.approx(7, abs=0.01)


@each("values, deviation", [([1.0], None), ([2.0, 2.0, 2.0], None), ([0.3, 0.1 + 0.2], None), ([1.0, 3.0], 2**0.5)])
def test_equal_or_single_values_have_no_deviation(values, deviation):
    assert style.deviation(pd.Series(values)) == (None if deviation is None else pytest.approx(deviation))


@each("epochs, ticks", [([1, 2, 3], [1, 2, 3]), ([0.5, 1, 4], [0, 1, 2, 3, 4]), (range(13), list(range(13)))])
def test_epochs_have_a_tick_each_from_the_first(epochs, ticks):
    ax = style.new_figure().add_subplot()
    style.set_epochs(ax, epochs)
    assert list(ax.get_xticks()) == ticks
    low, high = ax.get_xlim()
    assert low < ticks[0] < ticks[-1] < high and ticks[0] - low < 0.5
