// Consecutive rows to consecutive warps.

import { ceilDiv } from "../numbers";
import type { Arguments, Graph } from "../types";
import { partitionOfWorkers } from "./partition";

export function rows(graph: Graph, { rows_per_warp, warps, atomics }: Arguments) {
  const { degrees, pointers, rows: total } = graph, height = rows_per_warp!;
  const endOf = (worker: number) => Math.min((worker + 1) * height, total);
  return partitionOfWorkers(graph, {
    warps,
    workers: ceilDiv(total, height),
    loadOf: (worker) => pointers[endOf(worker)] - pointers[worker * height],
    workersOf: (row) => [Math.floor(row / height), Math.floor(row / height)],
    runsOf: (worker) => Array.from({ length: endOf(worker) - worker * height }, (_, i) => {
      const row = worker * height + i;
      return { position: row, start: pointers[row], count: degrees[row] };
    }),
    counts: () => ({ global_atomics: (atomics ?? 0) * graph.nnz }),
  });
}
