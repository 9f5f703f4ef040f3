// A heat map of the steps of all hardware warps (vertical) of all blocks (horizontal), for both
// sides. If zoomed out, a cell covers several blocks and shows their largest number and their mean.

import { button, html, render } from "../controls";
import type { Hardware } from "../hardware";
import { markOf } from "../header";
import { anchorIn, path, picture, mutedText, textWidth } from "../marks";
import {
  clamp, count, number, percent, makeCache, rounded, short, span, idleShareText,
} from "../numbers";
import type { View } from "../panel";
import { axis, LOADS, themeOf, ticksOf, widthOf } from "../plot";
import type { Numbers, Partition, Scene, Side } from "../types";
import { sidesOf } from "./charts";
import { workOf } from "./followed";
import { workersText } from "./sentences";

const HEIGHT = 192, LEFT = 64; // pixels: height of a map, whatever its warps; room to its left
// Cells that are computed between two looks at the clock.
const STEP_SIZE = 12000;
const SAME = 1e-9; // idle shares that differ by less are equal

type Grid = ReturnType<typeof makeGrid>;
type PointAt = Pick<MouseEvent, "target" | "clientX" | "clientY">;

interface BlockWork {
  /** Steps of each warp and of the busiest, and the idle share of the block's warp time. */
  steps: Float64Array; length: number; share: number;
}

function workOfKind(hardware: Hardware, loads: Numbers): BlockWork {
  const steps = hardware.stepsOf(loads, new Float64Array(hardware.warps));
  return { steps, length: Math.max(...steps), share: hardware.idleShareOf(loads) };
}

/** Cells of a map of the blocks between two shares of all blocks; computed step by step. */
export function makeGrid(
  partition: Partition, hardware: Hardware, columns: number, from = 0, to = 1,
) {
  const { blocks } = partition, { warps: lines, rowPerLane } = hardware;
  const kinds = partition.kinds(rowPerLane);
  const most = new Float64Array(columns * lines), sums = new Float64Array(columns * lines);
  const blockCounts = new Float64Array(columns);
  const mostShares = new Float64Array(columns), shareSums = new Float64Array(columns);
  const first = Math.floor(from * blocks);
  const last = Math.min(blocks, Math.max(first + 1, Math.ceil(to * blocks)));
  const cellsPerBlock = Math.max(1, Math.ceil(columns / (last - first)));
  const kindOf = new Int32Array(last - first); // kind of each block
  const works: BlockWork[] = []; // of each kind
  let ranked: Int32Array | null = null;
  let nextBlock = first; // the next block

  /** Sort the blocks by counting those of each rank of kinds. */
  function rank() {
    const isSame = (a: BlockWork, b: BlockWork) => a.share === b.share && a.length === b.length;
    const order = [...works.keys()].filter((kind) => works[kind]).sort((a, b) =>
      works[b].share - works[a].share || works[b].length - works[a].length);
    const rankOf = new Int32Array(works.length);
    order.forEach((kind, i) => (rankOf[kind] = i && isSame(works[kind], works[order[i - 1]])
      ? rankOf[order[i - 1]] : i));
    const next = new Int32Array(works.length + 1), sorted = new Int32Array(kindOf.length);
    for (const kind of kindOf) next[rankOf[kind] + 1] += 1;
    for (let i = 1; i < next.length; i++) next[i] += next[i - 1];
    kindOf.forEach((kind, i) => (sorted[next[rankOf[kind]]++] = first + i));
    return sorted;
  }

  return {
    /** Share of a block's warp time that is idle. */
    shareOf: (block: number) => works[kindOf[block - first]]?.share ?? 0,
    /** Blocks by their idle share, the largest first; of equal shares the longest block. */
    ranking: () => ranked ??= rank(),
    /** Number of blocks that idle more than a block, and of others that idle as much. */
    placeOf(block: number) {
      const { share } = works[kindOf[block - first]];
      let more = 0, equal = -1;
      for (const kind of kindOf) {
        const by = works[kind].share - share;
        if (by > SAME) more += 1;
        else if (by > -SAME) equal += 1;
      }
      return { more, equal };
    },
    /** Largest and mean idle share of a column's blocks. */
    columnShares: (column: number) =>
      [mostShares[column], shareSums[column] / (blockCounts[column] || 1)],
    columns, lines, first, last,
    most: (column: number, line: number) => most[column * lines + line],
    mean: (column: number, line: number) =>
      sums[column * lines + line] / (blockCounts[column] || 1),
    /** The share of the blocks that is computed. */
    done: () => (nextBlock - first) / Math.max(1, last - first),
    fill(end: number) {
      while (nextBlock < last && performance.now() < end)
        for (const stop = Math.min(last, nextBlock + Math.max(1, Math.floor(STEP_SIZE / lines)));
          nextBlock < stop; nextBlock++) {
          const kind = kindOf[nextBlock - first] = kinds.of(nextBlock);
          const { steps, share } = works[kind] ??= workOfKind(hardware, kinds.loads[kind]);
          const begin = Math.floor(((nextBlock - first) * columns) / (last - first));
          for (let i = begin; i < Math.min(begin + cellsPerBlock, columns); i++) {
            blockCounts[i] += 1;
            mostShares[i] = Math.max(mostShares[i], share);
            shareSums[i] += share;
            for (let line = 0; line < lines; line++) {
              const cell = i * lines + line;
              most[cell] = Math.max(most[cell], steps[line]);
              sums[cell] += steps[line];
            }
          }
        }
    },
    /** Paint each line as two: the largest number of steps above, the mean below. */
    paint(canvas: HTMLCanvasElement, largest: number, colours: string[]) {
      const image = new ImageData(columns, 2 * lines), pixels = new Uint32Array(image.data.buffer);
      const paints = colours.map((colour) => {
        const [red, green, blue] = channelsOf(colour);
        return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
      });
      const scale = colours.length / Math.log(largest);
      for (let column = 0; column < columns; column++)
        for (let line = 0; line < lines; line++)
          [this.most(column, line), this.mean(column, line)].forEach((load, half) => {
            if (!load) return;
            const level = clamp(Math.floor(Math.log(load) * scale + 1e-9), 0, colours.length - 1);
            pixels[(2 * line + half) * columns + column] = paints[level];
          });
      Object.assign(canvas, { width: columns, height: 2 * lines });
      // One pixel per half cell; CSS enlarges the canvas.
      canvas.getContext("2d")!.putImageData(image, 0, 0);
    },
  };
}

