// What the lanes of a worker read: the columns that each has, rows of X, sectors of 32 bytes. What
// is X in an SpMM has the name that the operation gives it.
import { count, firstFit, fitting, number, path, picture, rect, room, words } from "../marks";
import { capital, columnsOf, gatheredOf, pieceOf, sectorsOf } from "./followed";

const ROWS = 9; // rows of X that are drawn
const LINE = 24;
const WARP = 32; // lanes of a warp of the hardware

/** Whether each lane of a warp has a row of A for itself. */
const ownRows = ({ reading, worker }) => reading?.lanes === 1 && worker === "warp";

/** Lanes above rows of X: those of the nonzeros around `at`, or where each lane has a row its own. */
export function gathered(row, width, at) {
  const rows = ownRows(row) ? rowsOfLanes(row, at) : rowsOfNonzeros(row, at);
  const left = Math.max(...rows.map((each) => room(each.label, 12)), 60) + 10;
  const wide = Math.max(width - left - 2, 40);
  const per = wide / row.nCols;
  const x = (column) => left + column * per;
  const top = ownRows(row) ? 30 : row.reading ? 68 : 10;
  const y = (i) => top + i * LINE;
  const tile = Math.min(row.reading?.tile ?? row.nCols, row.nCols);
  const parts = [row.reading ? lanes(row, x, per, tile, left) : ""];
  rows.forEach((each, i) => parts.push(bar(row, each, i, x, y(i), left, joined(row, each, rows[i + 1]))));
  if (tile < row.nCols) {
    const end = x(tile);
    parts.push(rect(end - 1, top - 6, 2, rows.length * LINE + 8, { class: "av-end" }));
    const free = wide - tile * per - 6;
    const texts = ["other tiles of columns: other blocks do the same", "other blocks read these"];
    const text = texts.find((one) => room(one) < free) ?? "";
    parts.push(words(end + 5, top - 8, text, "start", { class: "av-q" }));
  }
  const bottom = y(rows.length);
  const ends = [number(0), number(row.nCols - 1)];
  const name = fitting(`columns of ${row.reads}`, wide - 60, 11);
  parts.push(words(left, bottom + 9, ends[0], "start", { class: "av-q", "font-size": 11 }));
  if (row.nCols > 1) parts.push(words(left + wide, bottom + 9, ends[1], "end", { class: "av-q", "font-size": 11 }));
  parts.push(words(left + wide / 2, bottom + 9, name, "middle", { class: "av-q", "font-size": 11 }));
  parts.push(words(left, bottom + 28, columnsSaid(row, wide), "start", { class: "av-q" }));
  const hidden = ownRows(row) ? 0 : Math.max((row.columns?.length ?? 0) - rows.length, 0);
  const and = `… and ${number(hidden)} more`;
  const all = `${and} of the ${gatheredOf(row)}`;
  const more = firstFit([all, and], wide);
  if (hidden) parts.push(words(left, bottom + 46, more, "start", { class: "av-q" }));
  return {
    svg: picture(width, bottom + (hidden ? 54 : 36), parts.join(""), alt(row, rows, tile)),
    over: (focus) => lit(row, rows, focus, x, y, left, width, tile),
    rows,
  };
}

// Whether a row that is read is less than a sector, which then has several.
const small = (row) => row.nCols * row.bytes < 32;

// Whether a line goes on in the next one: rows that are neighbors in memory share a sector.
const joined = (row, { column }, next) => small(row) && column !== null && (next?.column ?? null) !== null &&
  sectorsOf(row, column)[1] === sectorsOf(row, next.column)[0];

function columnsSaid(row, width) {
  const least = "A cell is a sector of 32 bytes.";
  const all = `A cell is a sector: ${32 / row.bytes} columns, 32 bytes, the least that memory moves.`;
  return firstFit(small(row) ? [least] : [all, least], width);
}

/** Say how many rows share a sector. */
export function sharedSaid(row) {
  if (!small(row)) return "";
  const sectors = new Set([...row.sources(row.row)].flatMap((source) => sectorsOf(row, source)));
  const most = Math.floor(32 / (row.nCols * row.bytes));
  return `Up to ${most} neighboring ${row.unit}s of ${row.reads} share a sector: what row ${number(row.row)} ` +
    `reads is in ${count(sectors.size, "sector")}.`;
}

/** Say which nonzero's line is bold, and how another is chosen. */
export const chosenSaid = ({ degree }) => degree > 1
  ? "The bold line is what the nonzero framed above reads; click there for another, or use the arrow keys." : "";

