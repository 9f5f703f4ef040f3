// What a partition does to a graph, in a few numbers: `PartitionSummary` of Python, name by name.

// How many warps have how many nonzeros; those without any are left out.
export function tally() {
  const counts = new Map();
  return {
    add(nonzeros, warps) {
      if (nonzeros > 0 && warps > 0) counts.set(nonzeros, (counts.get(nonzeros) ?? 0) + warps);
    },
    counted(warps) {
      for (let nonzeros = 1; nonzeros < warps.length; nonzeros++)
        this.add(nonzeros, warps[nonzeros]);
      return this;
    },
    loads() {
      const nonzeros = Float64Array.from(counts.keys()).sort();
      return { nonzeros, warps: Float64Array.from(nonzeros, (each) => counts.get(each)) };
    },
  };
}

const UNKNOWN = {
  blocks: null, warps: null, slots: null, loads: null, metadata_bytes: null, rows_shared: null,
  rows_cut: null, shared_atomics: null, global_atomics: null,
};

// Python's properties too; NaN where something is not known.
export function summaryOf(known) {
  const found = { ...UNKNOWN, ...known };
  const { loads, warps, slots } = found;
  let busy = NaN, nonzeros = NaN, largest = NaN;
  if (loads) {
    busy = nonzeros = largest = 0;
    loads.nonzeros.forEach((each, i) => {
      busy += loads.warps[i];
      nonzeros += each * loads.warps[i];
      largest = Math.max(largest, each);
    });
    if (warps !== null) found.loads = { ...loads, idle: warps - busy };
  }
  found.busy_warps = busy;
  found.nonzeros = nonzeros;
  found.largest = largest;
  found.idle_warps = warps === null ? NaN : warps ? 1 - busy / warps : 0;
  found.idle_share = slots === null ? NaN : slots ? 1 - nonzeros / slots : 0;
  found.mean = busy ? nonzeros / busy : NaN;
  found.imbalance = busy ? largest / found.mean : loads ? 1 : NaN;
  return found;
}

// Warps with work in bins, given the most nonzeros of each.
export function binned(loads, uppers) {
  const counts = new Float64Array(uppers.length);
  let bin = 0;
  loads.nonzeros.forEach((each, i) => {
    while (uppers[bin] < each) bin += 1;
    counts[bin] += loads.warps[i];
  });
  return counts;
}

// A bin a number up to 40; beyond that two bins to each doubling. `load_bins` of Python.
export function loadBins(largest) {
  if (largest <= 40) return Array.from({ length: largest }, (_, i) => i + 1);
  const bounds = [1];
  for (let power = 2; bounds.at(-1) < largest; power *= 2) {
    bounds.push(power);
    if (bounds.at(-1) < largest && power > 1) bounds.push((power * 3) / 2);
  }
  return bounds;
}
