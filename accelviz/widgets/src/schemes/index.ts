// The partition schemes by Python's names for them. A scheme is a function of graph and arguments
// that returns a partition, null for a library. Tests compare the partitions with Python's.

import { binarySearch, ceilDiv } from "../numbers";
import { openGraph } from "../graph";
import type { Arguments, Graph } from "../types";
import * as degrees from "./degrees";
import { type Partition, partitionOf, type Run } from "./partition";
import * as workers from "./workers";

/** One block per row; its workers take the row's nonzeros round-robin. */
function vertex({ degrees, pointers, rows, histogram }: Graph, { warps }: Arguments) {
  return partitionOf({
    blocks: rows, warps,
    runs(block) {
      const start = pointers[block], count = degrees[block];
      if (warps === 1 || !count) return [{ warp: 0, position: block, start, count }];
      return Array.from({ length: count }, (_, i) =>
        ({ warp: i % warps, position: block, start: start + i, count: 1 }));
    },
    blocksOf: (row) => [row, row],
    kinds: {
      loads: histogram.degrees.map((degree) => Array.from({ length: warps },
        (_, warp) => Math.max(ceilDiv(degree - warp, warps), 0))),
      counts: histogram.rows,
      of: (block) => binarySearch(histogram.degrees, degrees[block]),
    },
    counts: () => ({ rows_shared: warps > 1 ? degrees.filter((degree) => degree > 1).length : 0 }),
  });
}

/** One subwarp per row and attention head, in the graph's row order. Rows longer than `most` have
 *  blocks of their own, which come first and process one head after another. A row's run is that of
 *  its first head. */
function row_groups({ degrees, pointers, rows }: Graph, settings: Arguments) {
  const { warps } = settings, most = settings.most!, heads = settings.heads!;
  const long: number[] = [], longRowsBefore = new Int32Array(rows);
  for (let row = 0; row < rows; row++) {
    longRowsBefore[row] = long.length;
    if (degrees[row] > most) long.push(row);
  }
  /** Runs of every `step`-th subwarp: of all heads, or of the first head of each row. */
  const runsOf = (step: number) => (block: number) => {
    const runs: Run[] = [];
    if (block < long.length) {
      const row = long[block], share = ceilDiv(degrees[row], warps);
      for (let warp = 0; warp * share < degrees[row]; warp++) {
        const done = warp * share, count = Math.min(share, degrees[row] - done);
        for (let head = 0; head < heads; head += step)
          runs.push({ warp, position: row, start: pointers[row] + done, count });
      }
      return runs;
    }
    const first = (block - long.length) * warps, last = Math.min(first + warps, rows * heads);
    for (let subwarp = ceilDiv(first, step) * step; subwarp < last; subwarp += step) {
      const row = Math.floor(subwarp / heads), count = degrees[row];
      if (count <= most)
        runs.push({ warp: subwarp - first, position: row, start: pointers[row], count });
    }
    return runs;
  };
  return partitionOf({
    blocks: long.length + ceilDiv(rows * heads, warps), warps, runs: runsOf(heads),
    headRuns: runsOf(1),
    blocksOf: (row) => Array(2).fill(degrees[row] > most ? longRowsBefore[row]
      : long.length + Math.floor((row * heads) / warps)),
    counts: () => ({ rows_shared: warps > 1 ? long.length : 0 }),
  });
}

/** The same partition of the graph with its rows sorted by degree. */
export function sortedPartition(
  graph: Graph, scheme: (graph: Graph, settings: Arguments) => Partition | null,
  settings: Arguments,
): Partition | null {
  const { order, position } = graph.sorted();
  const degrees = Int32Array.from(order, (row) => graph.degrees[row]);
  const partition = scheme(openGraph({ name: "", rows: graph.rows, cols: graph.cols, degrees }),
    settings);
  return partition && { ...partition, order, positionOf: (row) => position[row] };
}

/** Schemes that sort rows by degree themselves, or whose order is unknown. */
export const ALREADY_SORTED = new Set([...Object.keys(degrees), "library"]);

export const SCHEMES: Record<string, (graph: Graph, settings: Arguments) => Partition | null> = {
  ...workers, ...degrees, vertex, row_groups,
  library: () => null,
};
