// A table of the statistics of both sides, with differences marked as better or worse.

import { unsafeHTML } from "lit-html/directives/unsafe-html.js";
import { html, render } from "../controls";
import { markOf } from "../header";
import { escape } from "../marks";
import { difference, micros, rounded, short } from "../numbers";
import type { View } from "../panel";
import { timesBeside } from "../times";
import type { Side, Statistic } from "../types";

type Kind = "share" | "number" | "count";

// Rows of the table: field of `PartitionSummary`, label, kind of number, whether less is better
// (null for neither), meaning.
const ROWS: [Statistic, string, Kind, boolean | null, string][] = [
  ["idle_share", "share of warp time idle", "share", true, "A block lasts as long as its busiest " +
  "warp, and this is the share of the time of its hardware warps in which they have no nonzero " +
  "to sum."],
  ["slots", "steps of warp time", "count", true, "Steps of all warps until their blocks are " +
  "done, idle ones included: the share above is one of these. It can rise while they fall."],
  ["idle_warps", "share of warps without work", "share", true,
    "Launched warps that have no nonzero at all, as a share of all launched warps. Warps with " +
    "work idle, too, once they are done and their block is not: the share of warp time has both."],
  ["longest", "steps of the longest warp", "count", true, "The most steps that one warp of the " +
  "hardware takes; in a step it loads a part of a row for one nonzero of each of its workers. A " +
  "warp that does several workers' nonzeros one after another can take more steps than any of " +
  "them has nonzeros. A step can be other work in another strategy: only the times compare all."],
  ["warps", "launched warps", "count", null, "Hardware warps of all blocks, with work or without."],
  ["busy_warps", "warps with work", "count", null,
    "Launched warps that have at least one nonzero."],
  ["imbalance", "busiest warp over the mean", "number", true,
    "Nonzeros of the busiest over the mean of those with work; 1 is perfect balance."],
  ["largest", "nonzeros of the busiest warp", "count", true,
    "The most nonzeros that one worker of the partition has: a warp, a combined warp (several " +
    "warps side by side) or a subwarp. max_warp_nzs limits this number; a warp of the hardware " +
    "that does several of them takes the steps of all, the number above."],
  ["mean", "mean nonzeros of a warp", "number", null, "Nonzeros over the warps that have any."],
  ["blocks", "blocks", "count", null, "Blocks of the grid for one tile of columns. The GPU hands " +
  "them to its SMs as these become free."],
  ["rows_shared", "rows shared by warps", "count", true,
    "Rows that several warps of one block have parts of: their sums have to be added up."],
  ["rows_cut", "rows cut over blocks", "count", true,
    "Rows that lie in several blocks: their sums meet in global memory."],
  ["shared_atomics", "atomics in shared", "count", true, "Atomic additions to shared memory, " +
  "with which the warps of a block add up a row: one for each column and each part."],
  ["global_atomics", "atomics in global", "count", true, "Atomic additions to global memory, " +
  "with which blocks add up a row, or say that their part is done."],
  ["metadata_bytes", "bytes of metadata", "count", true,
    "What tells blocks or warps their work, in bytes; the kernel reads it besides the graph."],
];

const TIME =
  "Median time of the kernel on a GPU, where this setting was recorded. Less is better.";

const MANY = 1e7; // counts from here on are shown with three digits

type Known = number | null;
const isKnown = (value: Known): value is number => value !== null && !Number.isNaN(value);
const dash = (title: string) => html`<span title=${title}>–</span>`;

const hundredths = (value: number) =>
  rounded(value, 2).toLocaleString("en", { minimumFractionDigits: 2 });

function valueText(value: Known, kind: Kind) {
  if (!isKnown(value)) return dash("not known");
  if (kind === "share") return `${(100 * value).toFixed(2)}%`;
  if (kind === "number") return hundredths(value);
  const exact = value.toLocaleString("en");
  return value >= MANY ? html`<span title=${exact}>${short(value)}</span>` : exact;
}

/** A label whose long words may break after "_" and "=". */
export const breakable = (label: string) => unsafeHTML(escape(label)
  .replace(/[_=]/g, "$&<wbr>")
  .replace(/(\d) x (?=\d)/g, "$1&nbsp;x&nbsp;"));

