// Partitions of a matrix' nonzeros among the workers (warps, subwarps ...) of thread blocks. A run
// is the consecutive nonzeros of one row that one worker sums; a load is a worker's nonzeros.

import type { Hardware, Occupancy } from "../hardware";
import { ceilDiv, type MetadataRecord, recordOf } from "../numbers";
import type { Graph, Numbers } from "../types";
import { findKinds, type Kinds } from "./kinds";

/** A run: worker in the block, position of the row in the order, first nonzero, nonzeros. */
export interface Run {
  warp: number; position: number; start: number; count: number;
}

/** A histogram: `warps[i]` workers have `nonzeros[i]` nonzeros, `idle` have none. */
interface Loads {
  nonzeros: Numbers; warps: Numbers; idle?: number;
}

/** Fields of Python's `PartitionSummary`; null if not known. */
export type Known = Partial<Record<"blocks" | "warps" | "busy_warps" | "steps" | "slots" |
  "longest" | "workers" | "metadata_bytes" | "rows_shared" | "rows_cut" | "shared_atomics" |
  "global_atomics", number | null>> & { loads?: Loads | null };
export type Statistic = Exclude<keyof ReturnType<typeof summaryOf>, "loads">;
export type Partition = ReturnType<typeof partitionOf>;

/** Statistics of a partition, with those that follow from `known`; NaN if not known. */
export function summaryOf(known: Known) {
  const { loads = null, warps = null, workers = null } = known;
  const { busy_warps = null, steps = null, slots = null, longest = null } = known;
  let busy = NaN, nonzeros = NaN, largest = NaN;
  if (loads) {
    busy = nonzeros = largest = 0;
    for (let i = 0; i < loads.nonzeros.length; i++) {
      busy += loads.warps[i];
      nonzeros += loads.nonzeros[i] * loads.warps[i];
      largest = Math.max(largest, loads.nonzeros[i]);
    }
  }
  const mean = busy ? nonzeros / busy : NaN;
  return {
    blocks: null, metadata_bytes: null, rows_shared: null, rows_cut: null, shared_atomics: null,
    global_atomics: null, ...known, warps, workers, busy_warps, steps, slots, longest, nonzeros,
    largest, mean, loads: loads && workers !== null ? { ...loads, idle: workers - busy } : loads,
    idle_warps: warps === null || busy_warps === null ? NaN : warps ? 1 - busy_warps / warps : 0,
    idle_share: slots === null || steps === null ? NaN : slots ? 1 - steps / slots : 0,
    imbalance: busy ? largest / mean : loads ? 1 : NaN,
  };
}

interface Parts {
  blocks: number; warps: number;
  /** `order[position]` is a row; null where the rows are in the graph's order. */
  order?: Int32Array | null;
  positionOf?(row: number): number;
  runs(block: number): Run[];
  /** The runs of all heads, where a row has a worker for each of its attention heads. */
  headRuns?(block: number): Run[];
  /** Fill in the load of each worker of a block; of its longest row if rows are counted apart. */
  loadsOf?(block: number, loads: Float64Array): Float64Array;
  longestOf?(block: number, loads: Float64Array): Float64Array;
  /** First and last block with nonzeros of the row at a position; empty if none. */
  blocksOf(position: number): number[];
  metadata?(block: number): MetadataRecord[] | null;
  /** Kinds of blocks; by default found by comparing the loads of all blocks. */
  kinds?: Kinds;
  counts(nCols: number): Known;
}

/** Make a partition. Defaults: the graph's row order, no metadata, no row shared by workers. */
export function partitionOf(parts: Parts) {
  const { blocks, warps, runs, order = null, kinds: knownKinds, blocksOf } = parts;
  const { headRuns = runs } = parts;
  const loadsOf = parts.loadsOf ?? ((block: number, loads: Float64Array) => {
    if (knownKinds) loads.set(knownKinds.loads[knownKinds.of(block)]);
    else addLoads(headRuns(block), loads);
    return loads;
  });
  const longestOf = parts.longestOf ??
    ((block: number, loads: Float64Array) => longestLoads(headRuns(block), loads));
  let histogram: Loads | null = null;
  const occupancies = new Map<string, Occupancy>(); // by pattern of hardware warps
  let kindsOfLoads = knownKinds, kindsOfLongest = knownKinds;
  /** Kinds of blocks by the loads of workers, or by their longest rows. */
  const kinds = (longest = false) => longest
    ? kindsOfLongest ??= findKinds(blocks, warps, longestOf)
    : kindsOfLoads ??= findKinds(blocks, warps, loadsOf);

  /** Sum up the steps of all blocks, over all column tiles. */
  function occupancy(hardware: Hardware) {
    const sum = { busy_warps: 0, steps: 0, slots: 0, longest: 0 };
    hardware.patterns.forEach((pattern, i) => {
      const key = `${hardware.rowPerLane} ${hardware.warps} ${pattern.key}`;
      if (!occupancies.has(key)) occupancies.set(key, countSteps(kinds(hardware.rowPerLane),
        (loads) => hardware.occupancyOf(loads, pattern)));
      const { busy_warps, steps, slots, longest } = occupancies.get(key)!;
      sum.longest = Math.max(sum.longest, pattern.unit * longest);
      if (!i) sum.busy_warps = busy_warps;
      sum.steps += pattern.weight * steps;
      sum.slots += pattern.weight * slots;
    });
    return sum;
  }

  return {
    blocks, warps, order, runs, headRuns, loadsOf, longestOf, kinds, blocksOf,
    positionOf: parts.positionOf ?? ((row: number) => row),
    metadata: parts.metadata ?? (() => null),
    summary(nCols: number, hardware: Hardware) {
      const known = parts.counts(nCols);
      return summaryOf({
        blocks, warps: blocks * hardware.warps, workers: blocks * warps, metadata_bytes: 0,
        rows_shared: 0, rows_cut: 0, shared_atomics: 0, global_atomics: 0,
        ...("loads" in known ? {}
          : { loads: histogram ??= countLoads(kinds()), ...occupancy(hardware) }), ...known,
      });
    },
  };
}

