// A workload listed by Python, for strategies whose partition scheme is not computed in the page.

import { number, recordOf } from "../numbers";
import type { ListedWorkload } from "../types";
import { partitionOf, summaryOf } from "./partition";

export function listed(raw: ListedWorkload) {
  const { resolved, blocks, warps, bounds, warp, row, start, count, metadata, summary = {} } = raw;
  if (!bounds) return { resolved, partition: null, summary: summaryOf({}) };
  const order = raw.order && Int32Array.from(raw.order);
  const positions = order && new Int32Array(order.length);
  order?.forEach((moved, position) => (positions![moved] = position));
  const runs = (block: number) => Array.from({ length: bounds[block + 1] - bounds[block] },
    (_, k) => {
      const i = bounds[block] + k;
      return { warp: warp[i], position: row[i], start: start[i], count: count[i] };
    });
  const partition = partitionOf({
    blocks, warps, order, runs,
    positionOf: (wanted) => positions ? positions[wanted] : wanted,
    blocksOf(position) {
      const having = [...Array(blocks).keys()].filter((block) =>
        runs(block).some((run) => run.position === position));
      return having.length ? [having[0], having.at(-1)!] : [];
    },
    alike: [], // statistics come from Python
    metadata(block) {
      if (!metadata) return null;
      const { words, wide, names } = metadata, all = words.length / wide;
      const [perBlock, name] = all === blocks ? [1, "block"] : [warps, "warp"];
      const end = Math.min((block + 1) * perBlock, all), first = block * perBlock;
      return Array.from({ length: end - first }, (_, k) => recordOf(`${name} ${number(first + k)}`,
        names, [...words.slice((first + k) * wide, (first + k + 1) * wide)]));
    },
    counts: () => summary,
  });
  return { resolved, partition, summary: partition.summary(0) };
}
