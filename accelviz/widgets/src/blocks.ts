// Schemes that describe blocks of rows of equal degree: Accel-GCN's Algorithms 1 and 2, and lane
// groups. Blocks of one degree are alike, so everything follows from the degree histogram.

import { summaryOf, tally } from "./summary";
import { binarySearch, ceilDiv, fieldsNamed } from "./numbers";

const INT4_BYTES = 16, FIELD_LIMIT = 65535, HALF = 65536;

// The smallest divisor f of `warps` with f * most >= degree.
function factorOf(degree, warps, most) {
  for (let factor = 1; factor <= warps; factor++)
    if (warps % factor === 0 && factor * most >= degree) return factor;
  return warps;
}

// Classes of blocks: the rows of one degree, in whole rows or cut into parts. `pattern` gives the
// rows of a block and the nonzeros of a warp for a degree up to the bound.
function classesOf(graph, { warps, most }, pattern, { empty, partsFirst }) {
  const bound = warps * most;
  const { degrees, rows } = graph.histogram;
  const whole = [], parts = [];
  let place = 0, nz = 0;
  degrees.forEach((degree, i) => {
    const own = { degree, rows: rows[i], place, nz };
    if (degree > bound) {
      const each = ceilDiv(degree, bound);
      parts.push({ ...own, parts: each, blocks: rows[i] * each });
    } else if (degree || empty) {
      const [blockRows, warpNzs] = pattern(degree);
      whole.push({ ...own, blockRows, warpNzs, blocks: ceilDiv(rows[i], blockRows) });
    }
    place += rows[i];
    nz += rows[i] * degree;
  });
  const classes = partsFirst ? [...parts, ...whole] : [...whole, ...parts];
  let first = 0;
  for (const each of classes) {
    each.first = first;
    first += each.blocks;
  }
  const cut = parts.reduce((sum, each) => sum + each.blocks, 0);
  return { classes, starts: classes.map((each) => each.first), blocks: first, cut, bound };
}

// One block, decoded: `BlockFields` of Python.
function fieldsOf({ classes, starts, bound }, warps, block) {
  const own = classes[binarySearch(starts, block)];
  const turn = block - own.first;
  const { degree } = own;
  if (own.parts) {
    const row = Math.floor(turn / own.parts), part = turn % own.parts;
    const rowNzs = Math.min(bound, degree - part * bound);
    const nz = own.nz + row * degree + part * bound;
    const share = ceilDiv(rowNzs, warps);
    return { degree, place: own.place + row, nz, rows: 1, warpNzs: share, rowNzs, part };
  }
  const skipped = turn * own.blockRows;
  const rows = Math.min(own.blockRows, own.rows - skipped);
  const { warpNzs } = own;
  const nz = own.nz + skipped * degree;
  return { degree, place: own.place + skipped, nz, rows, warpNzs, rowNzs: degree, part: null };
}

const perRow = ({ rowNzs, warpNzs }) => Math.max(ceilDiv(rowNzs, Math.max(warpNzs, 1)), 1);

// A block deals out `perRow` shares for each of its rows; the shares go to the warps in turn.
function runsOf(fields, warps) {
  const each = perRow(fields), runs = [];
  for (let share = 0; share < fields.rows * each; share++) {
    const row = Math.floor(share / each), offset = (share % each) * fields.warpNzs;
    runs.push({
      warp: share % warps,
      place: fields.place + row,
      start: fields.nz + row * fields.rowNzs + offset,
      count: Math.min(fields.warpNzs, fields.rowNzs - offset),
    });
  }
  return runs;
}

// What the warps of a block have to do, summed by warp, without spelling out its runs.
function loadsOf(fields, warps, out) {
  const each = perRow(fields), { rows, rowNzs, warpNzs } = fields;
  if (each === 1) {
    const turns = Math.floor(rows / warps), more = rows % warps;
    for (let warp = 0; warp < warps; warp++) out[warp] = (turns + (warp < more)) * rowNzs;
    return out;
  }
  out.fill(0);
  for (let share = 0; share < rows * each; share++)
    out[share % warps] += Math.min(warpNzs, rowNzs - (share % each) * warpNzs);
  return out;
}

