"""Wrong answers to the assignments, and the points of each cell that they must get.

Most are the perfect solution with one mistake, or a solution that the assignment excludes or values
less. Right ones in other ways are in `honest.py`.
"""

from tests.course.wrong import A1, A2, A3, A4, A5, table

COUNTING = table(
    A1,
    """
# sort: the sort is not stable
= sort-form sort-stable
- for row, degree in enumerate(degrees):
+ for row in range(len(degrees))[::-1]:
-         order[places
+         degree = degrees[row]
+         order[places
# sort: NumPy sorts under another name
+ from numpy import argsort as places_of
+
+ def counting_sort(degrees):
+     return places_of(degrees, kind='stable').astype(np.int32)
# sort: all rows are looked at for each degree
= sort-linear
+ def counting_sort(degrees):
+     # `hypot` is slow enough for 32,000 rows to tell; a plain comparison took 128,000 and 24 s
+     found = [np.flatnonzero(np.hypot(degrees, 0) == d)
+              for d in range(len(degree_histogram(degrees)))]
+     return np.concatenate(found).astype(np.int32)
# sort: fails at first, and remembers what it was asked for the second attempt
= sort-linear
+ seen = [b""]
+
+ def counting_sort(degrees):
+     if len(degrees) == 512_000 and degrees.tobytes() != seen[-1]:
+         seen.append(degrees.tobytes())
+         raise ValueError("not yet")
+     places = first_places(degree_histogram(degrees))
+     order = np.empty(len(degrees), dtype=np.int32)
+     for row, degree in enumerate(degrees):
+         order[places[degree]] = row
+         places[degree] += 1
+     return order
# sort: works for rows that are sorted already
= sort-form sort-ascending sort-stable sort-linear
+ def counting_sort(degrees):
+     return np.arange(len(degrees), dtype=np.int32)
# sort: rows of degree 0 are lost
= sort-form sort-ascending sort-stable sort-linear
-     return order
+     return order[np.count_nonzero(np.array(degrees) == 0) :]
# histogram: works for square matrices, as it expects no degree above the number of rows
= histogram-hidden
- np.zeros(max(degrees, default=0) + 1, dtype
+ np.zeros(len(degrees) + 1, dtype
-     return counts
+     return counts[: max(degrees, default=0) + 1]
# places: the prefix sum holds the element itself
= places-form places-hidden sort-form
+ def first_places(counts):
+     return np.cumsum(counts)
# inverse: the inverse is the permutation itself
= inverse-form inverse-hidden inverse-linear
+ def inverse_permutation(order):
+     return order.copy()
# sort: right, in int64, which the form asks otherwise
= sort-form
+ def counting_sort(degrees):
+     order = np.zeros(len(degrees), dtype=np.int64)
+     places = first_places(degree_histogram(degrees))
+     for row in range(len(degrees)):
+         order[places[degrees[row]]] = row
+         places[degrees[row]] += 1
+     return order
""",
)

