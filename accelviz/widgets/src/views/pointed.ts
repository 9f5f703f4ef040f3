// What the marks of the product mean when they are pointed at: a focus with its sentence.
import { count, number, span } from "../marks";
import { LANES, PLACE, alsoSaid, capital, columnsOf, combinedSaid, owners, pieceOf, range, readOf, rowAt, sectorsOf, several, waiting, written } from "./followed";

const MOST = 400; // columns that are lit at once

const call = (row) => `row ${number(row.row)}`;

// Columns of some nonzeros, and the worker that has the first of them.
function partOf(row, first, last) {
  const columns = row.columns ? [...row.columns.slice(first, Math.min(last + 1, first + MOST))] : [];
  const piece = row.pieces.length ? pieceOf(row, first) : null;
  const keys = [`row:${row.row}`];
  if (piece) keys.push(`block:${piece.block}`, `warp:${piece.block}:${piece.warp}`);
  return { nonzeros: [first, last], columns, piece, keys, warp: piece ? [piece.block, piece.warp] : null };
}

/** One nonzero of the followed row, or some that are drawn as one. */
export function nonzeroFocus(row, first, last = first) {
  const found = partOf(row, first, last);
  const { piece, columns } = found;
  if (last > first) {
    found.sentence = `${capital(span("nonzero", first, last))} of ${call(row)}, drawn as one.`;
    return found;
  }
  const column = columns[0];
  const who = piece ? `${capital(row.worker)} ${number(piece.warp)} of block ${number(piece.block)} reads` : "It reads";
  const source = column === undefined ? 0 : row.sources(row.row)[first];
  const [low, high] = column === undefined ? [0, 0] : sectorsOf(row, source);
  const where = column === undefined ? "" : `: column ${number(column)}`;
  found.sentence = `Nonzero ${number(first)} of ${call(row)}${where}.`;
  if (column === undefined) return found;
  found.keys.push(`row:${column}`);
  found.sentence +=
    ` ${who} ${row.unit} ${number(source)} of ${row.reads}: ` +
    `${count(row.nCols * row.bytes, "byte")}, ${count(high - low + 1, "sector")}${alsoSaid(row) && `; ${alsoSaid(row)}`}.`;
  return found;
}

function rowFocus(row) {
  const found = partOf(row, 0, row.degree - 1);
  const read = readOf(row), { beside, operation: { per_nonzero } } = row;
  const does = per_nonzero || beside ? `reads ${read}${per_nonzero ? " and" : ","} writes` : `sums ${read} into`;
  const sentence = `${capital(call(row))} of ${row.matrix} has ${count(row.degree, "nonzero")}: it ${does} ${written(row)}.`;
  return { ...found, warp: null, keys: [`row:${row.row}`], y: true, sentence };
}

function placeFocus(row) {
  return { ...rowFocus(row), sentence: `Row ${number(row.row)} is in place ${number(row.place)}. ${PLACE}` };
}

function yFocus(row) {
  const numbers = row.pieces.length;
  const blocks = new Set(row.pieces.map((piece) => piece.block)).size;
  const { per_nonzero, wide } = row.operation;
  const added = (where) => (per_nonzero ? "" : `; their sums are added up${where}`);
  let how = per_nonzero ? "Nothing is written." : "No worker has it: it is cleared beforehand.";
  if (numbers === 1) how = `${capital(row.worker)} ${number(row.pieces[0].warp)} of block ${number(row.pieces[0].block)} has all of it.`;
  else if (blocks > 1) how = `${count(numbers, "run")} of nonzeros in ${count(blocks, "block")} have parts of it${added("")}.`;
  else if (numbers > 1) how = `${capital(several(row.worker, owners(row)))} have parts of it${added(" within the block")}.`;
  if (!row.partition) how = "";
  return { y: true, keys: [`row:${row.row}`], sentence: `${capital(written(row))}${wide ? `, ${count(row.nCols, "column")}` : ""}. ${how}`.trim() };
}

function runFocus(row, block, warp, start) {
  const piece = row.pieces.find((each) => each.block === block && each.warp === warp && each.start === start);
  const place = piece ? row.place : row.work?.runs.find(
    (run) => run.warp === warp && run.start === start,
  )?.place;
  if (place === undefined) return warpFocus(row, block, warp);
  const lane = row.side.apart ? `lane ${place % LANES} of ` : "";
  const name = `${capital(`${lane}${row.worker}`)} ${number(warp)} of block ${number(block)}`;
  const wait = block === row.work?.block ? ` ${waiting(row, warp)}` : "";
  if (piece) {
    const found = partOf(row, piece.at, piece.at + piece.count - 1);
    const what = piece.count ? range(piece) : "nothing to sum";
    return { ...found, sentence: `${name} has ${what} of ${call(row)}.${wait}` };
  }
  const other = row.side.order ? row.side.order[place] : place;
  const sentence = `${name} has nonzeros of row ${number(other)}. Click to follow that row.${wait}`;
  return { warp: [block, warp], keys: [`row:${other}`, `block:${block}`, `warp:${block}:${warp}`], sentence };
}