// The kinds of blocks that there are: how many of each, and such a block.
function* kindsOf({ classes, bound }, warps) {
  for (const { degree, rows, parts, blockRows, warpNzs } of classes) {
    if (parts) {
      const full = Math.floor(degree / bound), rest = degree % bound;
      const share = bound / warps;
      if (full) yield { many: rows * full, degree, rows: 1, warpNzs: share, rowNzs: bound };
      const last = { many: rows, degree, rows: 1, warpNzs: ceilDiv(rest, warps), rowNzs: rest };
      if (rest) yield last;
      continue;
    }
    const full = Math.floor(rows / blockRows), rest = rows % blockRows;
    const kind = { degree, warpNzs, rowNzs: degree };
    if (full) yield { ...kind, many: full, rows: blockRows };
    if (rest) yield { ...kind, many: 1, rows: rest };
  }
}

function counted(shape, warps, degreesOfCut) {
  const loads = tally(), out = new Float64Array(warps);
  let slots = 0, shared = 0, sums = 0, parts = 0;
  for (const kind of kindsOf(shape, warps)) {
    const each = perRow(kind), part = kind.degree > shape.bound, { many } = kind;
    if (part) parts += many;
    if (each > 1) {
      if (!part) shared += many * kind.rows;
      sums += many * kind.rows * each;
    }
    const found = loadsOf(kind, warps, out);
    slots += many * warps * found.reduce((most, load) => Math.max(most, load), 0);
    for (const load of found) loads.add(load, many);
  }
  return { slots, loads: loads.loads(), shared, sums, parts, cut: degreesOfCut };
}

function cutRows(graph, bound) {
  const { degrees, rows } = graph.histogram;
  return rows.reduce((sum, many, i) => sum + (degrees[i] > bound ? many : 0), 0);
}

function blockOf(shape, degree, place) {
  const own = shape.classes.find((each) => each.degree === degree);
  if (!own) return [];
  const row = place - own.place;
  if (!own.parts) return Array(2).fill(own.first + Math.floor(row / own.blockRows));
  return [own.first + row * own.parts, own.first + (row + 1) * own.parts - 1];
}

const degreeAt = (graph, place) => graph.degrees[graph.sorted().order[place]];

export function block_level(graph, { warps, most }) {
  const pattern = (degree) => {
    const factor = factorOf(degree, warps, most);
    return [warps / factor, ceilDiv(degree, factor)];
  };
  const shape = classesOf(graph, { warps, most }, pattern, { empty: false, partsFirst: false });
  const { slots, loads, shared, sums, parts, cut } = counted(
    shape, warps, cutRows(graph, shape.bound));
  const fields = (block) => fieldsOf(shape, warps, block);
  return {
    blocks: shape.blocks,
    warps,
    get order() { return graph.sorted().order; },
    placeOf: (row) => graph.sorted().place[row],
    runs: (block) => runsOf(fields(block), warps),
    loadsOf: (block, out) => loadsOf(fields(block), warps, out),
    blocksOf: (place) => blockOf(shape, degreeAt(graph, place), place),
    metadata: (block) => [int4Line(fields(block), block, shape.bound)],
    summary: (nCols) => summaryOf({
      blocks: shape.blocks, warps: shape.blocks * warps, slots, loads,
      metadata_bytes: INT4_BYTES * shape.blocks,
      rows_shared: shared + (warps > 1 ? cut : 0), rows_cut: cut,
      shared_atomics: sums * nCols, global_atomics: parts * nCols,
    }),
  };
}

const counts = (number) => `${number.toLocaleString("en")} nonzero${number === 1 ? "" : "s"}`;

