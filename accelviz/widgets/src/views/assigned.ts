// From the row to its workers: its place in the order, its block, and the block's workers as bars.
import { count, firstFit, fitting, hatching, number, path, picture, rect, room, words } from "../marks";
import { LANES, PLACE, capital, headsSaid, owners, several } from "./followed";

const BARS = 160; // workers that have a bar of their own
const TALL = 300; // pixels for all bars, at most

const skylines = new WeakMap(); // degrees or an order to lines drawn of it, by their width

/** The largest degree of each pixel's rows, as a filled line; heights are logarithmic. */
function skyline(graph, order, width, height) {
  const owner = order ?? graph.degrees;
  const known = skylines.get(owner) ?? new Map();
  skylines.set(owner, known);
  const key = `${width} ${height}`;
  if (known.has(key)) return known.get(key);
  const most = new Float64Array(width);
  for (let place = 0; place < graph.rows; ++place) {
    const x = Math.floor((place / graph.rows) * width);
    const degree = graph.degrees[order ? order[place] : place];
    if (degree > most[x]) most[x] = degree;
  }
  const top = Math.log1p(most.reduce((a, b) => Math.max(a, b), 1));
  const wide = Math.max(1, Math.floor(width / Math.max(graph.rows, 1)));
  let d = `M0 ${height}`;
  for (let x = 0; x < width; x += 1) {
    const from = graph.rows < width ? Math.floor(x / wide) * wide : x;
    d += `L${x} ${(height - (Math.log1p(most[from]) / top) * height).toFixed(1)}`;
  }
  d += `L${width} ${height}Z`;
  known.set(key, d);
  return d;
}

// A label over a point, moved as far as it has to be to stay inside.
function label(x, y, text, width, attributes) {
  const half = room(text, 12) / 2;
  const middle = Math.min(Math.max(x, half), width - half);
  return plate(middle - half, y, 2 * half) + words(middle, y, text, "middle", attributes);
}

// Ground behind words, so that no line runs through them.
const plate = (x, y, wide) => rect(x - 3, y - 12, wide + 6, 16, { class: "av-plate" });

/** Where the row goes: from its place in A to its place in the order, and from there to its block. */
export function order(row, width) {
  const { graph, side, place, blocks, partition } = row;
  const high = 46;
  const share = (index, of) => ((index + 0.5) / Math.max(of, 1)) * width;
  const from = share(row.row, graph.rows);
  const to = share(place, graph.rows);
  const parts = [words(0, 13, `the rows of ${row.matrix} as they are in ${graph.name}`, "start", { class: "av-q" })];
  const place_line = (x, y, token = "row") => rect(
    x - 1.5, y, 3, high, { class: "av-row", "data-f": token, "data-m": `p${y}` },
  );
  let y = 20;
  const sky = (order, say) => path(
    skyline(graph, order, width, high), { class: "av-sky", transform: `translate(0 ${y})` },
  ) + rect(0, y, width, high, { fill: "transparent", "data-say": say });
  parts.push(sky(null, "Degrees of the rows, from row 0 at the left to the last at the right: the higher the grey, the more nonzeros, on a logarithmic scale."));
  parts.push(place_line(from, y));
  let down = from;
  let said = `Row ${number(row.row)} stays where it is`;
  if (side.order) {
    const next = y + high + 62;
    parts.push(mover(from, y + high, to, next, "o"));
    parts.push(label(from, y + high + 15, `row ${number(row.row)}`, width, { class: "av-r" }));
    const named = firstFit(["place: the same rows in the order in which the kernel walks them", "place: the order in which the kernel walks the rows", "place: as the kernel walks them"], width);
    parts.push(plate(0, next - 8, room(named)));
    parts.push(words(0, next - 8, named, "start", { class: "av-q", "data-f": "place" }));
    y = next;
    parts.push(sky(side.order, `Degrees again, with the rows in their places. ${PLACE}`));
    parts.push(place_line(to, y, "place"));
    down = to;
    said = `Row ${number(row.row)} moves to place ${number(place)} of the order`;
  }
  const name = side.order ? `place ${number(place)}` : `row ${number(row.row)}`;
  const named = label(down, y + high + 15, name, width, { class: "av-r", "data-f": side.order ? "place" : "row" });
  y += high;
  const bar = y + 58;
  const per = width / Math.max(partition.blocks, 1);
  parts.push(rect(0, bar, width, 14, { class: "av-rest" }));
  if (per >= 4) {
    const cuts = Array.from({ length: partition.blocks - 1 }, (_, b) => `M${(b + 1) * per} ${bar}v14`);
    parts.push(path(cuts.join(""), { class: "av-cut" }));
  }
  const text = `${count(partition.blocks, "block")}, in the order of their start`;
  parts.push(words(0, bar + 29, fitting(text, width), "start", { class: "av-q" }));
  if (blocks.length) {
    const [first, last] = blocks;
    const middle = ((first + last + 1) / 2) * per;
    parts.push(mover(down, y, middle, bar, "b"));
    const tick = Math.max((last - first + 1) * per, 4);
    parts.push(
      rect(Math.min(middle - tick / 2, width - tick), bar - 2, tick, 18, { class: "av-row", "data-f": "block", "data-m": "block" }),
    );
    const blockName = first === last ? `block ${number(first)}` : `blocks ${number(first)} to ${number(last)}`;
    parts.push(label(middle, bar - 7, blockName, width, { class: "av-r" }));
    said += `, and is in ${blockName} of ${number(partition.blocks)}`;
  } else said += "; it is in no block";
  parts.push(named); // over the line that leads to the block
  return { svg: picture(width, bar + 36, parts.join(""), `${said}.`), over: () => "" };
}