function rowsOfNonzeros(row, at) {
  if (!row.columns?.length) return [];
  const piece = pieceOf(row, at);
  const [begin, size] = piece?.count ? [piece.at, piece.count] : [0, row.columns.length];
  const shown = Math.min(ROWS, size);
  const first = Math.min(Math.max(at - Math.floor(shown / 2), begin), begin + size - shown);
  const sources = row.sources(row.row);
  return Array.from({ length: shown }, (_, i) => {
    const nonzero = first + i;
    const column = sources[nonzero];
    return { column, nonzero, own: nonzero === at, label: `${row.unit} ${number(column)}`, last: tileOf(row) - 1 };
  });
}

const tileOf = (row) => Math.min(row.reading?.tile ?? row.nCols, row.nCols);

// Where a lane has a whole row of A: what the lanes beside the followed row's read in the same turn.
function rowsOfLanes(row, at) {
  const own = pieceOf(row, 0);
  if (!own || !row.columns) return [];
  const runs = row.partition.runs(own.block).filter((run) => run.warp === own.warp);
  const mine = runs.findIndex((run) => run.place === row.place);
  const first = Math.min(Math.max(mine - 4, 0), Math.max(runs.length - ROWS, 0));
  return runs.slice(first, first + ROWS).map((run, i) => {
    const caller = row.side.order ? row.side.order[run.place] : run.place;
    const columns = row.sources(caller);
    const column = columns && at < run.count ? columns[at] : null;
    const lane = `lane ${first + i}`;
    const label = column === null ? `${lane}: done` : `${lane}: ${row.unit} ${number(column)}`;
    return { column, nonzero: at, own: first + i === mine, label, last: 0, lane: first + i };
  });
}

// The lanes, each over the columns that it has.
function lanes(row, x, per, tile, left) {
  const { reading } = row;
  const turn = reading.lanes * reading.vector;
  const turns = Math.ceil(tile / turn);
  if (ownRows(row)) return words(0, 14, "what neighboring lanes read in one turn", "start", { class: "av-q" });
  const parts = [words(left - 8, 44, reading.lanes > WARP ? "threads" : "lanes", "end", { class: "av-b" })];
  const box = reading.vector * per;
  const each = box >= 4 ? 1 : Math.min(WARP, reading.lanes);
  for (let t = 0; t < turns; ++t) {
    const begin = t * turn;
    const end = Math.min(begin + turn, tile);
    const text = `turn ${t + 1}`;
    if (turns > 1 && room(text, 11) < (end - begin) * per) parts.push(words(x((begin + end) / 2), 10, text, "middle", { class: "av-q", "font-size": 11 }));
    for (let lane = 0; lane < reading.lanes && begin + lane * reading.vector < end; lane += WARP) {
      const after = Math.min(lane + WARP, reading.lanes, lane + Math.ceil((end - begin) / reading.vector));
      const kind = reading.lanes > WARP ? "threads" : "lanes";
      const named = [`${kind} ${lane} to ${after - 1}`, `${lane} to ${after - 1}`, String(lane)];
      const wide = (after - lane) * reading.vector * per;
      const fits = named.find((each_) => room(each_, 11) < wide - 2);
      const middle = x(begin + ((lane + after) / 2) * reading.vector);
      if (fits && each === 1 && box < 20) parts.push(words(middle, 25, fits, "middle", { class: "av-q", "font-size": 11 }));
    }
    if (turns > 1 && t) parts.push(rect(x(begin) - 0.75, 13, 1.5, 39, { class: "av-end" }));
    for (let lane = 0; lane < reading.lanes; lane += each) {
      const from = begin + lane * reading.vector;
      if (from >= end) break;
      const to = Math.min(from + each * reading.vector, end);
      const warp = Math.floor(lane / WARP) % 2;
      parts.push(
        rect(x(from), 30, (to - from) * per - (box >= 3 ? 1 : 0.5), 20, { class: warp ? "av-lane av-other" : "av-lane", "data-f": `lane:${lane}:${from}:${to - 1}` }),
      );
      const name = each > 1 ? `${lane} to ${Math.min(lane + each, reading.lanes) - 1}` : String(lane);
      if (room(name, 11) < (to - from) * per - 2 && (each > 1 || box >= 20)) parts.push(words(x((from + to) / 2), 44, name, "middle", { class: "av-on-lane", "font-size": 11 }));
    }
  }
  return parts.join("");
}