/** Sum up runs to the load of each worker. */
export function addLoads(runs: Run[], loads: Float64Array) {
  loads.fill(0);
  for (const { warp, count } of runs) loads[warp] += count;
  return loads;
}

function longestLoads(runs: Run[], loads: Float64Array) {
  loads.fill(0);
  for (const { warp, count } of runs) loads[warp] = Math.max(loads[warp], count);
  return loads;
}

/** Histogram of loads. */
function countLoads(kinds: Kinds): Loads {
  const counts = new Map<number, number>();
  kinds.loads.forEach((loads, kind) => {
    if (!kinds.counts[kind]) return;
    for (let worker = 0; worker < loads.length; worker++)
      if (loads[worker])
        counts.set(loads[worker], (counts.get(loads[worker]) ?? 0) + kinds.counts[kind]);
  });
  const nonzeros = [...counts.keys()].sort((a, b) => a - b);
  return { nonzeros, warps: nonzeros.map((load) => counts.get(load)!) };
}

function countSteps({ loads, counts }: Kinds, occupancyOf: (loads: Numbers) => Occupancy) {
  const sum = { busy_warps: 0, steps: 0, slots: 0, longest: 0 };
  loads.forEach((ofKind, kind) => {
    if (!counts[kind]) return;
    const { busy_warps, steps, slots, longest } = occupancyOf(ofKind);
    sum.longest = Math.max(sum.longest, longest);
    sum.busy_warps += counts[kind] * busy_warps;
    sum.steps += counts[kind] * steps;
    sum.slots += counts[kind] * slots;
  });
  return sum;
}

interface Workers {
  warps: number; workers: number;
  /** First and last worker of a row; null if none. */
  workersOf(row: number): [number, number] | null;
  runsOf(worker: number): Omit<Run, "warp">[];
  /** Its runs of all heads; see `Parts.headRuns`. */
  headRunsOf?(worker: number): Omit<Run, "warp">[];
  loadOf(worker: number): number;
  /** Nonzeros of its longest row; by default, of the longest run. */
  longestRowOf?(worker: number): number;
  metadataOf?(worker: number): [names: string[], words: number[]];
  /** Number of metadata records, if not one per worker. */
  records?: number;
  kinds?: Kinds;
  /** Statistics of the scheme, from the rows shared by workers. */
  counts?(nCols: number, shared: ReturnType<typeof sharedRows>): Known;
}

/** Counts of rows shared by workers of a block or split over blocks; of `additions` in shared
 *  memory, and `pieces` of split rows; of workers that begin `inside` a row, and of their rows. */
function sharedRows(rows: number, { warps, workersOf }: Workers) {
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

/** Make a partition whose workers are numbered in the graph's row order. */
export function partitionOfWorkers(graph: Graph, parts: Workers) {
  const { warps, workers, workersOf, runsOf, loadOf, metadataOf, records = workers } = parts;
  const { longestRowOf, headRunsOf } = parts;
  const fillWith = (value: (worker: number) => number) =>
    (block: number, loads: Float64Array) => {
      for (let warp = 0, worker = block * warps; warp < warps; warp++, worker++)
        loads[warp] = worker < workers ? value(worker) : 0;
      return loads;
    };
  const workersIn = (block: number, end = workers) => {
    const first = block * warps;
    return Array.from({ length: Math.min(warps, end - first) }, (_, i) => first + i);
  };
  const runsIn = (of: typeof runsOf) => (block: number) =>
    workersIn(block).flatMap((worker, warp) => of(worker).map((run) => ({ warp, ...run })));
  const shared = sharedRows(graph.rows, parts), { rows_shared, rows_cut } = shared;
  return partitionOf({
    blocks: ceilDiv(workers, warps), warps,
    runs: runsIn(runsOf), headRuns: headRunsOf && runsIn(headRunsOf),
    loadsOf: fillWith(loadOf), longestOf: longestRowOf && fillWith(longestRowOf),
    kinds: parts.kinds,
    blocksOf: (row) => workersOf(row)?.map((worker) => Math.floor(worker / warps)) ?? [],
    metadata: (block) => metadataOf ? workersIn(block, records).map((worker) =>
      recordOf(`warp ${worker.toLocaleString("en")}`, ...metadataOf(worker))) : null,
    counts: (nCols) => ({ rows_shared, rows_cut, ...parts.counts?.(nCols, shared) }),
  });
}
