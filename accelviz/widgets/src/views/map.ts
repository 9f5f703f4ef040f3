// The nonzeros of every warp of every block, both sides in step. A cell shows the most of what it
// covers, so that no outlier is hidden; the wheel or the buttons look closer.

import { element, quiet } from "../controls";
import { count, number, path, picture, room, span, words } from "../marks";
import { headsAside, percent, short } from "../numbers";
import { axis, loadColours, ticksOf } from "../plot";
import { MEANT, SIDES } from "./statistics";

const LINE_MOST = 32, TALL = 150, LEFT = 64;
// Blocks whose cells are summed in one frame; the rest follows in the next ones.
const A_FRAME = 12000;

const seen = new WeakMap(); // host to the part of the grid that is looked at, as shares of it

// The most nonzeros of what each cell covers, filled in a few blocks at a time.
function makeGrid(partition, columns, from, to) {
  const lines = Math.min(partition.warps, LINE_MOST), cells = new Float64Array(columns * lines);
  const out = new Float64Array(partition.warps);
  const first = Math.floor(from * partition.blocks);
  const last = Math.min(partition.blocks, Math.max(first + 1, Math.ceil(to * partition.blocks)));
  const grid = { cells, lines, columns, first, last, at: first, largest: 0 };
  grid.fill = (many) => {
    const stop = Math.min(last, grid.at + many);
    for (let block = grid.at; block < stop; block++) {
      partition.loadsOf(block, out);
      const column = Math.floor(((block - first) * columns) / (last - first));
      const wide = Math.max(1, Math.ceil(columns / (last - first)));
      for (let warp = 0; warp < out.length; warp++) {
        const line = Math.floor((warp * lines) / out.length), load = out[warp];
        for (let i = 0; i < wide && column + i < columns; i++) {
          const cell = (column + i) * lines + line;
          if (load > cells[cell]) cells[cell] = load;
        }
      }
    }
    grid.at = stop;
    return grid.at >= last;
  };
  return grid;
}

