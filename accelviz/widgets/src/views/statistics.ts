// The statistics of both sides, and by how much the first differs from the second: better or worse.

import { apart, micros, rounded, short } from "../numbers";
import { safe } from "../marks";

// Name of `PartitionSummary`, what it is called, its kind, whether less of it is better, and what it
// means.
const ROWS = [
  ["idle_share", "share of time waiting", "share", true,
    "Warp time spent waiting: a block lasts as long as its busiest warp, and this is the share of the warps' time in it that has no nonzero to sum."],
  ["idle_warps", "share of idle warps", "share", true,
    "Launched warps that have no nonzero at all, as a share of all launched warps."],
  ["imbalance", "busiest over mean", "number", true,
    "Nonzeros of the busiest warp over the mean of the warps with work; 1 is perfect balance."],
  ["largest", "nonzeros of the busiest", "count", true,
    "The most nonzeros that one warp has. No block with this warp is done sooner."],
  ["mean", "mean nonzeros of a warp", "number", null,
    "Nonzeros over the warps that have any."],
  ["blocks", "blocks", "count", null,
    "Blocks of the grid for one tile of columns. The GPU hands them to its SMs as these become free."],
  ["warps", "launched warps", "count", null,
    "Warps of all blocks, with work or without."],
  ["busy_warps", "warps with work", "count", null,
    "Launched warps that have at least one nonzero."],
  ["rows_shared", "rows shared by warps", "count", true,
    "Rows that several warps of one block have parts of: their sums have to be added up."],
  ["rows_cut", "rows cut over blocks", "count", true,
    "Rows that lie in several blocks: their sums meet in global memory."],
  ["shared_atomics", "atomics in shared", "count", true,
    "Atomic additions to shared memory, with which the warps of a block add up a row: one for each column and each part."],
  ["global_atomics", "atomics in global", "count", true,
    "Atomic additions to global memory, with which blocks add up a row, or say that their part is done."],
  ["metadata_bytes", "bytes of metadata", "count", true,
    "What tells blocks or warps their work, in bytes; the kernel reads it besides the graph."],
];

/** What the two settings are called, in Python too, and what they are. A and B are matrices. */
export const SIDES = ["first", "second"];
export const MEANT = {
  first: "The first setting: what the controls are set to.",
  second: "The second setting: what the first is compared with. Choose its strategy beside it, or pin the first.",
};

const TIME = "Median time of the kernel on a GPU, where this setting was recorded; else predicted: " +
  "the recorded time of the strategy's default, scaled by how its warp time changes. Less is better.";

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

export function writtenStatistic(value, kind) {
  if (!known(value)) return '<span title="not known">&ndash;</span>';
  if (kind === "share") return `${(100 * value).toFixed(2)}%`;
  if (kind === "number") return hundredths(value);
  const exact = value.toLocaleString("en");
  return value >= MANY ? `<span title="${exact}">${short(value)}</span>` : exact;
}

const MANY = 1e7; // counts from which on three digits are shown
const seen = (value) => (value >= MANY ? Number(value.toPrecision(3)) : value);

const hundredths = (value) =>
  rounded(value, 2).toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

// A long word of a name may go on in the next line where a part of it ends.
const breakable = (label) => safe(label).replace(/\S{15,}/g, (long) => long.replace(/[_=]/g, "$&<wbr>"))
  .replace(/(\d) x (?=\d)/g, "$1&nbsp;x&nbsp;");

// First - second, with a sign, a word for those who do not see the colour, and the colour.
function difference(a, b, kind, less) {
  if (!known(a) || !known(b)) return "";
  if (kind === "share") {
    const by = apart(100 * a, 100 * b, 2);
    return signed(by, `${Math.abs(by).toFixed(2)} pt`, less, " pt: percentage points, a difference of shares.");
  }
  const by = kind === "number" ? apart(a, b, 2) : seen(a) - seen(b) || a - b;
  return signed(by, (kind === "number" ? hundredths : short)(Math.abs(by)), less);
}

