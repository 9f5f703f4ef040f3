// Schemes that walk the rows in the graph's order: runs of a row, whole rows, equal shares of rows
// plus nonzeros, runs of products, a block a row.

import { summaryOf, tally } from "./summary";
import { binarySearch, ceilDiv } from "./numbers";

const same = { order: null, placeOf: (row) => row };

// Python's metadata without names for its bits: a word a field.
function wordLine(title, words, names) {
  const fields = words.map((word, i) => [{ name: names[i], bits: 32, value: word }]);
  return { title, words: words.map((word) => word >>> 0), fields, meaning: "" };
}

// The warp-level partition and GNNAdvisor's neighbor groups: a run of at most `most` a warp.
export function runs(graph, { most, warps, line_bytes }) {
  const { degrees, pointers, rows } = graph;
  const before = new Int32Array(rows + 1); // runs of the rows before
  let slots = 0, shared = 0, cut = 0, together = 0, pieces = 0, filled = 0, busiest = 0;
  for (let row = 0; row < rows; row++) {
    const degree = degrees[row];
    const all = degree <= most ? (degree ? 1 : 0) : Math.ceil(degree / most);
    before[row + 1] = before[row] + all;
    const last = degree - (all - 1) * most;
    let left = all, ownPieces = 0, ownShared = 0;
    while (left > 0) {
      if (filled === 0 && left > warps) { // whole blocks of full runs, all at once
        const many = Math.floor((left - 1) / warps);
        slots += many * warps * most;
        ownPieces += many;
        if (warps > 1) ownShared += many * warps;
        left -= many * warps;
        continue;
      }
      const taken = Math.min(left, warps - filled);
      left -= taken;
      ownPieces += 1;
      if (taken > 1) ownShared += taken;
      busiest = Math.max(busiest, taken > 1 || left > 0 ? most : last);
      filled += taken;
      if (filled === warps) {
        slots += warps * busiest;
        filled = busiest = 0;
      }
    }
    together += ownShared;
    if (ownShared) shared += 1;
    if (ownPieces > 1) {
      cut += 1;
      pieces += ownPieces;
    }
  }
  slots += warps * busiest;
  const loads = tally();
  graph.histogram.degrees.forEach((degree, i) => {
    const many = graph.histogram.rows[i], others = Math.max(ceilDiv(degree, most) - 1, 0);
    loads.add(most, many * others);
    loads.add(degree - others * most, many);
  });
  const total = before[rows], blocks = ceilDiv(total, warps);
  const ofRun = (run) => {
    const row = binarySearch(before, run);
    const start = pointers[row] + (run - before[row]) * most;
    return { row, start, count: Math.min(most, pointers[row + 1] - start) };
  };
  const ofBlock = (block) => {
    const found = [], end = Math.min((block + 1) * warps, total);
    for (let run = block * warps; run < end; run++) {
      const { row, start, count } = ofRun(run);
      found.push({ warp: run - block * warps, place: row, start, count });
    }
    return found;
  };
  return {
    ...same, blocks, warps, runs: ofBlock,
    loadsOf(block, out) {
      out.fill(0);
      const end = Math.min((block + 1) * warps, total);
      let run = block * warps, row = binarySearch(before, run);
      for (; run < end; run++) {
        while (before[row + 1] <= run) row += 1;
        out[run - block * warps] =
          Math.min(most, degrees[row] - (run - before[row]) * most);
      }
      return out;
    },
    blocksOf: (place) => before[place + 1] === before[place] ? []
      : [before[place], before[place + 1] - 1].map((run) => Math.floor(run / warps)),
    metadata: (block) => line_bytes === 8
      ? slotLines(ofBlock(block), before, warps, block)
      : ofBlock(block).map(({ warp, place, start, count }) =>
        wordLine(`warp ${(block * warps + warp).toLocaleString("en")}`, [place, start, count, 0],
          ["row", "first nonzero", "length", "padding"])),
    summary: (nCols) => summaryOf({
      blocks, warps: blocks * warps, slots, loads: loads.loads(),
      metadata_bytes: line_bytes * total, rows_shared: shared, rows_cut: cut,
      shared_atomics: together * nCols, global_atomics: pieces * nCols,
    }),
  };
}

// GNNAdvisor's Algorithm 2: a warp's row, and one word with its slot of shared memory and flags.
function slotLines(runsOfBlock, before, warps, block) {
  const LEADER = 32, SHARED = 64, CUT = 128, BLOCK_SHARES = 256;
  const places = runsOfBlock.map((run) => run.place);
  const alone = (i) => places[i - 1] !== places[i] && places[i + 1] !== places[i];
  const shares = places.some((_, i) => !alone(i));
  let slot = -1;
  return runsOfBlock.map(({ warp, place }, i) => {
    const leads = i === 0 || places[i - 1] !== place;
    if (leads) slot += 1;
    const [first, last] = [before[place], before[place + 1] - 1].map((k) => Math.floor(k / warps));
    const word = slot | (leads && LEADER) | (!alone(i) && SHARED) |
      (first !== last && CUT) | (shares && BLOCK_SHARES);
    const title = `warp ${(block * warps + warp).toLocaleString("en")}`;
    return wordLine(title, [place, word], ["row", "slot and flags"]);
  });
}

