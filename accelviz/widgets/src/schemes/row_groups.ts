// Rows to lane groups in the graph's order, a group for each head of a row; a long row has a block
// for itself, and these come first. A row's nonzeros count for the group of its first head.

import { ceilDiv } from "../numbers";
import type { Arguments, Graph, Run } from "../types";
import { countLoads, partitionOf } from "./partition";

export function row_groups(graph: Graph, { most, heads, warps }: Arguments) {
  const { degrees, pointers, rows } = graph, per = heads!;
  const long: number[] = [], longBefore = new Int32Array(rows);
  for (let row = 0; row < rows; row++) {
    longBefore[row] = long.length;
    if (degrees[row] > most!) long.push(row);
  }
  const blocks = long.length + ceilDiv(rows * per, warps);

  function runs(block: number) {
    const shares: Run[] = [];
    if (block < long.length) {
      const row = long[block], share = ceilDiv(degrees[row], warps);
      for (let warp = 0; warp * share < degrees[row]; warp++) {
        const done = warp * share, count = Math.min(share, degrees[row] - done);
        shares.push({ warp, position: row, start: pointers[row] + done, count });
      }
      return shares;
    }
    const first = (block - long.length) * warps; // group
    const last = Math.min(ceilDiv(first + warps, per), rows);
    for (let row = ceilDiv(first, per); row < last; row++) {
      const run = { position: row, start: pointers[row], count: degrees[row] };
      if (run.count <= most!) shares.push({ warp: row * per - first, ...run });
    }
    return shares;
  }

  const partition = partitionOf({
    blocks, warps, runs,
    blocksOf: (row) => Array(2).fill(degrees[row] > most! ? longBefore[row]
      : long.length + Math.floor((row * per) / warps)),
    counts: () => ({ ...counted, rows_shared: warps > 1 ? long.length : 0 }),
  });
  const counted = countLoads(blocks, warps, partition.loadsOf);
  return partition;
}
