// A picture of a worker's reads: its lanes above, and below them rows of X in sectors of 32 bytes.
// X is the operand that nonzeros read, whatever its name in the operation.

import { firstFit, fitting, path, picture, quietWords, rect, ring, room, words } from "../marks";
import { capital, clamp, count, number, span } from "../numbers";
import type { Focus, Picture } from "../types";
import {
  columnsOf, type FollowedRow, LANES, pieceOf, rowAt, SECTOR, sectorsOf, sources,
} from "./followed";
import { gatheredOf } from "./said";

const ROWS = 9; // rows of X drawn at most
const LINE = 24; // pixels: height of a line with a row of X

/** A line of the picture: a row of X (null if none), whether the current nonzero reads it, and the
 *  last column read. */
export interface Line {
  column: number | null; nonzero: number; chosen: boolean; label: string; last: number;
  lane?: number;
}

type Load = NonNullable<ReturnType<typeof loadOf>>;

const tileOf = ({ reading, nCols }: FollowedRow) => Math.min(reading?.tile ?? nCols, nCols);

/** The lanes and the rows of X read for nonzeros around `at`. If each lane computes a matrix row,
 *  the rows of X that neighboring lanes read for their nonzero `at`. */
export function gathered(row: FollowedRow, width: number, at: number) {
  const { nCols, reads, reading, side: { rowPerLane } } = row, tile = tileOf(row);
  const rows = rowPerLane ? rowsOfLanes(row, at) : rowsOfNonzeros(row, at);
  const left = Math.max(...rows.map((line) => room(line.label)), 60) + 10;
  const wide = Math.max(width - left - 2, 40), per = wide / nCols;
  const x = (column: number) => left + column * per;
  const top = rowPerLane ? 30 : reading ? 68 : 10;
  const y = (i: number) => top + i * LINE;
  const parts = [!reading ? ""
    : rowPerLane ? quietWords(0, 14, "what neighboring lanes read in one turn")
      : lanes(row, x, per, tile, left)];
  rows.forEach((line, i) =>
    parts.push(sectorsPicture(row, line, i, x, y(i), left, joined(row, line, rows[i + 1]))));
  if (tile < nCols) {
    const end = x(tile), free = wide - tile * per - 6;
    const texts = ["other tiles of columns: other blocks do the same", "other blocks read these"];
    parts.push(rect(end - 1, top - 6, 2, rows.length * LINE + 8, { class: "av-end" }),
      quietWords(end + 5, top - 8, texts.find((text) => room(text) < free) ?? ""));
  }
  const bottom = y(rows.length);
  const hidden = rowPerLane ? 0 : Math.max((row.columns?.length ?? 0) - rows.length, 0);
  parts.push(quietWords(left, bottom + 9, 0, "start", 11),
    nCols > 1 ? quietWords(left + wide, bottom + 9, number(nCols - 1), "end", 11) : "",
    quietWords(left + wide / 2, bottom + 9, fitting(`columns of ${reads}`, wide - 60, 11), "middle",
      11),
    quietWords(left, bottom + 28, columnsSaid(row, wide)));
  const more = `… and ${number(hidden)} more`;
  if (hidden)
    parts.push(quietWords(left, bottom + 46,
      firstFit([`${more} of the ${gatheredOf(row)}`, more], wide)));
  return {
    svg: picture(width, bottom + (hidden ? 54 : 36), parts.join(""), labelOf(row, rows, tile)),
    over: (focus) => lit(rows, focus, x, y, width),
    rows,
  } satisfies Picture & { rows: Line[] };
}

/** Whether a sector holds several rows of X. */
const small = ({ nCols, bytes }: FollowedRow) => nCols * bytes < SECTOR;

/** Whether a line shares its sector with the next one. */
const joined = (row: FollowedRow, { column }: Line, next: Line | undefined) => small(row) &&
  column !== null && next !== undefined && next.column !== null &&
  sectorsOf(row, column)[1] === sectorsOf(row, next.column)[0];

