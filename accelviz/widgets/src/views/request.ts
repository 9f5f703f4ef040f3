// One request of a warp: its lanes, the sectors that they touch, and the sentence that says so.

import { count, mark, number, path, picture, rect, room, span, words } from "../marks";

const LANES = 32;
const DOES = { load: "reads", store: "writes", atomic: "adds to" };

/** Which rows and columns of a dense matrix a request touches; null for any other array. */
function touched(request, row) {
  const known = row.operation.arrays;
  const dense = known[request.array] ? row.bytes : 4;
  if (!(request.array in known) || request.space === "shared" || row.unit === "number") return null;
  const wide = row.nCols * dense;
  const parts = new Map();
  for (const offset of request.offsets) {
    const index = Math.floor(offset / wide);
    const first = (offset - index * wide) / dense;
    const part = parts.get(index) ?? { row: index, from: first, to: first };
    part.from = Math.min(part.from, first);
    part.to = Math.max(part.to, first + request.bytes / dense - 1);
    parts.set(index, part);
  }
  return [...parts.values()];
}

/** Say what a request does, in a sentence or two. */
export function requestSaid(request, row, all) {
  const who = `Request ${number(request.number)} (the last is ${number(all - 1)}): warp ${request.warp}`;
  const parts = touched(request, row);
  const shared = request.space === "shared";
  let what = "";
  if (parts?.length === 1) what = `row ${number(parts[0].row)} of ${request.array}, ${span("column", parts[0].from, parts[0].to)}`;
  else if (parts) what = `${number(parts.length)} rows of ${request.array}`;
  else {
    const numbers = new Set();
    for (const offset of request.offsets)
      for (let i = Math.floor(offset / request.size); i * request.size < offset + request.bytes; ++i) numbers.add(i);
    const [first, last] = [Math.min(...numbers), Math.max(...numbers)];
    if (first === last) what = `${request.array}[${number(first)}]`;
    else if (last - first < numbers.size) what = `${request.array}[${number(first)}] to [${number(last)}]`;
    else what = `${count(numbers.size, "number")} of ${request.array}`;
    if (shared) what += " in shared memory";
  }
  const lanes = request.lanes.length, alike = lanes > 1 && new Set(request.offsets).size === 1;
  const asked = `${count(lanes, "lane")}, ` +
    (alike ? `all the same ${count(request.bytes, "byte")}` : count(lanes * request.bytes, "byte"));
  const cost = shared ? count(request.passes, "pass", "passes") + " through the banks" : count(request.sectors.length, "sector");
  return `${who} ${DOES[request.kind]} ${what}: ${asked}, ${cost}.`;
}

/** The lanes above, the sectors that they touch below, and which lane needs which. */
export function lanesPicture(request, width) {
  const slot = width / LANES;
  const taking = new Map(request.lanes.map((lane, turn) => [lane, turn]));
  const said = "lanes of the warp", title = room(said);
  const parts = [words(0, 12, said, "start", { class: "av-q" })];
  const shared = request.space === "shared";
  const unit = shared ? 4 : 32;
  const units = [...new Set(request.offsets.map((offset) => Math.floor(offset / unit)))].sort((a, b) => a - b);
  if (!shared) units.splice(0, units.length, ...request.sectors);
  const each = Math.min(width / Math.max(units.length, 1), 120);
  const where = new Map(units.map((sector, i) => [sector, i]));
  for (let lane = 0; lane < LANES; ++lane) {
    const there = taking.has(lane);
    parts.push(
      rect(lane * slot, 18, slot - 1.5, 20, { class: there ? `av-is-${request.kind}` : "av-lane-out" }),
    );
    const middle = (lane + 0.5) * slot - 0.75;
    if (slot >= 18) parts.push(words(middle, 32, String(lane), "middle", { class: there ? "av-on-kind" : "av-q" }));
    else if (lane % 8 === 0 && middle > title + 16) parts.push(words(middle, 12, String(lane), "middle", { class: "av-q" }));
  }
  let lines = "";
  for (const [lane, turn] of taking) {
    const i = where.get(Math.floor(request.offsets[turn] / unit));
    lines += `M${((lane + 0.5) * slot).toFixed(1)} 39L${((i + 0.5) * each).toFixed(1)} 84`;
  }
  parts.push(path(lines, { class: "av-threads" }));
  units.forEach((sector, i) => {
    parts.push(rect(i * each, 85, each - 1.5, 18, { class: `av-is-${request.kind} av-sector` }));
    const text = number(sector);
    if (room(text) < each - 6) parts.push(words((i + 0.5) * each, 98, text, "middle", { class: "av-on-kind" }));
  });
  const name = shared ? "words of shared memory, 4 bytes each" : `sectors of ${request.array}, 32 bytes each`;
  parts.push(words(0, 120, name, "start", { class: "av-q" }));
  const alt = `${count(request.lanes.length, "lane")} and the ${shared ? count(units.length, "word") : count(units.length, "sector")} of ${request.array} that they touch.`;
  return picture(width, 126, mark("g", {}, parts.join("")), alt);
}
