"""Names of the two sides of a split, and of the directions between them; importing this file imports nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from lossscope.errors import InputError

from .types import CountedDirection

ONE_SET = "all"  # the direction of a set whose items are queries and candidates of each other
PROXY = "proxy"  # name of a side of class vectors


@dataclass(frozen=True)
class Sides:
    """What queries and candidates are called: image and caption, query and document, or the items of one set.

    Directions are named by initials, `q2d` and `d2q`; `a2b` and `b2a` where both sides have one initial; `all` for one
    set. Images and captions keep the names of the field, i2t and t2i. Raises InputError for names that are none.

    >>> Sides("query", "document").labels, Sides("view 1", "view 2").labels, Sides("item", None).labels
    (('q2d', 'd2q'), ('a2b', 'b2a'), ('all',))
    """

    first: str = "image"  # queries of the first direction
    second: str | None = "caption"  # None: one set, whose items are called `first`

    def __post_init__(self) -> None:
        for name in (self.first, *([] if self.second is None else [self.second])):
            if not isinstance(name, str) or not name[:1].isalpha() or len(name) > 40 or not name.isprintable():
                raise InputError(f"sides must be two names, such as query and document; got {name!r}")
        if self.second is not None and self.first.lower() == self.second.lower():
            raise InputError(f"sides must have two names; got {self.first!r} twice")

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the embeddings of each side, in dumps and arguments: those of one set are there once."""
        if self.is_one_set:
            return ("embeddings",)
        if self.has_proxies:
            return "embeddings", "proxies"
        return ("images", "captions") if self.is_image_text else ("queries", "documents")

    @property
    def is_one_set(self) -> bool:
        """Whether both sides are one set of items."""
        return self.second is None

    @property
    def has_proxies(self) -> bool:
        """Whether the second side are class vectors: each is a candidate of every item, and none is a query."""
        return self.second == PROXY

    @property
    def is_image_text(self) -> bool:
        """Whether these are images and captions, whose names no file needs to state."""
        return (self.first, self.second) == ("image", "caption")

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the directions, the first side's first."""
        return (ONE_SET,) if self.is_one_set else (self.label("i2t"), self.label("t2i"))

    def label(self, direction: CountedDirection) -> str:
        """Return the name of a direction: `i2t` stands for first to second, `t2i` for second to first."""
        if direction == "both":
            return "both"
        if self.second is None:
            return ONE_SET
        if self.is_image_text:
            return direction
        a, b = self.first[0].lower(), self.second[0].lower()
        a, b = (a, b) if a != b else ("a", "b")
        return f"{a}2{b}" if direction == "i2t" else f"{b}2{a}"

    def words(self, label: str) -> str:
        """Return what the name of a direction stands for: `query to document`.

        >>> Sides("query", "document").words("d2q"), Sides().words("i2t"), Sides("product", None).words("all")
        ('document to query', 'image to text', 'product to product')
        """
        if label == "both":
            return "both directions, in one gradient"
        second = self.first if self.second is None else "text" if self.is_image_text else self.second
        return f"{second} to {self.first}" if label == self.label("t2i") != ONE_SET else f"{self.first} to {second}"

    def query(self, label: str) -> str:
        """Return what a query of a direction is called: `document` of `d2q`."""
        return self.second if self.second is not None and label == self.label("t2i") else self.first

    def candidate(self, label: str) -> str:
        """Return what a candidate of a direction is called: `query` of `d2q`."""
        return self.first if self.second is None or label == self.label("t2i") else self.second

    @property
    def text(self) -> str:
        """`query/document`, as files state it; `item` for one set."""
        return self.first if self.second is None else f"{self.first}/{self.second}"

    @classmethod
    def parse(cls, text: str) -> Sides:
        """Return the sides of `query/document` or `query,document`, or of one set, `item`.

        Raises InputError for anything else.
        """
        names = [name.strip() for name in text.replace(",", "/").split("/")]
        if len(names) > 2:
            raise InputError(f"sides must be two names, such as query/document, or one of a set; got {text!r}")
        return cls(names[0], names[1] if len(names) == 2 else None)


IMAGE_TEXT = Sides()
QUERY_DOCUMENT = Sides("query", "document")
ITEM = Sides("item", None)
ITEM_PROXY = Sides("item", PROXY)


def sides_entry(sides: Sides) -> dict[str, str]:
    """Return the column of rows that says what their sides are; images and captions have none.

    >>> sides_entry(QUERY_DOCUMENT), sides_entry(IMAGE_TEXT)
    ({'sides': 'query/document'}, {})
    """
    return {} if sides.is_image_text else {"sides": sides.text}


def with_article(name: str) -> str:
    """Return the name after `a` or `an`.

    >>> with_article("image"), with_article("user"), with_article("document")
    ('an image', 'a user', 'a document')
    """
    return f"an {name}" if name[0].lower() in "aeio" else f"a {name}"


def plural(name: str) -> str:
    """Return the plural of a side's name.

    >>> [plural(name) for name in ("query", "document", "class", "key", "view 1")]
    ['queries', 'documents', 'classes', 'keys', 'items of view 1']
    """
    if not name[-1:].isalpha():
        return f"items of {name}"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith(("s", "x", "ch", "sh")) else f"{name}s"