export function map(host, scene, act) {
  if (!seen.has(host)) {
    const zoom = element("div", { className: "av-zoom" });
    const own = { from: 0, to: 1, zoom, body: element("div"), note: element("p", {
      className: "av-note" }), grids: new Map(), frame: 0 };
    host.replaceChildren(zoom, own.body, own.note);
    seen.set(host, own);
  }
  const own = seen.get(host), width = Math.max(host.clientWidth, 280);
  const sides = [scene.a, scene.b].filter(Boolean), across = width - LEFT - 6;
  const most = Math.max(2, ...sides.map((side) => side.summary.largest || 0));
  const look = (from, to) => {
    const reach = Math.min(1, Math.max(to - from, 1e-6));
    own.from = Math.min(Math.max(from, 0), 1 - reach);
    own.to = own.from + reach;
    map(host, scene, act);
  };
  const scaled = (factor, middle = (own.from + own.to) / 2) =>
    look(middle - (middle - own.from) * factor, middle + (own.to - middle) * factor);
  if (!own.zoom.children.length) {
    for (const [label, title] of [["Closer", "Look at fewer blocks"], ["Wider", "Look at more"],
      ["◀", "To earlier blocks"], ["▶", "To later blocks"], ["All", "All blocks"]])
      own.zoom.append(quiet(element("button", { type: "button", textContent: label, title,
        attributes: { "aria-label": title } })));
  }
  const step = (own.to - own.from) / 2;
  [() => scaled(0.5), () => scaled(2), () => look(own.from - step, own.to - step),
    () => look(own.from + step, own.to + step), () => look(0, 1)]
    .forEach((then, i) => (own.zoom.children[i].onclick = then));
  const colours = loadColours(host);
  const shown = sides.map((side, i) => pictureOf(side, i));
  own.body.replaceChildren(...shown.map((each) => each.box));
  cancelAnimationFrame(own.frame);
  work();

  function pictureOf(side, i) {
    const { partition } = side, title = element("div", { className: "av-map-title" }, [
      element("span", { className: `av-mark av-${"AB"[i]}`, textContent: SIDES[i],
        title: MEANT[SIDES[i]] }), " ", element("span", { textContent: side.label, title: side.said })]);
    const box = element("div", { className: "av-map" }, [title]);
    if (!partition) {
      box.append(element("p", { className: "av-note",
        textContent: side.silent }));
      return { box, done: true };
    }
    const lines = Math.min(partition.warps, LINE_MOST);
    const tall = Math.max(24, Math.min(TALL, lines * 12));
    const columns = Math.max(1, Math.min(Math.floor(across), partition.blocks));
    const canvas = element("canvas", { width: columns, height: lines });
    Object.assign(canvas.style, { width: `${across}px`, height: `${tall}px` });
    canvas.setAttribute("role", "img");
    const share = Number.isNaN(side.summary.idle_share) ? "" :
      `; ${percent(side.summary.idle_share)} of the time is waiting${headsAside(side)}`;
    canvas.setAttribute("aria-label",
      `${side.label}: nonzeros of every ${side.worker} of ${number(partition.blocks)} blocks${share}`);
    const key = `${side.dealtKey} ${columns} ${own.from} ${own.to}`;
    if (!own.grids.has(key)) {
      own.grids.set(key, makeGrid(partition, columns, own.from, own.to));
      if (own.grids.size > 6) own.grids.delete(own.grids.keys().next().value);
    }
    const grid = own.grids.get(key);
    const each = (grid.last - grid.first) / grid.columns;
    const workers = partition.warps / lines;
    title.append(`: blocks ${number(grid.first)} to ${number(grid.last - 1)} across, ` +
      `${span(side.worker, 0, partition.warps - 1)} down. ` +
      (each > 1 || workers > 1 ? `A cell shows its busiest ${side.worker}, the most of ${each > 1 ? "up to " : ""}` +
        `${count(Math.ceil(each), "block")}` +
        `${workers > 1 ? ` and up to ${count(Math.ceil(workers), side.worker)}` : ""}.`
        : "A cell is one of them.") +
      (side.apart ? ` The 32 rows of a ${side.worker} are counted together, though its lanes walk them side by side.` : ""));
    const frame = element("div", { className: "av-map-frame" }, [canvas]);
    Object.assign(frame.style, { marginLeft: `${LEFT}px`, width: `${across}px` });
    const named = (worker) => {
      const text = `${side.worker} ${number(worker)}`;
      return room(text) <= LEFT - 6 ? text : number(worker);
    };
    frame.dataset.first = named(0);
    frame.dataset.last = partition.warps > 1 ? named(partition.warps - 1) : "";
    const marked = i === 0 ? scene.settings.block : blockOf(side, scene.settings.row);
    if (grid.first <= marked && marked < grid.last) {
      const at = (marked + 0.5 - grid.first) / (grid.last - grid.first);
      const cursor = element("div", { className: "av-map-cursor" });
      cursor.style.left = `${at * 100}%`;
      frame.append(cursor);
    }
    const ruler = element("div", { className: "av-draw av-map-axis", innerHTML: axisOf(grid, across) });
    ruler.style.marginLeft = `${LEFT}px`;
    const blockAt = (event) => {
      const area = canvas.getBoundingClientRect();
      const part = Math.min(Math.max((event.clientX - area.left) / area.width, 0), 0.999999);
      const line = Math.floor(((event.clientY - area.top) / area.height) * grid.lines);
      return { column: Math.floor(part * grid.columns), line, share: part,
        block: grid.first + Math.floor(part * (grid.last - grid.first)) };
    };
    canvas.onclick = (event) => i === 0 && act.showBlock(blockAt(event).block);
    canvas.onpointermove = (event) => {
      const { column, line, block } = blockAt(event);
      const load = grid.cells[column * grid.lines + Math.max(0, Math.min(line, grid.lines - 1))];
      const begin = grid.first + Math.ceil((column * (grid.last - grid.first)) / grid.columns);
      const end = Math.max(begin, grid.first +
        Math.ceil(((column + 1) * (grid.last - grid.first)) / grid.columns) - 1);
      const top = Math.ceil((line * partition.warps) / grid.lines);
      const bottom = Math.max(top, Math.ceil(((line + 1) * partition.warps) / grid.lines) - 1);
      const which = each > 1 ? span("Block", begin, end) : `Block ${number(block)}`;
      const most = end > begin && each > 1 || bottom > top ? "at most " : "";
      const sentence = `${which}, ${span(side.worker, top, bottom)}: ${most}${count(load, "nonzero")}` +
        `${most ? ` a ${side.worker}` : ""}.`;
      const keys = each > 1 ? [] : [`block:${block}`];
      act.link.show({ sentence, keys }, { x: event.clientX, y: event.clientY });
    };
    canvas.onpointerleave = () => act.link.show(null);
    canvas.onwheel = (event) => {
      if (!event.ctrlKey && !event.altKey) return; // the page scrolls
      event.preventDefault();
      const { share: part } = blockAt(event);
      scaled(event.deltaY < 0 ? 0.7 : 1.4, own.from + part * (own.to - own.from));
    };
    box.append(frame, ruler);
    return { box, grid, canvas, done: false, budget: Math.max(1, Math.floor(A_FRAME / partition.warps)) };
  }

  function work() {
    let left = false;
    const end = performance.now() + 8;
    for (const each of shown) {
      if (each.done) continue;
      let finished = each.grid.at >= each.grid.last;
      while (!finished && performance.now() < end) finished = each.grid.fill(each.budget);
      paint(each.canvas, each.grid, most, colours);
      each.done = finished;
      left ||= !finished;
    }
    const from = Math.min(...shown.filter((each) => each.grid).map(({ grid }) =>
      (grid.at - grid.first) / Math.max(1, grid.last - grid.first)));
    own.zoom.hidden = own.note.hidden = !shown.some((each) => each.grid);
    own.note.innerHTML = left ? `Summing up the blocks: ${percent(from, 0)} …` : legend(most, colours);
    host.dataset.filled = !left;
    if (left) own.frame = requestAnimationFrame(work);
  }
}

