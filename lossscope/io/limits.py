"""How deep and how large may the content of a file be? Limits that honest files are far below, and their checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lossscope.errors import InputError

MAX_DEPTH = 100  # levels of containers in containers
MAX_TEXT_BYTES = 1 << 28  # of a text file that is read as a whole
MAX_LINE_BYTES = 1 << 26  # of a line of a text file that is read line by line
MAX_ROW_LETTERS = 1 << 24  # of one text of a row of data
FREE_BYTES = 1 << 28  # that a packed file of any size may unpack to
MAX_RATIO = 500  # of the bytes after unpacking to those before it, of a larger one; equal lines in .gz pack 350 times
FREE_BLANKS = 1 << 20  # blank lines that a file of any number of rows may have
MAX_BLANKS = 8  # times its other lines that one of more rows may have
TOO_DEEP = f"it holds a container inside itself, or more than {MAX_DEPTH} levels deep"
_FREE_SIZE = 1 << 20  # values of containers, shared ones counted at each place, that any file may have
_MAX_EXPANSION = 8  # times its own number of values that a larger one may have
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
_CONTAINERS = (dict, list, tuple, set, frozenset)


def require_unpacked(unpacked: int, packed: int, name: str) -> None:
    """Raise InputError when a packed file unpacks to far more than honest data do.

    Args:
        unpacked: bytes so far.
        packed: bytes of the file that they were unpacked from.
        name: of the file, for the message.
    """
    if unpacked > FREE_BYTES + MAX_RATIO * packed:
        raise InputError(
            f"{name} must unpack to at most {MAX_RATIO} times its size; its first {packed} bytes unpack to more than "
            f"{unpacked - 1}. If you trust the file, unpack it first, or write its rows as JSON lines"
        )


def require_few_blanks(blanks: int, lines: int, name: str) -> None:
    """Raise InputError when a text file is little but blank lines.

    Args:
        blanks: blank lines so far.
        lines: other lines so far.
        name: of the file, for the message.
    """
    if blanks > FREE_BLANKS + MAX_BLANKS * lines:
        raise InputError(
            f"{name} must have a row on most lines; {blanks} of its first {blanks + lines} lines are blank. Remove "
            "them: grep -v '^[[:space:]]*$'"
        )


def require_shallow(value: object, where: str) -> None:
    """Raise InputError when lists and dicts are nested more than 100 levels deep.

    Args:
        value: what JSON or TOML gives, where no two containers share a part.
        where: names the file in the message.
    """
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            part
            for owner in level
            if isinstance(owner, dict | list)
            for part in (owner.values() if isinstance(owner, dict) else owner)
            if isinstance(part, dict | list)
        ]
        if not level:
            return
    raise InputError(f"{where} must have at most {MAX_DEPTH} nested levels; it has more. Write it anew")


def require_bounded(value: object) -> None:
    """Raise InputError when containers are nested too deep, in themselves, or share their parts again and again.

    Texts in them must be letters of Unicode: pickles can hold halves of surrogate pairs, which no other file can.

    A value of shared parts is as large as it becomes when each place gets a copy: 60 lists that hold the next one twice
    are 2^60 values. Each container is looked at once.
    """
    measures: dict[int, tuple[int, int]] = {}  # id of a finished container -> its size with copies, and its depth
    distinct = 0
    open_ids = {id(value)}
    path = [_Visit(value)] if _is_container(value) else []
    while path:
        visit = path[-1]
        for part in visit.parts:
            distinct += 1
            if not _is_container(part):
                visit.size += 1
                if isinstance(part, str) and not part.isascii():
                    require_letters(part, "its texts")
            elif id(part) in measures:
                visit.add(*measures[id(part)])
            elif id(part) in open_ids or len(path) >= MAX_DEPTH:
                raise InputError(TOO_DEEP)
            else:
                open_ids.add(id(part))
                path.append(_Visit(part))
                break
        else:
            path.pop()
            _require_small(visit.size, distinct)
            measures[id(visit.owner)] = (visit.size, visit.depth)
            if path:
                path[-1].add(visit.size, visit.depth)


def _require_small(size: int, distinct: int) -> None:
    """Raise InputError when a value is far larger, with a copy at each place, than the values that it is made of."""
    if size > _FREE_SIZE + _MAX_EXPANSION * distinct:
        raise InputError(f"it holds {distinct} values that expand to more than {size - 1}; no data need that")


def require_letters(text: str, where: str) -> None:
    """Raise InputError, naming `where`, for half of a surrogate pair, which no file of text can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        half = ascii(text[problem.start])[1:-1]
        raise InputError(f"{where} must be of letters of Unicode; got {half}, half of a pair") from None


class _Visit:
    """A container whose parts are being counted."""

    __slots__ = ("depth", "owner", "parts", "size")

    def __init__(self, owner: Any) -> None:
        self.owner, self.parts = owner, _parts_of(owner)
        self.size, self.depth = 1, 1

    def add(self, size: int, depth: int) -> None:
        """Count a part. Raises InputError when the container becomes too deep."""
        self.size += size
        self.depth = max(self.depth, depth + 1)
        if self.depth > MAX_DEPTH:
            raise InputError(TOO_DEEP)


def walk_leaves(value: object) -> Iterator[Any]:
    """Yield what is in containers and is none, each container once."""
    waiting, met = [value], set[int]()
    while waiting:
        owner = waiting.pop()
        if not _is_container(owner):
            yield owner
        elif id(owner) not in met:
            met.add(id(owner))
            waiting.extend(part for part in _parts_of(owner) if type(part) not in _PLAIN)


def _is_container(value: object) -> bool:
    return type(value) not in _PLAIN and (
        isinstance(value, _CONTAINERS)
        or isinstance(getattr(value, "attributes", None), dict)  # ConfigStub
        or (getattr(value, "dtype", None) is not None and getattr(value.dtype, "hasobject", False))  # type: ignore[attr-defined]
    )


def _parts_of(owner: Any) -> Iterator[Any]:
    """Return the values in a container: keys and values of a dict, attributes of a stub, objects of an array."""
    if isinstance(owner, dict):
        return (part for pair in dict.items(owner) for part in pair)
    if isinstance(owner, _CONTAINERS):
        return iter(owner)
    if hasattr(owner, "attributes"):
        return (part for pair in dict.items(owner.attributes) for part in pair)
    return iter(owner.ravel().tolist())