// One row of X, cut into its sectors; where it goes on in the next line, down to that.
function bar(row, each, i, x, y, left, on) {
  const parts = [
    words(left - 8, y + 14, each.label, "end", { class: each.own ? "av-r" : "av-q", "data-f": each.column === null ? null : `nz:${each.nonzero}:${each.nonzero}` }),
  ];
  if (each.column === null) {
    const texts = [
      "its row is shorter: it waits for the other lanes of its warp",
      "its row is shorter: it waits", "waits",
    ];
    const text = texts.find((one) => room(one) < x(row.nCols) - x(0)) ?? "";
    return parts.join("") + words(x(0), y + 14, text, "start", { class: "av-q" });
  }
  const [first, last] = sectorsOf(row, each.column);
  for (let sector = first; sector <= last; ++sector) {
    const [from, to] = columnsOf(row, each.column, sector);
    const read = from <= each.last;
    const kind = read ? (each.own ? "av-row" : "av-soft") : "av-unread";
    const wide = x(to + 1) - x(from);
    parts.push(
      rect(x(from), y, wide - (wide > 4 ? 1.5 : 0.5), on ? LINE : LINE - 6, { class: kind, "data-f": `sector:${i}:${sector}`, "data-m": `x${i} ${sector - first}` }),
    );
  }
  return parts.join("");
}

/** What one load of the worker's first 32 lanes needs and moves, and the sentence that says so. */
export function request(row, rows) {
  const { reading } = row;
  if (!reading || !rows.length) return null;
  if (ownRows(row)) {
    const read = new Set();
    const own = pieceOf(row, 0);
    const at = rows[0].nonzero;
    const runs = row.partition.runs(own.block).filter((run) => run.warp === own.warp && at < run.count);
    for (const run of runs) {
      const columns = row.sources(row.side.order ? row.side.order[run.place] : run.place);
      if (columns) read.add(sectorsOf(row, columns[at], 0, 0)[0]);
    }
    return { lanes: runs.length, bytes: runs.length * row.bytes, sectors: read.size };
  }
  const column = (rows.find((each) => each.own) ?? rows[0]).column;
  const columns = Math.min(Math.min(reading.lanes, WARP) * reading.vector, tileOf(row));
  const [first, last] = sectorsOf(row, column, 0, columns - 1);
  return { lanes: Math.ceil(columns / reading.vector), bytes: columns * row.bytes, sectors: last - first + 1 };
}

/** Say what a load moves, how much of it is used, and which lanes have no column. */
export function loadSaid(row, { lanes, bytes, sectors }) {
  const { reading, worker } = row;
  const used = Math.round((bytes / (sectors * 32)) * 100);
  const who = ownRows(row) ? `Each lane has a row of ${row.matrix} for itself. In one turn, ${count(lanes, "lane")}` : `In one load, ${count(lanes, "lane")}`;
  const moved = `${who} ${lanes === 1 ? "needs" : "need"} ${count(bytes, "byte")}; memory moves ${count(sectors, "sector")} of 32, of which ${used} % is used.`;
  if (ownRows(row)) return moved;
  const most = Math.ceil(tileOf(row) / reading.vector);
  const idle = Math.min(reading.lanes, WARP) - Math.min(lanes, WARP);
  if (idle > 0 && most < reading.lanes) return `${moved} The other ${count(idle, "lane")} have no column and do nothing.`;
  if (reading.lanes >= WARP) return moved;
  if (worker === "warp") return `${moved} The other ${WARP - reading.lanes} lanes of the warp do nothing.`;
  if (worker === "window") return `${moved} The warp's other lanes read other rows for the same window.`;
  return `${moved} The warp's other lanes belong to other ${worker}s, which read rows of their own.`;
}

function alt(row, rows, tile) {
  const moved = request(row, rows);
  if (!rows.length) return `No ${row.unit} of ${row.reads} is read.`;
  const list = rows.filter((each) => each.column !== null).map((each) => number(each.column));
  const how = moved ? ` ${loadSaid(row, moved)}` : "";
  const part = tile < row.nCols ? `, columns 0 to ${tile - 1}` : "";
  return `${capital(row.worker)}s read ${row.unit}s ${list.join(", ")} of ${row.reads}${part}, each in sectors of 32 bytes.${how}`;
}

function lit(row, rows, focus, x, y, left, width, tile) {
  let found = "";
  const band = (from, to, i) => rect(
    x(from) - 1, y(i) - 2, x(to + 1) - x(from) + 1, LINE - 2, { class: "av-ring" },
  );
  rows.forEach((each, i) => {
    const among = focus.nonzeros && each.nonzero >= focus.nonzeros[0] && each.nonzero <= focus.nonzeros[1];
    if (among && !focus.read && each.lane === undefined) found += rect(1, y(i) - 3, width - 2, LINE, { class: "av-ring" });
    for (const part of focus.read ?? []) if (part.column === each.column) found += band(part.from, part.to, i);
  });
  if (focus.lane) {
    const [from, to] = focus.lane;
    found += path(`M${x((from + to + 1) / 2)} 48V${y(rows.length) - 4}`, { class: "av-ring" });
    found += rect(x(from) - 1, 29, x(to + 1) - x(from) + 1, 22, { class: "av-ring" });
  }
  return found;
}
