// A picture of a worker's reads: its lanes above, and below them rows of X in sectors of 32 bytes.
// X is the operand that nonzeros read, whatever its name in the operation.

import {
  firstFit, mutedText, path, picture, rect, ring, shortened, textMark, textWidth,
} from "../marks";
import { LANES } from "../hardware";
import { capitalize, clamp, count, number, span } from "../numbers";
import type { Focus, Picture } from "../types";
import {
  columnsInSector, type FollowedRow, pieceOf, rowAt, SECTOR, sectorsOf, sectorsOfWarp, rowsRead,
} from "./followed";
import { gatheredText, workersText } from "./sentences";

const ROWS = 9; // rows of X drawn at most
const LINE = 24; // pixels: height of a line with a row of X
const MOST_GROUPS = 12; // groups of warps with equal numbers of sectors that are listed at most

/** A line of the picture: a row of X (null if none), whether the current nonzero reads it, and the
 *  last column read. */
export interface Line {
  column: number | null; nonzero: number; chosen: boolean; label: string; last: number;
  lane?: number;
}

type Load = NonNullable<ReturnType<typeof loadOf>>;

const tileOf = ({ reading, nCols }: FollowedRow) => Math.min(reading?.tile ?? nCols, nCols);

/** The lanes and the rows of X read for nonzeros around `current`. If each lane computes a matrix
 *  row, the rows of X that neighboring lanes read for their nonzero `current`. */
export function readsPicture(row: FollowedRow, width: number, current: number) {
  const { nCols, reads, reading, side: { rowPerLane } } = row, tile = tileOf(row);
  const rows = rowPerLane ? rowsOfLanes(row, current) : rowsOfNonzeros(row, current);
  const left = Math.max(...rows.map((line) => textWidth(line.label)), 60) + 10;
  const wide = Math.max(width - left - 2, 40), columnWidth = wide / nCols;
  const x = (column: number) => left + column * columnWidth;
  const top = rowPerLane ? 30 : reading ? 68 : 10;
  const y = (i: number) => top + i * LINE;
  const parts = [!reading ? ""
    : rowPerLane ? mutedText(0, 14, "what neighboring lanes read in one turn")
      : lanesRow(row, x, columnWidth, tile, left)];
  rows.forEach((line, i) =>
    parts.push(sectorsPicture(row, line, i, x, y(i), left,
      sharesWithNext(row, line, rows[i + 1]))));
  if (tile < nCols) {
    const end = x(tile), free = wide - tile * columnWidth - 6;
    const labels = ["other tiles of columns: other blocks do the same", "other blocks read these"];
    parts.push(rect(end - 1, top - 6, 2, rows.length * LINE + 8, { class: "av-end" }),
      mutedText(end + 5, top - 8, labels.find((text) => textWidth(text) < free) ?? ""));
  }
  const bottom = y(rows.length);
  const unlisted = rowPerLane ? 0 : Math.max((row.columns?.length ?? 0) - rows.length, 0);
  parts.push(mutedText(left, bottom + 9, 0, "start", 11),
    nCols > 1 ? mutedText(left + wide, bottom + 9, number(nCols - 1), "end", 11) : "",
    mutedText(left + wide / 2, bottom + 9, shortened(`columns of ${reads}`, wide - 60, 11),
      "middle", 11),
    mutedText(left, bottom + 28, cellSentence(row, wide)));
  const more = `… and ${number(unlisted)} more`;
  if (unlisted)
    parts.push(mutedText(left, bottom + 46,
      firstFit([`${more} of the ${gatheredText(row)}`, more], wide)));
  return {
    svg: picture(width, bottom + (unlisted ? 54 : 36), parts.join(""), labelOf(row, rows, tile)),
    over: (focus) => highlights(rows, focus, x, y, width),
    rows,
  } satisfies Picture & { rows: Line[] };
}

const sharesSectors = ({ nCols, bytes }: FollowedRow) => nCols * bytes < SECTOR;

