"""Right answers in unusual ways, which must have all points.

Answers of different cells of an assignment are handed in together: the k-th answer of each cell is
part of the k-th submission.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.course.cuda_texts import HONEST as KERNELS
from tests.course.wrong import A1, A2, A3, A4, A5, table

COUNTING = table(
    A1,
    '''
# histogram: with annotations, magics and constants that share names with other things
- def degree_histogram(degrees):
+ import numpy.typing as npt
+ LEAST, count, sort = 1, 2, 3
+ def degree_histogram(degrees: npt.NDArray[np.int32]) -> "npt.NDArray[np.int64]":
# histogram: it prints and warns
-     counts = np
+     import warnings
+     warnings.warn('slow')
+     counts = np
-     return counts
+     print(counts)
+     return counts
# histogram: names of the tests for a large array, a list in itself, and what is no plain data
- def degree_histogram(degrees):
+ order, places = np.zeros(10**7, dtype=np.int32), []
+ places.append(places)
+ counts = inverse = checks = lists = np.complex128(1)
+
+ def degree_histogram(degrees):
# histogram: NumPy counts
+ def degree_histogram(degrees):
+     return np.bincount(degrees, minlength=1).astype(np.int64)
# histogram: a counter
+ from collections import Counter
+
+ def degree_histogram(degrees):
+     count = Counter(map(int, degrees))
+     return np.array([count[d] for d in range(max(count, default=0) + 1)], dtype=np.int64)
# histogram: a series of pandas
+ import pandas as pd
+
+ def degree_histogram(degrees):
+     counts = pd.Series(degrees).value_counts()
+     return counts.reindex(range(max(degrees, default=0) + 1), fill_value=0)
# histogram: an object that can be called
+ class Histogram:
+     def __iter__(self):
+         return iter("ab")
+
+     def __call__(self, degrees):
+         counts = np.zeros(int(np.max(degrees, initial=0)) + 1, dtype=np.int64)
+         np.add.at(counts, degrees, 1)
+         return counts
+
+ degree_histogram = Histogram()
# histogram: a partial function with an option
+ import functools
+
+ def _histogram(degrees, *, dtype):
+     counts = [0]
+     for degree in degrees.tolist():
+         counts += [0] * (degree + 1 - len(counts))
+         counts[degree] += 1
+     return np.array(counts, dtype=dtype)
+
+ degree_histogram = functools.partial(_histogram, dtype=np.int64)
# histogram: keyword arguments, assertions and a docstring with an example
+ def degree_histogram(degrees, verbose=False, **unused):
+     """Count.
+
+     >>> degree_histogram([1, 1])
+     array([0, 2])
+     """
+     assert np.ndim(degrees) == 1, "one dimension"
+     return np.histogram(degrees, np.arange(-0.5, max(degrees, default=0) + 1))[0].astype("i8")
# places: accumulate
+ from itertools import accumulate
+
+ def first_places(counts):
+     return np.array([0, *accumulate(counts.tolist())][: len(counts)], dtype=np.int64)
# places: shifted
+ def first_places(counts):
+     places = np.roll(np.cumsum(counts, dtype=np.int64), 1)
+     places[:1] = 0
+     return places
# places: what is before, without oneself
+ first_places = lambda counts: np.cumsum(counts) - counts
# places: a running total
+ def first_places(counts):
+     total, places = 0, []
+     for count in counts:
+         places.append(total)
+         total += int(count)
+     return np.asarray(places, np.int64)
# places: a generator
+ def _running(counts, total=0):
+     for count in counts:
+         yield total
+         total += count
+
+ def first_places(counts):
+     return np.fromiter(_running(counts), np.int64, len(counts))
# places: an exclusive sum by doubling
+ def first_places(counts):
+     sums, step = np.array(counts, dtype=np.int64), 1
+     while step < len(sums):
+         sums[step:] = sums[step:] + sums[:-step]
+         step *= 2
+     return sums - counts
# places: a static method of a class
+ class Prefix:
+     @staticmethod
+     def exclusive(counts):
+         return np.concatenate([np.zeros(1, np.int64), np.add.accumulate(counts)[:-1]])
+
+ first_places = Prefix.exclusive
# sort: other functions of the same name before it, and timed
- def counting_sort(degrees):
+ def counting_sort(degrees): return sorted(degrees)
+ %timeit -n1 -r1 1 + 1
+ def counting_sort(degrees):
# sort: lists of rows
+ def counting_sort(degrees):
+     rows = [[] for _ in range(int(max(degrees, default=0)) + 1)]
+     for row, degree in enumerate(degrees):
+         rows[degree].append(row)
+     return np.array([row for group in rows for row in group], dtype=np.int32)
# sort: by digits
+ def counting_sort(degrees):
+     order = np.arange(len(degrees), dtype=np.int32)
+     for shift in (0, 8, 16, 24):
+         digits = np.asarray(degrees)[order] >> shift & 255
+         order = np.concatenate([order[digits == digit] for digit in range(256)])
+     return order.astype(np.int32)
# sort: linked lists
+ def counting_sort(degrees):
+     head, follow = {}, [-1] * len(degrees)
+     for row in range(len(degrees) - 1, -1, -1):
+         follow[row], head[int(degrees[row])] = head.get(int(degrees[row]), -1), row
+     order = []
+     for degree in range(max(head, default=-1) + 1):
+         row = head.get(degree, -1)
+         while row >= 0:
+             order.append(row)
+             row = follow[row]
+     return np.array(order, dtype=np.int32)
# sort: NumPy sorts, which a person has to see
+ def counting_sort(degrees):
+     return np.argsort(degrees, kind='stable').astype(np.int32)
# sort: the columns of a sparse matrix
+ def counting_sort(degrees):
+     from scipy import sparse
+     n, largest = len(degrees), max(degrees, default=0)
+     entries = (np.ones(n), (np.arange(n), degrees))
+     matrix = sparse.coo_array(entries, shape=(n, int(largest) + 1)).tocsc()
+     return matrix.indices.astype(np.int32)
# sort: decorated, from the last row backwards
+ import functools, time
+
+ def timed(function):
+     @functools.wraps(function)
+     def wrapper(*arguments):
+         begin = time.perf_counter()
+         result = function(*arguments)
+         wrapper.seconds = time.perf_counter() - begin
+         return result
+     return wrapper
+
+ @timed
+ def counting_sort(degrees):
+     ends = first_places(degree_histogram(degrees)) + degree_histogram(degrees)
+     order = np.zeros(len(degrees), np.int32)
+     for row in reversed(range(len(degrees))):
+         ends[degrees[row]] -= 1
+         order[ends[degrees[row]]] = row
+     return order
# sort: compiled by Numba
+ import numba
+
+ @numba.njit
+ def _fill(degrees, places, order):
+     for row in range(degrees.size):
+         order[places[degrees[row]]] = row
+         places[degrees[row]] += 1
+
+ def counting_sort(degrees):
+     order = np.empty(len(degrees), dtype=np.int32)
+     _fill(np.array(degrees), first_places(degree_histogram(degrees)), order)
+     return order
# inverse: a loop
+ def inverse_permutation(order):
+     place = [0] * len(order)
+     for i, row in enumerate(order): place[row] = i
+     return np.array(place, dtype=np.int32)
# inverse: a dictionary
+ def inverse_permutation(order):
+     place = {int(row): i for i, row in enumerate(order)}
+     return np.array([place[row] for row in range(len(place))], dtype="int32")
# inverse: put
+ def inverse_permutation(order):
+     place = np.empty_like(order)
+     np.put(place, order, np.arange(order.size))
+     return place
# inverse: a sparse matrix
+ def inverse_permutation(order):
+     from scipy import sparse
+     n = len(order)
+     matrix = sparse.csr_array((np.ones(n), (order, np.arange(n))), shape=(n, n))
+     return matrix.indices.astype(np.int32)
# inverse: argsort
+ def inverse_permutation(order): return np.argsort(order).astype(np.int32)
# inverse: pandas
+ def inverse_permutation(order):
+     import pandas as pd
+     values = pd.Series(np.arange(len(order), dtype=np.int32), index=order)
+     return values.reindex(range(len(order))).to_numpy(dtype=np.int32)
# inverse: a view of a larger array, another byte order before
+ def inverse_permutation(order):
+     pairs = np.zeros((len(order), 2), dtype=">i4")
+     pairs[order, 1] = np.arange(len(order))
+     return pairs.astype(np.int32)[:, 1]
''',
)

BLOCKS = table(
    A2,
    """
