// The nonzeros of every warp of every block, both sides in step. A cell shows the most of what it
// covers, so that no outlier is hidden; the wheel or the buttons look closer.

import { element, pressButton } from "../controls";
import { anchorIn, count, number, path, picture, quietWords, room, span } from "../marks";
import { clamp, headsAside, percent, short } from "../numbers";
import type { Act, View } from "../panel";
import { axis, loadColours, ticksOf, widthOf } from "../plot";
import type { Partition, Scene, Side } from "../types";
import { markOf } from "./statistics";

const LINE_MOST = 32, TALL = 150, LEFT = 64;
// Blocks whose cells are summed in one frame; the rest follows in the next ones.
const A_FRAME = 12000;

/** The most nonzeros of what each cell covers, filled in a few blocks at a time. */
class Grid {
  readonly cells: Float64Array;
  readonly lines: number;
  readonly warps: number;
  readonly first: number;
  readonly last: number;
  private readonly loads: Float64Array;
  at: number; // the next block

  constructor(
    private readonly partition: Partition, readonly columns: number, from: number, to: number,
  ) {
    const { blocks, warps } = partition;
    this.warps = warps;
    this.lines = Math.min(warps, LINE_MOST);
    this.cells = new Float64Array(columns * this.lines);
    this.loads = new Float64Array(warps);
    this.at = this.first = Math.floor(from * blocks);
    this.last = Math.min(blocks, Math.max(this.first + 1, Math.ceil(to * blocks)));
  }

  /** Go on with some blocks; whether all are filled in. */
  fill(many: number) {
    const { partition, loads, cells, lines, columns, first, last } = this;
    const stop = Math.min(last, this.at + many),
      wide = Math.max(1, Math.ceil(columns / (last - first)));
    for (; this.at < stop; this.at++) {
      partition.loadsOf(this.at, loads);
      const column = Math.floor(((this.at - first) * columns) / (last - first));
      for (let warp = 0; warp < loads.length; warp++) {
        const line = Math.floor((warp * lines) / loads.length);
        for (let i = column; i < Math.min(column + wide, columns); i++) {
          const cell = i * lines + line;
          if (loads[warp] > cells[cell]) cells[cell] = loads[warp];
        }
      }
    }
    return this.at >= last;
  }

  paint(canvas: HTMLCanvasElement, most: number, colours: string[]) {
    const { cells, lines, columns } = this, pen = canvas.getContext("2d")!;
    const image = new ImageData(columns, lines), pixels = new Uint32Array(image.data.buffer);
    const paints = colours.map((colour) => {
      const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
      return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    });
    const scale = colours.length / Math.log(most);
    cells.forEach((load, cell) => {
      if (!load) return;
      const level = Math.min(colours.length - 1, Math.floor(Math.log(load) * scale + 1e-9));
      pixels[(cell % lines) * columns + Math.floor(cell / lines)] = paints[level];
    });
    pen.putImageData(image, 0, 0); // a pixel a cell, which the style makes larger
  }
}

interface SideMap {
  box: HTMLElement;
  grid?: Grid;
  canvas?: HTMLCanvasElement;
}

const maps = new WeakMap<HTMLElement, LoadMap>();

export const map: View = (host, scene, act) => {
  if (!maps.has(host)) maps.set(host, new LoadMap(host, act));
  maps.get(host)!.draw(scene);
};

class LoadMap {
  private scene!: Scene;
  private from = 0; // the part of the blocks that is looked at, as shares
  private to = 1;
  private frame = 0;
  private readonly grids = new Map<string, Grid>();
  private readonly zoom = element("div", { className: "av-zoom" });
  private readonly body = element("div");
  private readonly note = element("p", { className: "av-note" });

  constructor(private readonly host: HTMLElement, private readonly act: Act) {
    const move = (halves: number) => {
      const step = ((this.to - this.from) / 2) * halves;
      this.look(this.from + step, this.to + step);
    };
    const buttons: [string, string, () => void][] = [
      ["Closer", "Look at fewer blocks", () => this.scale(0.5)],
      ["Wider", "Look at more", () => this.scale(2)],
      ["◀", "To earlier blocks", () => move(-1)], ["▶", "To later blocks", () => move(1)],
      ["All", "All blocks", () => this.look(0, 1)],
    ];
    for (const [label, title, press] of buttons) {
      const button = pressButton(`map ${label}`, label, title, press);
      button.setAttribute("aria-label", title);
      this.zoom.append(button);
    }
    host.replaceChildren(this.zoom, this.body, this.note);
  }

