"""Text files: blocks of lines, the progress bar, bounded memory."""

import gzip
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from accelviz import load_graph
from accelviz.datasets.readers import text
from accelviz.datasets.readers.text import blocks
from accelviz.errors import GraphError


@given(st.lists(st.sampled_from(["a", "bb\n", "\r\n", "\r", "\n", "ccc"])), st.integers(1, 9))
def test_blocks_are_whole_lines_with_their_numbers(tmp_path_factory, parts, size):
    content = "".join(parts).encode() + b"x"
    path = tmp_path_factory.mktemp("blocks") / "f"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "BLOCK_BYTES", size)
        parts_read = list(blocks(path))
    assert all(block.endswith(b"\n") and b"\r" not in block for _, block in parts_read)
    assert b"".join(block for _, block in parts_read).splitlines() == content.splitlines()
    line = 1
    for number, block in parts_read:
        assert number == line
        line += block.count(b"\n")


def test_very_long_lines(tmp_path, monkeypatch):
    path = tmp_path / "g.txt"
    monkeypatch.setattr(text, "BLOCK_BYTES", 100)
    monkeypatch.setattr(text, "LONGEST_LINE", 1000)
    path.write_text("0 1\n# " + "x" * 900 + "\n1 0\n3 1\n")
    assert load_graph(path).nnz == 3
    path.write_text("0 1\n" + "7 " * 2000)
    with pytest.raises(GraphError, match=r"g\.txt, line 2: it is longer than 1,000 bytes"):
        load_graph(path)
    path.write_text("0 1\n" + "7 " * 400 + "\0" * 2000)
    with pytest.raises(GraphError, match="line 2: a NUL byte"):
        load_graph(path)


def test_the_progress_bar(tmp_path, monkeypatch, capsys):
    path = tmp_path / "long.txt.gz"
    path.write_bytes(gzip.compress(b"0 1\n" * 5000))

    def shows_bar(**options):
        load_graph(path, **options)
        return "long.txt.gz: 100%" in capsys.readouterr().err

    assert not shows_bar()
    assert shows_bar(progress=True)
    monkeypatch.setattr(text, "BAR_FROM_BYTES", 1)
    assert not shows_bar()  # there is no terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert shows_bar()
    assert not shows_bar(progress=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    # IPython may be imported without a kernel.
    for shell, expected in ((None, False), (SimpleNamespace(kernel=None), True)):
        ipython = SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert shows_bar() is expected


NODES, DEGREE = 100_000, 24


@pytest.fixture(scope="module")
def ring():
    """Return a band matrix whose files have about the size of a block."""
    distances = range(1, DEGREE // 2 + 1)
    offsets = [*distances, *(-distance for distance in distances)]
    ones = np.ones((DEGREE, NODES), np.float32)
    return sparse.diags_array(ones, offsets=offsets, shape=(NODES, NODES)).tocsr()


def write_edges(path, matrix):
    coo = matrix.tocoo()
    np.savetxt(path, np.stack([coo.col, coo.row], axis=1), "%d", "\t", header="Directed")


def write_market(path, matrix):
    with path.open("wb") as file:
        scipy.io.mmwrite(file, matrix, field="pattern", symmetry="symmetric")


@pytest.mark.long
@pytest.mark.parametrize(("name", "write"), [("g.txt", write_edges), ("g.mtx", write_market)])
def test_peak_memory_of_large_files(tmp_path, ring, name, write):
    path = tmp_path / name
    write(path, ring)
    assert path.stat().st_size > 0.8 * text.BLOCK_BYTES
    tracemalloc.start()
    graph = load_graph(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert graph.nnz == ring.nnz
    assert abs(graph.adjacency - ring).nnz == 0
    result = graph.row_pointers.nbytes + graph.column_indices.nbytes + graph.values.nbytes
    assert peak < 6 * result + 6 * text.BLOCK_BYTES