// The int4 of a block, its bits and what they say (Accel-GCN, section III-C).
function int4Line(fields, block, bound) {
  const { degree, place, nz, rows, warpNzs, rowNzs } = fields;
  const written = (number) => number.toLocaleString("en");
  const cut = degree > bound, each = perRow(fields);
  const info = cut ? rowNzs : warpNzs * HALF + rows;
  const who = rows > 1 ? `each of the ${rows} rows from place ${written(place)} on`
    : `the row in place ${written(place)}`;
  const share = each === 1 ? "one warp a row" : `${each} warps share a row`;
  return {
    title: `block ${written(block)}`,
    words: [degree, place, nz, info],
    fields: [
      [{ name: "degree", bits: 32, value: degree }],
      [{ name: "first place", bits: 32, value: place }],
      [{ name: "first nonzero (loc)", bits: 32, value: nz }],
      cut ? [{ name: "info: nonzeros of this part", bits: 32, value: rowNzs }]
        : [{ name: "info: nonzeros of a warp", bits: 16, value: warpNzs },
          { name: "info: rows", bits: 16, value: rows }],
    ],
    meaning: cut
      ? `degree ${written(degree)}, more than the ${written(bound)} that a block takes: this one ` +
        `takes ${counts(rowNzs)} of the row in place ${written(place)}, the first at position ${written(nz)}, ` +
        `at most ${written(warpNzs)} a warp`
      : `degree ${written(degree)}: ${who} has ${counts(degree)}, the first at position ` +
        `${written(nz)}; ${share}, at most ${counts(warpNzs)} each`,
  };
}

export function lane_groups(graph, cutting) {
  const { warps, most, short, tiles, in_place, atomics = 0 } = cutting;
  const pattern = (degree) => {
    const factor = degree > most ? factorOf(degree, warps, most) : 1;
    const alone = warps * Math.max(Math.floor(short / Math.max(degree, 1)), 1);
    const rows = Math.min(degree > most ? warps / factor : alone, FIELD_LIMIT);
    return [rows, Math.max(ceilDiv(degree, factor), 1)];
  };
  const shape = classesOf(graph, { warps, most }, pattern, { empty: true, partsFirst: true });
  const { slots, loads, shared, parts, cut } = counted(shape, warps, cutRows(graph, shape.bound));
  // Where the blocks come in the order of the graph: which of them is at which place in the grid.
  let moved = null;
  const sequence = () => (moved ??= inPlaceOrder(graph, shape));
  const fields = (block) =>
    fieldsOf(shape, warps, in_place ? sequence().described[block] : block);
  return {
    blocks: shape.blocks,
    warps,
    get order() { return graph.sorted().order; },
    placeOf: (row) => graph.sorted().place[row],
    runs: (block) => runsOf(fields(block), warps),
    loadsOf: (block, out) => loadsOf(fields(block), warps, out),
    blocksOf: (place) => {
      const found = blockOf(shape, degreeAt(graph, place), place);
      return in_place ? found.map((block) => sequence().launched[block]) : found;
    },
    metadata: (block) => [laneLine(fields(block), block)],
    summary: () => summaryOf({
      blocks: shape.blocks, warps: shape.blocks * warps, slots, loads,
      metadata_bytes: INT4_BYTES * shape.blocks,
      rows_shared: shared + (warps > 1 ? cut : 0), rows_cut: cut, shared_atomics: 0,
      global_atomics: tiles === null && parts ? null : parts * (tiles ?? 0) + atomics * graph.nnz,
    }),
  };
}

function inPlaceOrder(graph, shape) {
  const { order } = graph.sorted();
  const at = new Int32Array(graph.rows).fill(-1); // block that begins with this row of the graph
  for (const own of shape.classes) {
    if (own.parts) continue;
    for (let i = 0; i < own.blocks; i++) at[order[own.place + i * own.blockRows]] = own.first + i;
  }
  const described = new Int32Array(shape.blocks), launched = new Int32Array(shape.blocks);
  let next = shape.cut;
  for (let block = 0; block < shape.cut; block++) described[block] = launched[block] = block;
  for (let row = 0; row < graph.rows; row++) {
    if (at[row] < 0) continue;
    described[next] = at[row];
    launched[at[row]] = next++;
  }
  return { described, launched };
}

function laneLine({ degree, place, nz, rows, warpNzs, part }, block) {
  const info = part === null ? warpNzs * HALF + rows : part;
  const names = ["degree", "first place", "first nonzero", "nonzeros of a group | rows, or the part"];
  const words = [degree, place, nz, info];
  const fields = words.map((word, i) => fieldsNamed(names[i], word));
  return { title: `block ${block.toLocaleString("en")}`, words, fields, meaning: "" };
}
