// The followed row: where it is in the matrix, the order and the partition, and who has what of it.
import { count, number, span } from "../marks";

/** What the word means, for a tooltip. */
export const PLACE =
  "Place: position of the row in the order in which the kernel walks the rows, counted from 0.";

/** The row of the graph that a field of the metadata means by a place: " (row 4,614)". */
export function rowAt({ side }, { name, value }) {
  const row = /place/.test(name) ? side.order?.[value] : undefined;
  return row === undefined ? "" : ` (row ${number(row)})`;
}

const SECTOR = 32; // bytes that memory moves at once
export const LANES = 32; // threads of a warp of the hardware

/** Everything that the pictures of the product draw, from one scene. */
export function followed(scene) {
  const { graph, settings, a: side } = scene;
  const row = Math.min(settings.row, graph.rows - 1);
  const known = graph.rows > 0 && side.partition !== null;
  const found = {
    ...{ scene, graph, side, row, nCols: settings.nCols, bytes: side.bytes ?? 4 },
    degree: graph.rows ? graph.degrees[row] : 0,
    columns: graph.rows ? graph.columns(row) : null,
    ...namesOf(scene, scene.settings.nCols),
    worker: side.worker,
    place: known ? side.placeOf(row) : null,
    partition: known ? side.partition : null,
    reading: side.reading ?? null,
    ...{ blocks: [], pieces: [], work: null },
  };
  if (!known || !side.partition.blocks) return found;
  found.blocks = side.partition.blocksOf(found.place);
  found.pieces = piecesOf(found);
  found.work = workOf(side, settings.block);
  return found;
}

// What the matrices are called: A, or its transpose, what nonzeros read and what is written.
function namesOf({ operation, graph }, nCols) {
  const { reads, writes, beside, by_sender, at_nonzeros } = operation;
  return {
    ...{ operation, reads, writes, beside, matrix: by_sender ? "Aᵀ" : "A" },
    /** What each nonzero reads: a row, or of what has only one for each nonzero a number. */
    unit: each(at_nonzeros ? nCols : 0),
    /** What each nonzero of a row reads a row of: its neighbor's, or one of its own. */
    sources: (row) => {
      if (!operation.at_nonzeros) return graph.columns(row);
      return Int32Array.from({ length: graph.degrees[row] }, (_, i) => graph.pointers[row] + i);
    },
  };
}

// What an array has one of for each nonzero: a row, or a number.
const each = (wide) => (wide === 1 ? "number" : "row");

/** What the row writes: "row 7 of Y", or "168 numbers of scores". */
export const written = ({ row, degree, nCols, writes, operation: { per_nonzero, wide } }) =>
  (per_nonzero ? `${count(degree, each(wide ? nCols : 1))} of ${writes}` : `row ${number(row)} of ${writes}`);

/** How much its nonzeros read: "168 rows", or "168 numbers". */
export const gatheredMany = ({ degree, unit }) => count(degree, unit);

// Whether what is read besides is another row, or number, of each nonzero's own.
const ofBoth = ({ beside, operation: { at_nonzeros } }) => at_nonzeros && beside;

/** The same with its name: "168 rows of X", or "168 numbers of alpha and of d_alpha". */
export const gatheredOf = (row) => `${gatheredMany(row)} of ${ofBoth(row) ? `${row.beside} and of ` : ""}${row.reads}`;

/** Say of what is read in the same places; nothing where there is no such. */
export const alsoSaid = (row) => (ofBoth(row) ? `as much of ${row.beside}` : "");

/** All that it reads: "row 7 of U and 168 rows of V", or "168 rows of X". */
export const readOf = (row) =>
  `${row.beside && row.degree && !ofBoth(row) ? `row ${number(row.row)} of ${row.beside} and ` : ""}${gatheredOf(row)}`;

// The runs of the row: `at` counts from its first nonzero. A row without nonzeros may have one of 0.
function piecesOf({ partition, place, blocks }) {
  const pieces = [];
  for (let block = blocks[0]; blocks.length && block <= blocks[1]; ++block)
    for (const run of partition.runs(block)) if (run.place === place) pieces.push({ block, ...run });
  pieces.sort((a, b) => a.start - b.start);
  const first = pieces.length ? pieces[0].start : 0;
  for (const piece of pieces) piece.at = piece.start - first;
  return pieces;
}

/** What the workers of a block do: their runs, the nonzeros of each, the busiest one. Where lanes
 *  have rows of their own, side by side, a warp lasts as long as the longest of them. */
function workOf({ partition, apart }, block) {
  const runs = partition.runs(block);
  const loads = new Array(partition.warps).fill(0);
  for (const { warp, count } of runs)
    loads[warp] = apart ? Math.max(loads[warp], count) : loads[warp] + count;
  const busiest = loads.reduce((most, load, i) => (load > loads[most] ? i : most), 0);
  return { block, runs, loads, busiest, most: loads[busiest] ?? 0 };
}

/** The piece that has a nonzero of the row; pieces are in order and side by side. */
export function pieceOf(row, nonzero) {
  let low = 0;
  let high = row.pieces.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (row.pieces[middle].at <= nonzero) low = middle;
    else high = middle - 1;
  }
  return row.pieces[low] ?? null;
}

