// Partition schemes whose workers are numbered in the graph's row order.

import { binarySearch, ceilDiv, clamp } from "../numbers";
import type { Arguments, Graph } from "../types";
import { partitionOfWorkers, type Run } from "./partition";

/** `rows_per_warp` consecutive rows per worker. */
export function rows(graph: Graph, { rows_per_warp, warps, atomics }: Arguments) {
  const { degrees, pointers, rows: total } = graph, rowsPerWorker = rows_per_warp!;
  const endOf = (worker: number) => Math.min((worker + 1) * rowsPerWorker, total);
  return partitionOfWorkers(graph, {
    warps,
    workers: ceilDiv(total, rowsPerWorker),
    loadOf: (worker) => pointers[endOf(worker)] - pointers[worker * rowsPerWorker],
    longestRowOf(worker) {
      let longest = 0;
      for (let row = worker * rowsPerWorker; row < endOf(worker); row++)
        if (degrees[row] > longest) longest = degrees[row];
      return longest;
    },
    workersOf: (row) => [Math.floor(row / rowsPerWorker), Math.floor(row / rowsPerWorker)],
    runsOf: (worker) => Array.from({ length: endOf(worker) - worker * rowsPerWorker }, (_, i) => {
      const row = worker * rowsPerWorker + i;
      return { position: row, start: pointers[row], count: degrees[row] };
    }),
    counts: () => ({ global_atomics: (atomics ?? 0) * graph.nnz }),
  });
}

const LEADER = 32, SHARED = 64, SPLIT = 128, BLOCK_SHARES = 256;

/** The warp-level partition and GNNAdvisor's neighbor groups: one run of at most `most` nonzeros
 *  per worker. */
export function runs(graph: Graph, { most, warps, line_bytes }: Arguments) {
  const { degrees, pointers, rows } = graph, length = most!;
  const runsBefore = new Int32Array(rows + 1); // number of runs of the rows before
  degrees.forEach((degree, row) =>
    (runsBefore[row + 1] = runsBefore[row] + ceilDiv(degree, length)));
  const workers = runsBefore[rows], rowOf = new Int32Array(workers);
  for (let row = 0; row < rows; row++) rowOf.fill(row, runsBefore[row], runsBefore[row + 1]);
  const startOf = (run: number) => pointers[rowOf[run]] + (run - runsBefore[rowOf[run]]) * length;
  const loadOf = (run: number) => Math.min(length, pointers[rowOf[run] + 1] - startOf(run));
  const blockOf = (run: number) => Math.floor(run / warps);
  const sharesWith = (run: number, other: number) => other >= 0 && other < workers &&
    blockOf(other) === blockOf(run) && rowOf[other] === rowOf[run];

  /** Slot of a run's row in shared memory, combined with flags (GNNAdvisor's Algorithm 2). */
  function slotAndFlags(run: number) {
    const first = blockOf(run) * warps, last = Math.min(first + warps, workers), row = rowOf[run];
    let slot = 0, blockShares = false;
    for (let other = first + 1; other < last; other++) {
      const shares = sharesWith(other, other - 1);
      if (other <= run && !shares) slot += 1;
      blockShares ||= shares;
    }
    const leads = !sharesWith(run, run - 1), shares = !leads || sharesWith(run, run + 1);
    const isSplit = blockOf(runsBefore[row]) !== blockOf(runsBefore[row + 1] - 1);
    return slot | (leads ? LEADER : 0) | (shares ? SHARED : 0) | (isSplit ? SPLIT : 0) |
      (blockShares ? BLOCK_SHARES : 0);
  }

  return partitionOfWorkers(graph, {
    warps, workers, loadOf,
    metadataOf: (run) => line_bytes === 8
      ? [["row", "slot and flags"], [rowOf[run], slotAndFlags(run)]]
      : [["row", "first nonzero", "length", "padding"], [rowOf[run], startOf(run), loadOf(run), 0]],
    workersOf: (row) => degrees[row] ? [runsBefore[row], runsBefore[row + 1] - 1] : null,
    runsOf: (run) => [{ position: rowOf[run], start: startOf(run), count: loadOf(run) }],
    counts: (nCols, { additions, pieces }) => ({
      metadata_bytes: line_bytes! * workers,
      shared_atomics: additions * nCols, global_atomics: pieces * nCols,
    }),
  });
}