function columnsSaid(row: FollowedRow, width: number) {
  const least = "A cell is a sector of 32 bytes.";
  const all = `A cell is a sector: ${SECTOR / row.bytes} columns, 32 bytes, the least that ` +
    "memory moves.";
  return firstFit(small(row) ? [least] : [all, least], width);
}

/** A sentence on rows of X that share a sector; empty if none do. */
export function sharedSaid(row: FollowedRow) {
  if (!small(row)) return "";
  const sectors = new Set([...sources(row, row.row)!].flatMap((source) => sectorsOf(row, source)));
  const most = Math.floor(SECTOR / (row.nCols * row.bytes));
  return `Up to ${most} neighboring ${row.unit}s of ${row.reads} share a sector: what row ` +
    `${number(row.row)} reads is in ${count(sectors.size, "sector")}.`;
}

function rowsOfNonzeros(row: FollowedRow, at: number): Line[] {
  if (!row.columns?.length) return [];
  const piece = pieceOf(row, at), all = sources(row, row.row)!;
  const [begin, size] = piece?.count ? [piece.at, piece.count] : [0, row.columns.length];
  const lines = Math.min(ROWS, size);
  const first = clamp(at - Math.floor(lines / 2), begin, begin + size - lines);
  return Array.from({ length: lines }, (_, i) => {
    const nonzero = first + i, column = all[nonzero];
    const label = `${row.unit} ${number(column)}`;
    return { column, nonzero, chosen: nonzero === at, label, last: tileOf(row) - 1 };
  });
}

/** The runs of the followed row's warp, one per lane. */
function runsOfWarp({ partition, pieces }: FollowedRow) {
  const piece = pieces[0];
  return piece ? partition!.runs(piece.block).filter((run) => run.warp === piece.warp) : [];
}

/** Reads of lanes near the followed row's for nonzero `at` of each lane's matrix row. */
function rowsOfLanes(row: FollowedRow, at: number): Line[] {
  const runs = row.columns ? runsOfWarp(row) : [];
  const mine = runs.findIndex((run) => run.position === row.position);
  const first = Math.min(Math.max(mine - 4, 0), Math.max(runs.length - ROWS, 0));
  return runs.slice(first, first + ROWS).map((run, i) => {
    const columns = sources(row, rowAt(row, run.position));
    const column = columns && at < run.count ? columns[at] : null, lane = first + i;
    const label = `lane ${lane}: ${column === null ? "done" : `${row.unit} ${number(column)}`}`;
    return { column, nonzero: at, chosen: lane === mine, label, last: 0, lane };
  });
}

/** The lanes, each above its columns. */
function lanes(
  { reading }: FollowedRow, x: (column: number) => number, per: number, tile: number, left: number,
) {
  const { lanes: all, vector } = reading!, turn = all * vector, turns = Math.ceil(tile / turn);
  const kind = all > LANES ? "threads" : "lanes", box = vector * per;
  const parts = [words(left - 8, 44, kind, "end", { class: "av-b" })];
  const group = box >= 4 ? 1 : Math.min(LANES, all); // lanes that are one box
  for (let begin = 0, i = 1; i <= turns; begin += turn, ++i) {
    const end = Math.min(begin + turn, tile), text = `turn ${i}`;
    if (turns > 1 && room(text, 11) < (end - begin) * per)
      parts.push(quietWords(x((begin + end) / 2), 10, text, "middle", 11));
    if (group === 1 && box < 20)
      for (let lane = 0; lane < all && begin + lane * vector < end; lane += LANES) {
        const after = Math.min(lane + LANES, all, lane + Math.ceil((end - begin) / vector));
        const range = `${lane} to ${after - 1}`, wide = (after - lane) * vector * per;
        const name = [`${kind} ${range}`, range, String(lane)]
          .find((one) => room(one, 11) < wide - 2);
        const middle = x(begin + ((lane + after) / 2) * vector);
        if (name) parts.push(quietWords(middle, 25, name, "middle", 11));
      }
    if (i > 1) parts.push(rect(x(begin) - 0.75, 13, 1.5, 39, { class: "av-end" }));
    for (let lane = 0; lane < all && begin + lane * vector < end; lane += group) {
      const from = begin + lane * vector, to = Math.min(from + group * vector, end);
      const wide = (to - from) * per;
      parts.push(rect(x(from), 30, wide - (box >= 3 ? 1 : 0.5), 20, {
        "class": Math.floor(lane / LANES) % 2 ? "av-lane av-other" : "av-lane",
        "data-f": `lane:${lane}:${from}:${to - 1}`,
      }));
      const name = group > 1 ? `${lane} to ${Math.min(lane + group, all) - 1}` : String(lane);
      if (room(name, 11) < wide - 2 && (group > 1 || box >= 20))
        parts.push(words(x((from + to) / 2), 44, name, "middle",
          { "class": "av-on-lane", "font-size": 11 }));
    }
  }
  return parts.join("");
}