const mover = (x1, y1, x2, y2, key) =>
  `<line x1="${x1.toFixed(1)}" y1="${y1}" x2="${x2.toFixed(1)}" y2="${y2}" class="av-way" data-m="w${key}"/>`;

/** The block's workers as bars, as long as they have nonzeros; hatched while they wait. */
export function block(row, width) {
  const { work, worker, partition } = row;
  const { apart } = row.side; // then a bar is a warp's lanes, a line each
  const every = Math.ceil(partition.warps / BARS);
  const lines = Math.ceil(partition.warps / every);
  const high = Math.max(Math.min(Math.floor(TALL / lines), apart ? 40 : 24), 1.5);
  const mine = new Set(owners(row));
  const longest = `${worker} ${number(partition.warps - 1)}`;
  const left = Math.max(room(longest, 12), 30) + 10;
  const axis = Math.max(width - left - 12, 60);
  const top = 24;
  const x = (nonzeros) => left + (nonzeros / Math.max(work.most, 1)) * axis;
  const y = (warp) => top + Math.floor(warp / every) * high;
  const gap = high > 6 ? 2 : high > 3 ? 1 : 0;
  const hatch = hatching();
  const parts = [hatch.defs];
  const shown = new Set(busiestOf(work.loads, every, mine));
  const filled = new Float64Array(partition.warps);
  const label = high >= 13;
  for (const warp of shown) {
    const load = work.loads[warp];
    const rest = { class: load ? "av-waits" : "av-waits av-none", fill: hatch.paint };
    const begin = x(apart ? 0 : load);
    parts.push(
      rect(begin, y(warp), x(work.most) - begin, high - gap, { ...rest, "data-f": `warp:${work.block}:${warp}`, "data-m": `h${warp}` }),
    );
  }
  let empty = "";
  const over = []; // the followed row, which no thin line covers
  work.runs.forEach((run, k) => {
    if (!shown.has(run.warp)) return;
    const own = run.place === row.place;
    const done = apart ? 0 : filled[run.warp];
    const [from, to] = [x(done), x(done + run.count)];
    filled[run.warp] += run.count;
    const token = `run:${work.block}:${run.warp}:${run.start}:${k}`;
    const edge = to - from > 3 ? 1 : 0;
    const look = { class: own ? "av-row" : apart ? "av-thread" : "av-rest", "data-f": token, "data-m": `b${run.warp} ${run.place}` };
    const tall = apart ? (high - gap) / LANES : high - gap;
    const top = y(run.warp) + (apart ? (run.place % LANES) * tall : 0);
    const bar = rect(from, top, Math.max(to - from - edge, 1), apart && own ? Math.max(tall, 2) : tall, look);
    if (run.count) (own && apart ? over : parts).push(bar);
    else if (own) empty = `${worker} ${number(run.warp)} writes zeros`;
    if (!label || !run.count || apart) return;
    const named = row.side.order ? row.side.order[run.place] : run.place;
    const texts = [
      `row ${number(named)}: ${count(run.count, "nonzero")}`, `row ${number(named)}`,
      number(run.count),
    ];
    const text = texts.find((each) => room(each, 12) < to - from - 6);
    if (text) parts.push(words(from + 5, y(run.warp) + high / 2 + 3.5, text, "start", { class: own ? "av-on" : "av-over-rest" }));
  });
  parts.push(...over);
  for (const warp of shown) {
    const load = work.loads[warp];
    const wait = work.most - load;
    const texts = load ? [
      `waits: ${number(wait)} of ${number(work.most)}`, `waits ${number(wait)}`,
    ] : [headsSaid(row) ? "not counted" : "no work"];
    const text = texts.find((each) => room(each, 12) + 16 < x(work.most) - x(load));
    if (!label || !wait || !text) continue;
    const at = (x(load) + x(work.most)) / 2;
    parts.push(
      rect(at - room(text) / 2 - 4, y(warp) + 1, room(text) + 8, high - gap - 2, { class: "av-plate" }),
    );
    parts.push(
      words(at, y(warp) + high / 2 + 3.5, text, "middle", { class: mine.has(warp) ? "av-b" : "av-q" }),
    );
  }
  parts.push(names(row, shown, y, high, left, mine, every));
  const end = x(work.most);
  const bottom = top + lines * high;
  parts.push(rect(end - 0.75, top - 6, 1.5, bottom - top + 10, { class: "av-end", "data-m": "end" }));
  const who = busiest(row);
  parts.push(words(width - 2, 13, firstFit([who, who.split(":")[0]], width), "end", { class: "av-b" }));
  parts.push(ticks(work.most, x, bottom, width));
  const axisName = `${apart ? "nonzeros of a row, a line a thread" : "nonzeros"}, which is time if each takes the same${every > 1 ? `; of every ${every} ${worker}s the busiest` : ""}`;
  parts.push(
    words(left, bottom + 34, firstFit([axisName, apart ? "nonzeros of a row, a line a thread" : "nonzeros, as a measure of time", "nonzeros"], width - left, 11), "start", { class: "av-q", "font-size": 11 }),
  );
  return {
    svg: picture(width, bottom + 40, parts.join(""), blockAlt(row, mine, empty)),
    over(focus) {
      if (!focus.warp || focus.warp[0] !== work.block) return "";
      const warp = focus.warp[1];
      return rect(1, y(warp) - 1, width - 2, high - gap + 2, { class: "av-ring" });
    },
  };
}

