"""Search in a shop, with the bought product as label: each product with the same properties matches as well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .base import DataSet, Words, by_keys, text_split

KIND = "products of a shop"
_COLOURS = "red blue green black white grey pink brown yellow purple orange beige".split()
_THINGS = "shirt jacket shoe dress hat bag belt sock scarf glove coat skirt boot sandal sweater vest".split()
_FABRICS = "cotton wool leather linen silk denim nylon fleece".split()


@dataclass(frozen=True)
class Setup:
    """The number of products, and the properties that a search asks for."""

    name: str
    n: int
    seed: int
    asks: tuple[str, ...]  # properties


SETUPS = (
    Setup("colour and thing", 700, 1, ("colour", "thing")),
    Setup("fabric, colour and thing", 700, 2, ("fabric", "colour", "thing")),
    Setup("thing alone", 500, 3, ("thing",)),
    Setup("brand and thing", 700, 4, ("brand", "thing")),
    Setup("number of the article", 700, 5, ("number",)),
)


def data_sets() -> Iterator[DataSet]:
    """Yield all of them."""
    for setup in SETUPS:
        yield build(setup)


def build(setup: Setup) -> DataSet:
    """Write the shop of a setup."""
    words = Words(400 + setup.seed)
    random = words.random
    brands = words.names(30, 1)
    queries, documents = [], []
    keys: list[object] = []
    for row in range(setup.n):
        found = {
            "colour": str(random.choice(_COLOURS)), "thing": str(random.choice(_THINGS)),
            "fabric": str(random.choice(_FABRICS)), "brand": str(random.choice(brands)),
            "number": f"{row:04d}-{row % 7}",
        }  # fmt: skip
        size = str(random.choice(["S", "M", "L", "XL"]))
        queries.append(" ".join(found[name] for name in setup.asks))
        documents.append(
            f"{found['brand']} {found['thing']} {found['number']} in {found['colour']}, {found['fabric']}, "
            f"size {size}. "
            f"{' '.join(words.text(8))}"
        )
        keys.append(tuple(found[name] for name in setup.asks))
    split = text_split(queries, documents, [(row, row) for row in range(setup.n)])
    return DataSet(KIND, setup.name, split, by_keys(keys, keys), seed=setup.seed)