/** A row of X, divided into its sectors; with `on`, cells extend to the next line. */
function sectorsPicture(
  row: FollowedRow, { label, chosen, column, nonzero, last }: Line, i: number,
  x: (column: number) => number, y: number, left: number, on: boolean,
) {
  const parts = [words(left - 8, y + 14, label, "end", {
    "class": chosen ? "av-r" : "av-q",
    "data-f": column === null ? null : `nz:${nonzero}:${nonzero}`,
  })];
  if (column === null) {
    const texts = ["its row is shorter: it waits for the other lanes of its warp",
      "its row is shorter: it waits", "waits"];
    const text = texts.find((one) => room(one) < x(row.nCols) - x(0)) ?? "";
    return parts[0] + quietWords(x(0), y + 14, text);
  }
  const [first, end] = sectorsOf(row, column);
  for (let sector = first; sector <= end; ++sector) {
    const [from, to] = columnsOf(row, column, sector), wide = x(to + 1) - x(from);
    parts.push(rect(x(from), y, wide - (wide > 4 ? 1.5 : 0.5), on ? LINE : LINE - 6, {
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
      const columns = sources(row, rowAt(row, run.position));
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
export function loadSaid(row: FollowedRow, { lanes: many, bytes, sectors }: Load) {
  const { worker, side: { rowPerLane } } = row, reading = row.reading!;
  const who = rowPerLane
    ? `Each lane has a row of ${row.matrix} for itself. In one turn, ${count(many, "lane")}`
    : `In one load, ${count(many, "lane")}`;
  const used = Math.round((bytes / (sectors * SECTOR)) * 100);
  const moved = `${who} ${many === 1 ? "needs" : "need"} ${count(bytes, "byte")}; memory moves ` +
    `${count(sectors, "sector")} of 32, of which ${used} ` +
    "% is used.";
  if (rowPerLane) return moved;
  const idle = Math.min(reading.lanes, LANES) - Math.min(many, LANES);
  if (idle > 0 && Math.ceil(tileOf(row) / reading.vector) < reading.lanes)
    return `${moved} The other ${count(idle, "lane")} have no column and do nothing.`;
  if (reading.lanes >= LANES) return moved;
  if (worker === "warp")
    return `${moved} The other ${LANES - reading.lanes} lanes of the warp do nothing.`;
  return `${moved} The warp's other lanes ${worker === "window"
    ? "read other rows for the same window."
    : `belong to other ${worker}s, which read rows of their own.`}`;
}

function labelOf(row: FollowedRow, rows: Line[], tile: number) {
  if (!rows.length) return `No ${row.unit} of ${row.reads} is read.`;
  const load = loadOf(row, rows);
  const list = rows.flatMap(({ column }) => column === null ? [] : [number(column)]).join(", ");
  const part = tile < row.nCols ? `, ${span("column", 0, tile - 1)}` : "";
  return `${capital(row.worker)}s read ${row.unit}s ${list} of ${row.reads}${part}, each in ` +
    `sectors of 32 bytes.${load ? ` ${loadSaid(row, load)}` : ""}`;
}

function lit(
  rows: Line[], { nonzeros, read, lane }: Focus, x: (column: number) => number,
  y: (i: number) => number, width: number,
) {
  let drawn = "";
  rows.forEach((line, i) => {
    const among = nonzeros && line.nonzero >= nonzeros[0] && line.nonzero <= nonzeros[1];
    if (among && !read && line.lane === undefined)
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