/** Merge path: `items` row ends and nonzeros per worker. */
export function merge_path(graph: Graph, { items, warps }: Arguments) {
  const { pointers, rows } = graph, length = items!;
  const path = rows + graph.nnz, workers = ceilDiv(path, length);
  const firstRow = new Int32Array(workers + 1);
  for (let worker = 1, row = 0; worker < workers; worker++) {
    while (row < rows && pointers[row + 1] + row < worker * length) row += 1;
    firstRow[worker] = row;
  }
  firstRow[workers] = rows;
  const nonzeroAt = (worker: number) => Math.min(worker * length, path) - firstRow[worker];
  const workerOf = (row: number, nonzero: number) => Math.floor((nonzero + row) / length);
  return partitionOfWorkers(graph, {
    warps, workers,
    records: workers + 1,
    runsOf(worker) {
      const start = nonzeroAt(worker), end = nonzeroAt(worker + 1), last = firstRow[worker + 1];
      const runs: Omit<Run, "warp">[] = [];
      for (let row = firstRow[worker]; row < Math.min(last + 1, rows); row++) {
        const from = Math.max(pointers[row], start);
        const count = Math.min(pointers[row + 1], end) - from;
        const endsEmpty = pointers[row] === pointers[row + 1] && row < last;
        if (count > 0 || endsEmpty) runs.push({ position: row, start: from, count });
      }
      return runs;
    },
    loadOf: (worker) => nonzeroAt(worker + 1) - nonzeroAt(worker),
    workersOf: (row) => [workerOf(row, pointers[row]),
      workerOf(row, Math.max(pointers[row + 1] - 1, pointers[row]))],
    metadataOf: (worker) => [["first row"], [firstRow[worker]]],
    counts: (nCols, { inside, insideRows }) =>
      ({ metadata_bytes: 4 * (workers + 1), global_atomics: (inside + insideRows) * nCols }),
  });
}

/** `run` consecutive products per worker. A nonzero has `heads` products, which all count as load;
 *  its run belongs to the worker of its first one. */
export function products(graph: Graph, { run, heads, warps, atomics }: Arguments) {
  const { pointers, nnz, rows } = graph;
  const length = run!, perNonzero = heads!, perBlock = length * warps;
  const total = nnz * perNonzero, blocks = ceilDiv(total, perBlock);
  const firstOf = (worker: number) => Math.min(ceilDiv(worker * length, perNonzero), nnz);
  // A row counts as shared or split if its nonzeros begin in several workers or blocks.
  let rows_shared = 0, rows_cut = 0;
  for (let row = 0; row < rows; row++) {
    const first = pointers[row], last = pointers[row + 1] - 1;
    const boundariesInside = (size: number) => perNonzero < size
      ? Math.floor((last * perNonzero) / size) - Math.floor((first * perNonzero) / size)
      : last - first;
    if (last < first) continue;
    if (boundariesInside(perBlock)) rows_cut += 1;
    if (boundariesInside(length) > boundariesInside(perBlock)) rows_shared += 1;
  }
  /** Runs from `start` to `end` - 1, counted in products, of which a nonzero has `products`. */
  function runsBetween(start: number, end: number, products: number) {
    const runs: Omit<Run, "warp">[] = [];
    let row = start < end ? binarySearch(pointers, Math.floor(start / products), rows) : 0;
    while (start < end) {
      while (pointers[row + 1] * products <= start) row += 1;
      const count = Math.min(pointers[row + 1] * products, end) - start;
      runs.push({ position: row, start: Math.floor(start / products), count });
      start += count;
    }
    return runs;
  }

  const loadOf = (worker: number) => clamp(total - worker * length, 0, length);
  return partitionOfWorkers(graph, {
    warps,
    workers: blocks * warps,
    runsOf: (worker) => runsBetween(firstOf(worker), firstOf(worker + 1), 1),
    headRunsOf: (worker) => runsBetween(worker * length,
      Math.min((worker + 1) * length, total), perNonzero),
    loadOf,
    kinds: { // only the last block differs
      loads: [0, blocks - 1].map((block) =>
        Array.from({ length: warps }, (_, warp) => loadOf(block * warps + warp))),
      counts: [Math.max(blocks - 1, 0), Math.min(blocks, 1)],
      of: (block) => Number(block === blocks - 1),
    },
    workersOf: (row) => pointers[row] === pointers[row + 1] ? null
      : [pointers[row], pointers[row + 1] - 1].map((nonzero) =>
          Math.floor((nonzero * perNonzero) / length)) as [number, number],
    counts: (nCols) => ({ rows_shared, rows_cut, global_atomics: atomics! * nnz * nCols }),
  });
}