// Consecutive rows to consecutive warps.
export function rows(graph, { each, warps, atomics = 0 }) {
  const { degrees, pointers } = graph, total = graph.rows;
  const perBlock = each * warps, blocks = ceilDiv(total, perBlock);
  const loads = tally();
  let slots = 0, busiest = 0;
  if (each === 1)
    graph.histogram.degrees.forEach((degree, i) => loads.add(degree, graph.histogram.rows[i]));
  for (let first = 0, warp = 0; first < total; first += each, warp++) {
    const load = pointers[Math.min(first + each, total)] - pointers[first];
    if (each > 1) loads.add(load, 1);
    if (load > busiest) busiest = load;
    if ((warp + 1) % warps === 0 || first + each >= total) {
      slots += busiest * warps;
      busiest = 0;
    }
  }
  return {
    ...same, blocks, warps,
    runs(block) {
      const found = [], end = Math.min((block + 1) * perBlock, total);
      for (let row = block * perBlock; row < end; row++) {
        const warp = Math.floor((row - block * perBlock) / each);
        found.push({ warp, place: row, start: pointers[row], count: degrees[row] });
      }
      return found;
    },
    loadsOf(block, out) {
      for (let warp = 0; warp < warps; warp++) {
        const first = Math.min(block * perBlock + warp * each, total);
        out[warp] = pointers[Math.min(first + each, total)] - pointers[first];
      }
      return out;
    },
    blocksOf: (place) => Array(2).fill(Math.floor(place / perBlock)),
    metadata: () => null,
    summary: () => summaryOf({
      blocks, warps: blocks * warps, slots, loads: loads.loads(), metadata_bytes: 0,
      rows_shared: 0, rows_cut: 0, shared_atomics: 0, global_atomics: atomics * graph.nnz,
    }),
  };
}

// Equal shares of the path through row ends and nonzeros: `items` of them a warp.
export function merge_path(graph, { items, warps }) {
  const { pointers } = graph, last = graph.rows;
  const path = last + graph.nnz, workers = ceilDiv(path, items), blocks = ceilDiv(workers, warps);
  const firstRow = new Int32Array(workers + 1);
  for (let worker = 1, row = 0; worker < workers; worker++) {
    const item = worker * items;
    while (row < last && pointers[row + 1] + row < item) row += 1;
    firstRow[worker] = row;
  }
  firstRow[workers] = last;
  const nonzeroAt = (worker) => Math.min(worker * items, path) - firstRow[worker];
  const counts = new Float64Array(items + 1);
  let slots = 0, busiest = 0, shared = 0, cut = 0, inside = 0, distinct = 0;
  let lastShared = -1, lastCut = -1, lastRow = -1;
  for (let worker = 0, start = 0; worker < workers; worker++) {
    const end = nonzeroAt(worker + 1), load = end - start;
    counts[load] += 1;
    if (load > busiest) busiest = load;
    if ((worker + 1) % warps === 0 || worker + 1 === workers) {
      slots += busiest * warps;
      busiest = 0;
    }
    const row = firstRow[worker];
    if (worker && pointers[row] < start && start < pointers[row + 1]) { // begins inside a row
      inside += 1;
      if (row !== lastRow) distinct += 1, lastRow = row;
      if (worker % warps) {
        if (row !== lastShared) shared += 1, lastShared = row;
      } else if (row !== lastCut) cut += 1, lastCut = row;
    }
    start = end;
  }
  const worksOn = (worker, then) => {
    const start = nonzeroAt(worker), end = nonzeroAt(worker + 1);
    const stop = Math.min(firstRow[worker + 1] + 1, last);
    for (let row = firstRow[worker]; row < stop; row++) {
      const from = Math.max(pointers[row], start), count = Math.min(pointers[row + 1], end) - from;
      const endsEmpty = pointers[row] === pointers[row + 1] && row < firstRow[worker + 1];
      if (count > 0 || endsEmpty) then(row, from, count);
    }
  };
  return {
    ...same, blocks, warps,
    runs(block) {
      const found = [], end = Math.min((block + 1) * warps, workers);
      for (let worker = block * warps; worker < end; worker++) {
        worksOn(worker, (place, start, count) =>
          found.push({ warp: worker - block * warps, place, start, count }));
      }
      return found;
    },
    loadsOf(block, out) {
      for (let warp = 0; warp < warps; warp++) {
        const worker = block * warps + warp;
        out[warp] = worker < workers ? nonzeroAt(worker + 1) - nonzeroAt(worker) : 0;
      }
      return out;
    },
    blocksOf(place) {
      const ends = [pointers[place], Math.max(pointers[place + 1] - 1, pointers[place])];
      return ends.map((nonzero) => Math.floor((nonzero + place) / items / warps));
    },
    metadata(block) {
      const found = [], end = Math.min((block + 1) * warps, workers + 1);
      for (let worker = block * warps; worker < end; worker++)
        found.push(wordLine(`warp ${worker.toLocaleString("en")}`, [firstRow[worker]],
          ["first row"]));
      return found;
    },
    summary: (nCols) => summaryOf({
      blocks, warps: blocks * warps, slots, loads: tally().counted(counts).loads(),
      metadata_bytes: 4 * (workers + 1), rows_shared: shared, rows_cut: cut,
      shared_atomics: 0, global_atomics: (inside + distinct) * nCols,
    }),
  };
}

