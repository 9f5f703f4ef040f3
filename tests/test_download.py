"""Downloads from a local server."""

import gzip
import hashlib
import http.server
import logging
import socket
import threading
from pathlib import Path

import pooch
import pytest

from accelviz import load_graph
from accelviz.datasets import download as module
from accelviz.datasets.download import PUBLIC, PublicSet, download
from accelviz.errors import ArgumentError, GraphError

CONTENT = gzip.compress(b"# Undirected graph: x\n# FromNodeId\tToNodeId\n0\t1\n2\t1\n", mtime=0)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """A server of `files` that counts `requests`, and may disconnect early or be slow."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"/data/net.txt.gz": CONTENT, "/other/net.txt.gz": b"other"}
        self.requests = 0
        self.missing_bytes = 0
        self.pause = threading.Event()
        self.slow = False
        self.url = f"http://127.0.0.1:{self.server_port}/data/net.txt.gz"

    def handle_error(self, request, client_address):
        pass  # the client hung up, as it should


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        if self.server.slow:
            self.server.pause.wait(10)
        content = self.server.files.get(self.path.partition("?")[0])
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) - self.server.missing_bytes])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.pause.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_file_is_fetched_once_and_opens(server, tmp_path):
    path = download(server.url, sha256=SHA256)
    assert path.name == "net.txt.gz"
    assert path.is_relative_to(tmp_path / "cache" / "downloads")
    assert path.read_bytes() == CONTENT
    assert download(server.url, sha256=SHA256.upper()) == path
    assert server.requests == 1
    graph = load_graph(path)
    assert (graph.name, graph.nnz) == ("net", 4)


def test_without_a_sum_the_first_download_is_trusted(server):
    path = download(server.url)
    record = Path(f"{path}.sha256")
    assert record.read_text() == f"{SHA256}  net.txt.gz\n"
    assert download(server.url) == path
    assert server.requests == 1
    path.write_bytes(b"damaged here")
    assert download(server.url).read_bytes() == CONTENT  # fetched anew
    assert server.requests == 2
    path.write_bytes(b"damaged here")
    server.files["/data/net.txt.gz"] = b"another one"
    with pytest.raises(GraphError, match=f"(?s)expected .*{SHA256}.* but got"):
        download(server.url)
    record.write_text("")
    with pytest.raises(GraphError, match="does not match the known hash"):
        download(server.url)
    record.unlink()
    path.unlink()
    assert download(server.url).read_bytes() == b"another one"


def test_a_file_put_there_by_hand_is_taken(server):
    server.files.clear()
    with pytest.raises(GraphError, match="404 Not Found.*put it at") as caught:
        download(server.url, sha256=SHA256)
    path = Path(str(caught.value).partition("put it at ")[2].removesuffix("."))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(CONTENT)
    assert download(server.url, sha256=SHA256) == path
    assert server.requests == 1


def test_files_of_one_name_do_not_meet(server):
    first = download(server.url)
    assert download(server.url.replace("/data/", "/other/")) != first
    assert download(server.url + "?version=2") != first
    named = download(server.url, name="better.tsv.gz")
    assert named.name == "better.tsv.gz"
    assert server.requests == 4


def test_what_goes_wrong_is_explained(server, monkeypatch):
    def fails(message, url=server.url, **options):
        with pytest.raises(GraphError, match=message) as caught:
            download(url, **options)
        assert caught.value.argument == url
        assert "pass its path to load_graph or put it at" in str(caught.value)
        folder = module.cache_folder() / "downloads"
        assert not [path for path in folder.rglob("*") if path.is_file()]

    fails("(?s)hash.*expected sha256:" + "0" * 64, sha256="0" * 64)
    fails("the server answers 404 Not Found", url=server.url + ".none")
    server.missing_bytes = 5
    fails("the connection broke off")
    fails("the connection broke off", sha256=SHA256)
    monkeypatch.setattr(module, "TIMEOUT", 0.1)
    server.slow = True
    fails("no answer within 0.1 seconds")
    closed = Server()
    closed.server_close()
    fails("no connection: .*refused", url=closed.url)

    def unknown(*args, **kwargs):
        raise socket.gaierror("Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", unknown)
    fails("no connection: .*not known", url="http://no-such-host.invalid/g.txt")


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("com-youtub", {}, "url: got 'com-youtub'.*com-youtube"),
        ("ftp://127.0.0.1/g.txt", {}, "url: got 'ftp"),
        ("file:///etc/passwd", {}, "url: got"),
        ("http://[/g.txt", {}, "url: got"),
        ("http://127.0.0.1", {}, "name: got ''"),
        ("http://127.0.0.1/data/", {}, "name: got ''"),
        ("http://127.0.0.1/a%2F..%2Fb", {}, "name: got 'a/../b'"),
        ("http://127.0.0.1/..", {}, r"name: got '\.\.'"),
        ("http://127.0.0.1/g.txt", {"name": "../g.txt"}, "name: got '../g.txt'"),
        ("http://127.0.0.1/g.txt", {"name": ""}, "name: got ''"),
    ],
)
def test_what_is_no_address_or_name(url, options, message):
    with pytest.raises(GraphError, match=message):
        download(url, **options)


def test_what_is_no_sum(server):
    with pytest.raises(ArgumentError, match="sha256: got 'abc'.*64 hexadecimal digits"):
        download(server.url, sha256="abc")
    assert server.requests == 0


def test_public_sets_are_known_by_name(server, monkeypatch):
    monkeypatch.setitem(PUBLIC, "test-net", PublicSet(server.url, SHA256))
    assert download("Test-Net").read_bytes() == CONTENT
    monkeypatch.setitem(PUBLIC, "test-net", PublicSet(server.url, "0" * 64))
    with pytest.raises(GraphError, match="does not match"):
        download("test-net")
    assert download("test-net", sha256=SHA256).read_bytes() == CONTENT


def test_public_sets_have_plausible_sums():
    assert len({known.sha256 for known in PUBLIC.values()}) == len(PUBLIC) > 10
    for name, known in PUBLIC.items():
        assert name == name.lower()
        assert len(bytes.fromhex(known.sha256)) == 32
        assert known.url.startswith("https://")
        assert known.url.lower().endswith(f"/{name}.tar.gz")


def test_the_progress_bar_and_nothing_else(server, capsys):
    level = pooch.get_logger().level
    download(server.url)
    assert capsys.readouterr() == ("", "")
    download(server.url, name="again.txt.gz", progress=True)
    assert "again.txt.gz: 100%" in capsys.readouterr().err
    assert pooch.get_logger().level == level != logging.WARNING


def test_load_graph_takes_addresses_and_names_of_public_sets(server, monkeypatch):
    graph = load_graph(server.url)
    assert (graph.name, graph.source, graph.nnz) == ("net", server.url, 4)
    assert load_graph(server.url, symmetric=False).nnz == 2
    monkeypatch.setitem(PUBLIC, "com-mine", PublicSet(server.url, SHA256))
    graph = load_graph("COM-Mine")
    assert (graph.name, graph.kind, graph.source) == ("com-mine", "real", server.url)
    monkeypatch.setitem(PUBLIC, "com-mine", PublicSet(server.url + ".none", SHA256))
    with pytest.raises(GraphError, match="404 Not Found"):
        load_graph("com-mine")
