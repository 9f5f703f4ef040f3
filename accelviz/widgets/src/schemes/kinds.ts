// Kinds of blocks: blocks whose workers have equal loads are of one kind. A large launch has few
// kinds, so that statistics for another number of columns need not look at each block.

import type { Numbers } from "../types";

export interface Kinds {
  /** Loads of the workers of a kind's blocks, and the number of its blocks, which may be 0. */
  loads: Numbers[];
  counts: Numbers;
  of(block: number): number;
}

/** Find the kinds of all blocks by comparing the loads that `loadsOf` fills in. */
export function findKinds(
  blocks: number, workers: number, loadsOf: (block: number, loads: Float64Array) => unknown,
): Kinds {
  const kindOf = new Int32Array(blocks), counts: number[] = [], distinct: Float64Array[] = [];
  const newest = new Map<number, number>(), before: number[] = []; // kinds with the same hash
  const loads = new Float64Array(workers);
  const isKind = (kind: number) => {
    const known = distinct[kind];
    for (let worker = 0; worker < workers; worker++)
      if (known[worker] !== loads[worker]) return false;
    return true;
  };
  for (let block = 0, kind = -1; block < blocks; block++) {
    loadsOf(block, loads);
    if (kind < 0 || !isKind(kind)) { // neighboring blocks are often alike
      let hash = 0;
      for (let worker = 0; worker < workers; worker++)
        hash = (Math.imul(hash, 31) + loads[worker]) | 0;
      kind = newest.get(hash) ?? -1;
      while (kind >= 0 && !isKind(kind)) kind = before[kind];
      if (kind < 0) {
        kind = distinct.push(loads.slice()) - 1;
        before.push(newest.get(hash) ?? -1);
        newest.set(hash, kind);
        counts.push(0);
      }
    }
    kindOf[block] = kind;
    counts[kind] += 1;
  }
  return { loads: distinct, counts, of: (block) => kindOf[block] };
}
