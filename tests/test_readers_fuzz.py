"""Every reader opens a damaged file or raises a GraphError.

There must be no other exception, no warning (pytest converts them to errors), and no memory out of
proportion to the file's size. `ACCELVIZ_FUZZ=20000 pytest tests/test_readers_fuzz.py` tries 20,000
files per reader.
"""

import bz2
import functools
import gzip
import io
import os
import re
import resource
import tarfile

import numpy as np
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from accelviz.datasets.readers import READERS, read_file, text
from accelviz.errors import GraphError

CASES = int(os.environ.get("ACCELVIZ_FUZZ", "60"))
A = sparse.csr_array(np.array([[0, 2, 0, 1], [2, 0, 3, 0], [0, 3, 0, 0], [1, 0, 0, 0]], np.float32))
PACKERS = {".gz": functools.partial(gzip.compress, mtime=0), ".bz2": bz2.compress}


def saved(save, *args, **kwargs):
    stream = io.BytesIO()
    save(stream, *args, **kwargs)
    return stream.getvalue()


def tarred(name, content):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


EDGES = [
    b"# Undirected graph: x\n# Nodes: 4 Edges: 3\n# FromNodeId\tToNodeId\n0\t1\n1\t2\n3\t1\n",
    b"src,dst,weight\n1,2,0.5\n2,3,-1e2\n4,4,7\n",
    b"5 6\n6 7\n\n% c\n7 5\n",
]
MARKET = [
    saved(scipy.io.mmwrite, A, comment="a\nb"),
    saved(scipy.io.mmwrite, A, field="pattern", symmetry="symmetric"),
    saved(scipy.io.mmwrite, A.astype(int), field="integer"),
]
EDGE_INDEX = np.array([[0, 1, 2], [1, 2, 0]])
ARCHIVES = [
    saved(sparse.save_npz, A.asformat(kind)) for kind in ("csr", "csc", "coo", "bsr", "dia")
]
ARCHIVES += [
    saved(np.savez, edge_index=EDGE_INDEX, num_nodes=4),
    saved(np.savez_compressed, src_li=EDGE_INDEX[0], dst_li=EDGE_INDEX[1], num_nodes=4),
]

#: Valid files by ending, without the ending of the packer. A new reader must have an entry.
SEEDS = {
    **dict.fromkeys([".txt", ".csv", ".tsv", ".edges", ".edgelist"], EDGES),
    ".mtx": MARKET,
    ".tar": [tarred("g/g.mtx", content) for content in MARKET],
    ".npz": ARCHIVES,
}
TOKENS = [b"-1", b"0", b"1", b"2", b"+3", b"007", b"1.5", b"1e3", b"nan", b"inf", b"1e400", b"0x1"]
TOKENS += [b"1000000", b"2147483646", b"2147483647", b"2147483648", b"99999999999", b"9" * 500]
TOKENS += [b"9223372036854775807", b"18446744073709551616", b"", b" ", b"\t", b",", b";", b"|"]
TOKENS += [b"\n", b"\r", b"\r\n", b"#", b"%", b"//", b'"', b"\0", b"\xff", b"\xef\xbb\xbf", b"x,y"]
TOKENS += ["\u0663".encode(), b"x" * 70_000, b"1 2 " * 20_000, b"symmetric", b"complex", b"array"]

position = st.floats(0, 1, exclude_max=True)
mutations = st.lists(
    st.one_of(
        st.tuples(st.just("byte"), position, st.integers(0, 255)),
        st.tuples(st.just("delete"), position, st.integers(1, 20)),
        st.tuples(st.just("insert"), position, st.sampled_from(TOKENS)),
        st.tuples(st.just("replace"), position, st.sampled_from(TOKENS)),
        st.tuples(st.just("truncate"), position, st.none()),
        st.tuples(st.just("repeat"), position, st.integers(2, 50)),
        st.tuples(st.just("join"), position, st.sampled_from([*EDGES, *MARKET, b"\x1f\x8b"])),
    ),
    max_size=4,
)


