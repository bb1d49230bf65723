"""Does no title, label or number touch another or leave the picture, for one to six panels with long names?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from lossscope.engine.weight_fields import fields, objective_curves
from lossscope.plots import direction_field, overlay, pair_curves, style, triplet_field
from tests.each import each

pytestmark = pytest.mark.usefixtures("fitted")
SPECS = (
    "goal:triplet=cir,pair=sig-ms,m_plus=0.1,m_minus=0.1,tau=12.5,alpha=2.5,beta=11",
    "unified:gamma=60,margin=0.2",
    "goal:triplet=nca,pair=lin-ms,m_plus=0.1,m_minus=0.1",
    "ntxent:tau=0.1",
    "./folder_of_losses/a_file_with_a_long_name.py:ALossWithAVeryLongName",
    "multi-similarity",
)
STYLES = {"screen": style.screen, "paper": style.paper}


def _fields(panels: int) -> pd.DataFrame:
    """Return fields under long names; a file that does not exist has the numbers of another loss."""
    parts = [fields({spec: "circle" if ".py" in spec else spec}, points=9) for spec in SPECS[:panels]]
    return pd.concat([part.assign(objective=spec) for part, spec in zip(parts, SPECS, strict=False)])


def _cloud() -> pd.DataFrame:
    x, y = np.random.default_rng(0).uniform(0.1, 0.9, (2, 100))
    shared = {"split": "train", "epoch": np.nan, "batch_size": 128.0, "direction": "i2t", "s_pos": x, "s_neg": y}
    sources = [f"runs/{word}-model-with-a-long-name/best.pt" for word in ("first", "second")]
    return pd.concat([pd.DataFrame({"source": source, **shared}) for source in sources])


def _drawn_texts(fig: Figure) -> Iterator[Text]:
    """Yield texts outside the fields: titles, labels, numbers of axes inside their limits, and legends."""
    beyond = set()
    for ax in fig.axes:
        beyond |= {id(text) for text in ax.texts}
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            low, high = min(limits) - 1e-9, max(limits) + 1e-9
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    beyond |= {id(tick.label1), id(tick.label2)}
    for text in fig.findobj(Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in beyond:
            yield text


def collisions(fig: Figure) -> list[str]:
    """Return what touches another text or a panel of another, or is cut off by the edge of the picture."""
    fig.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in _drawn_texts(fig)]
    edge = fig.bbox.padded(0.5)
    wrong = [f"{name!r} is cut off" for name, box in boxes if not (edge.contains(*box.min) and edge.contains(*box.max))]
    panels = [(f"panel {index}", ax.get_window_extent()) for index, ax in enumerate(fig.axes)]
    for (a, first), (b, second) in [*combinations(boxes, 2), *((x, y) for x in boxes for y in panels)]:
        if first.padded(-0.5).overlaps(second.padded(-0.5)):
            wrong.append(f"{a!r} touches {b!r}")
    return wrong


def _field(panels: int) -> Figure:
    fig = triplet_field.draw_many(_fields(panels), margin={SPECS[1]: 0.2})
    assert min(ax.bbox.width for ax in triplet_field.panels(fig)) > 1.3 * fig.dpi
    return fig


def _arrows(panels: int) -> Figure:
    return direction_field.draw_many(_fields(panels))


def _curves(panels: int) -> Figure:
    known = [spec for spec in SPECS[:panels] if ".py" not in spec]
    return pair_curves.draw_many(pd.concat([objective_curves(spec, points=5) for spec in known]))


def _overlaid(panels: int) -> Figure:
    fig = triplet_field.draw_many(_fields(panels), pale=True)
    for ax in triplet_field.panels(fig):
        overlay.draw(_cloud(), ax)
    overlay.legend(fig, _cloud())
    return fig


def _check(draw: Callable[[int], Figure], name: str, panels: int) -> None:
    with STYLES[name]():
        fig = draw(panels)
        assert collisions(fig) == []
        assert fig.get_figheight() - fig.get_tightbbox().height < 0.5  # empty bands, inches


@each("draw, name, panels", [
    (_field, "screen", 3), (_field, "paper", 6), (_arrows, "paper", 3), (_curves, "screen", 3), (_overlaid, "paper", 2)
])  # fmt: skip
def test_pictures_of_several_losses(draw, name, panels):
    _check(draw, name, panels)


@pytest.mark.thorough
@each("draw", [_field, _arrows, _curves, _overlaid], "name", STYLES, "panels", range(1, len(SPECS) + 1))
def test_one_to_six_panels(draw, name, panels):
    _check(draw, name, panels)


def test_a_collision_is_seen():
    fig = Figure(figsize=(2, 2))
    fig.text(0.5, 0.5, "one word")
    fig.text(0.5, 0.52, "another")
    fig.text(0.9, 0.1, "beyond the edge")
    assert [line.partition("'")[2] for line in collisions(fig)] == [
        "beyond the edge' is cut off", "one word' touches 'another'"
    ]  # fmt: skip