/** Paint the idle shares of the blocks: above the largest of a column, below the mean. */
function paintShares(canvas: HTMLCanvasElement, grid: Grid, colour: string) {
  Object.assign(canvas, { width: grid.columns, height: 2 });
  const pen = canvas.getContext("2d")!, image = new ImageData(grid.columns, 2);
  pen.fillStyle = colour; // reads as #rrggbb
  const [red, green, blue] = channelsOf(String(pen.fillStyle));
  for (let column = 0; column < grid.columns; column++)
    grid.columnShares(column).forEach((share, half) => image.data.set(
      [red, green, blue, Math.round(255 * share)], 4 * (half * grid.columns + column)));
  pen.putImageData(image, 0, 0);
}

/** Red, green and blue of a colour "#rrggbb". */
const channelsOf = (colour: string) =>
  [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));

export const map: View = (host, act) => {
  let scene: Scene, from = 0, to = 1; // visible part of the blocks, as shares
  let frame = 0;
  const grids = makeCache<Grid>(6);
  const buttons: [string, string, () => void][] = [
    ["Closer", "Look at fewer blocks", () => zoom(0.5)],
    ["Wider", "Look at more", () => zoom(2)],
    ["◀", "To earlier blocks", () => showRange(from - (to - from) / 2, to - (to - from) / 2)],
    ["▶", "To later blocks", () => showRange(from + (to - from) / 2, to + (to - from) / 2)],
    ["All", "All blocks", () => showRange(0, 1)],
  ];

  function showRange(wantedFrom: number, wantedTo: number) {
    const reach = clamp(wantedTo - wantedFrom, 1e-6, 1);
    from = clamp(wantedFrom, 0, 1 - reach);
    to = from + reach;
    draw(scene);
  }

  function zoom(factor: number, middle = (from + to) / 2) {
    showRange(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }

  function draw(newScene: Scene) {
    scene = newScene;
    cancelAnimationFrame(frame);
    const width = widthOf(host) - LEFT - 6, colours = LOADS[themeOf(host)];
    const sides = sidesOf(scene).map((side) => {
      const { partition, partitionKey, hardware } = side;
      if (!partition || !hardware) return { side, grid: null };
      const columns = clamp(Math.floor(width), 1, Math.max(partition.blocks, 1));
      return { side, grid: grids(
        `${partitionKey} ${hardware.patterns[0].key} ${columns} ${from} ${to}`,
        () => makeGrid(partition, hardware, columns, from, to)) };
    });
    const most = Math.max(2, ...sides.map(({ side: { summary, hardware } }) =>
      (summary.longest ?? 0) / (hardware?.patterns[0].unit ?? 1)));
    const units = [...new Set(sides.flatMap(({ side: { hardware } }) => hardware?.unit ?? []))];
    const known = sides.flatMap(({ grid }) => grid ?? []);

    /** Compute cells for 8 ms, paint, and continue in the next frame. */
    const computeAndPaint = () => {
      const end = performance.now() + 8;
      for (const grid of known) grid.fill(end);
      const done = Math.min(1, ...known.map((grid) => grid.last > grid.first ? grid.done() : 1));
      render(html`<div class="av-zoom" ?hidden=${!known.length}>${buttons.map(
        ([label, title, press]) =>
          button(`map ${label}`, label, title, press, { ariaLabel: title }))
      }</div><div>${sides.map(({ side, grid }, i) => sideMap(side, grid, i, width))}</div><p
        class="av-note av-map-legend" ?hidden=${!known.length}>${done < 1
          ? `Summing up the blocks: ${percent(done, 0)} …`
          : html`${legend(most, colours, units.map((unit) => `${unit}s`).join(" or "))} ${
            lineText()}`}</p>`, host);
      const canvases = (look: string) => host.querySelectorAll<HTMLCanvasElement>(`canvas.${look}`);
      canvases("av-cells").forEach((canvas, i) => known[i].paint(canvas, most, colours));
      canvases("av-shares").forEach((canvas, i) =>
        paintShares(canvas, known[i], getComputedStyle(canvas).color));
      host.dataset.filled = String(done === 1);
      if (done < 1) frame = requestAnimationFrame(computeAndPaint);
    };
    computeAndPaint();
  }

  function sideMap(side: Side, grid: Grid | null, i: number, across: number) {
    const { partition, hardware, label } = side;
    const title = html`${markOf(i)} <span title=${side.description}>${label}</span>`;
    if (!grid || !partition || !hardware)
      return html`<div class="av-map"><div class="av-map-title">${title}</div><p
        class="av-note">${side.missingReason}</p></div>`;
    const { blocks } = partition, { lines: warps, first, last, columns } = grid;
    const perCell = (last - first) / columns;
    const cell = perCell <= 1 ? "A cell is one of them."
      : `A cell is the same warp of up to ${count(Math.ceil(perCell), "block")}: above its most ` +
        `${hardware.unit}s, below their mean.`;
    const share = idleShareText(side);
    const description = `${label}: ${hardware.unit}s of every warp of ${number(blocks)} blocks` +
      (share && `; ${share} of the time is idle`);
    const named = (warp: number) => {
      const text = `warp ${number(warp)}`;
      return textWidth(text) <= LEFT - 6 ? text : number(warp);
    };
    const { row, block } = scene.settings;
    const marked = i ? blocks && partition.blocksOf(partition.positionOf(row))[0] : block;
    return html`<div class="av-map"><div class="av-map-title">${title}: blocks ${
      number(first)} to ${number(last - 1)} across, ${span("warp", 0, warps - 1)} down. ${
      cell}</div><div class="av-map-frame"
      style="margin-left: ${LEFT}px; width: ${across}px" data-first=${named(0)}
      data-last=${warps > 1 ? named(warps - 1) : ""}><canvas class="av-cells" role="img"
      aria-label=${description}
      style="width: ${across}px; height: ${HEIGHT}px"
      @click=${(event: MouseEvent) => i === 0 && act.set({ block: cellAt(event, grid).block })}
      @pointermove=${(event: PointerEvent) => showTooltip(event, side, grid)}
      @pointerleave=${() => act.link.show(null)} tabindex="0" data-lm-suppress-shortcuts="true"
      @keydown=${(event: KeyboardEvent) => onKey(event, side, grid, i)}
      @blur=${() => act.link.show(null)}
      @wheel=${(event: WheelEvent) => {
        if (!event.ctrlKey && !event.altKey) return; // the page scrolls
        event.preventDefault();
        zoom(event.deltaY < 0 ? 0.7 : 1.4, from + cellAt(event, grid).share * (to - from));
      }}></canvas>${first <= marked && marked < last ? html`<div class="av-map-cursor"
      style="left: ${((marked + 0.5 - first) / (last - first)) * 100}%"></div>` : ""}</div><div
      class="av-draw av-map-axis" style="margin-left: ${LEFT}px"
      .innerHTML=${axisOf(grid, across)}></div><div class="av-shares-line" style="margin-left: ${
        LEFT}px; width: ${across}px"><canvas class="av-shares" role="img" tabindex="0"
      data-lm-suppress-shortcuts="true" aria-label="Idle share of each block of ${label}"
      @keydown=${(event: KeyboardEvent) => onKey(event, side, grid, i, true)}
      @blur=${() => act.link.show(null)} @pointerleave=${() => act.link.show(null)}
      @click=${(event: MouseEvent) => i === 0 && act.set({ block: cellAt(event, grid).block })}
      @pointermove=${(event: PointerEvent) => showShare(event, grid)}></canvas></div>${
        worstBlocks(side, grid, i)}</div>`;
  }

  /** What the line in the map is; and where the followed row is, if that is elsewhere. */
  function lineText() {
    const { a, settings: { row, block } } = scene, { partition } = a;
    if (!partition?.blocks) return "";
    const [low, high] = partition.blocksOf(partition.positionOf(row));
    const followed = `the followed row, ${number(row)}`;
    const where = low === undefined ? "" : low <= block && block <= high ? ` and has ${followed}`
      : `; ${followed}, is in ${span("block", low, high)}`;
    return `The line is block ${number(block)}, which is shown${where}.${
      scene.b ? " In the second it is the followed row's block." : ""}`;
  }

  /** Buttons that go through the blocks by their idle share, and a sentence on the one shown. */
  function worstBlocks(side: Side, grid: Grid, i: number) {
    const { first, last } = grid;
    if (grid.done() < 1 || last === first)
      return html`<p class="av-note av-worst">Idle share of each block</p>`;
    const ranking = grid.ranking(), { block } = scene.settings;
    const rank = i ? 0 : ranking.indexOf(block), shown = i ? ranking[0] : block;
    const go = (index: number) => act.set({ block: ranking[clamp(index, 0, ranking.length - 1)] });
    const ofView = first > 0 || last < side.partition!.blocks ? " in view" : "";
    const all = `${count(last - first, "block")}${ofView}`;
    const rankText = rank < 0 ? "is not in view" : placeText(grid, shown, all);
    const sentence = `Block ${number(shown)} ${rankText}. `;
    const reason = blockReason(side, shown);
    return html`<p class="av-note av-worst">${i ? "" : html`${
      button("worst", "Worst block", "The block with the largest idle share", () => go(0))} ${
      button("next worst", "Next worst", "The next block by idle share; of equal shares the longer",
        () => go(rank + 1), { disabled: rank < 0 || rank + 1 >= ranking.length })} `}${
      sentence}${reason}</p>`;
  }

  function cellAt(event: PointAt, grid: Grid) {
    const { first, last, columns, lines } = grid;
    const area = (event.target as Element).getBoundingClientRect();
    const share = clamp((event.clientX - area.left) / area.width, 0, 0.999999);
    const line = Math.floor(((event.clientY - area.top) / area.height) * lines);
    const column = Math.floor(share * columns), under = first + Math.floor(share * (last - first));
    const block = clamp(under, ...blocksIn(grid, column, under));
    return { column, line: clamp(line, 0, lines - 1), share, block };
  }

  const cursors = [{ column: 0, line: 0 }, { column: 0, line: 0 }]; // of the keys, in each map

  /** Move from cell to cell by arrow keys; Enter chooses a block, plus and minus zoom. */
  function onKey(event: KeyboardEvent, side: Side, grid: Grid, i: number, ofShares = false) {
    const { columns, lines, first, last } = grid, cursor = cursors[i];
    const [across, down] = ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1],
      ArrowDown: [0, 1], PageUp: [-50, 0], PageDown: [50, 0], Home: [-columns, 0],
      End: [columns, 0] } as Record<string, number[]>)[event.key] ?? [0, 0];
    const share = (cursor.column + 0.5) / columns;
    if (event.key === "Enter" && i === 0)
      act.set({ block: first + Math.floor(share * (last - first)) });
    else if (event.key === "+" || event.key === "-")
      zoom(event.key === "+" ? 0.5 : 2, from + share * (to - from));
    else if (!across && !down) return;
    cursor.column = clamp(cursor.column + across, 0, columns - 1);
    cursor.line = clamp(cursor.line + down, 0, lines - 1);
    event.preventDefault();
    event.stopPropagation();
    const box = (event.target as Element).getBoundingClientRect();
    const at = {
      target: event.target, clientX: box.left + ((cursor.column + 0.5) / columns) * box.width,
      clientY: box.top + ((cursor.line + 0.5) / lines) * box.height,
    };
    if (ofShares) showShare(at, grid);
    else showTooltip(at, side, grid);
  }

  /** First and last block of a column. */
  function blocksIn(
    { first, last, columns }: Grid, column: number, block: number,
  ): [number, number] {
    if (last - first <= columns) return [block, block];
    const blockAt = (edge: number) => first + Math.ceil((edge * (last - first)) / columns);
    const begin = blockAt(column);
    return [begin, Math.max(begin, blockAt(column + 1) - 1)];
  }

  function showShare(event: PointAt, grid: Grid) {
    const { column, block } = cellAt(event, grid), [begin, end] = blocksIn(grid, column, block);
    const [most, mean] = grid.columnShares(column);
    const share = percent(grid.shareOf(begin));
    const sentence = begin === end
      ? `Block ${number(begin)}: ${share} of its warps' time is idle.`
      : `${span("Block", begin, end)}: ${percent(mean)} of their warps' time is idle on average, ` +
        `${percent(most)} at most.`;
    act.link.show({ sentence }, { x: event.clientX, y: event.clientY,
      target: event.target as Element });
  }

  function showTooltip(event: PointAt, { hardware }: Side, grid: Grid) {
    const { unit } = hardware!, { column, line, block } = cellAt(event, grid);
    const [begin, end] = blocksIn(grid, column, block), several = end > begin;
    const most = grid.most(column, line);
    const share = several ? grid.columnShares(column)[1] : grid.shareOf(begin);
    const mean = rounded(grid.mean(column, line), 1), units = mean === 1 ? unit : `${unit}s`;
    const sentence = `${several ? span("Block", begin, end) : `Block ${number(block)}`}, ` +
      `warp ${line}: ${several ? `${mean} ${units} on average, ${number(most)} at most`
        : count(most, unit)}. ${percent(share)} of the ${
        several ? "blocks' warp time is idle on average" : "block's warp time is idle"}.`;
    act.link.show({ sentence }, { x: event.clientX, y: event.clientY,
      target: event.target as Element });
  }

  return draw;
};

