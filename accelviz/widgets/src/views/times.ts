// What a GPU was recorded to take, the limit, and what warp time alone predicts, for both sides.

import { count, path, picture, rect, room, safe, words } from "../marks";
import { headsAside, micros as written, percent, short } from "../numbers";
import { axis, frame, widthOf } from "../plot";
import { PREDICTED } from "../times";
import { LANES } from "./followed";
import { SIDES } from "./statistics";

const HEIGHT = 210;
const LIMIT = ["limit of random gathers", "Limit of random gathers: how long the same GPU takes to " +
  "read as many rows of features at random places and to do nothing else. A kernel is quicker only where " +
  "rows that it needs again are still in a cache."];
export function times(host, scene) {
  const sides = [scene.a, scene.b].filter(Boolean), found = sides.map((side) => side.times);
  const limit = found.find((each) => each.limit !== null)?.limit ?? null;
  if (limit === null) {
    const { columns, graphs } = scene.a.times, of = `${scene.operation.name} on ${scene.graph.name}`;
    const there = columns.length ? `Recorded of ${of} are ${columns.join(", ")} columns.`
      : graphs.length ? `Recorded of ${scene.operation.name} are ${listed(graphs)}.` : "";
    host.innerHTML = `<p class="av-note">Nothing was recorded of ${safe(of)} with ` +
      `${scene.settings.nCols} columns. ${safe(there)} accelviz.benchmark measures it on a GPU.</p>`;
    return;
  }
  const width = widthOf(host), [over] = Object.keys(found[0].curves);
  host.innerHTML = bars(sides, found, limit, width) +
    (over ? curve(scene, over, found[0], width) : "") +
    `<p class="av-note">${safe(compared(sides, found, scene.operation))}</p>`;
}

const SOME = 12; // graphs that are named

const listed = (names) => names.length > SOME
  ? `${names.slice(0, SOME).join(", ")} and ${names.length - SOME} more` : names.join(", ");

function bars(sides, found, limit, width) {
  const lines = [[LIMIT[0], limit, "av-limit", ""]];
  sides.forEach((side, i) => {
    const { recorded, predicted } = found[i], [name, look] = [SIDES[i], `av-side-${"AB"[i]}`];
    const own = `${name}, recorded`;
    if (recorded !== null) lines.push([own, recorded, look, side.label]);
    if (predicted !== null && Math.abs(predicted - recorded) > 0.005)
      lines.push([`${name}, predicted`, predicted, `${look} av-pale`, side.label]);
    if (recorded === null && predicted === null) lines.push([`${name}: not recorded`, 0, "", ""]);
  });
  // Names above the bars where beside them would leave too little to compare by.
  const beside = 12 + Math.max(...lines.map(([label]) => room(label))), above = width - beside < 260;
  const left = above ? 2 : beside, high = above ? 40 : 26;
  const x = axis(0, Math.max(...lines.map(([, time]) => time)), left, width - 80);
  let drawn = "";
  lines.forEach(([label, time, name, whose], i) => {
    const top = 4 + i * high + (above ? 16 : 0);
    drawn += words(above ? left : left - 6, above ? top - 4 : top + 14, label, above ? "start" : "end", { "data-f": "", "data-say": saidOf(label, whose) });
    if (!time) return;
    drawn += rect(left, top, Math.max(x(time) - left, 1), 18, { class: name,
      "data-say": `${saidOf(label, whose)} ${written(time)}.` });
    drawn += words(x(time) + 5, top + 14, written(time));
  });
  const said = lines.map(([label, time]) => `${label} ${time ? written(time) : ""}`).join("; ");
  return `<div class="av-draw">${picture(width, 8 + high * lines.length, drawn, said)}</div>`;
}

function saidOf(label, whose) {
  if (label === LIMIT[0]) return LIMIT[1];
  if (/predicted/.test(label)) return `${label}, ${whose}: ${PREDICTED}`;
  if (/not recorded/.test(label)) return `${label}: this setting was not measured.`;
  return `${label}, ${whose}: median time of the kernel on the GPU.`;
}