// A difference as it is shown; `less` is whether less of it is better, null if it is neither.
function signed(by, shown, less, unit = "") {
  if (by === 0) return "0";
  const sign = by < 0 ? "&minus;" : "+";
  if (less === null) return `${sign}${shown}`;
  const better = less === by < 0;
  const word = better ? "better" : "worse";
  return `<span class="av-${word}" title="The first is ${word}.${unit}">${sign}${shown} ` +
    `${better ? "&#9650;" : "&#9660;"}</span>`;
}

// How long it takes, before all that may explain it. A prediction is no verdict.
function timeLine(a, b) {
  const cell = ({ times: { recorded, predicted } }) => recorded !== null ? micros(recorded)
    : predicted !== null ? `<span title="predicted: this setting was not recorded">≈ ${micros(predicted)}</span>` : '<span title="not recorded">&ndash;</span>';
  const cells = [cell(a)];
  if (b) {
    const [own, other] = [a, b].map(({ times }) => times.recorded ?? times.predicted);
    const by = known(own) && known(other) ? apart(own, other, 1) : null;
    const sure = a.times.recorded !== null && b.times.recorded !== null;
    cells.push(cell(b), by === null ? "" : signed(by, micros(Math.abs(by)), sure ? true : null));
  }
  return `<tr data-statistic="time"><th scope="row" title="${safe(TIME)}">time on a GPU</th>` +
    cells.map((each) => `<td>${each}</td>`).join("") + "</tr>";
}

// What the statistics of a side count as warps.
const unitOf = ({ worker, reading }) => worker === "warp" && reading?.lanes > 32 ? "combined warp" : worker;
// Those that are numbers of them, or nonzeros of one: not to be compared where these are two things.
const OF_UNITS = new Set(["idle_warps", "imbalance", "largest", "mean", "warps", "busy_warps", "rows_shared"]);

export function statistics(host, scene) {
  const { a, b } = scene;
  const units = [a, b].map((side) => side && unitOf(side)), alike = !b || units[0] === units[1];
  const heads = [a, b].filter((side) => side?.heads > 1).map((side) => side.heads)[0] ?? 1;
  const whole = !b || a.heads === b.heads; // else what is counted of one is a part
  const named = (name) => name.replace(/\bwarps?\b/, (word) =>
    alike ? a.worker + word.slice(4) : word);
  const lines = ROWS.map(([key, name, kind, less, meaning]) => {
    const cells = [writtenStatistic(a.summary[key], kind)];
    if (b) {
      cells.push(writtenStatistic(b.summary[key], kind),
        !whole && (OF_UNITS.has(key) || key === "idle_share") ? `<span title="Of one of them only the first head is counted.">&ndash;</span>`
          : alike || !OF_UNITS.has(key) ? difference(a.summary[key], b.summary[key], kind, less)
            : `<span title="A ${units[0]} is no ${units[1]}.">&ndash;</span>`);
    }
    return `<tr data-statistic="${key}"><th scope="row" title="${safe(meaning)}">${named(name)}</th>` +
      cells.map((cell) => `<td>${cell}</td>`).join("") + "</tr>";
  });
  const mark = (side, i) =>
    `<th scope="col" title="${safe(side.said)}"><span class="av-mark av-${"AB"[i]}" title="${MEANT[SIDES[i]]}">${SIDES[i]}</span><br>${breakable(side.label)}${alike ? "" : `<br><span class="av-unit">in ${units[i]}s</span>`}</th>`;
  host.innerHTML = `<div class="av-scroll"><table class="av-statistics${alike && a.worker !== "warp" ? " av-of-groups" : ""}"><thead><tr><td></td>${mark(a, 0)}` +
    (b ? `${mark(b, 1)}<th scope="col">difference</th>` : "") +
    `</tr></thead><tbody>${timeLine(a, b)}${lines.join("")}</tbody></table></div>` +
    (heads > 1 ? `<p class="av-note">A row has a lane group for each of its ${heads} heads. Only the first head's is counted ` +
      "as work; what the others do counts as waiting here.</p>" : "") +
    (b ? '<p class="av-note">&#9650; the first is better, &#9660; it is worse; without a sign it is ' +
      "neither.</p>" : "");
}