  private look(from: number, to: number) {
    const reach = clamp(to - from, 1e-6, 1);
    this.from = clamp(from, 0, 1 - reach);
    this.to = this.from + reach;
    this.draw(this.scene);
  }

  private scale(factor: number, middle = (this.from + this.to) / 2) {
    this.look(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  }

  draw(scene: Scene) {
    this.scene = scene;
    const sides = [scene.a, scene.b].filter((side): side is Side => side !== null);
    const across = widthOf(this.host) - LEFT - 6, colours = loadColours(this.host);
    const most = Math.max(2, ...sides.map((side) => side.summary.largest || 0));
    const drawn = sides.map((side, i) => this.sideMap(side, i, across));
    this.body.replaceChildren(...drawn.map(({ box }) => box));
    cancelAnimationFrame(this.frame);
    this.zoom.hidden = this.note.hidden = !drawn.some(({ grid }) => grid);
    this.work(drawn, most, colours);
  }

  /** Fill in and paint for a few milliseconds, and go on in the next frame. */
  private work(drawn: SideMap[], most: number, colours: string[]) {
    const end = performance.now() + 8;
    let least = 1;
    for (const { grid, canvas } of drawn) {
      if (!grid) continue;
      const many = Math.max(1, Math.floor(A_FRAME / grid.warps));
      while (grid.at < grid.last && performance.now() < end) grid.fill(many);
      grid.paint(canvas!, most, colours);
      least = Math.min(least, (grid.at - grid.first) / Math.max(1, grid.last - grid.first));
    }
    this.note.innerHTML = least < 1 ? `Summing up the blocks: ${percent(least, 0)} …`
      : legend(most, colours);
    this.host.dataset.filled = String(least === 1);
    if (least < 1) this.frame = requestAnimationFrame(() => this.work(drawn, most, colours));
  }

  private gridOf({ partition, partitionKey }: Side, columns: number) {
    const key = `${partitionKey} ${columns} ${this.from} ${this.to}`;
    if (!this.grids.has(key))
      this.grids.set(key, new Grid(partition!, columns, this.from, this.to));
    if (this.grids.size > 6) this.grids.delete(this.grids.keys().next().value!);
    return this.grids.get(key)!;
  }

  private sideMap(side: Side, i: number, across: number): SideMap {
    const { partition, worker, label, summary } = side;
    const title = element("div", { className: "av-map-title" }, [
      markOf(i), " ", element("span", { textContent: label, title: side.description })]);
    const box = element("div", { className: "av-map" }, [title]);
    if (!partition) {
      box.append(element("p", { className: "av-note", textContent: side.silence }));
      return { box };
    }
    const { blocks, warps } = partition,
      columns = clamp(Math.floor(across), 1, Math.max(blocks, 1));
    const grid = this.gridOf(side, columns), { lines, first, last } = grid;
    const share = Number.isNaN(summary.idle_share) ? ""
      : `; ${percent(summary.idle_share)} of the time is waiting${headsAside(side)}`;
    const canvas = element("canvas", { width: columns, height: lines, attributes: {
      "role": "img",
      "aria-label": `${label}: nonzeros of every ${worker} of ${number(blocks)} blocks${share}`,
    } });
    const tall = clamp(lines * 12, 24, TALL), perCell = (last - first) / columns;
    Object.assign(canvas.style, { width: `${across}px`, height: `${tall}px` });
    const several = perCell > 1 || warps > lines;
    title.append(`: blocks ${number(first)} to ${number(last - 1)} across, ` +
      `${span(worker, 0, warps - 1)} down. ` +
      (several ? `A cell shows its busiest ${worker}, the most of ${perCell > 1 ? "up to " : ""}` +
      count(Math.ceil(perCell), "block") +
      `${warps > lines ? ` and up to ${count(Math.ceil(warps / lines), worker)}` : ""}.`
        : "A cell is one of them.") +
        (side.rowPerLane ? ` The 32 rows of a ${worker} are counted together, though its lanes ` +
        "walk them side by side." : ""));
    const frame = element("div", { className: "av-map-frame" }, [canvas]);
    Object.assign(frame.style, { marginLeft: `${LEFT}px`, width: `${across}px` });
    const named = (warp: number) => {
      const text = `${worker} ${number(warp)}`;
      return room(text) <= LEFT - 6 ? text : number(warp);
    };
    frame.dataset.first = named(0);
    frame.dataset.last = warps > 1 ? named(warps - 1) : "";
    const { row, block } = this.scene.settings;
    const marked = i ? blocks && partition.blocksOf(partition.positionOf(row))[0] : block;
    if (first <= marked && marked < last) {
      const cursor = element("div", { className: "av-map-cursor" });
      cursor.style.left = `${((marked + 0.5 - first) / (last - first)) * 100}%`;
      frame.append(cursor);
    }
    const ruler = element("div",
      { className: "av-draw av-map-axis", innerHTML: axisOf(grid, across) });
    ruler.style.marginLeft = `${LEFT}px`;
    box.append(frame, ruler);
    this.listen(canvas, side, i, grid);
    return { box, grid, canvas };
  }

  private listen(canvas: HTMLCanvasElement, { partition, worker }: Side, i: number, grid: Grid) {
    const { first, last, columns, lines, cells } = grid, { warps } = partition!;
    const at = (event: MouseEvent) => {
      const area = canvas.getBoundingClientRect();
      const share = clamp((event.clientX - area.left) / area.width, 0, 0.999999);
      const line = Math.floor(((event.clientY - area.top) / area.height) * lines);
      const block = first + Math.floor(share * (last - first));
      return { column: Math.floor(share * columns), line: clamp(line, 0, lines - 1), share, block };
    };
    canvas.onclick = (event) => i === 0 && this.act.set({ block: at(event).block });
    canvas.onpointermove = (event) => {
      const { column, line, block } = at(event), coarse = last - first > columns;
      const begin = first + Math.ceil((column * (last - first)) / columns);
      const end = Math.max(begin,
        first + Math.ceil(((column + 1) * (last - first)) / columns) - 1);
      const top = Math.ceil((line * warps) / lines);
      const bottom = Math.max(top, Math.ceil(((line + 1) * warps) / lines) - 1);
      const several = (coarse && end > begin) || bottom > top;
      const sentence = `${coarse ? span("Block", begin, end) : `Block ${number(block)}`}, ` +
        `${span(worker, top, bottom)}: ${several ? "at most " : ""}` +
        `${count(cells[column * lines + line], "nonzero")}${several ? ` a ${worker}` : ""}.`;
      this.act.link.show({ sentence, keys: coarse ? [] : [`block:${block}`] },
        { x: event.clientX, y: event.clientY });
    };
    canvas.onpointerleave = () => this.act.link.show(null);
    canvas.onwheel = (event) => {
      if (!event.ctrlKey && !event.altKey) return; // the page scrolls
      event.preventDefault();
      this.scale(event.deltaY < 0 ? 0.7 : 1.4, this.from + at(event).share * (this.to - this.from));
    };
  }
}

/** The numbers of blocks below the map. */
function axisOf({ first, last }: Grid, across: number) {
  const x = axis(first, last, 0, across);
  const ticks = ticksOf(x).filter((value) => Number.isInteger(value) && value < last);
  const drawn = ticks.map((value) => path(`M${x(value) + 0.5} 0v4`, { class: "av-frame" }) +
    quietWords(x(value), 16, number(value), anchorIn(x(value), 24, across - 24)));
  return picture(across, 32, drawn.join("") + quietWords(across / 2, 30, "block", "middle"),
    "numbers of the blocks");
}

function legend(most: number, colours: string[]) {
  const levels = colours.map((_, i) => Math.ceil(most ** (i / colours.length) - 1e-9));
  const parts = levels.map((least, i) => levels[i + 1] === least ? ""
    : '<span class="av-pair"><span class="av-swatch" ' +
      `style="background:${colours[i]}"></span>${short(least)}</span>`);
  return `<span class="av-swatch av-idle"></span>idle ${parts.join(" ")} nonzeros and more. A ` +
    "block lasts as long as its cell with the most; what has fewer waits. The line is the " +
    "block of the followed row. Click to choose a block; Ctrl and the wheel look closer.";
}
