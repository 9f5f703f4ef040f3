// Focuses: for each mark of the product's pictures, the sentence for its tooltip and the parts to
// highlight. A mark's token, such as "warp:7:2", is its kind and numbers.

import { LANES } from "../hardware";
import { capitalize, count, type MetadataRecord, number, span } from "../numbers";
import type { Focus } from "../types";
import {
  columnsInSector, type FollowedRow, owningWorkers, pieceOf, rowAt, rowsRead, SECTOR, sectorsOf,
  workerSentence,
} from "./followed";
import type { Line } from "./reads";
import {
  alsoReadText, headWord, idleSentence, meaningOf, outputText, PLACE, readsText, rowOfField,
  withWorkers,
  workersText,
} from "./sentences";

const MOST = 400; // columns highlighted at most

const rowName = ({ row }: FollowedRow) => `row ${number(row)}`;

/** Columns of the nonzeros `first` to `last`, and the worker of the first. */
function nonzerosFocus(row: FollowedRow, first: number, last: number): Omit<Focus, "sentence"> {
  const columns = row.columns
    ? [...row.columns.slice(first, Math.min(last + 1, first + MOST))] : [];
  const piece = pieceOf(row, first);
  return {
    nonzeros: [first, last], columns,
    warps: piece && { block: piece.block, numbers: row.side.hardware!.warpsOf(piece.warp) },
  };
}

/** Focus of a nonzero of the followed row, or of several drawn as one mark. */
export function nonzeroFocus(row: FollowedRow, first: number, last = first): Focus {
  const part = nonzerosFocus(row, first, last), name = rowName(row);
  if (last > first)
    return {
      ...part, sentence: `${capitalize(span("nonzero", first, last))} of ${name}, drawn as one.`,
    };
  const column = part.columns![0], piece = pieceOf(row, first);
  if (column === undefined)
    return { ...part, sentence: `Nonzero ${number(first)} of ${name}.` };
  const reader = piece ? `${capitalize(row.worker)} ${number(piece.warp)} of block ` +
    `${number(piece.block)} reads` : "It reads";
  const source = rowsRead(row, row.row)![first], [low, high] = sectorsOf(row, source);
  const sentence = `Nonzero ${number(first)} of ${name}: column ${number(column)}. ` +
    `${reader} ${row.unit} ${number(source)} of ${row.reads}: ` +
    `${count(row.nCols * row.bytes, "byte")}, ${count(high - low + 1, "sector")}` +
    `${alsoReadText(row) && `; ${alsoReadText(row)}`}.`;
  return { ...part, sentence };
}

function rowFocus(row: FollowedRow): Focus {
  const part = nonzerosFocus(row, 0, row.degree - 1), read = readsText(row);
  const { beside, operation: { per_nonzero } } = row;
  const action = per_nonzero || beside ? `reads ${read}${per_nonzero ? " and" : ","} writes`
    : `sums ${read} into`;
  const sentence = `${capitalize(rowName(row))} of ${row.matrix} has ` +
    `${count(row.degree, "nonzero")}: it ${action} ${outputText(row)}.`;
  return { ...part, warps: undefined, y: true, sentence };
}

function placeFocus(row: FollowedRow): Focus {
  const sentence = `${capitalize(rowName(row))} is in place ${number(row.position!)}. ${PLACE}`;
  return { ...rowFocus(row), sentence };
}

function outputFocus(row: FollowedRow): Focus {
  const { pieces, worker, operation: { per_nonzero, wide } } = row;
  const blocks = new Set(pieces.map((piece) => piece.block)).size;
  const addedText = (where: string) => (per_nonzero ? "" : `; their sums are added up${where}`);
  const owner = !row.partition ? ""
    : !pieces.length ? per_nonzero ? "Nothing is written."
        : "No worker has it: it is cleared beforehand."
        : pieces.length === 1 ? `${capitalize(worker)} ${number(pieces[0].warp)} of block ` +
        `${number(pieces[0].block)} has all of it.`
          : blocks > 1 ? `${count(pieces.length, "run")} of nonzeros in ` +
          `${count(blocks, "block")} have parts of it${addedText("")}.`
            : `${capitalize(workersText(worker, owningWorkers(row)))} have parts of ` +
              `it${addedText(" within the block")}.`;
  const columns = wide ? `, ${count(row.nCols, "column")}` : "";
  const sentence = `${capitalize(outputText(row))}${columns}. ${owner}`.trim();
  return { y: true, sentence };
}