function warpFocus(row, block, warp) {
  const name = `${capital(row.worker)} ${number(warp)} of block ${number(block)}.`;
  const keys = [`block:${block}`, `warp:${block}:${warp}`];
  return { warp: [block, warp], keys, sentence: `${name} ${waiting(row, warp)} ${combinedSaid(row)}`.trim() };
}

function blockFocus(row) {
  const [first, last] = row.blocks;
  const where = `${capital(call(row))} is in ${span("block", first, last)} of ${number(row.partition.blocks)}.`;
  const found = partOf(row, 0, row.degree - 1);
  return { ...found, warp: null, keys: [`block:${first}`], sentence: `${where} A block runs on one SM of the GPU, with all its warps.` };
}

// What the words of metadata mean, by how their names begin.
const WORDS = [
  ["degree", "How many nonzeros each of its rows has."],
  ["first nonzero", "Where its columns and values begin in the arrays of the graph in that order."],
  ["info: nonzeros of a warp", "How many nonzeros a warp takes of a row at most."],
  ["info: rows", "How many rows the block has."],
  ["info: nonzeros of this part", "The row is too long for one block; this is what the block takes of it."],
  ["slot and flags", "Where in shared memory its sum is kept, and who adds it up."],
  ["length", "How many nonzeros it takes."],
  ["padding", "Not used: it makes a line 16 bytes long."],
];

function fieldFocus(row, line, word, index) {
  const value = line.words[word];
  const fields = line.fields[word] ?? [];
  if (!fields.length) return { sentence: `Word ${word}: ${number(value)}.` };
  const above = fields.slice(0, index).reduce((sum, field) => sum + field.bits, 0);
  const field = fields[index];
  const bits = field.bits === 32 ? "all 32 bits" : `bits ${32 - above - field.bits} to ${31 - above}`;
  const place = /place/.test(`${field.name} ${line.meaning}`) ? ` ${PLACE}` : "";
  const what = WORDS.find(([name]) => field.name.startsWith(name))?.[1] ?? "";
  const sentence = `${capital(field.name)}: ${number(field.value)}${rowAt(row, field)}. ${what}${what && " "}It is in ${bits} of word ${word}. ${line.meaning ? `${capital(line.meaning)}.` : ""}${place}`;
  return { sentence, keys: [], field: [word, index] };
}

function laneFocus(row, lane, from, to) {
  const { reading } = row;
  const each = reading.vector > 1 ? `${reading.vector} neighboring columns in one load` : "one column";
  const last = Math.floor((to - from) / reading.vector);
  const combined = reading.lanes > 32; // then a lane of the worker is no lane of a warp
  const who = last ? `${combined ? "Threads" : "Lanes"} ${lane} to ${lane + last}` : `${combined ? "Thread" : "Lane"} ${lane}`;
  const whose = combined ? `combined ${row.worker} (${Math.ceil(reading.lanes / 32)} warps of 32)` : row.worker;
  const has = `${last ? "have" : "has"} ${span("column", from, to)} of ${row.operation.per_nonzero ? "" : `${row.writes} and of `}each row of ${row.reads}`;
  const warp = reading.lanes > 32 ? ` Threads ${Math.floor(lane / 32) * 32} to ${Math.floor(lane / 32) * 32 + 31} are one warp of the hardware.` : "";
  return { lane: [from, to], keys: [], sentence: `${who} of the ${whose} ${has}: ${each}.${warp}` };
}

function sectorFocus(row, rows, index, sector) {
  const each = rows[index];
  const [from, to] = columnsOf(row, each.column, sector);
  const first = nonzeroFocus(row, each.nonzero);
  const found = each.lane === undefined ? first : { keys: [`row:${each.column}`] };
  const bytes = `bytes ${number(sector * 32)} to ${number(sector * 32 + 31)} of ${row.reads}`;
  const whole = (to - from + 1) * row.bytes < 32 ? ` The rest of it is another ${row.unit}'s.` : "";
  const read = from <= each.last ? "" : " Another tile's blocks read it, or a later turn.";
  const sentence = `Sector ${number(sector)}, ${bytes}: ${span("column", Math.ceil(from), Math.floor(to))} of ${row.unit} ${number(each.column)}.${whole}${read}`;
  return { ...found, lane: [from, to], read: [{ column: each.column, from, to }], sentence };
}

/** The focus of a mark, from its token. `drawn` has what depends on the drawing. */
export function resolve(row, token, drawn) {
  const [kind, ...rest] = token.split(":");
  const [a, b, c] = rest.map(Number);
  if (kind === "row") return rowFocus(row);
  if (kind === "place") return placeFocus(row);
  if (kind === "y") return yFocus(row);
  if (kind === "nz") return nonzeroFocus(row, a, b);
  if (kind === "run") return runFocus(row, a, b, c);
  if (kind === "warp") return warpFocus(row, a, b);
  if (kind === "block") return blockFocus(row);
  if (kind === "field") return fieldFocus(row, drawn.line, a, b);
  if (kind === "lane") return laneFocus(row, a, b, c);
  if (kind === "sector") return sectorFocus(row, drawn.rows, a, b);
  return null;
}
