// To keep and to share: the call that gives this state, pictures of views, a tour, the terms.

import { button, html, render } from "./controls";
import documentFrame from "./document.html";
import fallbackFrame from "./fallback.html";
import { room, safe, words } from "./marks";
import { count, named, number, waitingOf } from "./numbers";
import { textOf } from "./pack";
import * as times from "./times";
import type { Scene, Side, Strategy, Value } from "./types";

/** A value as Python writes it in a call. */
const python = (value: Value) =>
  typeof value === "string" ? `"${value}"` : times.python(value);

/** The call that opens the explorer as it is now. */
export function codeOf({ settings, operation, a, b, first, strategies }: Scene) {
  const changed = (side: Side, strategy: Strategy) => strategy.parameters
    .filter(({ name, default: usual }) => side.parameters[name] !== usual)
    .map(({ name }) => [name, python(side.parameters[name])]);
  const spmm = operation.name === "spmm"; // of other operations a strategy says which is meant
  const parts = [python(settings.graph), spmm ? `first=${python(settings.first)}`
    : `find_strategy(${python(settings.first)}, ${python(operation.name)})`,
  ...changed(a, first).map(([name, value]) => `${name}=${value}`),
  `second=${python(settings.second)}`];
  const pinned = b ? changed(b, strategies.find(({ name }) => name === b.strategy)!) : [];
  if (pinned.length)
    parts.push(`pinned={${pinned.map(([name, value]) => `"${name}": ${value}`).join(", ")}}`);
  parts.push(`n_cols=${settings.nCols}`, `row=${settings.row}`);
  const [low] = a.partition?.blocks ? a.partition.blocksOf(a.positionOf(settings.row)) : [];
  if (settings.block !== (low ?? 0)) parts.push(`block=${settings.block}`); // of a row in several
  const ruled = [a, b].flatMap((side, i) => {
    const chosen = Object.entries(side?.parameters ?? {}).flatMap(([name, value]) =>
      value === null && side!.resolved[name] !== undefined
        ? [`${name}=${python(side!.resolved[name])}`] : []);
    return chosen.length ? (i ? "of the second " : "") + chosen.join(", ") : [];
  });
  const call = `accelviz.explore(${parts.join(", ")})` +
    (ruled.length ? `  # by rule: ${ruled.join("; ")}` : "");
  return spmm ? call : `from accelviz.strategies import find_strategy\n${call}`;
}

export async function copyText(text: string) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // a page from a file may not
    return false;
  }
}

