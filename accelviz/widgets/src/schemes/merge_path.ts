// Equal shares of the path through row ends and nonzeros: `items` of them a warp.

import { ceilDiv } from "../numbers";
import type { Arguments, Graph, Run } from "../types";
import { partitionOfWorkers, warpRecord } from "./partition";

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

  function runsOf(worker: number) {
    const start = nonzeroAt(worker), end = nonzeroAt(worker + 1), last = firstRow[worker + 1];
    const runs: Omit<Run, "warp">[] = [];
    for (let row = firstRow[worker]; row < Math.min(last + 1, rows); row++) {
      const from = Math.max(pointers[row], start), count = Math.min(pointers[row + 1], end) - from;
      const endsEmpty = pointers[row] === pointers[row + 1] && row < last;
      if (count > 0 || endsEmpty) runs.push({ position: row, start: from, count });
    }
    return runs;
  }

  return partitionOfWorkers(graph, {
    warps, workers, runsOf,
    loadOf: (worker) => nonzeroAt(worker + 1) - nonzeroAt(worker),
    workersOf: (row) => [workerOf(row, pointers[row]),
      workerOf(row, Math.max(pointers[row + 1] - 1, pointers[row]))],
    metadata(block) {
      const first = block * warps, last = Math.min(first + warps, workers + 1);
      return Array.from({ length: last - first }, (_, i) =>
        warpRecord(first + i, ["first row"], [firstRow[first + i]]));
    },
    counts: (nCols, { inside, insideRows }) =>
      ({ metadata_bytes: 4 * (workers + 1), global_atomics: (inside + insideRows) * nCols }),
  });
}
