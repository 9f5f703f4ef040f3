// Rows to lane groups in the graph's order, a group for each head of a row; a long row has a block
// for itself, and these come first. A row's nonzeros count for the group of its first head.

import { ceilDiv } from "./numbers";
import { summaryOf, tally } from "./summary";

export function row_groups(graph, { most, heads, warps }) {
  const { degrees, pointers, rows } = graph;
  const long = [], before = new Int32Array(rows + 1); // long rows, and those up to each row
  for (let row = 0; row < rows; row++) {
    before[row] = long.length;
    if (degrees[row] > most) long.push(row);
  }
  before[rows] = long.length;
  const blocks = long.length + ceilDiv(rows * heads, warps);
  const share = (row) => ceilDiv(degrees[row], warps);
  const isLong = (row) => degrees[row] > most;
  // The rows whose first head is in a block of short ones, and the group that has it.
  const shortRows = (block, then) => {
    const first = (block - long.length) * warps;
    const last = Math.min(ceilDiv(first + warps, heads), rows);
    for (let row = ceilDiv(first, heads); row < last; row++)
      if (!isLong(row)) then(row, row * heads - first);
  };
  const loads = tally();
  let slots = 0;
  for (const row of long) {
    const each = share(row), full = Math.floor(degrees[row] / each);
    loads.add(each, full);
    loads.add(degrees[row] - full * each, 1);
    slots += each * warps;
  }
  for (let block = long.length; block < blocks; block++) {
    let busiest = 0;
    shortRows(block, (row) => {
      loads.add(degrees[row], 1);
      busiest = Math.max(busiest, degrees[row]);
    });
    slots += busiest * warps;
  }
  return {
    blocks, warps, order: null, placeOf: (row) => row,
    runs(block) {
      const found = [];
      if (block >= long.length) {
        shortRows(block, (row, warp) =>
          found.push({ warp, place: row, start: pointers[row], count: degrees[row] }));
        return found;
      }
      const row = long[block], each = share(row);
      for (let warp = 0; warp * each < degrees[row]; warp++) {
        found.push({ warp, place: row, start: pointers[row] + warp * each,
          count: Math.min(each, degrees[row] - warp * each) });
      }
      return found;
    },
    loadsOf(block, out) {
      out.fill(0);
      for (const { warp, count } of this.runs(block)) out[warp] += count;
      return out;
    },
    blocksOf: (place) => Array(2).fill(isLong(place) ? before[place]
      : long.length + Math.floor((place * heads) / warps)),
    metadata: () => null,
    summary: () => summaryOf({
      blocks, warps: blocks * warps, slots, loads: loads.loads(), metadata_bytes: 0,
      rows_shared: warps > 1 ? long.length : 0, rows_cut: 0, shared_atomics: 0, global_atomics: 0,
    }),
  };
}