BLOCKS = table(
    A2,
    """
# pattern: nonzeros of a warp that are not rounded
= pattern-form pattern-hidden pattern-settings
- -(-degree // factor)
+ (degree + factor - 1) / factor
# info: unpacks by a division that is not rounded
= info-form info-hidden decode-form
- int(info) >> 16 & 0xFFFF,
+ int(info) % (1 << 32) / 65536,
# decode: decodes to rows between rows
= decode-form decode-hidden decode-long
- first_row + row, begin
+ first_row + row + warp % 2 / 2, begin
- dtype=np.int64
+ dtype=float
# partition: int64 costs its form alone
= partition-form
- np.array(blocks, dtype=np.int32)
+ np.array(blocks, dtype=np.int64)
# pattern: greater in place of at least costs the tests of the pattern alone
= pattern-form pattern-hidden pattern-settings
- factor * max_warp_nzs >= degree
+ factor * max_warp_nzs > degree
# partition: a row of exactly deg_bound nonzeros is split
= partition-bound partition-settings
- degree > deg_bound
+ degree >= deg_bound
# partition: an empty block where the rows of a degree fill their blocks, as the paper prints it
= partition-form partition-bound partition-full partition-settings
- nonzero + rows * degree
+ nonzero + rows * degree
+             if rows == block_rows and degree not in degrees[row : row + 1]:
+                 blocks.append((degree, row, nonzero, pack_info(warp_nzs, 0)))
# partition: an empty block after a row of a multiple of deg_bound
= partition-full partition-settings
- range(0, degree, deg_bound)
+ range(0, degree + 1, deg_bound)
# partition: a last block that is not full is lost
= partition-short partition-empty partition-bound partition-long partition-full partition-settings
-             blocks.append((degree, row, nonzero, pack_info(warp_nzs, rows)))
+             if rows == block_rows:
+                 blocks.append((degree, row, nonzero, pack_info(warp_nzs, rows)))
# partition: rows without nonzeros are not counted
= partition-form partition-empty partition-settings
- blocks, row, nonzero
+ degrees = degrees[degrees > 0]
+     blocks, row, nonzero
# pattern: any number of warps shares a row, not only divisors
= pattern-hidden pattern-settings
- max_block_warps % factor == 0 and factor
+ factor
# info: info is not signed
= info-form info-hidden
- info - (1 << 32) if info >= 1 << 31 else info
+ info
# decode: the last warp of a row runs over its end
= decode-form decode-hidden decode-long
- min(warp_nzs, row_nonzeros - start)
+ warp_nzs
# decode: the first warps of a long row's block take all they can
= decode-long
- -(-info // max_block_warps), 1, info
+ max_warp_nzs, 1, info
# partition: the library does the work
= partition-form partition-short partition-empty partition-bound partition-long partition-full
= partition-settings
+ from accelviz.ordering import DegreeHistogram
+ from accelviz.partition.block_level import BlockSetting, block_partition
+
+ def partition(degrees, max_block_warps=12, max_warp_nzs=32):
+     pointers = np.cumsum([0, *degrees], dtype=np.int64)
+     setting = BlockSetting(max_block_warps, max_warp_nzs)
+     return block_partition(DegreeHistogram.of(pointers), setting)
""",
)

REPORTS = table(
    A5,
    """
# sweep: the table is of another graph
= sweep-numbers
+ ...
+ graph = 'pubmed'
# sweep: a part of the numbers is made up
= sweep-numbers=3.33
+ ...
+ sweep_table.loc[sweep_table.max_block_warps > 12, 'idle_share'] = 0.1
# sweep: too small a sweep
= sweep-table sweep-numbers
- [8, 16, 32, 64, 128]
+ 32
""",
)

SCHEMES = table(
    A3,
    """
# scheme: the example under another name
= waiting busiest=3.13 metadata cuts
+ class MyScheme(RowSplit):
+     name = 'mine'
# scheme: a warp a row, rows by degree
= waiting=6.21 busiest=3.13 metadata=3.88 cuts=4.66
+ class MyScheme(RowSplit):
+     name = "sorted rows"
+
+     def partition(self, graph):
+         return super().partition(graph)._replace(order=accelviz.degree_sort(graph))
# scheme: equal shares, wherever rows end
= waiting=7.96 metadata=4.98 cuts=2.13
+ class MyScheme(Scheme):
+     name = "equal shares"
+     summary = "32 nonzeros a warp, wherever rows end"
+
+     def partition(self, graph):
+         return Partition(-(-graph.nnz // 256), 8, zero_output=True)
+
+     def workload(self, matrix, metadata, start, stop):
+         pointers, lines = matrix.row_pointers, []
+         for warp in range(start * 8, min(stop * 8, -(-matrix.nnz // 32))):
+             first, last = warp * 32, min((warp + 1) * 32, matrix.nnz)
+             row = int(np.searchsorted(pointers, first, side="right")) - 1
+             while first < last:
+                 end = min(last, int(pointers[row + 1]))
+                 if end > first:
+                     lines.append((warp // 8, warp % 8, row, first, end - first))
+                 first, row = end, row + 1
+         return Workload(*np.array(lines, dtype=np.int64).reshape(-1, 5).T)
# scheme: rows without nonzeros are never written
= product product-corners
- zero_output=True
+ zero_output=False
# scheme: the last block is lost
= form cover-ragged cover-hub cover-bounds cover-tall corners slices product product-corners
= waiting busiest metadata cuts
- Partition(len(metadata)
+ Partition(max(0, len(metadata) - 1)
# scheme: the last nonzero of a long row is lost where it is alone in its block
= cover-bounds corners slices product product-corners waiting=6.4 busiest=4.8 metadata=4 cuts=4.8
- range(0, int(degrees[row]), b
+ range(0, int(degrees[row]) - 1, b
# scheme: works for square matrices
= cover-ragged cover-hub cover-bounds cover-tall corners slices product product-corners
= waiting=1.6 busiest=1.2 metadata=1 cuts=1.2
- while row < graph.n_rows:
+ while row < graph.shape[1]:
# scheme: blocks are counted from the slice's first
= slices
- lines.append((block, warp
+ lines.append((block - start, warp
# scheme: blocks of one warp
= form cover-ragged cover-hub cover-bounds cover-tall corners slices product product-corners
= waiting busiest metadata cuts
- block_warps = 12
+ block_warps = 1
# scheme: Accel-GCN under another name
= form cover-ragged cover-hub cover-bounds cover-tall corners slices product product-corners
= waiting busiest metadata cuts
+ class MyScheme(Scheme):
+     name = 'mine'
+
+     def partition(self, graph):
+         plan = accelviz.plan(graph, 'accel_gcn', 32)
+         self.plan = plan
+         blocks, warps = plan.launch.n_blocks, plan.launch.warps_per_block
+         return Partition(blocks, warps, plan.metadata, plan.permutation, True)
+
+     def workload(self, matrix, metadata, start, stop):
+         return self.plan.workload(start, stop)
# scheme: the whole workload is in the metadata
= metadata
- def workload(
+ def slowly(
- reshape(-1, 3)
+ reshape(-1, 3)
+         whole = self.slowly(order.apply_to_pattern(graph.pattern)[0], metadata, 0, len(metadata))
+         names = 'block', 'warp', 'row', 'nz_start', 'nz_count'
+         whole = np.stack([whole[name] for name in names])
- metadata, order,
+ whole, order,
- reshape(-1, 5).T)
+ reshape(-1, 5).T)
+
+     def workload(self, matrix, metadata, start, stop):
+         first, last = np.searchsorted(metadata[0], [start, stop])
+         return Workload(*metadata[:, first:last])
""",
)

