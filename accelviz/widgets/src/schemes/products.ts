// Runs of consecutive products; a nonzero is `heads` of them and counts for the run of its first.

import { binarySearch, ceilDiv } from "../numbers";
import type { Arguments, Graph, Run } from "../types";
import { partitionOfWorkers } from "./partition";

export function products(graph: Graph, { run, heads, warps, atomics }: Arguments) {
  const { pointers, nnz, rows } = graph, length = run!, per = heads!, perBlock = length * warps;
  const blocks = ceilDiv(nnz * per, perBlock);
  const firstOf = (worker: number) => Math.min(ceilDiv(worker * length, per), nnz);

  function runsOf(worker: number) {
    const end = firstOf(worker + 1), runs: Omit<Run, "warp">[] = [];
    let start = firstOf(worker), row = start < end ? binarySearch(pointers, start, rows) : 0;
    while (start < end) {
      while (pointers[row + 1] <= start) row += 1;
      const count = Math.min(pointers[row + 1], end) - start;
      runs.push({ position: row, start, count });
      start += count;
    }
    return runs;
  }

  // Of rows in several warps or blocks, those count in which a nonzero of the row begins.
  let rows_shared = 0, rows_cut = 0;
  for (let row = 0; row < rows; row++) {
    const first = pointers[row], last = pointers[row + 1] - 1;
    const between = (size: number) => per < size
      ? Math.floor((last * per) / size) - Math.floor((first * per) / size) : last - first;
    if (last < first) continue;
    if (between(perBlock)) rows_cut += 1;
    if (between(length) > between(perBlock)) rows_shared += 1;
  }
  return partitionOfWorkers(graph, {
    warps, runsOf,
    workers: blocks * warps,
    loadOf: (worker) => firstOf(worker + 1) - firstOf(worker),
    workersOf: (row) => pointers[row] === pointers[row + 1] ? null
      : [Math.floor((pointers[row] * per) / length),
          Math.floor(((pointers[row + 1] - 1) * per) / length)],
    counts: (nCols) => ({ rows_shared, rows_cut, global_atomics: atomics! * nnz * nCols }),
  });
}