// Over the values of a parameter: what was recorded, and what warp time alone predicts.
function curve(scene, over, { curves, limit, predictedOf }, width) {
  const points = curves[over], last = Math.max(...points.map((point) => point.value));
  const { values } = scene.first.parameters.find((each) => each.name === over);
  const line = values.filter((value) => typeof value === "number" && value <= last)
    .map((value) => ({ value, time: predictedOf({ [over]: value }) })).filter(({ time }) => time !== null);
  const most = Math.max(...points.map((point) => point.recorded), ...line.map(({ time }) => time), limit);
  const x = axis(0, last * 1.02, 58, width - 12);
  const y = axis(0, most * 1.08, HEIGHT - 44, 12);
  let drawn = frame(x, y, `${over} (first)`, "µs");
  drawn += path(`M${x.start} ${y(limit)}H${x.stop}`, { class: "av-limit-line" });
  drawn += words(x.stop, y(limit) - 4, LIMIT[0], "end", { class: "av-q", "font-size": 11 });
  if (line.length > 1) {
    drawn += path(`M${line.map(({ value, time }) => `${x(value)} ${y(time)}`).join("L")}`,
      { class: "av-line-A av-predicted", "data-say": PREDICTED });
  }
  drawn += path(`M${points.map(({ value, recorded }) => `${x(value)} ${y(recorded)}`).join("L")}`,
    { class: "av-line-A" });
  for (const point of points) {
    const now = point.value === scene.a.parameters[over];
    drawn += rect(x(point.value) - (now ? 5 : 3), y(point.recorded) - (now ? 5 : 3), now ? 10 : 6,
      now ? 10 : 6, { class: "av-side-A", "data-say":
        `${over} ${point.value}: ${written(point.recorded)}${now ? ", as it is set" : ""}` });
  }
  const said = points.map(({ value, recorded }) => `${value}: ${written(recorded)}`).join(", ");
  const note = line.length > 1 ? '<p class="av-note"><span class="av-key av-side-A"></span> recorded ' +
    '&nbsp; <span class="av-key av-predicted"></span> predicted</p>' : "";
  return `<div class="av-draw">${picture(width, HEIGHT, drawn, `${over} ${said}`)}</div>${note}`;
}

// What takes time and is in no warp's nonzeros.
const BESIDE = [["blocks", "blocks"], ["metadata_bytes", "bytes of metadata"],
  ["shared_atomics", "atomics in shared memory"], ["global_atomics", "atomics in global memory"]];

function compared(sides, found, { at_nonzeros }) {
  const where = found[0].where ? `${found[0].where}.` : "";
  const slots = sides.map((side) => side.summary.slots), [a, b] = found;
  if (b && sides[0].heads === sides[1].heads && slots[0] && slots[1] && a.recorded && b.recorded) {
    const [wanted, took] = [slots[0] / slots[1], a.recorded / b.recorded];
    const [own, other] = sides.map((side) => percent(side.summary.idle_share) + headsAside(side));
    return `Of the first's warp time ${own} is waiting, of the second's ${other}. By warp time alone the first ` +
      `should take ${wanted.toFixed(2)} times as long as the second; it took ${took.toFixed(2)} times as long. ` +
      `${at_nonzeros ? turns(sides) : ""}${reason(sides, took > wanted ? 0 : 1)} ${where}`;
  }
  if (a.recorded === null && a.basis !== null) {
    return "The first was not recorded: the prediction is the time of its strategy's default, " +
      `${written(a.basis)}, times the ratio of their warp times. ${where}`;
  }
  return where;
}

// Where lanes take a row's nonzeros in turn: how often the busiest worker of each side does.
function turns(sides) {
  const lanes = sides.map(({ worker, parameters, settled }) =>
    worker === "warp" ? LANES : parameters.lanes ?? settled.lanes);
  if (!lanes[0] || !lanes[1] || lanes[0] === lanes[1]) return "";
  const said = sides.map(({ worker, summary: { largest: most } }, i) =>
    `${count(Math.ceil(most / lanes[i]), "turn")} of a ${worker} of ${count(lanes[i], "lane")} in the ${SIDES[i]}`);
  return `Lanes take a row's nonzeros in turn: the busiest needs ${said.join(", ")}. `;
}

// Why less waiting may take longer; `more` is the side that takes more than its warp time says.
function reason(sides, more) {
  const [own, other] = [sides[more], sides[1 - more]];
  const costs = BESIDE.map(([key, name]) => [name, own.summary[key], other.summary[key]])
    .filter(([, mine, theirs]) => mine !== null && theirs !== null && mine > 1.05 * theirs)
    .map(([name, mine, theirs]) => `${name} (${short(mine)} against ${short(theirs)})`);
  const has = costs.length ? ` The ${SIDES[more]} has more ${costs.join(", ")}, and each takes time.` : "";
  const lanes = own.apart ? ` A ${own.worker} of ${own.strategy} lasts as long as the longest of its 32 ` +
    "rows, which are counted together here." : "";
  return "Warp time counts nonzeros alone. It says nothing of how lanes read and wait within a warp, " +
    `of what a cache keeps, or of how many warps an SM has at once.${lanes}${has}`;
}