const sharesWithNext = (row: FollowedRow, { column }: Line, next: Line | undefined) =>
  sharesSectors(row) && column !== null && next !== undefined && next.column !== null &&
  sectorsOf(row, column)[1] === sectorsOf(row, next.column)[0];

function cellSentence(row: FollowedRow, width: number) {
  const shortText = "A cell is a sector of 32 bytes.";
  const longText = `A cell is a sector: ${SECTOR / row.bytes} columns, 32 bytes, the least that ` +
    "memory moves.";
  return firstFit(sharesSectors(row) ? [shortText] : [longText, shortText], width);
}

/** A sentence on rows of X that share a sector; empty if none do. */
export function sharedSectorNote(row: FollowedRow) {
  if (!sharesSectors(row)) return "";
  const sectors = new Set([...rowsRead(row, row.row)!].flatMap((source) => sectorsOf(row, source)));
  const most = Math.floor(SECTOR / (row.nCols * row.bytes));
  return `Up to ${most} neighboring ${row.unit}s of ${row.reads} share a sector: what row ` +
    `${number(row.row)} reads is in ${count(sectors.size, "sector")}.`;
}

function rowsOfNonzeros(row: FollowedRow, current: number): Line[] {
  if (!row.columns?.length) return [];
  const piece = pieceOf(row, current), all = rowsRead(row, row.row)!;
  const [begin, size] = piece?.count ? [piece.at, piece.count] : [0, row.columns.length];
  const lineCount = Math.min(ROWS, size);
  const first = clamp(current - Math.floor(lineCount / 2), begin, begin + size - lineCount);
  return Array.from({ length: lineCount }, (_, i) => {
    const nonzero = first + i, column = all[nonzero];
    const label = `${row.unit} ${number(column)}`;
    return { column, nonzero, chosen: nonzero === current, label, last: tileOf(row) - 1 };
  });
}

/** The runs of the followed row's warp, one per lane. */
function runsOfWarp({ partition, pieces }: FollowedRow) {
  const piece = pieces[0];
  return piece ? partition!.runs(piece.block).filter((run) => run.warp === piece.warp) : [];
}

/** Reads of lanes near the followed row's for nonzero `nonzero` of each lane's matrix row. */
function rowsOfLanes(row: FollowedRow, nonzero: number): Line[] {
  const runs = row.columns ? runsOfWarp(row) : [];
  const followedLane = runs.findIndex((run) => run.position === row.position);
  const first = Math.min(Math.max(followedLane - 4, 0), Math.max(runs.length - ROWS, 0));
  return runs.slice(first, first + ROWS).map((run, i) => {
    const columns = rowsRead(row, rowAt(row, run.position));
    const column = columns && nonzero < run.count ? columns[nonzero] : null, lane = first + i;
    const label = `lane ${lane}: ${column === null ? "done" : `${row.unit} ${number(column)}`}`;
    return { column, nonzero, chosen: lane === followedLane, label, last: 0, lane };
  });
}

