"""Are the numbers of the matrix written in their cells, and the diagonal framed?"""

from __future__ import annotations

from matplotlib.patches import Rectangle

from lossscope.plots import transfer
from tests.plots.frames import FRAMES


def test_cells_have_their_numbers_and_losses_at_their_own_optimum_a_frame() -> None:
    single, _ = FRAMES[transfer]()
    ax = transfer.draw(single)
    written = {(text.get_position(), text.get_text()) for text in ax.texts}
    assert written == {((0, 0), "1"), ((1, 0), "3"), ((0, 1), "2"), ((1, 1), "6")}
    frames = [patch.get_xy() for patch in ax.patches if isinstance(patch, Rectangle)]
    assert frames == [(-0.5, -0.5), (0.5, 0.5)]
    assert ax.get_title().splitlines()[-1] == "loss 28%, model 72%, both 0%"  # (ln 2)² : (ln 3)²


def test_there_is_a_panel_for_each_statistic_and_direction_and_alt_names_their_shares() -> None:
    _, many = FRAMES[transfer]()
    assert len(transfer.draw_many(many).axes) == 4
    assert "C_neg i2t: 28% of the differences are of the loss, 72% of the model, 0% of both" in transfer.alt(many)