/** Focus of a run of a worker, as it is drawn in the bar of a warp; the first one by default. */
function runFocus(
  row: FollowedRow, block: number, worker: number, start: number, drawnIn?: number,
): Focus {
  const { work } = row, { hardware } = row.side;
  const piece = row.pieces.find((candidate) =>
    candidate.block === block && candidate.warp === worker && candidate.start === start);
  const run = piece ?? work?.runs.find((candidate) =>
    candidate.warp === worker && candidate.start === start);
  if (!run) return workerFocus(row, block, worker);
  const warps = { block, numbers: hardware!.warpsOf(worker) };
  const warp = drawnIn ?? warps.numbers[0];
  const lane = row.side.rowPerLane ? `lane ${run.position % LANES} of ` : "";
  const name = `${capitalize(`${lane}${row.worker}`)} ${number(worker)} of block ${number(block)}`;
  const pass = work?.segments[warp]?.find((segment) => segment.run.start === start)?.pass ?? 0;
  const passText = hardware!.passes > 1 ? ` Warp ${number(warp)} does it in pass ${pass + 1}.` : "";
  const wait = block === work?.block
    ? `${passText} ${row.worker === "warp" ? "" : `Warp ${number(warp)}: `}${
      idleSentence(row, warp)}` : "";
  if (piece) {
    const range = piece.count ? span("nonzero", piece.at, piece.at + piece.count - 1)
      : "nothing to sum";
    const sentence = `${name} has ${range} of ${rowName(row)}.${wait}`;
    return { ...nonzerosFocus(row, piece.at, piece.at + piece.count - 1), warps, sentence };
  }
  const otherRow = rowAt(row, run.position);
  if (run.position === row.position && row.side.heads > 1)
    return { warps, sentence:
      `${name} has nonzeros of ${rowName(row)} for another ${headWord(row)}.${wait}` };
  return {
    warps,
    sentence: `${name} has nonzeros of row ${number(otherRow)}. Click to follow that row.${wait}`,
  };
}

function warpFocus(row: FollowedRow, block: number, warp: number): Focus {
  const sentence = `Warp ${number(warp)} of block ${number(block)}. ${idleSentence(row, warp)}`;
  return { warps: { block, numbers: [warp] }, sentence };
}

function workerFocus(row: FollowedRow, block: number, worker: number): Focus {
  const numbers = row.side.hardware!.warpsOf(worker);
  if (row.worker === "warp") return warpFocus(row, block, numbers[0]);
  const sentence = `${capitalize(row.worker)} ${number(worker)} of block ${number(block)}: ` +
    `${workersText("warp", numbers)} of the hardware. ${workerSentence(row)}`;
  return { warps: { block, numbers }, sentence };
}

function blockFocus(row: FollowedRow): Focus {
  const [first, last] = row.blocks;
  return {
    ...nonzerosFocus(row, 0, row.degree - 1), warps: undefined,
    sentence: `${capitalize(rowName(row))} is in ${span("block", first, last)} of ` +
      `${number(row.partition!.blocks)}. A block runs on one SM of the GPU, with all its warps.`,
  };
}

// Meanings of metadata fields, by the beginnings of their names.
const MEANINGS = [
  ["degree", "How many nonzeros each of its rows has."],
  ["first nonzero", "Where its columns and values begin in the arrays of the graph in that order."],
  ["info: nonzeros of a warp", "How many nonzeros a warp takes of a row at most."],
  ["info: rows", "How many rows the block has."],
  ["info: nonzeros of this part",
    "The row is too long for one block; this is what the block takes of it."],
  ["slot and flags", "Where in shared memory its sum is kept, and who adds it up."],
  ["length", "How many nonzeros it takes."],
  ["padding", "Not used: it makes a line 16 bytes long."],
];

