// The statistics of both sides, and by how much A differs from B: better or worse.

import { short } from "../numbers.js";
import { safe } from "../marks.js";

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

/** What A and B are, for tooltips. */
export const LETTERS = { A: "A: what the controls are set to.",
  B: "B: what A is compared with. Choose it under compare with, or pin A." };

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

export function writtenStatistic(value, kind) {
  if (!known(value)) return '<span title="not known">&ndash;</span>';
  if (kind === "share") return `${(100 * value).toFixed(2)}%`;
  if (kind === "number") return value.toLocaleString("en", { minimumFractionDigits: 2,
    maximumFractionDigits: 2 });
  const exact = value.toLocaleString("en");
  return value >= 1e7 ? `<span title="${exact}">${short(value)}</span>` : exact;
}

// A long name may go on in the next line where a word of it ends.
const breakable = (label) => safe(label).replace(/[_=]/g, "$&<wbr>");

// A - B, with a sign, a word for those who do not see the colour, and the colour.
function difference(a, b, kind, less) {
  if (!known(a) || !known(b)) return "";
  const apart = a - b;
  const shown = kind === "share" ? `${Math.abs(100 * apart).toFixed(2)} pt`
    : kind === "number" ? Math.abs(apart).toFixed(2) : short(Math.abs(apart));
  if (apart === 0 || Number.parseFloat(shown) === 0) return "0";
  const sign = apart < 0 ? "&minus;" : "+";
  if (less === null) return `${sign}${shown}`;
  const better = less === apart < 0;
  const word = better ? "better" : "worse";
  return `<span class="av-${word}" title="A is ${word}">${sign}${shown} ` +
    `${better ? "&#9650;" : "&#9660;"}</span>`;
}

export function statistics(host, scene) {
  const { a, b } = scene;
  const lines = ROWS.map(([key, name, kind, less, meaning]) => {
    const cells = [writtenStatistic(a.summary[key], kind)];
    if (b) {
      cells.push(writtenStatistic(b.summary[key], kind),
        difference(a.summary[key], b.summary[key], kind, less));
    }
    return `<tr data-statistic="${key}"><th scope="row" title="${safe(meaning)}">${name}</th>` +
      cells.map((cell) => `<td>${cell}</td>`).join("") + "</tr>";
  });
  const mark = (side, letter) =>
    `<th scope="col" title="${LETTERS[letter]}"><span class="av-mark av-${letter}">${letter}</span>&nbsp;${breakable(side.label)}</th>`;
  host.innerHTML = `<div class="av-scroll"><table class="av-statistics"><thead><tr><td></td>${mark(a, "A")}` +
    (b ? `${mark(b, "B")}<th scope="col">A &minus; B</th>` : "") +
    `</tr></thead><tbody>${lines.join("")}</tbody></table></div>` +
    (b ? '<p class="av-note">&#9650; A is better, &#9660; A is worse; without a sign it is ' +
      "neither.</p>" : "");
}
