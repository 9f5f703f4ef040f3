"""Download of graphs from the web, with pooch: verified by SHA-256 and cached in a folder."""

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

#: Seconds without a response after which a download fails.
TIMEOUT = 30


class PublicSet(NamedTuple):
    """A graph on the web: the URL of its file, and its SHA-256 in hexadecimal."""

    url: str
    sha256: str


# SNAP's graphs in the SuiteSparse Matrix Collection. The checksums in snap.sha256 are from
# Artifacts.toml of the Julia package SuiteSparseMatrixCollection.jl (13e53c34bbdd).
_SNAP = Path(__file__).with_name("snap.sha256").read_text("utf-8").split()

#: Public data sets, by name.
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
    """Return the path of a file from the web, downloaded at the first call.

    Parameters
    ----------
    url : str
        A URL that starts with `http://` or `https://`, or a name in `PUBLIC`, in any case.
    sha256 : str, optional
        Checksum of the file in hexadecimal. It is verified at every call, and a file that differs
        is downloaded again, once. By default the checksum in `PUBLIC` or else that of the first
        download, which is stored in `NAME.sha256` beside the file (trust on first use).
    name : str, optional
        Name of the file, whose ending selects the reader; by default the last part of `url`.
    progress : bool, optional
        Whether to show a progress bar; None shows it only in a terminal or notebook.

    Returns
    -------
    Path
        A file in `cache_folder()`, for `load_graph`.

    Raises
    ------
    GraphError
        If the URL or the name is invalid, the download fails, or the checksum differs.
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
    # At level INFO pooch advises to pass `known_hash` to a function that the user did not call.
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
    except (OSError, ValueError) as error:  # all exceptions of requests and pooch
        expected = "a download that works; or fetch the file by other means, then pass its path to "
        expected += f"load_graph or put it at {target}"
        raise GraphError(url, _problem(error), expected) from error
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
    # A folder per URL, so that files of one name from different URLs do not collide.
    folder = f"{re.sub('[^a-z0-9.-]', '_', host)}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    return cache_folder() / "downloads" / folder / name


def _problem(error: Exception) -> str:
    """Return the message for an exception of requests or pooch."""
    response = getattr(error, "response", None)
    if response is not None:
        response.close()  # pooch leaves it open
        return f"the server answers {response.status_code} {response.reason}"
    kind = type(error).__name__
    if "Timeout" in kind:
        return f"no answer within {TIMEOUT} seconds"
    if kind in ("ConnectionError", "SSLError", "ProxyError"):
        # The exception has a nested reason after a report of all attempts.
        reason = str(getattr(error.args[0], "reason", error) if error.args else error)
        return f"no connection: {reason.partition('): ')[2] or reason}"
    if kind == "ChunkedEncodingError":
        return f"the connection broke off: {error}"
    return str(error)
