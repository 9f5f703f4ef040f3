// The statistics of both sides, and by how much A differs from B: better or worse.

import { short } from "../numbers.js";
import { safe } from "../marks.js";

// Name of `PartitionSummary`, what it is called, its kind, and whether less of it is better.
const ROWS = [
  ["idle_share", "share of time waiting", "share", true],
  ["idle_warps", "share of idle warps", "share", true],
  ["imbalance", "busiest over mean", "number", true],
  ["largest", "nonzeros of the busiest", "count", true],
  ["mean", "mean nonzeros of a warp", "number", null],
  ["blocks", "blocks", "count", null],
  ["warps", "launched warps", "count", null],
  ["busy_warps", "warps with work", "count", null],
  ["rows_shared", "rows shared by warps", "count", true],
  ["rows_cut", "rows cut over blocks", "count", true],
  ["shared_atomics", "atomics in shared", "count", true],
  ["global_atomics", "atomics in global", "count", true],
  ["metadata_bytes", "bytes of metadata", "count", true],
];

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

export function writtenStatistic(value, kind) {
  if (!known(value)) return '<span title="not known">&ndash;</span>';
  if (kind === "share") return `${(100 * value).toFixed(2)}%`;
  if (kind === "number") return value.toLocaleString("en", { minimumFractionDigits: 2,
    maximumFractionDigits: 2 });
  const exact = value.toLocaleString("en");
  return value >= 1e7 ? `<span title="${exact}">${short(value)}</span>` : exact;
}

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
  const { a, b, glossary } = scene;
  const lines = ROWS.map(([key, name, kind, less]) => {
    const cells = [writtenStatistic(a.summary[key], kind)];
    if (b) {
      cells.push(writtenStatistic(b.summary[key], kind),
        difference(a.summary[key], b.summary[key], kind, less));
    }
    const term = key === "idle_share" ? glossary["idle share"] ?? "" : "";
    return `<tr data-statistic="${key}"><th scope="row" title="${safe(term)}">${name}</th>` +
      cells.map((cell) => `<td>${cell}</td>`).join("") + "</tr>";
  });
  const mark = (side, letter) =>
    `<th scope="col"><span class="av-mark av-${letter}">${letter}</span> ${safe(side.label)}</th>`;
  host.innerHTML = `<div class="av-scroll"><table class="av-statistics"><thead><tr><td></td>${mark(a, "A")}` +
    (b ? `${mark(b, "B")}<th scope="col">A &minus; B</th>` : "") +
    `</tr></thead><tbody>${lines.join("")}</tbody></table></div>` +
    (b ? '<p class="av-note">&#9650; A is better, &#9660; A is worse; without a sign it is ' +
      "neither.</p>" : "");
}