# pattern: the first of a generator, as a list
+ def pattern(degree, max_block_warps=12, max_warp_nzs=32):
+     divisors = [f for f in range(1, max_block_warps + 1) if max_block_warps % f == 0]
+     factor = next(f for f in divisors if f * max_warp_nzs >= degree)
+     return [factor, max_block_warps // factor, (degree + factor - 1) // factor]
# pattern: NumPy's integers
+ def pattern(degree, max_block_warps=12, max_warp_nzs=32):
+     factors = np.arange(1, max_block_warps + 1)
+     factors = factors[max_block_warps % factors == 0]
+     factor = factors[np.searchsorted(factors * max_warp_nzs, degree)]
+     return np.array([factor, max_block_warps // factor, -(-degree // factor)])
# pattern: a named tuple
+ import math
+ from typing import NamedTuple
+
+ class Pattern(NamedTuple):
+     factor: int
+     block_rows: int
+     warp_nzs: int
+
+ def pattern(degree: int, max_block_warps: int = 12, max_warp_nzs: int = 32) -> Pattern:
+     factor = math.ceil(degree / max_warp_nzs)
+     while max_block_warps % factor:
+         factor += 1
+     return Pattern(factor, max_block_warps // factor, math.ceil(degree / factor))
# pattern: recursion
+ def pattern(degree, max_block_warps=12, max_warp_nzs=32, factor=1):
+     if max_block_warps % factor or factor * max_warp_nzs < degree:
+         return pattern(degree, max_block_warps, max_warp_nzs, factor + 1)
+     return factor, max_block_warps // factor, -(-degree // factor)
# pattern: a table that is remembered
+ import functools
+
+ @functools.lru_cache(maxsize=None)
+ def pattern(degree, max_block_warps=12, max_warp_nzs=32):
+     possible = {f for f in range(1, max_block_warps + 1) if not max_block_warps % f}
+     factor = min(f for f in possible if f * max_warp_nzs >= degree)
+     return factor, max_block_warps // factor, int(np.ceil(degree / factor))
# pattern: an iterator, which the test makes a tuple of
- return factor, max_block_warps // factor, -(-degree // factor)
+ return map(int, (factor, max_block_warps // factor, np.ceil(degree / factor)))
# pattern: fractions and decimal numbers
- return factor, max_block_warps // factor, -(-degree // factor)
+ from decimal import Decimal
+             from fractions import Fraction
+             return factor, Fraction(max_block_warps, factor), Decimal(-(-degree // factor))
# info: a generator, and an object with items
+ from dataclasses import astuple, dataclass
+
+ @dataclass
+ class Info:
+     warp_nzs: int
+     rows: int
+
+     def __iter__(self):
+         return iter(astuple(self))
+
+ def pack_info(warp_nzs, rows):
+     return next(info - (info >> 31 << 32) for info in [warp_nzs << 16 | rows])
+
+ def unpack_info(info):
+     return Info(info >> 16 & 65535, info & 65535)
# info: struct
+ import struct
+
+ def pack_info(warp_nzs, rows):
+     return struct.unpack("<i", struct.pack("<HH", rows, warp_nzs))[0]
+
+ def unpack_info(info):
+     return struct.unpack("<HH", struct.pack("<i", info))[::-1]
# info: NumPy's view
+ def pack_info(warp_nzs, rows):
+     return np.array([rows, warp_nzs], dtype="<u2").view("<i4")[0]
+
+ def unpack_info(info):
+     rows, warp_nzs = np.array([info], dtype="<i4").view("<u2")
+     return warp_nzs, rows
# info: arithmetic
+ def pack_info(warp_nzs, rows):
+     info = warp_nzs * 65536 + rows
+     return info if info < 2**31 else info - 2**32
+
+ def unpack_info(info):
+     return divmod(int(info) % 2**32, 65536)
# info: bytes
+ def pack_info(warp_nzs, rows):
+     data = int(warp_nzs).to_bytes(2, "big") + int(rows).to_bytes(2, "big")
+     return int.from_bytes(data, "big", signed=True)
+
+ def unpack_info(info):
+     data = int(info).to_bytes(4, "big", signed=True)
+     return [int.from_bytes(data[:2], "big"), int.from_bytes(data[2:], "big")]
# info: ctypes
+ import ctypes
+
+ def pack_info(warp_nzs, rows): return ctypes.c_int32(warp_nzs << 16 | rows).value
+ def unpack_info(info): return ctypes.c_uint16(info >> 16).value, ctypes.c_uint16(info).value
# partition: rows of equal degree as groups
+ from itertools import groupby
+
+ def partition(degrees, max_block_warps=12, max_warp_nzs=32):
+     bound, blocks, row, nonzero = max_block_warps * max_warp_nzs, [], 0, 0
+     for degree, group in groupby(degrees.tolist()):
+         n = len(list(group))
+         if 0 < degree <= bound:
+             _, most, warp_nzs = pattern(degree, max_block_warps, max_warp_nzs)
+             for first in range(0, n, most):
+                 info = pack_info(warp_nzs, min(most, n - first))
+                 blocks.append([degree, row + first, nonzero + first * degree, info])
+         for k in range(n if degree > bound else 0):
+             for start in range(0, degree, bound):
+                 begin = nonzero + k * degree + start
+                 blocks.append([degree, row + k, begin, min(bound, degree - start)])
+         row, nonzero = row + n, nonzero + n * degree
+     return np.array(blocks, dtype=np.int32).reshape(len(blocks), 4)
# partition: an array that is filled
- blocks, row, nonzero = [], 0, 0
+ table, n, row, nonzero = np.zeros((10**6, 4), np.int32), 0, 0, 0
+     class blocks:
+         def append(record):
+             nonlocal n
+             table[n] = record
+             n += 1
- np.array(blocks, dtype=np.int32).reshape(-1, 4)
+ table[:n]
# partition: a generator
- def partition(
+ def _blocks(
- blocks, row, nonzero = [], 0, 0
+ row, nonzero = 0, 0
- blocks.append((degree, row, nonzero + start, part))
+ yield degree, row, nonzero + start, part
- blocks.append((degree, row, nonzero, pack_info(warp_nzs, rows)))
+ yield degree, row, nonzero, pack_info(warp_nzs, rows)
-     return np.array(blocks, dtype=np.int32).reshape(-1, 4)
+
+ def partition(*arguments, **options):
+     return np.array([*_blocks(*arguments, **options)], dtype=np.int32).reshape(-1, 4)
# partition: columns in Fortran's order
- np.array(blocks, dtype=np.int32).reshape(-1, 4)
+ np.asfortranarray(np.array(blocks, dtype=np.int32).reshape(-1, 4))
# partition: compared with the library in the same cell, before and after
+ plan = accelviz.plan("cora", "accel_gcn", n_cols=64)
+ print(plan.metadata[:3])
+
+ ...
+
+ mine = partition(plan.walked.degrees)
+ assert np.array_equal(mine, plan.metadata)
+ partition = partition if len(mine) else None
# partition: its own pattern and packing
- _, block_rows, warp_nzs = pattern(degree, max_block_warps, max_warp_nzs)
+ factor = -(-degree // max_warp_nzs)
+             while max_block_warps % factor: factor += 1
+             block_rows, warp_nzs = max_block_warps // factor, -(-degree // factor)
- pack_info(warp_nzs, rows)
+ (warp_nzs << 16 | rows) - (warp_nzs >> 15 << 32)
# decode: a list of lists
- np.array(records, dtype=np.int64).reshape(-1, 5)
+ [list(record) for record in records]
# decode: int32
- np.array(records, dtype=np.int64)
+ np.array(records, dtype=np.int32)
# decode: whole floats
- np.array(records, dtype=np.int64)
+ np.array(records, dtype=float)
# decode: a table of pandas
- np.array(records, dtype=np.int64).reshape(-1, 5)
+ __import__("pandas").DataFrame(records, columns=["block", "warp", "row", "start", "count"])
# decode: backwards
- np.array(records, dtype=np.int64).reshape(-1, 5)
+ np.array(sorted(records), dtype=np.int64).reshape(-1, 5)
""",
)

SCHEMES = table(
    A3,
    """
# scheme: numbers of the class, a property, a static method for the workload
- warp_nzs = 32
+ warp_nzs = self.nonzeros
-     def partition(
+     @property
+     def nonzeros(self):
+         return self.block_warps + 20
+
+     def partition(
-     def workload(self, matrix, metadata, start, stop):
+     @staticmethod
+     def workload(matrix, metadata, start, stop):
+         self = MyScheme
# scheme: a tuple of lists, with the order as numbers
- return Partition(len(metadata), self.block_warps, metadata, order, zero_output=True)
+ return len(metadata), self.block_warps, [*blocks], order.order.tolist(), True
- metadata[block].tolist()
+ map(int, metadata[block])
- reshape(-1, 3)
+ reshape(-1, 3).astype(np.int32)
# scheme: 16 bits, and numbers of the matrix in it
- reshape(-1, 3)
+ reshape(-1, 3).astype(np.uint16)
# scheme: it prints, and its workload is a generator's
- bound, pointers, lines
+ print(start)
+         return Workload(*np.array([*self.lines(matrix, metadata, start, stop)]).reshape(-1, 5).T)
+
+     def lines(self, matrix, metadata, start, stop):
+         bound, pointers, lines
- lines.append((block, warp, first + i, begin + part * run, length))
-         return Workload(*np.array(lines, dtype=np.int64).reshape(-1, 5).T)
+ yield block, warp, first + i, begin + part * run, length
# scheme: lines of a dataclass, a name that is not ASCII
- class MyScheme
+ from dataclasses import astuple, dataclass
+
+ @dataclass
+ class Line:
+     block: int
+     warp: int
+     row: int
+     start: int
+     count: int
+
+ class MyScheme
- name = "mine"
+ name = "Zoë – v2"
- lines.append((block, warp, first + i, begin + part * run, length))
+ lines.append(astuple(Line(block, warp, first + i, begin + part * run, length)))
# scheme: it remembers its results, and a recursive helper's
- class MyScheme
+ from functools import cache, lru_cache
+
+ @cache
+ def total(matrix, row):
+     before = total(matrix, row - 1) if row % 100 else int(matrix.row_pointers[row])
+     return int(matrix.degrees[row]) + before
+
+ class MyScheme
- begin = int(pointers[first + i]) + skip
+ begin = total(matrix, first + i) - int(matrix.degrees[first + i]) + skip
# scheme: made by a function, with an option
+ ...
+ Base = MyScheme
+
+ def made(text):
+     class MyScheme(Base):
+         name = text
+     return MyScheme
+
+ MyScheme = made("of a function")
""",
)

REPORTS = table(
    A5,
    """
# sweep: rounded
+ ...
+ sweep_table = sweep_table.round(3)
# sweep: with another strategy, whose parameters are others
+ ...
+ import pandas as pd
+ sweep_table = pd.concat([sweep_table, accelviz.sweep(graph, strategies=["gnnadvisor"])])
# sweep: shuffled, with more columns and another index
+ ...
+ sweep_table = sweep_table.sample(frac=1, random_state=1).assign(note='mine').set_index('note')
# sweep: read from a file as text, with categories
+ ...
+ import pandas as pd
+ sweep_table.to_csv("sweep.csv")
+ sweep_table = pd.read_csv("sweep.csv", dtype=str).astype({"max_warp_nzs": "category"})
# sweep: a column twice
+ ...
+ import pandas as pd
+ sweep_table = pd.concat([sweep_table, sweep_table[["rows_cut"]]], axis=1)
# sweep: with decimal numbers
+ ...
+ from decimal import Decimal
+ sweep_table["idle_share"] = [Decimal(str(round(x, 3))) for x in sweep_table["idle_share"]]
# sweep: with 32 and 128 columns
+ ...
+ settings = {"max_block_warps": [1, 2, 4, 8, 16, 32], "max_warp_nzs": [8, 32, 64]}
+ sweep_table = accelviz.sweep(graph, n_cols=[32, 128], **settings)
# sweep: floats, and every row twice
+ ...
+ import pandas as pd
+ numbers = ["max_block_warps", "max_warp_nzs", "blocks", "metadata_bytes"]
+ sweep_table = pd.concat([sweep_table.astype(dict.fromkeys(numbers, float))] * 2)
""",
)

_UNUSUAL = ("a template", "shared memory", "cooperative groups", "conditions on the architecture")
KERNEL_CELLS = [(name, f'code = r"""{KERNELS[name]}"""') for name in _UNUSUAL]


def _submissions() -> dict[str, tuple[str, Mapping[str, str]]]:
    submissions: dict[str, tuple[str, dict[str, str]]] = {}
    for answer in (*COUNTING, *BLOCKS, *SCHEMES, *REPORTS):
        assert not answer.lost, answer.description
        ((cell, source),) = answer.solutions.items()
        prefix, k = answer.assignment[:2].lower(), 0
        while cell in submissions.get(f"honest-{prefix}-{k}", ("", {}))[1]:
            k += 1
        name = f"honest-{prefix}-{k}"
        submissions.setdefault(name, (answer.assignment, {}))[1][cell] = source
    for k, (_, source) in enumerate(KERNEL_CELLS):
        submissions[f"honest-a4-{k}"] = A4, {"kernel": source}
    return dict(submissions)


#: Assignment and solutions, by the name of the student.
HONEST = _submissions()
#: Number of the answers in them.
N_ANSWERS = sum(len(solutions) for _, solutions in HONEST.values())