function fieldFocus(row: FollowedRow, record: MetadataRecord, word: number, index: number): Focus {
  const { words, fields: { [word]: fields = [] } } = record, field = fields[index];
  const meaning = meaningOf(row, record);
  if (!field) return { sentence: `Word ${word}: ${number(words[word])}.` };
  const bitsAbove = fields.slice(0, index).reduce((sum, { bits }) => sum + bits, 0);
  const bits = field.bits === 32 ? "all 32 bits"
    : `bits ${32 - bitsAbove - field.bits} to ${31 - bitsAbove}`;
  const meaningEntry = MEANINGS.find(([name]) => field.name.startsWith(name));
  const name = withWorkers(row, capitalize(field.name));
  const known = meaningEntry ? `${withWorkers(row, meaningEntry[1])} ` : "";
  const sentence = `${name}: ${number(field.value)}${rowOfField(row, field)}. ` +
    `${known}It is in ${bits} of word ${word}. ` +
    `${meaning ? `${capitalize(meaning)}.` : ""}` +
    (/place/.test(`${field.name} ${meaning}`) ? ` ${PLACE}` : "");
  return { sentence };
}

function laneFocus(row: FollowedRow, lane: number, from: number, to: number): Focus {
  const { lanes, vector } = row.reading!, combined = lanes > LANES; // then no lane of a warp
  const columns = vector > 1 ? `${vector} neighboring columns in one load` : "one column";
  const laneCount = Math.floor((to - from) / vector) + 1;
  const who = (combined ? "Thread" : "Lane") +
    (laneCount > 1 ? `s ${lane} to ${lane + laneCount - 1}` : ` ${lane}`);
  const perWorker = Math.ceil(lanes / LANES);
  const isTogether = perWorker <= (row.side.hardware?.warps ?? perWorker); // or in several passes
  const owner = combined && isTogether ? `${row.worker} (${perWorker} warps of 32)` : row.worker;
  const first = Math.floor(lane / LANES) * LANES;
  const warp = combined
    ? ` Threads ${first} to ${first + LANES - 1} are one warp of the hardware${
      isTogether ? "" : ", in a pass of their own"}.` : "";
  const sentence = `${who} of the ${owner} ${laneCount > 1 ? "have" : "has"} ` +
    `${span("column", from, to)} of ` +
    `${row.operation.per_nonzero ? "" : `${row.writes} and of `}each row of ${row.reads}: ` +
    `${columns}.${warp}`;
  return { lane: [from, to], sentence };
}

function sectorFocus(row: FollowedRow, line: Line, sector: number): Focus {
  const column = line.column!, [from, to] = columnsInSector(row, column, sector);
  const focus = line.lane === undefined ? nonzeroFocus(row, line.nonzero) : {};
  const first = sector * SECTOR;
  const shared = (to - from + 1) * row.bytes < SECTOR
    ? ` The rest of it is another ${row.unit}'s.` : "";
  const unread = from <= line.last ? "" : " Another tile's blocks read it, or a later turn.";
  const sentence = `Sector ${number(sector)}, bytes ${number(first)} to ` +
    `${number(first + SECTOR - 1)} of ${row.reads}: ` +
    `${span("column", Math.ceil(from), Math.floor(to))} of ${row.unit} ${number(column)}.` +
    `${shared}${unread}`;
  return { ...focus, lane: [from, to], read: [{ column, from, to }], sentence };
}

/** The metadata record and the rows read, as they are drawn. */
export interface DrawnMarks {
  record: MetadataRecord | null;
  rows: Line[];
}

/** The focus of a mark, from its token: a kind and numbers. */
export function focusOf(
  row: FollowedRow, token: string, { record, rows }: DrawnMarks,
): Focus | null {
  const [kind, ...rest] = token.split(":"), [a, b, c, d] = rest.map(Number);
  const kinds: Record<string, () => Focus> = {
    row: () => rowFocus(row),
    place: () => placeFocus(row),
    y: () => outputFocus(row),
    nz: () => nonzeroFocus(row, a, b),
    run: () => runFocus(row, a, b, c, d),
    warp: () => warpFocus(row, a, b),
    worker: () => workerFocus(row, a, b),
    block: () => blockFocus(row),
    field: () => fieldFocus(row, record!, a, b),
    lane: () => laneFocus(row, a, b, c),
    sector: () => sectorFocus(row, rows[a], b),
  };
  return kinds[kind]?.() ?? null;
}
