// What a GPU was recorded to take, the limit, and what warp time alone predicts, for both sides.

import { count, keysOf, path, picture, quietWords, rect, room, safe, words } from "../marks";
import { headsAside, micros, percent, short } from "../numbers";
import type { View } from "../panel";
import { axis, frame, widthOf } from "../plot";
import { PREDICTED } from "../times";
import type { Operation, Scene, Side, Statistic } from "../types";
import { LANES } from "./followed";
import { SIDES } from "./statistics";

const HEIGHT = 210;
const SOME = 12; // graphs that are named
const LIMIT = "limit of random gathers";
const LIMIT_MEANING = "Limit of random gathers: how long the same GPU takes to read as many " +
  "rows of features at random places and to do nothing else. A kernel is quicker only where " +
  "rows that it needs again are still in a cache.";

export const times: View = (host, scene) => {
  const { a, b, operation, settings } = scene;
  const sides = [a, b].filter((side): side is Side => side !== null);
  const limit = sides.find((side) => side.times.limit !== null)?.times.limit ?? null;
  if (limit === null) {
    const { columns, graphs } = a.times, subject = `${operation.name} on ${scene.graph.name}`;
    const recorded = columns.length ? `Recorded of ${subject} are ${columns.join(", ")} columns.`
      : graphs.length ? `Recorded of ${operation.name} are ${listOf(graphs)}.` : "";
    host.innerHTML = `<p class="av-note">Nothing was recorded of ${safe(subject)} with ` +
      `${settings.nCols} columns. ${safe(recorded)} accelviz.benchmark measures it on a GPU.</p>`;
    return;
  }
  const width = widthOf(host), [over] = Object.keys(a.times.curves);
  host.innerHTML = bars(sides, limit, width) + (over ? curve(scene, over, width) : "") +
    `<p class="av-note">${safe(compared(sides, operation))}</p>`;
};

const listOf = (names: string[]) => names.slice(0, SOME).join(", ") +
  (names.length > SOME ? ` and ${names.length - SOME} more` : "");

interface Bar {
  label: string;
  time: number;
  look: string;
  meaning: string;
}

function bars(sides: Side[], limit: number, width: number) {
  const lines: Bar[] = [{ label: LIMIT, time: limit, look: "av-limit", meaning: LIMIT_MEANING }];
  sides.forEach(({ label, times: { recorded, predicted } }, i) => {
    const name = SIDES[i], look = `av-side-${"AB"[i]}`;
    const line = (how: string, time: number, more: string, meaning: string) =>
      lines.push({ label: `${name}${how}`, time, look: look + more, meaning: `${name}${how}` +
        meaning });
    if (recorded !== null)
      line(", recorded", recorded, "", `, ${label}: median time of the kernel on the GPU.`);
    if (predicted !== null && Math.abs(predicted - (recorded ?? 0)) > 0.005)
      line(", predicted", predicted, " av-pale", `, ${label}: ${PREDICTED}`);
    if (recorded === null && predicted === null)
      line(": not recorded", 0, "", ": this setting was not measured.");
  });
  // Names above the bars where beside them would leave too little to compare by.
  const beside = 12 + Math.max(...lines.map(({ label }) => room(label)));
  const above = width - beside < 260;
  const left = above ? 2 : beside, high = above ? 40 : 26;
  const x = axis(0, Math.max(...lines.map(({ time }) => time)), left, width - 80);
  const drawn = lines.map(({ label, time, look, meaning }, i) => {
    const top = 4 + i * high + (above ? 16 : 0);
    const name = words(above ? left : left - 6, above ? top - 4 : top + 14, label,
      above ? "start" : "end", { "data-f": "", "data-say": meaning });
    return time ? name + rect(left, top, Math.max(x(time) - left, 1), 18,
      { "class": look, "data-say": `${meaning} ${micros(time)}.` }) +
      words(x(time) + 5, top + 14, micros(time)) : name;
  });
  const said = lines.map(({ label, time }) => `${label} ${time ? micros(time) : ""}`).join("; ");
  const svg = picture(width, 8 + high * lines.length, drawn.join(""), said);
  return `<div class="av-draw">${svg}</div>`;
}