function busiest({ work, worker, side }) {
  const { loads, most } = work;
  if (!most) return "Nothing to sum";
  const those = loads.flatMap((load, warp) => (load === most ? [warp] : []));
  if (those.length === loads.length && !side.apart) return `Every ${worker} has as much: none waits`;
  if (side.apart) return `${capital(several(worker, those))} ${those.length > 1 ? "have" : "has"} the longest row: the block is done when it is`;
  const [are, they] = those.length > 1 ? ["are", "they are"] : ["is", "it is"];
  return `${capital(several(worker, those))} ${are} the busiest: the block is done when ${they}`;
}

function blockAlt(row, mine, empty) {
  const { work, worker } = row;
  const numbers = [...mine];
  const sum = work.runs.reduce((all, run) => all + run.count, 0);
  const idle = work.most ? 1 - sum / (work.most * work.loads.length * (row.side.apart ? LANES : 1)) : 0;
  const who = numbers.length
    ? `${capital(several(worker, numbers))} of block ${number(work.block)} ${numbers.length > 1 ? "have" : "has"} row ${number(row.row)}. `
    : `Block ${number(work.block)} has nothing of row ${number(row.row)}. `;
  return `${who}${empty ? `${capital(empty)}. ` : ""}${capital(worker)} ${number(work.busiest)} has the ${row.side.apart ? "longest row" : "most nonzeros"}, ${number(work.most)}; ${Math.round(idle * 100)} % of the block's time is waiting.`;
}

// Of workers that share a line, the followed row's, else the busiest.
function busiestOf(loads, every, mine) {
  const found = [];
  for (let first = 0; first < loads.length; first += every) {
    let best = first;
    for (let i = first; i < Math.min(first + every, loads.length); ++i)
      if (mine.has(i) > mine.has(best) || (mine.has(i) === mine.has(best) && loads[i] > loads[best])) best = i;
    found.push(best);
  }
  return found;
}

function names(row, shown, y, high, left, mine, every) {
  let text = "";
  const order = [...shown].sort((a, b) => mine.has(b) - mine.has(a));
  const taken = [];
  for (const warp of order) {
    const at = y(warp) + high / 2 + 4;
    if (high < 13 && taken.some((other) => Math.abs(other - at) < 14)) continue;
    taken.push(at);
    const own = { class: mine.has(warp) ? "av-r" : "av-q", "data-f": `warp:${row.work.block}:${warp}` };
    text += words(left - 8, at, `${row.worker} ${number(warp)}`, "end", own);
  }
  return text;
}

// Whole numbers along the axis, at most one in 50 pixels, and the one of its end.
function ticks(most, x, y, width) {
  const space = x(1) - x(0);
  const steps = [1, 2, 5].flatMap((n) => [0, 1, 2, 3, 4, 5, 6].map((e) => n * 10 ** e)).sort((a, b) => a - b);
  const step = steps.find((each) => each * space >= 50) ?? most;
  const values = [most];
  for (let value = 0; value < most; value += step) if ((most - value) * space >= 34) values.push(value);
  return values.map((value) => {
    const middle = Math.min(x(value), width - room(number(value)) / 2 - 1);
    return rect(x(value) - 0.5, y, 1, 4, { class: "av-tick" }) +
      words(middle, y + 17, number(value), "middle", { class: "av-q", "font-size": 11 });
  }).join("");
}