function download(blob: Blob, name: string) {
  const link = Object.assign(document.createElement("a"),
    { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// What the page's styles say of every mark, written into the marks, as a file has no styles.
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family",
  "font-size", "font-weight", "text-anchor", "paint-order", "stroke-linejoin"];
const MARGIN = 20; // pixels around the pictures

function withStyles(svg: SVGElement) {
  const copy = svg.cloneNode(true) as SVGElement, to = copy.querySelectorAll<SVGElement>("*");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  svg.querySelectorAll("*").forEach((mark, i) => {
    const styles = getComputedStyle(mark);
    for (const name of STYLES) to[i].style.setProperty(name, styles.getPropertyValue(name));
  });
  return copy;
}

/** Words in as many lines as the width needs. */
function linesOf(text: string, width: number, size: number) {
  const lines: string[] = [];
  for (const word of text.trim().split(/\s+/)) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && room(longer, size) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** The text of an element without its buttons. */
function textWithoutButtons(part: Element) {
  const copy = part.cloneNode(true) as Element;
  for (const buttons of copy.querySelectorAll(".av-presses")) buttons.replaceWith(".");
  return copy.textContent;
}

const PICTURED = "svg, canvas, .av-heading, .av-name, .av-map-title, .av-below, .av-note";

/** A picture of what is seen: `heading` above (the first line bold), then pictures and their
 *  captions where they stand on the page; canvases as pictures in it. */
function svgOf(host: HTMLElement, heading: string[]) {
  const area = host.getBoundingClientRect();
  const panel = getComputedStyle(host.closest(".av-panel")!);
  const width = Math.ceil(area.width + 2 * MARGIN);
  let top = MARGIN, text = "";
  const write = (
    said: string, x: number, y: number, wide: number, size: number, weight: string, fill: string,
  ) => linesOf(said, wide, size).reduce((at, line) => {
    const look = { "font-size": size, "font-weight": weight, fill };
    text += words(x, at + size, line, "start", look);
    return at + 1.4 * size;
  }, y);
  heading.forEach((line, i) => {
    top = write(line, MARGIN, top, area.width, i ? 13 : 16, i ? "400" : "600", panel.color);
  });
  top += heading.length ? 14 : 0;
  // The row's sentence is in the heading: what stood below it moves up.
  const [way, why] = host.querySelectorAll<HTMLElement>(".av-answer > *");
  const gone = way ? way.offsetHeight + why.offsetHeight : 0;
  const from = way ? way.getBoundingClientRect().top : Infinity;
  for (const part of host.querySelectorAll(PICTURED)) {
    const box = part.getBoundingClientRect(), look = getComputedStyle(part);
    if (!box.width || !box.height) continue;
    if (part.parentElement!.closest("svg, .av-legend, .av-below, .av-note")) continue;
    const x = box.left - area.left + MARGIN;
    const y = box.top - area.top + top - (box.top > from ? gone : 0);
    if (part instanceof SVGElement) {
      const copy = withStyles(part);
      copy.setAttribute("x", String(x));
      copy.setAttribute("y", String(y));
      text += new XMLSerializer().serializeToString(copy);
    } else if (part instanceof HTMLCanvasElement) {
      text += `<image x="${x}" y="${y}" width="${box.width}" height="${box.height}" ` +
        'preserveAspectRatio="none" style="image-rendering: pixelated" ' +
        `href="${part.toDataURL()}"/>`;
    } else {
      const size = parseFloat(look.fontSize);
      write(textWithoutButtons(part)!, x, y, box.width + 2, size, look.fontWeight, look.color);
    }
  }
  const height = Math.ceil(top + area.height - gone + MARGIN);
  return { width, height, text:
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
    `font-family="${safe(panel.fontFamily)}"><rect width="100%" height="100%" ` +
    `fill="${panel.backgroundColor}"/>${text}</svg>` };
}

/** The heading of a picture: the graph, the strategies with all settings, the row's sentence. */
export function headingOf({ graph, settings, operation, a, b }: Scene, sentence: string) {
  const describe = (side: Side, name: string) => {
    const values = Object.entries(side.parameters).map(([parameter, value]) =>
      named(parameter, value === null ? null : python(value), side.resolved[parameter]));
    return `${name}: ${side.strategy}${values.length ? ` (${values.join(", ")})` : ""}`;
  };
  return [`${graph.name}, ${count(graph.rows, "row")}, ${count(graph.nnz, "nonzero")}, ` +
    `${count(settings.nCols, "column")} of ${operation.reads}`,
  describe(a, "first"), ...(b ? [describe(b, "second")] : []), sentence];
}

export function saveSvg(host: HTMLElement, name: string, heading: string[]) {
  download(new Blob([svgOf(host, heading).text], { type: "image/svg+xml" }), `${name}.svg`);
}

export async function savePng(host: HTMLElement, name: string, heading: string[]) {
  const { text, width, height } = svgOf(host, heading);
  const image = new Image(width, height);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"),
    { width: 2 * width, height: 2 * height });
  const pen = canvas.getContext("2d")!;
  pen.scale(2, 2);
  pen.drawImage(image, 0, 0);
  canvas.toBlob((blob) => download(blob!, `${name}.png`));
}

/** Fill the places of a frame with HTML, as `assets.fill_frame` of Python. */
const fillFrame = (frame: string, parts: Record<string, string>) =>
  frame.replace(/\$(\w+)/g, (_, name) => parts[name]);

/** Save the page as it is now, with the settings it shows and the last trace, as a page of its own;
 *  returns the file's name, or null where the page lacks what is shown: then only Python can. */
export async function saveHtml(host: HTMLElement, scene: Scene, view: string) {
  const { graph, settings, a, b, savedGraph, traced, tracePacked, operation } = scene;
  const style = host.previousElementSibling, data = document.getElementById(`${host.id}-data`);
  const script = data?.nextElementSibling, listed = [a, b].some((side) => side && !side.scheme);
  if (style?.tagName !== "STYLE" || script?.tagName !== "SCRIPT" || listed ||
    graph.name !== savedGraph) return null;
  const waiting = [a, b].flatMap((side) =>
    side ? `${side.label}: ${waitingOf(side, "not known")}` : []).join(", ");
  const fallback = fillFrame(fallbackFrame, {
    graph: safe(graph.name), rows: number(graph.rows), nonzeros: number(graph.nnz),
    waiting: safe(waiting),
  });
  const stored = safe(JSON.stringify({ ...settings, view }));
  const trace = !tracePacked ? document.getElementById(`${host.id}-trace`)?.outerHTML ?? ""
    : traced!.graph !== savedGraph ? ""
      : `<script type="text/plain" id="${host.id}-trace" data-settings="` +
        `${safe(JSON.stringify(traced))}">${await textOf(tracePacked)}</` + "script>";
  const page = `${style.outerHTML}<div class="av-page" id="${host.id}">${fallback}</div>` +
    `<div class="av-stored" hidden data-page="${host.id}" data-settings="${stored}"></div>` +
    `${trace}${data!.outerHTML}${script.outerHTML}`;
  const text = fillFrame(documentFrame, {
    title: safe(`${graph.name}, explored with accelviz`), operation: safe(operation.title), page,
  });
  download(new Blob([text], { type: "text/html" }), `${graph.name}.html`);
  return `${graph.name}.html`;
}

// Where a tour of a minute stops: the group, the element, and what is said there.
const TOUR: [string, string, string][] = [
  ["product", ".av-way-line",
    "One row of the graph is followed. This line says where it goes: to " +
    "a place (its position in the order in which the kernel walks the rows), to a block, to its " +
    "warps, and which of them wait."],
  ["product", ".av-of-block", "A bar is a warp of the block. The block lasts as long as its " +
  "busiest warp; what is hatched is time in which a warp waits."],
  ["product", "[data-control=row]",
    "Drag to follow another row; the arrow keys move by one."],
  ["product", ".av-parameters > *", "These settle how the strategy cuts the work. Drag one, and " +
  "watch time and waiting above. Less waiting is not always less time: Numbers says what else " +
  "costs time."],
  ["balance", "[data-view=map] .av-note", "Above is every warp of every block; these colours say " +
  "how much it has to do. A block whose cells differ waits for the one with the most."],
  ["numbers", "[data-view=statistics]", "All of it in numbers, the first setting beside the " +
  "second. A triangle upwards: the first is better."],
  ["numbers", "[data-control=pin]",
    "This makes the setting the second one, so that the first can " +
    "move on."],
  ["play", "[data-view=play]", "Here the block is run in an emulator, and played request by " +
  "request: what each lane reads, and when a warp waits at a barrier."],
];

export function tour(panel: HTMLElement, choose: (group: string) => void, playable: boolean) {
  const stops = TOUR.filter(([group]) => group !== "play" || playable);
  const box = Object.assign(document.createElement("div"), { className: "av-tour", tabIndex: -1 });
  box.setAttribute("role", "dialog");
  box.setAttribute("aria-label", "tour");
  let at = 0;
  const unmark = () => panel.querySelector(".av-toured")?.classList.remove("av-toured");
  const end = () => {
    unmark();
    box.remove();
  };
  box.onkeydown = (event) => {
    if (event.key === "Escape") end();
  };
  const go = (stop: number) => {
    if (stop >= stops.length) return end();
    at = stop;
    const [group, where, said] = stops[at];
    choose(group);
    unmark();
    requestAnimationFrame(() => requestAnimationFrame(() => { // by then the group is drawn
      const target = at === stop && box.isConnected && panel.querySelector<HTMLElement>(where);
      if (!target) return;
      target.classList.add("av-toured");
      const tall = target.offsetHeight > window.innerHeight * 0.7;
      target.scrollIntoView({ block: tall ? "start" : "center" });
    }));
    render(html`<p><b>${at + 1} of ${stops.length}.</b> ${said}</p>${[
      button("back", "Back", "", () => go(at - 1), { disabled: !at }),
      button("next", at + 1 < stops.length ? "Next" : "Done", "", () => go(at + 1)),
      button("end", "End", "", end)]}`, box);
  };
  panel.querySelector(".av-tour")?.remove();
  panel.append(box);
  go(0);
  box.querySelector<HTMLElement>("[data-control=next]")!.focus();
}

/** The meanings of the glossary's terms in a heading or a label. */
export function explained(text: string, glossary: Record<string, string>) {
  return Object.entries(glossary).filter(([term]) =>
    new RegExp(`\\b${term.toLowerCase()}s?\\b`).test(text.toLowerCase()))
    .map(([term, meaning]) => `${term}: ${meaning}`).join("\n");
}