// The first block that has some of the followed row, -1 where none has.
const blockOf = ({ partition, placeOf }, row) =>
  (partition.blocks ? partition.blocksOf(placeOf(row))[0] : undefined) ?? -1;

// The numbers of blocks below the map.
function axisOf({ first, last }, across) {
  const x = axis(first, last, 0, across), edge = 24;
  const ticks = ticksOf(x).filter((value) => Number.isInteger(value) && value < last);
  const drawn = ticks.map((value) => {
    const at = x(value) < edge ? "start" : x(value) > across - edge ? "end" : "middle";
    return path(`M${x(value) + 0.5} 0v4`, { class: "av-frame" }) +
      words(x(value), 16, number(value), at, { class: "av-q" });
  });
  return picture(across, 32, drawn.join("") +
    words(across / 2, 30, "block", "middle", { class: "av-q" }), "numbers of the blocks");
}

function legend(most, colours) {
  const levels = colours.map((_, i) => Math.ceil(most ** (i / colours.length) - 1e-9));
  const parts = levels.map((least, i, all) => all[i + 1] === least ? "" :
    `<span class="av-pair"><span class="av-swatch" style="background:${colours[i]}"></span>${short(least)}</span>`);
  return `<span class="av-swatch av-idle"></span>idle ${parts.join(" ")} nonzeros and more. A block ` +
    "lasts as long as its cell with the most; what has fewer waits. The line is the block of the followed row. Click to choose a block; Ctrl and the " +
    "wheel look closer.";
}

function paint(canvas, grid, most, colours) {
  const { cells, lines, columns } = grid, pen = canvas.getContext("2d");
  const image = new ImageData(columns, lines), words = new Uint32Array(image.data.buffer);
  const paints = colours.map((colour) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  });
  const scale = colours.length / Math.log(most);
  for (let column = 0; column < columns; column++) {
    for (let line = 0; line < lines; line++) {
      const load = cells[column * lines + line];
      if (!load) continue;
      const level = Math.min(colours.length - 1, Math.floor(Math.log(load) * scale + 1e-9));
      words[line * columns + column] = paints[level];
    }
  }
  pen.putImageData(image, 0, 0); // a pixel a cell, which the style makes larger
}