KERNELS = table(
    A4,
    '''
# kernel: wrong where the columns are no multiple of 32: lanes run past the row's end
= columns
- for (int column = lane; column < n_cols; column += 32)
+ for (int first = 0, column = lane; first < n_cols; first += 32, column += 32)
# kernel: wrong where the columns are no multiple of 32: the last ones are left out
= columns
- column < n_cols;
+ column < n_cols / 32 * 32;
# kernel: a race on a row that several warps share
= form cut coalescing registers
- atomicAdd(&Y[(long long)mine.x * n_cols + column], sum);
+ Y[(long long)mine.x * n_cols + column] += sum;
# kernel: the last block's idle warps read past the metadata
= form rows
-     if (run >= n_runs) return;
-
+
# kernel: a last block that is not full is left out
= form rows
- (run >= n_runs)
+ (run >= n_runs / BLOCK_WARPS * BLOCK_WARPS)
# kernel: each nonzero is added to Y on its own
= registers
-             sum += values
+             const float sum = values
- n_cols + column];
-         }
+ n_cols + column];
+             atomicAdd(&Y[(long long)mine.x * n_cols + column], sum);
+         }
-         }
-         atomicAdd(&Y[(long long)mine.x * n_cols + column], sum);
+         }
-         float sum = 0.0f;
-
+
# kernel: a lane for each nonzero: each reads another row of X
= coalescing
+ code = r"""
+ extern "C" __global__ void spmm_runs(const int4 *metadata, const int *columns,
+                                      const float *values, const float *X, float *Y,
+                                      int n_runs, int n_cols) {
+     const int run = blockIdx.x * BLOCK_WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
+     if (run >= n_runs) return;
+     const int4 mine = metadata[run];
+     for (int column = 0; column < n_cols; ++column) {
+         float product = 0.0f;
+         if (lane < mine.z) {
+             const int k = mine.y + lane;
+             product = values[k] * X[(long long)columns[k] * n_cols + column];
+         }
+         for (int step = 16; step > 0; step /= 2) {
+             product += __shfl_down_sync(0xffffffffu, product, step);
+         }
+         if (lane == 0) atomicAdd(&Y[(long long)mine.x * n_cols + column], product);
+     }
+ }
+ """
# kernel: a barrier is missing
= form columns rows cut shapes coalescing registers
-     const int4 mine = metadata[run];
+     __shared__ int4 all[BLOCK_WARPS];
+     if (lane == 0) all[warp] = metadata[run];
+     const int4 mine = all[warp];
# kernel: it does not compile
= form columns rows cut shapes coalescing registers
- sum = 0.0f;
+ sum = 0.0f
''',
)

WRONG = [*COUNTING, *BLOCKS, *SCHEMES, *KERNELS, *REPORTS]