const common = (a, b) => (b ? common(b, a % b) : a);

// Runs of consecutive products; a nonzero is `heads` of them and counts for the run of its first.
export function products(graph, { run, heads, warps, atomics }) {
  const { pointers, nnz } = graph, perBlock = run * warps;
  const blocks = ceilDiv(nnz * heads, perBlock);
  const workerOf = (nonzero) => Math.floor((nonzero * heads) / run);
  const firstOf = (worker) => Math.min(ceilDiv(worker * run, heads), nnz);
  // The loads repeat after so many workers, whole blocks of them.
  const cycle = heads / common(heads, run);
  const period = (cycle * warps) / common(cycle, warps);
  const cuts = Array.from({ length: period + 1 }, (_, i) => ceilDiv(i * run, heads));
  const many = Math.floor(nnz / cuts[period]), rest = nnz % cuts[period];
  const loads = tally();
  let slots = 0;
  for (const [limit, times] of [[Infinity, many], [rest, 1]]) {
    for (let first = 0; first < period; first += warps) {
      let busiest = 0;
      for (let i = first; i < first + warps; i++) {
        const load = Math.min(cuts[i + 1], limit) - Math.min(cuts[i], limit);
        loads.add(load, times);
        busiest = Math.max(busiest, load);
      }
      slots += busiest * warps * times;
    }
  }
  let shared = 0, cut = 0;
  for (let row = 0; row < graph.rows; row++) {
    const first = pointers[row], last = pointers[row + 1] - 1;
    if (last < first) continue;
    // Workers and blocks that no nonzero counts for do not count either.
    const worker = heads < run ? workerOf(last) - workerOf(first) : last - first;
    const boundaries = heads < perBlock
      ? Math.floor((last * heads) / perBlock) - Math.floor((first * heads) / perBlock)
      : last - first;
    if (boundaries) cut += 1;
    if (worker > boundaries) shared += 1;
  }
  return {
    ...same, blocks, warps,
    runs(block) {
      const found = [];
      let row = 0;
      for (let warp = 0; warp < warps; warp++) {
        const from = firstOf(block * warps + warp), to = firstOf(block * warps + warp + 1);
        if (from >= to) continue;
        row = Math.max(row, binarySearch(pointers, from, graph.rows));
        for (let start = from; start < to;) {
          while (pointers[row + 1] <= start) row += 1;
          const count = Math.min(pointers[row + 1], to) - start;
          found.push({ warp, place: row, start, count });
          start += count;
        }
      }
      return found;
    },
    loadsOf(block, out) {
      for (let warp = 0; warp < warps; warp++)
        out[warp] = firstOf(block * warps + warp + 1) - firstOf(block * warps + warp);
      return out;
    },
    blocksOf: (place) => pointers[place] === pointers[place + 1] ? []
      : [pointers[place], pointers[place + 1] - 1].map((k) => Math.floor((k * heads) / perBlock)),
    metadata: () => null,
    summary: (nCols) => summaryOf({
      blocks, warps: blocks * warps, slots, loads: loads.loads(), metadata_bytes: 0,
      rows_shared: shared, rows_cut: cut, shared_atomics: 0, global_atomics: atomics * nnz * nCols,
    }),
  };
}

// A block a row, whose workers take its nonzeros in turn.
export function vertex(graph, { warps }) {
  const { degrees, pointers } = graph, loads = tally();
  let slots = 0, shared = 0;
  graph.histogram.degrees.forEach((degree, i) => {
    const many = graph.histogram.rows[i], each = Math.floor(degree / warps), more = degree % warps;
    loads.add(each, many * (warps - more));
    loads.add(each + 1, many * more);
    slots += many * (each + (more > 0)) * warps;
    if (degree > 1 && warps > 1) shared += many;
  });
  return {
    ...same, blocks: graph.rows, warps,
    runs(block) {
      const start = pointers[block], count = degrees[block];
      if (warps === 1 || !count) return [{ warp: 0, place: block, start, count }];
      return Array.from({ length: count }, (_, i) =>
        ({ warp: i % warps, place: block, start: start + i, count: 1 }));
    },
    loadsOf(block, out) {
      const each = Math.floor(degrees[block] / warps), more = degrees[block] % warps;
      for (let warp = 0; warp < warps; warp++) out[warp] = each + (warp < more ? 1 : 0);
      return out;
    },
    blocksOf: (place) => [place, place],
    metadata: () => null,
    summary: () => summaryOf({
      blocks: graph.rows, warps: graph.rows * warps, slots, loads: loads.loads(),
      metadata_bytes: 0, rows_shared: shared, rows_cut: 0, shared_atomics: 0, global_atomics: 0,
    }),
  };
}