/** Over the values of a parameter: what was recorded, and what warp time alone predicts. */
function curve({ first, a }: Scene, over: string, width: number) {
  const { curves, predictedOf } = a.times, limit = a.times.limit!, points = curves[over];
  const last = Math.max(...points.map((point) => point.value));
  const { values } = first.parameters.find(({ name }) => name === over)!;
  const line = values.flatMap((value) => {
    const time = typeof value === "number" && value <= last ? predictedOf({ [over]: value }) : null;
    return time === null ? [] : [{ value: value as number, time }];
  });
  const most = Math.max(limit, ...points.map(({ recorded }) => recorded),
    ...line.map(({ time }) => time));
  const x = axis(0, last * 1.02, 58, width - 12), y = axis(0, most * 1.08, HEIGHT - 44, 12);
  const through = (at: [number, number][]) =>
    `M${at.map(([i, time]) => `${x(i)} ${y(time)}`).join("L")}`;
  let drawn = frame(x, y, `${over} (first)`, "µs") +
    path(`M${x.start} ${y(limit)}H${x.stop}`, { class: "av-limit-line" }) +
    quietWords(x.stop, y(limit) - 4, LIMIT, "end", 11);
  if (line.length > 1)
    drawn += path(through(line.map(({ value, time }) => [value, time])),
      { "class": "av-line-A av-predicted", "data-say": PREDICTED });
  drawn += path(through(points.map(({ value, recorded }) => [value, recorded])),
    { class: "av-line-A" });
  for (const { value, recorded } of points) {
    const now = value === a.parameters[over], half = now ? 5 : 3;
    drawn += rect(x(value) - half, y(recorded) - half, 2 * half, 2 * half, {
      "class": "av-side-A",
      "data-say": `${over} ${value}: ${micros(recorded)}${now ? ", as it is set" : ""}`,
    });
  }
  const said = points.map(({ value, recorded }) => `${value}: ${micros(recorded)}`).join(", ");
  return `<div class="av-draw">${picture(width, HEIGHT, drawn, `${over} ${said}`)}</div>` +
    (line.length > 1 ? keysOf([["av-side-A", "recorded"], ["av-predicted", "predicted"]]) : "");
}

// What takes time and is in no warp's nonzeros.
const COSTS: [Statistic, string][] = [["blocks", "blocks"], ["metadata_bytes", "bytes of metadata"],
  ["shared_atomics", "atomics in shared memory"], ["global_atomics", "atomics in global memory"]];

function compared(sides: Side[], { at_nonzeros }: Operation) {
  const [a, b] = sides, where = a.times.where ? `${a.times.where}.` : "";
  const slots = sides.map((side) => side.summary.slots),
    recorded = sides.map((side) => side.times.recorded);
  if (b && a.heads === b.heads && slots[0] && slots[1] && recorded[0] && recorded[1]) {
    const [wanted, took] = [slots[0] / slots[1], recorded[0] / recorded[1]];
    const [first, second] = sides.map((side) => percent(side.summary.idle_share) +
      headsAside(side));
    return `Of the first's warp time ${first} is waiting, of the second's ${second}. By warp ` +
      `time alone the first should take ${wanted.toFixed(2)} times as long as the second; it ` +
      `took ${took.toFixed(2)} times as long. ${at_nonzeros ? turns(sides) : ""}` +
      `${reason(sides, took > wanted ? 0 : 1)} ${where}`;
  }
  if (recorded[0] === null && a.times.basis !== null)
    return "The first was not recorded: the prediction is the time of its strategy's default, " +
      `${micros(a.times.basis)}, times the ratio of their warp times. ${where}`;
  return where;
}

/** Where lanes take a row's nonzeros in turn: how often the busiest worker of each side does. */
function turns(sides: Side[]) {
  const lanes = sides.map(({ worker, parameters, resolved }) =>
    worker === "warp" ? LANES : Number(parameters.lanes ?? resolved.lanes));
  if (!lanes[0] || !lanes[1] || lanes[0] === lanes[1]) return "";
  const said = sides.map(({ worker, summary: { largest } }, i) =>
    `${count(Math.ceil(largest / lanes[i]), "turn")} of a ${worker} of ` +
    `${count(lanes[i], "lane")} in the ${SIDES[i]}`);
  return `Lanes take a row's nonzeros in turn: the busiest needs ${said.join(", ")}. `;
}

/** Why less waiting may take longer; `more` is the side that takes more than its warp time says. */
function reason(sides: Side[], more: number) {
  const [slow, other] = [sides[more], sides[1 - more]];
  const costs = COSTS.flatMap(([key, name]) => {
    const [mine, theirs] = [slow.summary[key], other.summary[key]];
    return mine !== null && theirs !== null && mine > 1.05 * theirs
      ? [`${name} (${short(mine)} against ${short(theirs)})`] : [];
  });
  const has = costs.length
    ? ` The ${SIDES[more]} has more ${costs.join(", ")}, and each takes time.` : "";
  const lanes = slow.rowPerLane
    ? ` A ${slow.worker} of ${slow.strategy} lasts as long as the longest ` +
    "of its 32 rows, which are counted together here." : "";
  return "Warp time counts nonzeros alone. It says nothing of how lanes read and wait within a " +
    `warp, of what a cache keeps, or of how many warps an SM has at once.${lanes}${has}`;
}