/** First minus second, with sign, arrow and colour for better or worse. */
function differenceOf(a: Known, b: Known, kind: Kind, lessIsBetter: boolean | null) {
  if (!isKnown(a) || !isKnown(b)) return "";
  if (kind === "share") {
    const by = difference(100 * a, 100 * b, 2);
    return signed(by, `${Math.abs(by).toFixed(2)} pt`, lessIsBetter,
      " pt: percentage points, a difference of shares.");
  }
  if (kind === "number") {
    const by = difference(a, b, 2);
    return signed(by, hundredths(Math.abs(by)), lessIsBetter);
  }
  const seen = (value: number) => (value >= MANY ? Number(value.toPrecision(3)) : value);
  const by = seen(a) - seen(b) || a - b;
  return signed(by, short(Math.abs(by)), lessIsBetter);
}

function signed(amount: number, text: string, lessIsBetter: boolean | null, unit = "") {
  if (amount === 0) return "0";
  const sign = amount < 0 ? "−" : "+";
  if (lessIsBetter === null) return sign + text;
  const [word, arrow] = lessIsBetter === amount < 0 ? ["better", "▲"] : ["worse", "▼"];
  return html`<span class="av-${word}" title="The first is ${word}.${unit}">${sign}${text} ${
    arrow}</span>`;
}

const tableRow = (key: string, name: string, meaning: string, cells: unknown[]) => html`<tr
  data-statistic=${key}><th scope="row" title=${meaning}>${name}</th>${
    cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;

/** The row of recorded times, of one run if one has both: those of different runs are not
 *  compared. */
function timeRow(a: Side, b: Side | null) {
  const [first, second = null] = timesBeside(a, b);
  const cell = (time: typeof first) => time ? micros(time.median) : dash("not recorded");
  const cells: unknown[] = [cell(first)];
  if (b) {
    const by = difference(first?.median ?? NaN, second?.median ?? NaN, 1);
    cells.push(cell(second), Number.isNaN(by) ? ""
      : first!.run !== second!.run ? dash("Of different runs.")
        : signed(by, micros(Math.abs(by)), true));
  }
  const run = first && first.run === (second ?? first).run ? `, ${a.times.runName(first.run)}` : "";
  return tableRow("time", `time on a GPU${run}`, TIME, cells);
}

// Statistics per worker, which are comparable only between sides with the same kind of worker.
const PER_WORKER = new Set<Statistic>(
  ["imbalance", "largest", "mean", "rows_shared"]);

export const statistics: View = (host) => ({ a, b }) => {
  const units = [a, b].map((side) => side && side.worker), sameUnit = !b || units[0] === units[1];
  const rows = ROWS.map(([key, name, kind, lessIsBetter, meaning]) => {
    const isPerWorker = PER_WORKER.has(key);
    const compared = b && (sameUnit || !isPerWorker
      ? differenceOf(a.summary[key], b.summary[key], kind, lessIsBetter)
      : dash(`A ${units[0]} is no ${units[1]}.`));
    const unit = sameUnit ? a.worker : "worker";
    const title = isPerWorker ? name.replace(/\bwarp(?=s?\b)/, unit) : name;
    return tableRow(key, title, meaning,
      [valueText(a.summary[key], kind), ...(b ? [valueText(b.summary[key], kind), compared] : [])]);
  });
  const head = (side: Side, i: number) => html`<th scope="col" title=${side.description}>${
    markOf(i)}<br>${breakable(side.label)}${
    sameUnit ? "" : html`<br><span class="av-unit">in ${units[i]}s</span>`}</th>`;
  render(html`<div class="av-scroll"><table class="av-statistics ${
    sameUnit && a.worker !== "warp" ? "av-of-groups" : ""}"><thead><tr><td></td>${head(a, 0)}${
    b ? html`${head(b, 1)}<th scope="col">difference</th>` : ""}</tr></thead><tbody>${
    timeRow(a, b)}${rows}</tbody></table></div>${b ? html`<p class="av-note">▲ the first is
    better, ▼ it is worse; without a sign it is neither.</p>` : ""}`, host);
};
