// What a partition does to a graph, in a few numbers: `PartitionSummary` of Python, name by name.

import type { Loads, Summary } from "./types";

const SMALL = 4096; // loads that are counted in an array; larger ones are rare

/** Count how many warps have how many nonzeros; warps without any are left out. */
export function tally() {
  const small = new Float64Array(SMALL), large = new Map<number, number>();
  return {
    add(nonzeros: number, warps: number) {
      if (nonzeros < SMALL) small[nonzeros] += warps;
      else large.set(nonzeros, (large.get(nonzeros) ?? 0) + warps);
    },
    loads(): Loads {
      const nonzeros: number[] = [];
      for (let load = 1; load < SMALL; load++) if (small[load]) nonzeros.push(load);
      nonzeros.push(...Float64Array.from(large.keys()).sort());
      return { nonzeros, warps: nonzeros.map((load) => large.get(load) ?? small[load]) };
    },
  };
}

/** Complete what is known with what follows from it; NaN where something is not known. */
export function summaryOf(known: Partial<Summary>): Summary {
  const { loads = null, warps = null, slots = null } = known;
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
    global_atomics: null, ...known, warps, slots, nonzeros, largest, mean, busy_warps: busy,
    loads: loads && warps !== null ? { ...loads, idle: warps - busy } : loads,
    idle_warps: warps === null ? NaN : warps ? 1 - busy / warps : 0,
    idle_share: slots === null ? NaN : slots ? 1 - nonzeros / slots : 0,
    imbalance: busy ? largest / mean : loads ? 1 : NaN,
  };
}

/** Warps with work in bins, given the most nonzeros of each. */
export function binned({ nonzeros, warps }: Loads, uppers: number[]) {
  const counts = new Float64Array(uppers.length);
  for (let i = 0, bin = 0; i < nonzeros.length; i++) {
    while (uppers[bin] < nonzeros[i]) bin += 1;
    counts[bin] += warps[i];
  }
  return counts;
}

/** A bin a number up to 40; beyond that two bins to each doubling. `load_bins` of Python. */
export function loadBins(largest: number) {
  if (largest <= 40) return Array.from({ length: largest }, (_, i) => i + 1);
  const bounds = [1];
  for (let power = 2; bounds.at(-1)! < largest; power *= 2) {
    bounds.push(power);
    if (bounds.at(-1)! < largest && power > 1) bounds.push((power * 3) / 2);
  }
  return bounds;
}
