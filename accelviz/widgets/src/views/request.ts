// A request of a warp as a sentence, and as a picture of its lanes and the sectors they touch.

import { path, picture, mutedText, rect, textWidth, textMark } from "../marks";
import { LANES } from "../hardware";
import { count, number, span } from "../numbers";
import { type MemoryRequest, unitsOf, WORD } from "../traces";
import { type FollowedRow, SECTOR } from "./followed";

const VERBS = { load: "reads", store: "writes", atomic: "adds to" };

/** Rows and column ranges of a dense matrix that a request touches; null for other arrays. */
function touchedRows({ array, space, offsets, bytes }: MemoryRequest, row: FollowedRow) {
  const { arrays } = row.operation, size = arrays[array] ? row.bytes : WORD;
  if (!(array in arrays) || space === "shared" || row.unit === "number") return null;
  const rowBytes = row.nCols * size;
  const parts = new Map<number, { row: number; from: number; to: number }>();
  for (const offset of offsets) {
    const index = Math.floor(offset / rowBytes), first = (offset - index * rowBytes) / size;
    const part = parts.get(index) ?? { row: index, from: first, to: first };
    part.from = Math.min(part.from, first);
    part.to = Math.max(part.to, first + bytes / size - 1);
    parts.set(index, part);
  }
  return [...parts.values()];
}

function targetText(request: MemoryRequest, row: FollowedRow) {
  const { array, offsets, bytes, size, space } = request, parts = touchedRows(request, row);
  if (parts?.length === 1)
    return `row ${number(parts[0].row)} of ${array}, ${span("column", parts[0].from, parts[0].to)}`;
  if (parts) return `${number(parts.length)} rows of ${array}`;
  const numbers = unitsOf(offsets, bytes, size), [first, last] = [numbers[0], numbers.at(-1)!];
  const subject = first === last ? `${array}[${number(first)}]`
    : last - first < numbers.length ? `${array}[${number(first)}] to [${number(last)}]`
      : `${count(numbers.length, "number")} of ${array}`;
  return subject + (space === "shared" ? " in shared memory" : "");
}

/** A sentence on a request; `all` is the number of requests of the block. */
export function requestSentence(request: MemoryRequest, row: FollowedRow, all: number) {
  const { lanes, offsets, bytes, kind, passes, sectors } = request;
  const isBroadcast = lanes.length > 1 && new Set(offsets).size === 1;
  const bytesText = isBroadcast ? `all the same ${count(bytes, "byte")}`
    : count(lanes.length * bytes, "byte");
  const cost = request.space === "shared"
    ? `${count(passes, "pass", "passes")} through the banks` : count(sectors.length, "sector");
  return `Request ${number(request.number)} (the last is ${number(all - 1)}): warp ` +
    `${request.warp} ${VERBS[kind]} ${targetText(request, row)}: ${count(lanes.length, "lane")}, ` +
    `${bytesText}, ${cost}.`;
}

/** A picture: the warp's lanes above, the sectors or words below, and lines between them. */
export function lanesPicture(request: MemoryRequest, width: number) {
  const { lanes, offsets, role, array } = request, isShared = request.space === "shared";
  const slot = width / LANES, title = "lanes of the warp", isWide = slot >= 18;
  // Numbers of lanes are in the squares or, if these are small, between the title and them.
  const above = isWide ? 0 : 15, parts = [mutedText(0, 12, title)];
  const size = isShared ? WORD : SECTOR;
  const units = isShared ? unitsOf(offsets, 1, size) : request.sectors;
  const unitWidth = Math.min(width / Math.max(units.length, 1), 120);
  for (let lane = 0; lane < LANES; ++lane) {
    const isActive = lanes.includes(lane), middle = (lane + 0.5) * slot - 0.75;
    parts.push(rect(lane * slot, 18 + above, slot - 1.5, 20,
      { fill: isActive ? `var(--av-${role})` : "var(--av-faint)" }));
    if (isWide)
      parts.push(textMark(middle, 32, lane, "middle", { class: isActive ? "av-on-kind" : "av-q" }));
    else if (lane % 8 === 0)
      parts.push(mutedText(Math.max(middle, textWidth("0") / 2), 12 + above, lane, "middle"));
  }
  const lines = lanes.map((lane, turn) => {
    const i = units.indexOf(Math.floor(offsets[turn] / size));
    return `M${((lane + 0.5) * slot).toFixed(1)} ${39 + above}L${
      ((i + 0.5) * unitWidth).toFixed(1)} ${84 + above}`;
  });
  parts.push(path(lines.join(""), { class: "av-threads" }));
  units.forEach((unit, i) => {
    parts.push(rect(i * unitWidth, 85 + above, unitWidth - 1.5, 18, { fill: `var(--av-${role})` }));
    if (textWidth(number(unit)) < unitWidth - 6)
      parts.push(textMark((i + 0.5) * unitWidth, 98 + above, number(unit), "middle",
        { class: "av-on-kind" }));
  });
  parts.push(mutedText(0, 120 + above, isShared ? "words of shared memory, 4 bytes each"
    : `sectors of ${array}, 32 bytes each`));
  const label = `${count(lanes.length, "lane")} and the ` +
    `${count(units.length, isShared ? "word" : "sector")} of ${array} that they touch.`;
  return picture(width, 126 + above, parts.join(""), label);
}
