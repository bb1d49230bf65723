"""Where a file is read from: a local path, or a URL of any kind that fsspec opens (s3://, gs://, hf://, https://)."""

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from lossscope.errors import InputError

from .files import require_file
from .limits import require_unpacked
from .reading import reading, show_path
from .url_files import list_url, name_of_url, open_url, size_of_archive, size_of_url, url_exists

_URL = re.compile(r"(?!file://|local://)[a-zA-Z][\w+.-]+(://|::)")
_LOCAL = re.compile(r"^(file|local)://")
_PATTERN = re.compile(r"[*?\[]")  # of names
_BLOCK = 1 << 18  # bytes


def is_url(location: str) -> bool:
    """Return whether a location is a URL, and no local path; `file://` is one of a path.

    >>> is_url("s3://bucket/train.jsonl"), is_url("data/train.jsonl")
    (True, False)
    """
    return _URL.match(location) is not None


def suffix_of(location: str) -> str:
    """Return the last suffix of a location in small letters, without `.gz` and without what follows `?` in a URL.

    >>> suffix_of("train.JSONL.gz"), suffix_of("https://host/train.csv?download=true")
    ('.jsonl', '.csv')
    >>> suffix_of("zip://train.jsonl::file:///data.zip"), suffix_of("simplecache::s3://bucket/train.csv.gz")
    ('.jsonl', '.csv')
    """
    return Path(_name_of(location).removesuffix(".gz")).suffix


def url_of(path: Path | str) -> str | None:
    """Return the URL that a path was made of, which lost a slash on the way; None of any other path.

    >>> url_of(Path("s3://bucket/dump")), url_of(Path("data/dump"))
    ('s3://bucket/dump', None)
    >>> url_of(Path("simplecache::s3://bucket/dump")), url_of(Path("simplecache::file:///data/dump"))
    ('simplecache::s3://bucket/dump', 'simplecache::file:///data/dump')
    """
    text = str(path)
    if is_url(text):
        return _with_slashes(text)
    match = re.match(r"(?!file:|local:)([a-zA-Z][\w+.-]+):/(?!/)", text)
    return None if match is None or os.path.exists(text) else _with_slashes(text)


def _with_slashes(url: str) -> str:
    """Return a URL, perhaps a chain of several, with the slashes that a path has lost behind each protocol."""
    links = (re.sub(r"^(file|local):/+", r"\1:///", link) for link in url.split("::"))
    return "::".join(re.sub(r"^([a-zA-Z][\w+.-]+):/(?!/)", r"\1://", link) for link in links)


def local_path(path: Path | str) -> Path:
    """Return the path that a `file://` URL names, which may have lost a slash on the way; any other path as it is.

    >>> local_path(Path("file:///data/dump")).as_posix(), local_path("data/dump").as_posix()
    ('/data/dump', 'data/dump')
    """
    return Path(re.sub(r"^(file|local):/+", "/", str(path)))


@contextlib.contextmanager
def open_location(location: str) -> Iterator[IO[bytes]]:
    """Open a file to read its bytes, those of a `.gz` file unpacked, as are those of a file in an archive.

    Raises InputError when it is missing, no ordinary file, or of a URL whose package is not installed; the reader does
    when it unpacks to more than honest data do.
    """
    with contextlib.ExitStack() as stack:
        with reading(location, "a readable file", "Check the path"):
            opened = open_url(location) if is_url(location) else require_file(path_of(location)).open("rb")
            file = stack.enter_context(opened)
            if _name_of(location).endswith(".gz"):
                packed, archive = file, size_of_archive(location) if is_url(location) else 0
                unpacked = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=packed)))
                bounded = _Unpacked(unpacked, lambda: archive or packed.tell(), show_path(location))
                file = stack.enter_context(io.BufferedReader(bounded))
        yield file


class _Unpacked(io.RawIOBase):
    """The bytes of a packed file, which end in an InputError where they are far more than were packed.

    Args:
        file: yields the bytes after unpacking.
        packed: the bytes that they were unpacked from, so far.
        name: of the file, for the message.
    """

    def __init__(self, file: IO[bytes], packed: Callable[[], int], name: str) -> None:
        self._file, self._packed, self._name = file, packed, name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            while self.read(_BLOCK):  # up to the end, within the limit
                pass
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        require_unpacked(self._file.tell(), self._packed(), self._name)
        return len(content)


def join_location(folder: str, *names: str) -> str:
    """Return the location of a file below a folder."""
    return "/".join([folder.rstrip("/") or "/", *names]) if is_url(folder) else str(path_of(folder).joinpath(*names))


def location_exists(location: str) -> bool:
    """Return whether there is a file or a folder of that name. Raises InputError for a URL that cannot be read."""
    if not is_url(location):
        return os.path.exists(path_of(location))  # false for a name that no file can have
    return url_exists(location)


def list_files(location: str) -> list[str]:
    """Return the files that a location names, in the order of their names: a pattern, a folder, or one file.

    Raises InputError for a pattern or a folder without files.
    """
    path = path_of(location)
    if is_url(location):
        files, what = list_url(location)
    elif os.path.isdir(path):
        files, what = [str(file) for file in path.iterdir() if file.is_file()], "folder"
    elif _PATTERN.search(location) and not os.path.exists(path):
        files, what = glob.glob(str(path), recursive=True), "pattern"
    else:
        return [location]
    if not files:
        raise InputError(f"{show_path(location)} must name files; there are none of that {what}: check the path")
    return sorted(files)


def size_of(location: str) -> int:
    """Return the bytes of a file, packed as it is; 0 where a URL does not say."""
    if not is_url(location):
        return require_file(path_of(location)).stat().st_size
    return size_of_url(location)


def _name_of(location: str) -> str:
    """Return the path of a location in small letters."""
    return (name_of_url(location) if is_url(location) else location).lower()


def path_of(location: str) -> Path:
    """Return the path of a location that is no URL."""
    return Path(_LOCAL.sub("", location)).expanduser()
