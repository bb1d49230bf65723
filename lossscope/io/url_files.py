"""Files behind URLs, by way of fsspec; where the package of a protocol is missing, one message names it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import IO, Any

from lossscope.errors import InputError

from .limits import require_unpacked
from .reading import reading, shorten_message, show_path

_PATTERN = re.compile(r"[*?\[]")  # of names
_ARCHIVES = ("tar", "zip")
PROTOCOLS = frozenset(
    (
        *_ARCHIVES, "abfs", "adl", "arrow_hdfs", "az", "blockcache", "box", "cached", "dbfs", "dropbox", "file",
        "filecache", "ftp", "gcs", "gdrive", "gist", "github", "gs", "hdfs", "hf", "http", "https", "lakefs", "local",
        "memory", "oci", "ocilake", "oss", "root", "s3", "s3a", "sftp", "simplecache", "smb", "ssh", "tos", "tosfs",
        "wandb", "webdav", "webhdfs",
    )
)  # fmt: skip
"""Protocols of fsspec that read files from a store, an archive or a copy. Others run templates or code (reference,
dask, jupyter), run git, or read a file as another protocol does."""
_VERSIONS = ("VersionId", "generation", "ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created")


def url_exists(location: str) -> bool:
    """Return whether there is a file or a folder. Raises InputError for a URL that cannot be read."""
    system, path = _system_of(location)
    with reading(location, "a readable URL", "Check it"):
        return bool(system.exists(path))


def size_of_url(location: str) -> int:
    """Return the bytes of a file; 0 where its server does not say. Raises InputError for one that cannot be read."""
    system, path = _system_of(location)
    with reading(location, "a readable URL", "Check it"):
        return int(system.info(path).get("size") or 0)


def version_of_url(location: str) -> str:
    """Return what changes when the file does, as far as its store says it: version, digest or time; and its size."""
    system, path = _system_of(location)
    with reading(location, "a readable URL", "Check it"):
        about = system.info(path)
    values = (about.get(name) for name in _VERSIONS)
    return f"{next((value for value in values if value), '')} {about.get('size')}"


def read_ranges(location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return ranges of bytes of a file. Raises InputError where one is shorter than asked, or cannot be read."""
    system, path = _system_of(location)
    with reading(location, "a readable URL", "Check it, and run the command again"):
        starts, stops = ([pair[end] for pair in ranges] for end in (0, 1))
        parts = system.cat_ranges([path] * len(ranges), starts, stops, on_error="raise")
    for part, (start, stop) in zip(parts, ranges, strict=True):
        if len(part) != stop - start:
            raise InputError(
                f"{show_path(location)} must hold bytes {start} to {stop}; got {len(part)} of {stop - start}. It "
                "became shorter or changed meanwhile"
            )
    return [bytes(part) for part in parts]


def list_url(location: str) -> tuple[list[str], str]:
    """Return the files that a URL names, and what it is; web servers have no folders, and one file each URL."""
    if location.lower().startswith("http"):
        return [location], "file"
    system, path = _system_of(location)
    with reading(location, "a readable URL", "Check it"):
        if _PATTERN.search(path):
            files, what = [str(file) for file in system.glob(path)], "pattern"
        elif system.isdir(path):
            files, what = [entry["name"] for entry in system.ls(path, detail=True) if entry["type"] == "file"], "folder"
        else:
            return [location], "file"
    links, number = location.split("::"), _link_of_name(location)
    if len(links) == 1:
        return [str(system.unstrip_protocol(file)) for file in files], what
    protocol = links[number].partition("://")[0]
    return ["::".join([*links[:number], f"{protocol}://{file}", *links[number + 1 :]]) for file in files], what


def name_of_url(location: str) -> str:
    """Return the path in a URL, without what follows `?`; of a chain, the path of the file that it opens.

    >>> name_of_url("https://host/a.csv?download=true"), name_of_url("zip://b.csv::simplecache::s3://bucket/a.zip")
    ('a.csv', 'b.csv')
    """
    link = location.split("::")[_link_of_name(location)]
    path = re.split("[?#]", _path_of(link))[0]
    return path.partition("/")[2] if link.lower().startswith("http") else path


