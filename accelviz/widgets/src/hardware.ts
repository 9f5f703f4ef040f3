// Hardware warps of a block: the workers that each executes, and how many steps that takes.
// Python's `hardware_warps.py` computes the same. In one step a warp loads a part of a gathered row
// for one nonzero of each of its workers.

import { ceilDiv } from "./numbers";
import type { Numbers, Reading } from "./types";

export const LANES = 32; // lanes of a hardware warp

/** The lanes of a block that its workers occupy; see `WorkerLanes` in Python. */
export interface WorkerLanes {
  spacing: number; block_warps: number; lanes: number;
}

/** A worker that a warp executes in a pass: `times` steps per nonzero. */
interface Share {
  worker: number; times: number;
}

/** Shares of each warp and pass, in units of `unit` steps; all column tiles have `weight` units. */
interface Pattern {
  weight: number; unit: number; key: string; shares: Share[][][];
}

/** Steps of the warps of several blocks; see `Occupancy` in Python. */
export interface Occupancy {
  busy_warps: number; steps: number; slots: number; longest: number;
}

export type Hardware = ReturnType<typeof hardwareOf>;

const divisor = (a: number, b: number): number => (b ? divisor(b, a % b) : a);

/** Place a block's `workers` on warps; without `placed`, workers are warps or combined warps. */
export function hardwareOf(
  workers: number, placed: WorkerLanes | null, columns: Reading | null, nCols: number,
) {
  const whole = ceilDiv(columns?.lanes ?? 1, LANES) * LANES;
  const { spacing, block_warps: warps, lanes: width } =
    placed ?? { spacing: whole, block_warps: workers, lanes: whole };
  const lanes = width || spacing;
  const passes = Math.max(1, ceilDiv(workers * spacing, warps * LANES));
  const patterns = patternsOf();
  const rowPerLane = workers === warps && spacing === LANES && columns?.lanes === 1;

  function shareOf(worker: number, firstLane: number, tileColumns: number | null): Share {
    const skipped = Math.max(firstLane - worker * spacing, 0); // lanes of earlier warps
    if (!columns || tileColumns === null) return { worker, times: 1 };
    const left = skipped < columns.lanes ? tileColumns - skipped * columns.vector : 0;
    return { worker, times: ceilDiv(Math.max(left, 0), columns.lanes * columns.vector) };
  }

  function sharesOf(tileColumns: number | null) {
    return Array.from({ length: warps }, (_, warp) =>
      Array.from({ length: passes }, (_, pass) => {
        const firstLane = LANES * (warp + pass * warps), shares: Share[] = [];
        const first = Math.max(Math.floor((firstLane - lanes) / spacing) + 1, 0);
        for (let worker = first; worker < workers && worker * spacing < firstLane + LANES; worker++)
          shares.push(shareOf(worker, firstLane, tileColumns));
        return shares.filter(({ times }) => times);
      }));
  }

  /** Patterns of full and last column tile, without a common factor; equal ones are merged. */
  function patternsOf() {
    // Where a description of columns has fewer lanes than a worker, the others read too.
    const known = columns && columns.lanes + LANES > lanes;
    const kinds: [number, number | null][] = !known ? [[1, null]]
      : [[Math.floor(nCols / columns.tile), columns.tile], [1, nCols % columns.tile]];
    const byKey = new Map<string, Pattern>();
    for (const [tiles, tileColumns] of kinds) {
      if (!tiles || tileColumns === 0) continue;
      const shares = sharesOf(tileColumns);
      const unit = shares.flat(2).reduce((all, { times }) => divisor(all, times), 0) || 1;
      for (const share of shares.flat(2)) share.times /= unit;
      const key = JSON.stringify(shares.map((of) => of.map((all) =>
        all.map(({ worker, times }) => [worker, times]))));
      const before = byKey.get(key);
      if (before) {
        before.weight += tiles * unit;
        before.unit = Math.max(before.unit, unit);
      } else byKey.set(key, { weight: tiles * unit, unit, key, shares });
    }
    return [...byKey.values()];
  }

  /** Steps of each warp by one pattern, in its units, from the loads of the block's workers. */
  function stepsOf(loads: Numbers, steps: Float64Array, { shares } = patterns[0]) {
    for (let warp = 0; warp < warps; warp++) {
      let sum = 0;
      for (const ofPass of shares[warp]) {
        let longest = 0;
        for (const { worker, times } of ofPass) longest = Math.max(longest, loads[worker] * times);
        sum += longest;
      }
      steps[warp] = sum;
    }
    return steps;
  }

  const buffer = new Float64Array(warps);
  /** Steps, warp time and busy warps of a block by one pattern, in its units. */
  function occupancyOf(loads: Numbers, pattern = patterns[0]): Occupancy {
    const steps = stepsOf(loads, buffer, pattern);
    let total = 0, most = 0, busy = 0;
    for (const count of steps) {
      total += count;
      if (count > most) most = count;
      if (count) busy += 1;
    }
    return { busy_warps: busy, steps: total, slots: most * warps, longest: most };
  }

  return {
    workers, warps, passes, spacing, lanes, patterns, rowPerLane, stepsOf, occupancyOf,
    /** Whether a worker is a combined warp, of several hardware warps. */
    isCombined: spacing > LANES,
    /** What a step of a warp is: a nonzero, unless workers, loads or passes make it another. */
    unit: !rowPerLane && patterns[0].shares.every((ofWarp) =>
      ofWarp.every((ofPass) => ofPass.length < 2 && ofPass.every(({ times }) => times === 1)) &&
      new Set(ofWarp.flat().map(({ worker }) => worker)).size === ofWarp.flat().length)
      ? "nonzero" : "step",
    /** Workers that a warp executes at the same time, at most. */
    together: Math.max(1, ...patterns.flatMap(({ shares }) =>
      shares.flatMap((ofWarp) => ofWarp.map((ofPass) => ofPass.length)))),
    /** Share of a block's warp time that is idle; 0 for a block without work. */
    idleShareOf(loads: Numbers) {
      let steps = 0, slots = 0;
      for (const pattern of patterns) {
        const counted = occupancyOf(loads, pattern);
        steps += pattern.weight * counted.steps;
        slots += pattern.weight * counted.slots;
      }
      return slots ? 1 - steps / slots : 0;
    },
    /** Warps that execute a worker, ascending. */
    warpsOf: (worker: number) => patterns[0].shares.flatMap((ofWarp, warp) =>
      ofWarp.some((ofPass) => ofPass.some((share) => share.worker === worker)) ? [warp] : []),
  };
}