/** First and last sector of some columns of a row that is read, from the beginning of the array. */
export function sectorsOf(row, column, first = 0, last = row.nCols - 1) {
  const begin = (column * row.nCols + first) * row.bytes;
  const end = (column * row.nCols + last + 1) * row.bytes - 1;
  return [Math.floor(begin / SECTOR), Math.floor(end / SECTOR)];
}

/** Columns that a sector has of a row that is read: the first and the last. */
export function columnsOf(row, column, sector) {
  const at = (byte) => byte / row.bytes - column * row.nCols;
  const first = Math.max(at(sector * SECTOR), 0);
  return [first, Math.min(at((sector + 1) * SECTOR) - 1, row.nCols - 1)];
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Which nonzeros of the row a piece has: "nonzeros 0 to 31". */
export const range = (piece) => span("nonzero", piece.at, piece.at + piece.count - 1);

/** Numbers of the workers that have some of the row in the block that is shown, ascending. */
export const owners = (row) =>
  [...new Set(row.pieces.filter((p) => p.block === row.work?.block).map((p) => p.warp))].sort(
    (a, b) => a - b,
  );

/** "warps 0 to 5", "warps 0, 2 and 7", "168 warps". */
export function several(worker, numbers) {
  const [first, last] = [numbers[0], numbers[numbers.length - 1]];
  if (last - first === numbers.length - 1) return span(worker, first, last);
  if (numbers.length > 4) return count(numbers.length, worker);
  const text = numbers.map(number);
  return `${worker}s ${text.slice(0, -1).join(", ")} and ${text[text.length - 1]}`;
}

// Whether what the strategy calls a warp is several of the hardware's.
export const isCombined = ({ worker, reading }) => worker === "warp" && reading?.lanes > LANES;

/** What is to be known of such warps where they are shown as if each were one. */
export const combinedSaid = (row) => isCombined(row)
  ? `A warp is here a combined warp: ${Math.ceil(row.reading.lanes / LANES)} warps of the hardware side by side. They are counted as if all were in the block at once.`
  : "";

/** That of a row's lane groups, one a head, the workload has the first. */
export const headsSaid = ({ side: { heads, worker } }) => heads > 1
  ? `A row has a ${worker} for each of its ${heads} heads; only the first head's is counted, the others stand empty.`
  : "";

/** Which warps of the hardware work on the row in a block of so many, and what a worker is of them. */
export function hardware(row, warps) {
  const { reading, partition, worker } = row, combined = isCombined(row);
  const each = combined ? reading.lanes : (warps * LANES) / partition.warps; // threads of a worker
  const own = new Set();
  for (const one of owners(row)) {
    const last = Math.ceil(((one + 1) * each) / LANES);
    // Workers that the block has no threads for come after the others, on the same warps.
    for (let warp = Math.floor((one * each) / LANES); warp < last; ++warp) own.add(warp % warps);
  }
  const places = Math.floor((warps * LANES) / each); // workers side by side
  const track = "A track is a warp of the hardware";
  const many = Math.ceil(each / LANES), name = combined ? "combined warp" : worker;
  let said = "";
  if (many > 1) said = `${track}; a ${name} is ${many} of them side by side: ${worker} 0 of the block is warps 0 ${many > 2 ? "to" : "and"} ${many - 1} here.`;
  if (combined) said += " One without work takes no turn.";
  if (owners(row).some((one) => one >= places))
    said += ` The block has ${count(warps, "warp")}: ${name} ${number(places)} and those after it take a later turn on the same ones.`;
  if (each < LANES) said = `${track}, which is ${count(LANES / each, worker)} of ${count(each, "lane")}.`;
  // Nonzeros that a warp of the hardware has a part in, in all its turns; null of those with several workers.
  const shareOf = (warp) => each < LANES || !row.work ? null
    : row.work.loads.reduce((sum, load, i) => sum + (i % places === Math.floor((warp * LANES) / each) ? load : 0), 0);
  return { own, said, shareOf };
}

/** Who waits for the busiest of the block: workers without a nonzero, all with fewer than the busiest
 *  has, and how many the next busiest has. Groups of other heads, which are not counted, do not. */
export function awaiting(row) {
  const { loads, most } = row.work, none = headsSaid(row) ? 0 : loads.filter((load) => !load).length;
  const fewer = loads.filter((load) => load && load < most);
  return { none, others: none + fewer.length, next: fewer.reduce((a, b) => Math.max(a, b), 0) };
}

/** Say how long a worker of the block waits, and for whom. */
export function waiting(row, warp) {
  const { worker, work, side } = row;
  const [load, most] = [work.loads[warp], work.most];
  const name = `${worker} ${work.busiest}`;
  if (!most) return "No worker of this block has a nonzero.";
  const busiest = side.apart ? `${name} has the longest row of the block: ${number(most)}`
    : `${name} is the busiest of the block: ${number(most)}`;
  if (!load && headsSaid(row)) return headsSaid(row);
  if (!load) return `It has no nonzero. ${capital(busiest)}; until it is done, this one waits.`;
  const { others } = awaiting(row), wait = others > 1 ? "others wait" : "other waits";
  if (load === most) return `None has more in this block, so it waits for nobody${others ? `; ${number(others)} ${wait} for it` : ""}.`;
  return (
    `${side.apart ? "Its longest row" : "It"} has ${count(load, "nonzero")}. ${capital(busiest)}. ` +
    `So it waits while ${number(most - load)} more are summed.`
  );
}
