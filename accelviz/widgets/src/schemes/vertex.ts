// A block a row, whose workers take its nonzeros in turn.

import { tally } from "../summary";
import type { Arguments, Graph } from "../types";
import { partitionOf } from "./partition";

export function vertex(graph: Graph, { warps }: Arguments) {
  const { degrees, pointers, rows } = graph, loads = tally();
  let slots = 0, rows_shared = 0;
  graph.histogram.degrees.forEach((degree, i) => {
    const many = graph.histogram.rows[i], least = Math.floor(degree / warps);
    const rest = degree % warps;
    loads.add(least, many * (warps - rest));
    loads.add(least + 1, many * rest);
    slots += many * Math.ceil(degree / warps) * warps;
    if (degree > 1 && warps > 1) rows_shared += many;
  });
  return partitionOf({
    blocks: rows,
    warps,
    runs(block) {
      const start = pointers[block], count = degrees[block];
      if (warps === 1 || !count) return [{ warp: 0, position: block, start, count }];
      return Array.from({ length: count }, (_, i) =>
        ({ warp: i % warps, position: block, start: start + i, count: 1 }));
    },
    blocksOf: (row) => [row, row],
    counts: () => ({ slots, loads: loads.loads(), rows_shared }),
  });
}