def size_of_archive(location: str) -> int:
    """Return the bytes of the archive that a URL leads into; 0 where it leads into none, or its server does not say."""
    links = location.split("::")
    return size_of_url(links[-1]) if any(_protocol_of(link) in _ARCHIVES for link in links[:-1]) else 0


def _require_bounded(location: str) -> None:
    """Raise InputError where a file in an archive states that it unpacks to far more than honest data do."""
    if archive := size_of_archive(location):
        with contextlib.suppress(FileNotFoundError):
            require_unpacked(size_of_url(location), archive, show_path(location))


def _link_of_name(location: str) -> int:
    """Return which link of a chain has the path of the file: the first one with a path."""
    links = location.split("::")
    return next((number for number, link in enumerate(links) if _path_of(link)), 0)


def _path_of(link: str) -> str:
    """Return a link of a chain without its protocol, which may stand alone."""
    return re.sub(r"^([\w+.-]+://|[a-z]+$)", "", link)


def _protocol_of(link: str) -> str:
    """Return the protocol of a link of a chain in small letters; nothing of a path."""
    match = re.match(r"[\w+.-]+(?=:|$)", link.lower())
    return match.group() if match else ""


def _require_known(location: str) -> None:
    """Raise InputError for protocols of fsspec that do more than read files, and for a packed tar."""
    from fsspec.registry import known_implementations
    from fsspec.utils import infer_compression

    links = location.split("::")
    for number, protocol in enumerate(map(_protocol_of, links)):
        if protocol in known_implementations and protocol not in PROTOCOLS:
            raise InputError(
                f"{show_path(location)} must be a URL of files, such as s3://, gs://, hf:// or https://; {protocol} "
                "can run code or read elsewhere: copy the file and name the copy"
            )
        archive = next(filter(None, map(_path_of, links[number + 1 :])), "")
        if protocol == "tar" and infer_compression(archive) is not None:
            raise InputError(
                f"{show_path(location)} must lead into a tar that is not packed, as fsspec unpacks all of it before it "
                "reads a file: unpack it with gunzip, bunzip2 or unxz"
            )


@contextlib.contextmanager
def open_url(location: str) -> Iterator[IO[bytes]]:
    """Open a file to read its bytes. Raises InputError when it is missing, for a missing package, and for a bomb."""
    system, path = _system_of(location)
    _require_bounded(location)
    try:
        file = system.open(path, "rb")
    except FileNotFoundError:
        raise InputError(f"{show_path(location)} must exist; there is no such file") from None
    with file:
        yield file


def _system_of(location: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it. Raises InputError when its package is not installed."""
    import fsspec

    _require_known(location)
    links = location.split("::")
    archive = next((number for number, link in enumerate(links) if _protocol_of(link) in _ARCHIVES), len(links))
    _require_bounded("::".join(links[archive + 1 :]))  # an archive in an archive is unpacked as soon as it is opened
    try:
        system, path = fsspec.core.url_to_fs(location)
    except ImportError as error:
        raise InputError(_missing_package(location, error)) from error
    except Exception as error:  # an unknown protocol, or credentials that are not there
        got = shorten_message(error).rstrip(".")
        raise InputError(f"{show_path(location)} must be a URL that fsspec opens; got {got}") from error
    return system, str(path)


def _missing_package(location: str, error: ImportError) -> str:
    """Say which package a URL needs."""
    from fsspec.registry import known_implementations

    protocol = re.split("://|::", location)[0].lower()
    package = str(known_implementations.get(protocol, {}).get("class", "")).partition(".")[0]
    cause = error.__cause__
    if package in ("", "fsspec"):
        package = (cause.name if isinstance(cause, ImportError) else error.name) or "it names"
    return (
        f"{show_path(location)} must be a URL whose package is installed; {protocol}:// needs {package}, which is not: "
        f"pip install {package}"
    )
