"""Graphs from the web: fetched once with pooch, checked by SHA256, kept in a folder."""

from __future__ import annotations

import hashlib
import logging
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from accelviz.datasets.readers.text import progress_bar
from accelviz.errors import ArgumentError, GraphError
from accelviz.files import cache_folder, written_whole

#: Seconds without an answer before a download is given up.
TIMEOUT = 30


class PublicSet(NamedTuple):
    """A graph on the web: the address of its file, and the SHA-256 of that, in hexadecimal."""

    url: str
    sha256: str


# SNAP's graphs as the SuiteSparse Matrix Collection keeps them. The sums in snap.sha256 are those
# recorded in Artifacts.toml of the Julia package SuiteSparseMatrixCollection.jl (13e53c34bbdd).
_SNAP = Path(__file__).with_name("snap.sha256").read_text("utf-8").split()

#: Public sets that `download` knows by name.
PUBLIC = {
    name.removesuffix(".tar.gz").lower(): PublicSet(f"https://sparse.tamu.edu/MM/SNAP/{name}", sum_)
    for sum_, name in zip(_SNAP[::2], _SNAP[1::2], strict=True)
}


def download(
    url: str,
    *,
    sha256: str | None = None,
    name: str | None = None,
    progress: bool | None = None,
) -> Path:
    """Return the path of a file from the web, fetching it if it is not there yet.

    Parameters
    ----------
    url : str
        An address that starts with `http://` or `https://`, or a name in `PUBLIC`, in any case.
    sha256 : str, optional
        The file's sum in hexadecimal. It is checked at every use; a file that differs is fetched
        again, once. If it is not given, the sum of the first download is kept beside the file, in
        `NAME.sha256`, and counts from then on (trust on first use). `PUBLIC` has its own sums.
    name : str, optional
        Name of the file, whose ending says what reads it; by default the last part of `url`.
    progress : bool, optional
        Show a progress bar: always, never, or (None) in a terminal or notebook only.

    Returns
    -------
    Path
        In `cache_folder()`, to pass on to `load_graph`.

    Raises
    ------
    GraphError
        If the address or the name is not valid, if the download fails, or if the file does not
        have the expected sum.
    ArgumentError
        If `sha256` is not 64 hexadecimal digits.
    """
    public = PUBLIC.get(url.lower())
    if public is not None:
        url, sha256 = public.url, sha256 or public.sha256
    target = _target(url, name)
    if sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise ArgumentError("sha256", f"got {sha256!r}", "64 hexadecimal digits")
    record = target.with_name(target.name + ".sha256")
    if sha256 is None and record.is_file():
        sha256 = record.read_text("utf-8").partition(" ")[0]
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    # It would tell users to pass a `known_hash` to a function that they did not call.
    logger.setLevel(logging.WARNING)
    try:
        with progress_bar(target.name, 1, progress) as bar:
            progressbar = False if bar.disable else bar
            pooch.retrieve(
                url,
                None if sha256 is None else f"sha256:{sha256}",
                fname=target.name,
                path=target.parent,
                downloader=pooch.HTTPDownloader(progressbar, chunk_size=2**18, timeout=TIMEOUT),
            )
    except (OSError, ValueError) as error:  # what requests and pooch raise, without exception
        expected = "a download that works; or fetch the file by other means, then pass its path to "
        expected += f"load_graph or put it at {target}"
        raise GraphError(url, _explained(error), expected) from error
    finally:
        logger.setLevel(level)
    if sha256 is None:
        with written_whole(record) as path:
            path.write_text(f"{pooch.file_hash(target)}  {target.name}\n", "utf-8")
    return target


def _target(url: str, name: str | None) -> Path:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https"):
        expected = f"http://..., https://... or one of {', '.join(PUBLIC)}"
        raise GraphError("url", f"got {url!r}", expected)
    name = unquote(parts.path.rpartition("/")[2]) if name is None else name
    if not re.fullmatch(r"[^/\\\0]+", name) or name in (".", ".."):
        raise GraphError("name", f"got {name!r} for {url}", "the name of a file, without a folder")
    # Files of one name from different places must not meet.
    folder = f"{re.sub('[^a-z0-9.-]', '_', host)}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    return cache_folder() / "downloads" / folder / name


def _explained(error: Exception) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        response.close()  # pooch leaves it open
        return f"the server answers {response.status_code} {response.reason}"
    kind = type(error).__name__
    if "Timeout" in kind:
        return f"no answer within {TIMEOUT} seconds"
    if kind in ("ConnectionError", "SSLError", "ProxyError"):
        # The reason is wrapped in the story of all attempts.
        reason = str(getattr(error.args[0], "reason", error) if error.args else error)
        return f"no connection: {reason.partition('): ')[2] or reason}"
    if kind == "ChunkedEncodingError":
        return f"the connection broke off: {error}"
    return str(error)
