// A workload that Python listed, of a strategy whose partition scheme has no closed form.

import { number } from "../marks";
import { recordOf } from "../numbers";
import { summaryOf } from "../summary";
import type { ListedWorkload, MetadataRecord, Partition, Summary, Values } from "../types";

export interface Listed {
  partition: Partition | null;
  summary: Summary;
  resolved: Values;
}

export function listed(raw: ListedWorkload): Listed {
  if (!raw.bounds) return { partition: null, summary: summaryOf({}), resolved: raw.resolved };
  const { bounds, warp, row, start, count, warps, blocks, metadata } = raw;
  const order = raw.order && Int32Array.from(raw.order), summary = summaryOf(raw.summary);
  const positions = order && new Int32Array(order.length);
  order?.forEach((moved, position) => (positions![moved] = position));
  const records = (block: number) => Array.from({ length: bounds[block + 1] - bounds[block] },
    (_, i) => bounds[block] + i);
  const partition: Partition = {
    blocks, warps, order,
    positionOf: (wanted) => positions ? positions[wanted] : wanted,
    runs: (block) => records(block).map((i) =>
      ({ warp: warp[i], position: row[i], start: start[i], count: count[i] })),
    loadsOf(block, loads) {
      loads.fill(0);
      for (const i of records(block)) loads[warp[i]] += count[i];
      return loads;
    },
    blocksOf(position) {
      const having: number[] = [];
      for (let block = 0; block < blocks; block++)
        if (records(block).some((i) => row[i] === position)) having.push(block);
      return having.length ? [having[0], having.at(-1)!] : [];
    },
    metadata: (block) => metadata ? metadataOf(metadata, block, blocks, warps) : null,
    summary: () => summary,
  };
  return { partition, summary, resolved: raw.resolved };
}

function metadataOf(
  { words, wide, names }: NonNullable<ListedWorkload["metadata"]>, block: number, blocks: number,
  warps: number,
) {
  const all = words.length / wide, perBlock = all === blocks ? 1 : warps;
  const records: MetadataRecord[] = [], end = Math.min((block + 1) * perBlock, all);
  for (let i = block * perBlock; i < end; i++) {
    const title = `${perBlock === 1 ? "block" : "warp"} ${number(i)}`;
    records.push(recordOf(title, names, [...words.slice(i * wide, (i + 1) * wide)]));
  }
  return records;
}