/** The place of a block among all by its idle share; equal shares have the same place. */
function placeText(grid: Grid, block: number, all: string) {
  const { more, equal } = grid.placeOf(block), share = grid.shareOf(block);
  const time = `for ${percent(share)} of its warps' time`, others = `${count(equal, "other")}`;
  if (share < SAME) return `never idles${equal ? `, like ${others}` : ""} of ${all}`;
  if (!more) return `idles most of ${all}${equal ? `, together with ${others}` : ""}: ${time}`;
  return `idles ${time}${equal ? `, like ${others}` : ""}: ${number(more)} of ${all} ${
    more > 1 ? "idle" : "idles"} more`;
}

/** Why warps of a block idle: how many have no work, and how many less than the busiest. */
function blockReason(side: Side, block: number) {
  const { steps, most, allBusiest } = workOf(side, side.partition!, block);
  const without = steps.filter((load) => !load).length;
  const fewer = steps.filter((load) => load && load < most).length;
  if (!without && !fewer) return "Every warp has as much.";
  const have = (warps: number, what: string) =>
    warps ? [`${count(warps, "warp")} ${warps > 1 ? "have" : "has"} ${what}`] : [];
  const reasons = [...have(without, "no work"), ...have(fewer, "less")].join(", ");
  return `${reasons}; ${workersText("warp", allBusiest)} ${
    allBusiest.length > 1 ? "have" : "has"} ${count(most, side.hardware!.unit)}.`;
}

/** The axis of block numbers below a map. */
function axisOf({ first, last }: Grid, across: number) {
  const x = axis(first, last, 0, across);
  const ticks = ticksOf(x).filter((value) => Number.isInteger(value) && value < last);
  const drawn = ticks.map((value) => path(`M${x(value) + 0.5} 0v4`, { class: "av-frame" }) +
    mutedText(x(value), 16, number(value), anchorIn(x(value), 24, across - 24)));
  return picture(across, 32, drawn.join("") + mutedText(across / 2, 30, "block", "middle"),
    "numbers of the blocks");
}

function legend(most: number, colours: string[], units: string) {
  const levels = colours.map((_, i) => Math.ceil(most ** (i / colours.length) - 1e-9));
  return html`<span class="av-swatch av-idle"></span>idle ${levels.map((least, i) =>
    levels[i + 1] === least ? "" : html`<span class="av-pair"><span class="av-swatch"
    style="background:${colours[i]}"></span>${short(least)}</span> `)} ${units} and more. A block
    lasts as long as its warp with the most; one that has fewer idles.
    Click to choose a block; Ctrl and the wheel look closer.`;
}
