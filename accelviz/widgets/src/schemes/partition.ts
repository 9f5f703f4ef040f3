// What the schemes share: a partition with defaults, and the one that numbers its workers in the
// graph's order of rows.

import { ceilDiv, recordOf } from "../numbers";
import { summaryOf, tally } from "../summary";
import type { Graph, Loads, Partition, Run, Summary } from "../types";

interface Parts extends Pick<Partition, "blocks" | "warps" | "runs" | "blocksOf">,
  Partial<Pick<Partition, "order" | "positionOf" | "loadsOf" | "metadata">> {
  counts(nCols: number): Partial<Summary>;
}

/** Complete a partition: rows in the graph's order, no metadata, no row in several warps. */
export function partitionOf(parts: Parts): Partition {
  const { blocks, warps, runs } = parts;
  const partition: Partition = {
    order: null,
    positionOf: (row) => row,
    loadsOf(block, loads) {
      loads.fill(0);
      for (const { warp, count } of runs(block)) loads[warp] += count;
      return loads;
    },
    metadata: () => null,
    ...parts,
    summary: (nCols) => summaryOf({
      blocks, warps: blocks * warps, metadata_bytes: 0, rows_shared: 0, rows_cut: 0,
      shared_atomics: 0, global_atomics: 0, ...parts.counts(nCols),
    }),
  };
  return partition;
}

/** Warp time and loads of all blocks: a block lasts as long as its busiest warp. */
export function countLoads(
  blocks: number, warps: number, loadsOf: Partition["loadsOf"],
): { slots: number; loads: Loads } {
  const loads = new Float64Array(warps), counted = tally();
  let slots = 0;
  for (let block = 0; block < blocks; block++) {
    loadsOf(block, loads);
    let busiest = 0;
    for (const load of loads) {
      counted.add(load, 1);
      if (load > busiest) busiest = load;
    }
    slots += busiest * warps;
  }
  return { slots, loads: counted.loads() };
}

interface Workers {
  warps: number;
  workers: number;
  /** First and last worker of a row; null where none has it. */
  workersOf(row: number): [number, number] | null;
  runsOf(worker: number): Omit<Run, "warp">[];
  loadOf(worker: number): number;
  metadata?: Partition["metadata"];
  /** What the scheme itself counts, from the rows in several warps. */
  counts?(nCols: number, shared: SharedRows): Partial<Summary>;
}

/** Rows in several warps: `additions` of parts in shared memory, `pieces` of rows over blocks. */
export interface SharedRows {
  rows_shared: number;
  rows_cut: number;
  additions: number;
  pieces: number;
  /** Workers that begin inside a row, and how many rows these are. */
  inside: number;
  insideRows: number;
}

function sharedRows(rows: number, warps: number, workersOf: Workers["workersOf"]): SharedRows {
  const counted = {
    rows_shared: 0, rows_cut: 0, additions: 0, pieces: 0, inside: 0, insideRows: 0,
  };
  for (let row = 0; row < rows; row++) {
    const workers = workersOf(row);
    if (!workers || workers[0] === workers[1]) continue;
    const [first, last] = workers;
    const cuts = Math.floor(last / warps) - Math.floor(first / warps);
    counted.inside += last - first;
    counted.insideRows += 1;
    if (last - first > cuts) counted.rows_shared += 1;
    if (cuts) {
      const ends = [warps - (first % warps), (last % warps) + 1];
      for (const part of ends) if (part > 1) counted.additions += part;
      if (warps > 1) counted.additions += (cuts - 1) * warps;
      counted.rows_cut += 1;
      counted.pieces += cuts + 1;
    } else counted.additions += last - first + 1;
  }
  return counted;
}

/** The partition of workers that follow each other in the graph's order of rows. */
export function partitionOfWorkers(graph: Graph, parts: Workers): Partition {
  const { warps, workers, workersOf, runsOf, loadOf, metadata = () => null } = parts;
  const blocks = ceilDiv(workers, warps);
  const loadsOf = (block: number, loads: Float64Array) => {
    for (let warp = 0; warp < warps; warp++) {
      const worker = block * warps + warp;
      loads[warp] = worker < workers ? loadOf(worker) : 0;
    }
    return loads;
  };
  const counted = countLoads(blocks, warps, loadsOf);
  const { rows_shared, rows_cut, ...shared } = sharedRows(graph.rows, warps, workersOf);
  return partitionOf({
    blocks, warps, loadsOf, metadata,
    runs(block) {
      const runs: Run[] = [], end = Math.min((block + 1) * warps, workers);
      for (let worker = block * warps; worker < end; worker++)
        for (const run of runsOf(worker)) runs.push({ warp: worker - block * warps, ...run });
      return runs;
    },
    blocksOf: (row) => workersOf(row)?.map((worker) => Math.floor(worker / warps)) ?? [],
    counts: (nCols) => ({
      ...counted, rows_shared, rows_cut,
      ...parts.counts?.(nCols, { rows_shared, rows_cut, ...shared }),
    }),
  });
}

/** The record of a worker's metadata. */
export const warpRecord = (worker: number, names: string[], words: number[]) =>
  recordOf(`warp ${worker.toLocaleString("en")}`, names, words);