function lanesRow(
  { reading }: FollowedRow, x: (column: number) => number, per: number, tile: number, left: number,
) {
  const { lanes: laneTotal, vector } = reading!, perTurn = laneTotal * vector;
  const turns = Math.ceil(tile / perTurn);
  const kind = laneTotal > LANES ? "threads" : "lanes", laneWidth = vector * per;
  const parts = [textMark(left - 8, 44, kind, "end", { class: "av-b" })];
  const lanesPerBox = laneWidth >= 4 ? 1 : Math.min(LANES, laneTotal); // lanes that are one box
  for (let begin = 0, i = 1; i <= turns; begin += perTurn, ++i) {
    const end = Math.min(begin + perTurn, tile), text = `turn ${i}`;
    if (turns > 1 && textWidth(text, 11) < (end - begin) * per)
      parts.push(mutedText(x((begin + end) / 2), 10, text, "middle", 11));
    if (lanesPerBox === 1 && laneWidth < 20)
      for (let lane = 0; lane < laneTotal && begin + lane * vector < end; lane += LANES) {
        const after = Math.min(lane + LANES, laneTotal, lane + Math.ceil((end - begin) / vector));
        const range = `${lane} to ${after - 1}`, rangeWidth = (after - lane) * vector * per;
        const name = [`${kind} ${range}`, range, String(lane)]
          .find((label) => textWidth(label, 11) < rangeWidth - 2);
        const middle = x(begin + ((lane + after) / 2) * vector);
        if (name) parts.push(mutedText(middle, 25, name, "middle", 11));
      }
    if (i > 1) parts.push(rect(x(begin) - 0.75, 13, 1.5, 39, { class: "av-end" }));
    for (let lane = 0; lane < laneTotal && begin + lane * vector < end; lane += lanesPerBox) {
      const from = begin + lane * vector, to = Math.min(from + lanesPerBox * vector, end);
      const boxWidth = (to - from) * per;
      parts.push(rect(x(from), 30, boxWidth - (laneWidth >= 3 ? 1 : 0.5), 20, {
        "class": Math.floor(lane / LANES) % 2 ? "av-lane av-other" : "av-lane",
        "data-f": `lane:${lane}:${from}:${to - 1}`,
      }));
      const name = lanesPerBox > 1 ? `${lane} to ${Math.min(lane + lanesPerBox, laneTotal) - 1}`
        : String(lane);
      if (textWidth(name, 11) < boxWidth - 2 && (lanesPerBox > 1 || laneWidth >= 20))
        parts.push(textMark(x((from + to) / 2), 44, name, "middle",
          { "class": "av-on-lane", "font-size": 11 }));
    }
  }
  return parts.join("");
}

/** A row of X, divided into its sectors; with `isJoined`, cells extend to the next line. */
function sectorsPicture(
  row: FollowedRow, { label, chosen, column, nonzero, last }: Line, i: number,
  x: (column: number) => number, y: number, left: number, isJoined: boolean,
) {
  const parts = [textMark(left - 8, y + 14, label, "end", {
    "class": chosen ? "av-r" : "av-q",
    "data-f": column === null ? null : `nz:${nonzero}:${nonzero}`,
  })];
  if (column === null) {
    const texts = ["its row is shorter: it waits for the other lanes of its warp",
      "its row is shorter: it waits", "waits"];
    const text = texts.find((label) => textWidth(label) < x(row.nCols) - x(0)) ?? "";
    return parts[0] + mutedText(x(0), y + 14, text);
  }
  const [first, end] = sectorsOf(row, column);
  for (let sector = first; sector <= end; ++sector) {
    const [from, to] = columnsInSector(row, column, sector), wide = x(to + 1) - x(from);
    parts.push(rect(x(from), y, wide - (wide > 4 ? 1.5 : 0.5), isJoined ? LINE : LINE - 6, {
      "class": from > last ? "av-unread" : chosen ? "av-row" : "av-soft",
      "data-f": `sector:${i}:${sector}`, "data-m": `x${i} ${sector - first}`,
    }));
  }
  return parts.join("");
}

/** One load of the worker's first 32 lanes: active lanes, bytes needed, sectors moved. */
export function loadOf(row: FollowedRow, rows: Line[]) {
  const { reading, bytes } = row;
  if (!reading || !rows.length) return null;
  if (row.side.rowPerLane) {
    const at = rows[0].nonzero, runs = runsOfWarp(row).filter((run) => at < run.count);
    const read = new Set(runs.flatMap((run) => {
      const columns = rowsRead(row, rowAt(row, run.position));
      return columns ? [sectorsOf(row, columns[at], 0, 0)[0]] : [];
    }));
    return { lanes: runs.length, bytes: runs.length * bytes, sectors: read.size };
  }
  const { column } = rows.find((line) => line.chosen) ?? rows[0];
  const columns = Math.min(Math.min(reading.lanes, LANES) * reading.vector, tileOf(row));
  const [first, last] = sectorsOf(row, column!, 0, columns - 1);
  return {
    lanes: Math.ceil(columns / reading.vector), bytes: columns * bytes, sectors: last - first + 1,
  };
}

