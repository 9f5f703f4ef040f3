"""Graphs from the web: fetched once with pooch, checked by SHA256, kept in a folder."""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from accelviz.datasets.readers.text import progress_bar
from accelviz.errors import ArgumentError, GraphError
from accelviz.files import cache_folder, written_whole

#: Seconds without an answer before a download is given up.
TIMEOUT = 30


@dataclass(frozen=True)
class PublicSet:
    """A graph on the web.

    Parameters
    ----------
    url : str
    sha256 : str
        Of the file, in hexadecimal.
    """

    url: str
    sha256: str


# SNAP's graphs as the SuiteSparse Matrix Collection keeps them. The sums are those recorded in
# Artifacts.toml of the Julia package SuiteSparseMatrixCollection.jl (commit 13e53c34bbdd).
_SNAP = {
    "amazon0505": "7fcc081927e04d5ad8da951a2c70dd7460f99c34e0ec7a2e2fdb9c17957fb520",
    "amazon0601": "12b33ac26cb6a808e2c62cd402fbd699348909cbe892d1ab10c99c7b50e1f382",
    "as-Skitter": "989bf41c98d5985b196a58288fe046107dcd8e64bceb279c279c84fb82d00233",
    "cit-Patents": "804006bf8eddd50e43c98690652e7673ab743f21fedfe05680a55b3c54f51d25",
    "com-Amazon": "a4b3150474339971e29365a556ad56b99685f2310af50a74114a1f720787ed82",
    "com-DBLP": "9205574e7b8403e4f6498ebc8dde8c6a490b3ae175b25f1984a1bfd4c00ef0ff",
    "com-LiveJournal": "0c4ba24bd3c77461e8a7961cecca02e38f90a8be022d0f4ddc6629c3732b676b",
    "com-Orkut": "8b52b87048044eff76b5385b2ea2681674117ffd770695b19518e248629cc725",
    "com-Youtube": "b2543477eb35517d7de7f84b4922e55f886ba15f8275bda3819c5d6f72e770f8",
    "loc-Gowalla": "6ac2d226baa3d061fd20039448a4ed2c78d39eb6b481df1c52bd518a786efbb0",
    "roadNet-CA": "bef16f62a5d6b7cdbf34e869c99ae32a56b3070c0bfe3a8d554435b27dd634f6",
    "roadNet-PA": "e6589710bbb1f9f177d3a461b27e6ba417a1b7050fd96e4b68798f99e65adf2b",
    "roadNet-TX": "b9aa4462ef812cc10b758bb0b8b1d7e11d0afaf869f838410a8662f6f8f5b80a",
    "soc-Epinions1": "ed75c7f919799a8571aab592e2b89d8e54bc734530b4b8c5ab2071386ecd698e",
    "soc-LiveJournal1": "6518202e02a60f4db9828f3f6ce756191436e61c061c44b66e869b7ba28a647b",
    "soc-Pokec": "3819af42461fd6816c2b84be120cbb509424996a987ba06ce9a318746667c2f9",
    "web-BerkStan": "caec6a835861065c108efd4086f15720a3866b6a067c5ba4e64e04cd76fb54eb",
    "web-Google": "15fa6d28895f030f03c2da0b8c25ab19fd207614e397706d00003264abe37337",
    "web-NotreDame": "8400c4a862da5e792e5485a0144e59349f506bd1e3e43b2eb8ab22f236e123b1",
    "web-Stanford": "82558eb3a63146f7c2625e7858ad3bc860e112e77bbad728cd104e7e9bd06815",
    "wiki-Talk": "ae0ecd9a048e809280252466c4f0bfb66ed9bf7ef74f0bc919daea0906819bed",
}

#: Public sets that `download` knows by name.
PUBLIC = {
    name.lower(): PublicSet(f"https://sparse.tamu.edu/MM/SNAP/{name}.tar.gz", sha256)
    for name, sha256 in _SNAP.items()
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
        again, once. With none given, the sum of the first download is kept beside the file, in
        `NAME.sha256`, and counts from then on (trust on first use). `PUBLIC` has its own.
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
        If the address or the name is none; without a network, or whatever else the download fails
        of; or if the file is not the one that the sum was made of.
    ArgumentError
        If `sha256` is no such sum.
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
    try:
        _fetch(url, target, sha256, progress)
    except (OSError, ValueError) as error:  # what requests and pooch raise, without exception
        raise GraphError(
            url,
            _explained(error),
            "a download that works; or the file by other means: pass its path to load_graph or put "
            f"it at {target}",
        ) from error
    if sha256 is None:
        import pooch

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
        raise GraphError(
            "url", f"got {url!r}", f"http://..., https://... or one of {', '.join(PUBLIC)}"
        )
    name = unquote(parts.path.rpartition("/")[2]) if name is None else name
    if not re.fullmatch(r"[^/\\\0]+", name) or name in (".", ".."):
        raise GraphError("name", f"got {name!r} for {url}", "the name of a file, without a folder")
    # Files of one name from different places must not meet.
    folder = f"{re.sub('[^a-z0-9.-]', '_', host)}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    return cache_folder() / "downloads" / folder / name


def _fetch(url: str, target: Path, sha256: str | None, progress: bool | None) -> None:
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    # It would tell users to pass a `known_hash` to a function that they did not call.
    logger.setLevel(logging.WARNING)
    try:
        with progress_bar(target.name, 1, progress) as bar:
            pooch.retrieve(
                url,
                None if sha256 is None else f"sha256:{sha256}",
                fname=target.name,
                path=target.parent,
                downloader=pooch.HTTPDownloader(
                    progressbar=False if bar.disable else bar, chunk_size=2**18, timeout=TIMEOUT
                ),
            )
    finally:
        logger.setLevel(level)


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
