// A workload listed by Python, for strategies whose partition scheme is not computed in the page.

import { hardwareOf } from "../hardware";
import { number, recordOf } from "../numbers";
import type { ListedWorkload } from "../types";
import { partitionOf, summaryOf } from "./partition";

export function openListedWorkload(workload: ListedWorkload) {
  const { resolved, blocks, warps, bounds, metadata, summary = {}, workers, columns } = workload;
  const { warp, row, start, count } = workload;
  if (!bounds) return { resolved, partition: null, summary: summaryOf({}), hardware: null };
  const order = workload.order && Int32Array.from(workload.order);
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
      const blocksWithRow = [...Array(blocks).keys()].filter((block) =>
        runs(block).some((run) => run.position === position));
      return blocksWithRow.length ? [blocksWithRow[0], blocksWithRow.at(-1)!] : [];
    },
    metadata(block) {
      if (!metadata) return null;
      const { words, wide: wordsPerRecord, names } = metadata;
      const recordCount = words.length / wordsPerRecord;
      const [perBlock, name] = recordCount === blocks ? [1, "block"] : [warps, "warp"];
      const end = Math.min((block + 1) * perBlock, recordCount), first = block * perBlock;
      return Array.from({ length: end - first }, (_, k) => recordOf(`${name} ${number(first + k)}`,
        names, [...words.slice((first + k) * wordsPerRecord, (first + k + 1) * wordsPerRecord)]));
    },
    counts: () => ({ loads: null, ...summary }), // statistics come from Python
  });
  const hardware = hardwareOf(warps, workers, columns, workload.nCols);
  return { resolved, partition, summary: partition.summary(0, hardware), hardware };
}