/** A sentence on the sectors that a load moves, the share used, and lanes without a column. */
export function loadSentence(row: FollowedRow, { lanes: laneCount, bytes, sectors }: Load) {
  const { worker, side: { rowPerLane } } = row, reading = row.reading!;
  const who = rowPerLane
    ? `Each lane has a row of ${row.matrix} for itself. In one turn, ${count(laneCount, "lane")}`
    : `In one load, ${count(laneCount, "lane")}`;
  const used = Math.round((bytes / (sectors * SECTOR)) * 100);
  const sentence = `${who} ${laneCount === 1 ? "needs" : "need"} ${count(bytes, "byte")}; ` +
    `memory moves ${count(sectors, "sector")} of 32, of which ${used} % is used.`;
  if (rowPerLane) return sentence;
  const idle = Math.min(reading.lanes, LANES) - Math.min(laneCount, LANES);
  if (idle > 0 && Math.ceil(tileOf(row) / reading.vector) < reading.lanes)
    return `${sentence} The other ${count(idle, "lane")} have no column and do nothing.`;
  if (reading.lanes >= LANES) return sentence;
  if (worker === "warp" || worker === "combined warp")
    return `${sentence} The other ${LANES - reading.lanes} lanes of the warp do nothing.`;
  return `${sentence} The warp's other lanes ${worker === "window"
    ? "read other rows for the same window."
    : `belong to other ${worker}s, which read rows of their own.`}`;
}

/** A sentence on how many sectors each warp of the block shown reads in all; "" if not known. */
export function sectorsSentence(row: FollowedRow) {
  const warps = row.work?.steps.map((load, warp) => (load ? sectorsOfWarp(row, warp) : 0)) ?? [];
  if (!warps.length || warps.includes(null)) return "";
  const all = warps.reduce<number>((sum, sectors) => sum + sectors!, 0);
  const groups = new Map<number, number[]>(); // warps by their sectors
  warps.forEach((sectors, warp) => groups.set(sectors!, [...groups.get(sectors!) ?? [], warp]));
  const texts = [...groups].map(([sectors, group]) => `${workersText("warp", group)}: ${
    sectors ? number(sectors) : "none"}${group.length > 1 && sectors ? " each" : ""}`);
  const [least, most] = [Math.min, Math.max].map((of) => number(of(...groups.keys())));
  return `In all, block ${number(row.work!.block)} reads ${count(all, "sector")} of ${row.reads} ` +
    (groups.size > MOST_GROUPS
      ? `(a warp ${least} to ${most}; point at a warp of the block above for its own number).`
      : `(${texts.join("; ")}).`);
}

function labelOf(row: FollowedRow, rows: Line[], tile: number) {
  if (!rows.length) return `No ${row.unit} of ${row.reads} is read.`;
  const load = loadOf(row, rows);
  const list = rows.flatMap(({ column }) => column === null ? [] : [number(column)]).join(", ");
  const part = tile < row.nCols ? `, ${span("column", 0, tile - 1)}` : "";
  return `${capitalize(row.worker)}s read ${row.unit}s ${list} of ${row.reads}${part}, each in ` +
    `sectors of 32 bytes.${load ? ` ${loadSentence(row, load)}` : ""}`;
}

function highlights(
  rows: Line[], { nonzeros, read, lane }: Focus, x: (column: number) => number,
  y: (i: number) => number, width: number,
) {
  let drawn = "";
  rows.forEach((line, i) => {
    const isFocused = nonzeros && line.nonzero >= nonzeros[0] && line.nonzero <= nonzeros[1];
    if (isFocused && !read && line.lane === undefined)
      drawn += ring(1, y(i) - 3, width - 2, LINE);
    for (const { column, from, to } of read ?? [])
      if (column === line.column)
        drawn += ring(x(from) - 1, y(i) - 2, x(to + 1) - x(from) + 1, LINE - 2);
  });
  if (lane) {
    const [from, to] = lane;
    drawn += path(`M${x((from + to + 1) / 2)} 48V${y(rows.length) - 4}`, { class: "av-ring" }) +
      ring(x(from) - 1, 29, x(to + 1) - x(from) + 1, 22);
  }
  return drawn;
}