def mutated(content, changes):
    for kind, share, argument in changes:
        i = int(share * (len(content) + 1))
        if kind == "byte":
            content = content[:i] + bytes([argument]) + content[i + 1 :]
        elif kind == "delete":
            content = content[:i] + content[i + argument :]
        elif kind == "insert":
            content = content[:i] + argument + content[i:]
        elif kind == "replace":
            words = list(re.finditer(rb"[^\s,;|]+", content))
            if words:
                word = words[int(share * len(words))]
                content = content[: word.start()] + argument + content[word.end() :]
        elif kind == "truncate":
            content = content[:i]
        elif kind == "repeat":
            content = content[:i] + content[i : i + 30] * argument + content[i + 30 :]
        elif kind == "join":
            content += argument
    return content[:500_000]


def check(folder, ending, content):
    path = folder / f"g{ending}"
    path.write_bytes(content)
    problem = ""
    try:
        graph = read_file(path)
        assert graph.nnz <= 300_000
        assert graph.n_rows <= 25_000_000
    except GraphError as error:
        problem = str(error)
    assert not problem or path.stem.split(".")[0] in problem
    assert "fit in memory" not in problem
    assert len(problem) < 1500


@pytest.fixture(scope="module", autouse=True)
def _no_huge_allocation():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    unit = 1 if os.uname().sysname == "Darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 700e6


#: Endings of each reader, which share its test cases.
ENDINGS = {}
for ending, function in READERS.items():
    ENDINGS.setdefault(function, []).append(ending)


@pytest.mark.parametrize("endings", ENDINGS.values(), ids=[f.__name__ for f in ENDINGS])
@settings(max_examples=CASES, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_files(tmp_path_factory, endings, data):
    ending = data.draw(st.sampled_from(endings))
    packed = next((packed for packed in PACKERS if ending.endswith(packed)), "")
    content = data.draw(st.sampled_from(SEEDS[ending.removesuffix(packed)]))
    content = mutated(content, data.draw(mutations))
    if packed:
        content = PACKERS[packed](content)
        if data.draw(st.booleans()):
            content = mutated(content, data.draw(mutations))
    folder = tmp_path_factory.getbasetemp() / "fuzz"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        size = data.draw(st.sampled_from([2, 7, 64, 2**24]))
        patch.setattr(text, "BLOCK_BYTES", max(size, len(content) // 1000))
        check(folder, ending, content)


def test_the_seeds_are_valid(tmp_path):
    for ending in READERS:
        packed = next((packed for packed in PACKERS if ending.endswith(packed)), "")
        for content in SEEDS[ending.removesuffix(packed)]:
            path = tmp_path / f"g{ending}"
            path.write_bytes(PACKERS[packed](content) if packed else content)
            assert read_file(path).nnz >= 3


NAMES = ["indptr", "indices", "data", "shape", "format", "edge_index", "num_nodes", "src_li"]
NAMES += ["dst_li", "row", "col", "offsets", "blocksize", "coords", "_is_array"]
VALUES = st.sampled_from([-1, 0, 1, 2, 3, 4, 8, 127, 10**6, 2**31 - 1])


def array_of(shape, values, dtype):
    with np.errstate(over="ignore"):
        return np.resize(np.array(values), shape).astype(dtype)


any_array = st.one_of(
    st.builds(
        array_of,
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
        st.lists(VALUES, min_size=1, max_size=6),
        st.sampled_from(["i4", "i8", "u4", "u8", "f4", "f8", "f2", "?", "c8", ">i4", "S3", "U3"]),
    ),
    st.sampled_from([b"csr", b"csc", b"coo", b"bsr", b"dia", "coo", "xyz"]).map(np.array),
)


@settings(max_examples=4 * CASES, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(ARCHIVES),
    st.dictionaries(st.sampled_from(NAMES), any_array, max_size=4),
    st.booleans(),
)
def test_archives_with_any_arrays_in_them(tmp_path_factory, content, changes, damage_values):
    with np.load(io.BytesIO(content)) as archive:
        members = {**archive}
    for name, array in changes.items():
        if damage_values and name in members and array.size and array.dtype.kind in "iu":
            flat = members[name].astype(members[name].dtype).ravel()
            flat[: array.size] = np.resize(array.astype(np.int64), flat[: array.size].shape)
            members[name] = flat.reshape(members[name].shape)
        elif not damage_values:
            members[name] = array
    folder = tmp_path_factory.getbasetemp() / "fuzz"
    folder.mkdir(exist_ok=True)
    check(folder, ".npz", saved(np.savez, **members))
