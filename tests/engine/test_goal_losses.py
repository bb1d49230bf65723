"""Are the combinations of GOAL's Table 1 the losses that it names, and are the others of none?"""

from __future__ import annotations

from lossscope.engine.goal_losses import goal_losses
from lossscope.tables import xuan2023_1
from lossscope.tables.published import base as published


def test_table_1_of_goal_is_measured() -> None:
    rows = goal_losses()
    (table,) = xuan2023_1.build(rows)
    found = {
        (row[0].text, heading): cell.text
        for row in table.rows
        for heading, cell in zip(table.headings, row, strict=True)
    }
    printed = published.load("xuan2023_goal", 1)
    names = printed["printed"].str.replace(r" \[\d+\]", "", regex=True)
    of_paper = dict(zip(zip(printed["triplet_weight"], printed["pair_weight"], strict=True), names, strict=True))
    assert of_paper == dict(zip(zip(rows["triplet"], rows["pair"], strict=True), rows["printed"], strict=True))
    assert [found["con", f"T {t} printed"] for t in ("con", "nca", "cir")] == ["Triplet loss", "NT-Xent loss", "New"]
    equal = {("con", "con"), ("nca", "con"), ("cir", "lin"), ("con", "sig")}
    assert {(t, p) for (p, heading), text in found.items() if text == "equal" for _, t, _ in [heading.split()]} == equal
    assert str(found["sig-ms", "T con found"]).endswith(" apart")
    integrable = {("con", pair) for pair in ("con", "lin", "sig", "lin-ms", "sig-ms")} | {
        ("nca", "con"),
        ("cir", "lin"),
    }
    of_losses = rows[rows["curl"] < 1e-6]
    assert set(zip(of_losses["triplet"], of_losses["pair"], strict=True)) == integrable
    assert (rows.loc[rows["curl"] >= 1e-6, "curl"] > 0.1).all()
